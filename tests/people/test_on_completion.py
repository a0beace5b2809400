"""A task tells its own callback when an execution has ended, and a user's callback reaches only the user's endpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.authorities import as_user

from cloudsched import App, Cancel, Context, EventSender, Retry, Settings, Task
from cloudsched.domain.documents.authority import SenderRole
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import QueueUnavailable
from cloudsched.people.recipients import PeopleRecipients
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation
from cloudsched.testing.simulated_queue import SimulatedQueue

app = App(Settings())
URL = "https://example.com/done"
HOUR = timedelta(hours=1)


app.handler("say", access="users")(lambda: {"plants": 3})


@app.handler("broken", access="users", retry=1)
def broken() -> None:
    """Fail."""
    raise ValueError("no water")


@app.handler("pay", access="users", retry=False)
def pay(payload: dict[str, int]) -> None:
    """Fail, whatever the price."""
    raise ValueError(payload.get("price"))


app.handler("stop")(lambda: Cancel("there are no plants"))


app.handler("wait")(lambda: Retry("not yet", 2 * HOUR))


@app.handler("approve")
def approve(ctx: Context) -> object:
    """Wait for an answer, and return it."""
    return ctx.wait_for("answer")


def make(sim: Simulation, handler: str = "say", url: str = URL, **more: Any) -> Task:
    fields: dict[str, Any] = {"owner": "ada", "title": "Plants", "schedule": sim.now, "on_completion": {"webhook": url}}
    return app.create(handler=handler, **{**fields, **more})


def make_as_user(sim: Simulation, url: str) -> Task:
    fields = {"owner": "ada", "title": "Plants", "handler": "say", "onCompletion": {"webhook": url}}
    return as_user(app).put(app.read_draft({**fields, "schedule": {"at": sim.now.isoformat()}}))[0]


def put_webhook(url: str | None, *, verified: bool = True) -> None:
    fields = {} if url is None else {"webhook": {"url": url, "verified": verified}}
    PeopleWiring.of(app.container).people.put("ada", PersonSpec.model_validate(fields), by=OWN_CODE, may_remove=True)


@pytest.mark.parametrize(
    ("handler", "kind", "data"),
    [
        ("say", "execution.succeeded", {"status": "SUCCEEDED", "content": {"plants": 3}}),
        ("broken", "execution.failed", {"status": "FAILED", "error": {"type": "ValueError", "message": "no water"}}),
        ("stop", "execution.cancelled", {"status": "CANCELLED"}),
    ],
)
def test_the_callback_says_how_the_execution_ended(
    sim: Simulation, handler: str, kind: str, data: dict[str, Any]
) -> None:
    """Once, after the last attempt, and to nobody else."""
    task = make(sim, handler)
    sim.advance(HOUR)
    (sent,) = sim.sent("COMPLETION")
    (execution,) = sim.executions(task.id)
    assert (sent.address, sent.message.kind) == (URL, kind)
    assert sent.message.data.items() >= {"taskId": task.id, "executionId": execution.id, **data}.items()
    assert not sim.sent("WEBHOOK")
    reports = [(each.channel, each.status) for each in app.deliveries(task.id, execution.id) if not each.is_failure]
    assert reports == [("COMPLETION", "SENT")]


def test_executions_that_expired_or_were_skipped_are_told_too(sim: Simulation) -> None:
    """Each record has its callback: those that were missed during a pause as well."""
    hourly = {"rrule": "FREQ=HOURLY;COUNT=5", "dtstart": sim.now.replace(tzinfo=None).isoformat()}
    task = make(sim, schedule=hourly, expiration=60)
    app.pause(task.id)
    sim.advance(3 * HOUR + HOUR / 2)
    app.resume(task.id)
    sim.advance(6 * HOUR)
    kinds = sorted(f"execution.{each.status.lower()}" for each in sim.executions(task.id))
    assert sorted(each.message.kind for each in sim.sent("COMPLETION")) == kinds
    assert len(set(kinds)) == 2


def test_a_task_that_is_cancelled_while_it_waits_says_so(sim: Simulation) -> None:
    """Its open execution ends with it; a task that is deleted says nothing."""
    task, deleted = make(sim, "wait"), make(sim, "wait")
    sim.advance(timedelta(minutes=1))
    app.cancel(task.id)
    app.delete(deleted.id)
    sim.advance(HOUR)
    (sent,) = sim.sent("COMPLETION")
    assert (sent.message.kind, sent.message.data["taskId"]) == ("execution.cancelled", task.id)
    assert sent.message.data["error"]["message"]


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_an_execution_that_is_run_again_is_told_of_once(sim: Simulation, is_cancelled: bool) -> None:  # noqa: FBT001
    """However it ends the second time: by its attempt, or without one."""
    task = make(sim, "broken")
    sim.advance(HOUR)
    app.retry(task.id)
    if is_cancelled:
        app.cancel(task.id)
    sim.advance(HOUR)
    assert [each.status for each in sim.executions(task.id)] == ["CANCELLED" if is_cancelled else "FAILED"]
    assert [each.message.kind for each in sim.sent("COMPLETION")] == ["execution.failed"]


@pytest.mark.parametrize(
    ("own", "url", "arrives"),
    [
        ("https://ada.example.com/hook", "https://ada.example.com/done", True),
        ("https://ada.example.com/hook", "https://ada.example.com:443/done", True),
        ("https://ada.example.com/hook", "https://eve.example.com/done", False),
        ("https://ada.example.com/hook", "https://ada.example.com:8443/done", False),
        ("https://ada.example.com/hook", "http://ada.example.com/done", False),
        ("https://ada.example.com/hook", "https://ada.example.com.evil.example/done", False),
        ("https://ada.example.com/hook", "https://ada.example.com@evil.example/done", False),
        ("https://ada.example.com/hook", "https://ada.example.com:99999/done", False),
        (None, "https://ada.example.com/done", False),
    ],
)
def test_users_call_only_their_own_endpoint(sim: Simulation, own: str | None, url: str, arrives: bool) -> None:  # noqa: FBT001
    """Nobody makes the service post to somebody else: by host, port, scheme or a name within the address."""
    put_webhook(own)
    task = make_as_user(sim, url)
    sim.advance(HOUR)
    assert len(sim.sent("COMPLETION")) == int(arrives)
    (execution,) = sim.executions(task.id)
    (report,) = app.deliveries(task.id, execution.id)
    assert report.status == ("SENT" if arrives else "SUPPRESSED")


def test_a_user_who_names_a_strangers_endpoint_reaches_nobody(sim: Simulation) -> None:
    """Writing down a URL as one's own webhook is no proof that it is: nothing is posted until it has proven it."""
    put_webhook("https://stranger.example.com/hook", verified=False)
    task = make_as_user(sim, "https://stranger.example.com/done")
    as_user(app).patch(task.id, {"deliveryChannels": ["WEBHOOK"]})
    sim.advance(24 * HOUR)
    assert not sim.sent("COMPLETION")
    assert not sim.sent("WEBHOOK")
    (execution,) = sim.executions(task.id)
    assert {each.status for each in app.deliveries(task.id, execution.id)} == {"SUPPRESSED"}


