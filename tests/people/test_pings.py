"""A task tells a dead-man's switch when its executions begin and end, and a user's reaches nobody else's endpoint."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.authorities import as_user
from tests.cases import try_each

from cloudsched import App, Cancel, Context, Settings, Task
from cloudsched.config.access import Access
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.deliveries.fields import Ping, PingEvent
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

app = App(Settings())
URL = "https://hc.example/id"
HOUR = timedelta(hours=1)


app.handler("say", access="users")(lambda: {"secret": "of the result"})


@app.handler("broken", retry=2)
def broken() -> None:
    """Fail."""
    raise ValueError("secret of the error")


app.handler("stop")(lambda: Cancel("there is nothing to do"))


@app.handler("nap")
def nap(ctx: Context) -> None:
    """Sleep durably, and succeed."""
    ctx.sleep(2 * HOUR)


def make(sim: Simulation, handler: str = "say", **more: Any) -> Task:
    fields: dict[str, Any] = {"owner": "ada", "title": "Plants", "schedule": sim.now, "ping": {"url": URL}}
    return app.create(handler=handler, **{**fields, **more})


def list_pings(sim: Simulation) -> list[str]:
    return [each.address.removeprefix("https://hc.example") for each in sim.sent("PING")]


@pytest.mark.parametrize(
    ("handler", "pings"),
    [("broken", ["/id/start", "/id/fail"]), ("nap", ["/id/start", "/id"]), ("stop", [])],
)
def test_each_execution_is_told_of_once(sim: Simulation, handler: str, pings: list[str]) -> None:
    """Its beginning and its end, whatever its attempts and suspensions; nothing of what was cancelled at once."""
    make(sim, handler)
    sim.advance(3 * HOUR)
    assert list_pings(sim) == pings


def test_a_success_that_comes_at_once_is_told_last(sim: Simulation) -> None:
    """A start that is late is left out: after the success it would say that the execution hangs."""
    make(sim)
    sim.advance(HOUR)
    assert list_pings(sim)[-1] == "/id"
    assert list_pings(sim).count("/id") == 1


def test_a_start_that_cannot_be_sent_in_time_is_given_up(sim: Simulation) -> None:
    """The end is told when the switch answers again, within an hour."""
    sim.channel("PING").is_down = True
    make(sim, "nap")
    sim.advance(HOUR)
    sim.channel("PING").is_down = False
    sim.advance(2 * HOUR)
    assert list_pings(sim) == ["/id"]


def test_what_is_posted_names_the_execution_and_nothing_else(sim: Simulation) -> None:
    """Whoever runs the switch learns no payload, result or error."""
    for handler in ("say", "broken"):
        make(sim, handler, payload={})
    sim.advance(HOUR)
    for each in sim.sent("PING"):
        assert (
            each.body
            == f"{each.body.split()[0]} task={each.message.data['taskId']} execution={each.message.data['executionId']}"
        )
        assert "secret" not in repr(each)


def test_what_was_missed_is_a_failure_and_what_was_skipped_is_nothing(sim: Simulation) -> None:
    """An execution that expired did not run; one that a pause has skipped was not to run."""
    sim.queue.is_down = True
    make(sim, expiration=60)
    sim.advance(HOUR)
    sim.queue.is_down = False
    sim.advance(HOUR)
    assert list_pings(sim) == ["/id/fail"]


@pytest.mark.parametrize("is_down", [False, True])
def test_a_switch_that_fails_changes_nothing_for_the_execution(sim: Simulation, is_down: bool) -> None:  # noqa: FBT001
    """The execution succeeds at its instant, its record says so, and the ping's own task ends."""
    sim.channel("PING").is_down = is_down
    task = make(sim)
    sim.advance(24 * HOUR)
    (execution,) = sim.executions(task.id)
    assert (execution.status, execution.is_delivered, len(execution.attempts)) == ("SUCCEEDED", False, 1)
    told = {each.status for each in app.deliveries(task.id, execution.id) if each.channel == "PING"}
    assert ("SENT" in told) == (not is_down)


def test_addresses_with_a_query_say_each_event_themselves() -> None:
    """As Cronitor and Uptime Kuma want them; nothing is added to a query."""
    plain = Ping(url="https://hc.example/id/")
    assert [plain.address(each) for each in PingEvent] == [
        "https://hc.example/id/start",
        "https://hc.example/id/",
        "https://hc.example/id/fail",
    ]
    query = Ping(url="https://kuma.example/push/t?status=up", failure_url="https://kuma.example/push/t?status=down")
    assert [query.address(each) for each in PingEvent] == [None, query.url, query.failure_url]


@try_each(
    "hosts, webhook, url, arrives",
    [
        ((), None, URL, False),
        ((), "https://hc.example/hook", URL, True),
        ((), "https://hc.example:8443/hook", URL, False),
        (("hc.example",), None, URL, True),
        (("hc.example",), None, "http://hc.example/id", False),
        (("hc.example",), None, "https://hc.example:8443/id", False),
        (("hc.example",), None, "https://hc.example.evil.example/id", False),
        (("hc.example",), None, "https://hc.example@evil.example/id", False),
        (("hc.example",), None, "https://[::1/id", False),
    ],
)
def test_a_users_ping_reaches_only_what_is_theirs_or_allowed(
    hosts: tuple[str, ...], webhook: str | None, url: str, *, arrives: bool
) -> None:
    """Else the server would knock on any door for them. Looked at when it is sent, so that a change counts."""
    with Simulation(app, access=replace(Access(open=True), ping_hosts=hosts)) as sim:
        if webhook is not None:
            PeopleWiring.of(app.container).people.put(
                "ada", PersonSpec.model_validate({"webhook": {"url": webhook, "verified": True}}), by=OWN_CODE
            )
        fields = {"owner": "ada", "title": "Plants", "handler": "say", "ping": {"url": url}}
        as_user(app).put(app.read_draft({**fields, "schedule": {"at": sim.now.isoformat()}}))
        sim.advance(HOUR)
        assert (url in [each.address for each in sim.sent("PING")]) == arrives
        assert bool(sim.sent("PING")) == arrives