def test_a_webhook_that_is_removed_ends_the_callbacks_of_users(sim: Simulation) -> None:
    """What counts is the person's webhook when the callback is sent."""
    put_webhook("https://ada.example.com/hook")
    sim.channel("COMPLETION").fails(1)
    make_as_user(sim, "https://ada.example.com/done")
    sim.advance(timedelta(seconds=2))
    put_webhook(None)
    sim.advance(24 * HOUR)
    assert not sim.sent("COMPLETION")


def test_a_user_who_edits_a_servers_task_gets_no_further(sim: Simulation) -> None:
    """The edit makes the address a user's."""
    put_webhook("https://ada.example.com/hook")
    task = make(sim, url="https://ada.example.com/done")
    patch = {"onCompletion": {"webhook": "https://eve.example.com/done"}}
    as_user(app).patch(task.id, patch)
    sim.advance(HOUR)
    assert not sim.sent("COMPLETION")


def test_a_user_s_payload_stays_a_user_s_when_it_is_retried(sim: Simulation) -> None:
    """By the user or by a server: the server's endpoint is told of neither attempt, and the record says whose it is."""
    task = make(sim, "pay", "https://bank.example/paid", schedule=sim.now + 24 * HOUR)
    as_user(app).trigger(task.id, {"price": 0})
    sim.advance(HOUR)
    for by in (as_user(app), app):
        by.retry(task.id)
        sim.advance(HOUR)
    (execution,) = sim.executions(task.id)
    assert (execution.status, len(execution.attempts), execution.defined_by) == ("FAILED", 3, "users")
    assert not sim.sent("COMPLETION")


def test_a_server_s_callback_is_signed_with_a_secret_that_no_user_has(sim: Simulation) -> None:
    """The owner has the secret of their own webhook, and could sign what the server's endpoint takes for the truth."""
    put_webhook("https://ada.example")
    kept = PeopleWiring.of(app.container).people.webhook_secrets
    recipients = PeopleRecipients(app.container.store.records, sim.clock, lambda *_: None)

    def sign(url: str, *, is_users: bool) -> tuple[str, ...]:
        found = recipients.callback("ada", url, is_users=is_users)
        assert isinstance(found, tuple)
        return found[0].secrets

    assert sign(URL, is_users=False) == ()
    PeopleWiring.of(app.container).people.put(
        "system", PersonSpec.model_validate({"webhook": {"url": URL}}), by=OWN_CODE
    )
    assert sign(URL, is_users=False) == kept.current("system") != ()
    assert sign("https://ada.example/done", is_users=True) == kept.current("ada") != kept.current("system")


def test_a_queue_that_is_down_is_asked_once_for_all_callbacks(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancel with many of them does not wait for each to fail. The sweep sends what is due."""
    task = make(sim, "say", schedule=sim.now + 100 * HOUR)
    for _ in range(5):
        app.trigger(task.id)
        sim.clock.advance(HOUR / 3600)
    asked = list[object]()

    def refuse(_queue: SimulatedQueue, message: object) -> None:
        asked.append(message)
        raise QueueUnavailable("The queue", "it is down")

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedQueue, "create", refuse)
        app.cancel(task.id)
    assert len(asked) == 1
    sim.advance(HOUR)
    assert [each.message.kind for each in sim.sent("COMPLETION")] == ["execution.cancelled"] * 5


@pytest.mark.parametrize(
    ("role", "subject", "arrives"),
    [
        (SenderRole.OWNER, "user:ada", False),
        (SenderRole.ADMIN, "key:root", True),
        (SenderRole.ADMIN, None, True),
    ],
)
def test_an_event_makes_the_run_its_senders(
    sim: Simulation, role: SenderRole, subject: str | None, *, arrives: bool
) -> None:
    """A result that a user's answer has gone into does not speak with the server's voice."""
    task = make(sim, "approve", "https://bank.example/paid")
    sim.advance(timedelta(minutes=1))
    app.send_event(task.id, "answer", {"price": 0}, sender=EventSender(role=role, subject=subject))
    sim.advance(HOUR)
    (execution,) = sim.executions(task.id)
    assert execution.defined_by == (None if arrives else "users")
    assert bool(sim.sent("COMPLETION")) is arrives
