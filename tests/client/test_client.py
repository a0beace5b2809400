"""The client and ``cloudsched tasks``, against a real server of the API."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.client.harness import DAILY, GREET, Flaky, catch_error
from tests.web.callers import DAY, HOUR, MINUTE, SECOND
from werkzeug.wrappers import Request, Response

from cloudsched.cli import tasks as tasks_command
from cloudsched.client import RETRIES, Client, task_inquiries
from cloudsched.client.flow import listing, operation
from cloudsched.client.overview_operations import MAX_BATCH
from cloudsched.config.access import Access
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    InvalidPayload,
    InvalidSchedule,
    KeyReused,
    NotAllowed,
    NotAwaited,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
    UnknownHandler,
)
from cloudsched.local.wsgi_server import WebServer
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation
from cloudsched.web.api import request_bodies
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api


def test_every_client_method_works_against_the_api(client: Client, sim: Simulation) -> None:
    """Everything that the API does, through the client's methods, with typed results."""
    task = client.create(**GREET, schedule=DAILY, expected_duration=30 * SECOND)
    assert task.next_execution_time == datetime(2027, 1, 1, 9, tzinfo=UTC)
    assert task.read_back is not None
    assert task.read_back.description == task.schedule.describe()
    assert task.receipt is not None
    assert task.receipt.due_by is not None
    assert client.get(task.id) == task.model_copy(update={"read_back": None, "receipt": None})
    assert client.pause(task.id).status is TaskStatus.PAUSED
    assert client.resume(task.id).status is TaskStatus.ACTIVE
    assert client.update(task.id, etag=client.get(task.id).etag, title="New", until=None).title == "New"
    assert client.upcoming(task.id, 2) == client.preview(DAILY, 2)
    assert client.describe_schedule("every day at 9", timezone="UTC").description == "every day at 09:00, UTC"
    sim.advance(3 * DAY)
    client.trigger(task.id)
    client.backfill(task.id, datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC))
    sim.advance(MINUTE)
    executions = list(client.executions(task.id))
    assert [execution.status for execution in executions] == ["SUCCEEDED"] * 5
    assert client.execution(task.id, executions[0].id) == executions[0]
    assert list(client.inbox("ada")) == []
    feed = client.create_feed("ada", ["REPORT"])
    assert str(feed.url).endswith(".ics")
    assert [each.id for each in client.feeds("ada")] == [feed.id]
    client.delete_feed(feed.id)
    assert client.feeds("ada") == []
    person = client.put_person("ada", webhook={"url": "https://example.com/"}, channels={"REPORT": ["EMAIL"]})
    assert client.person("ada").channels == {"REPORT": ("EMAIL",)}
    assert client.rotate_webhook_secret("ada") != person.webhook_secret
    task_id = client.erase_person("bob").id
    sim.advance(MINUTE)
    assert client.get(task_id).status is TaskStatus.COMPLETED
    PeopleWiring.of(sim.app.container).person_jobs.export("bob", by=OWN_CODE)
    sim.advance(MINUTE)
    assert '"kind":"task"' in client.export_person("bob")
    client.delete_person("ada")
    assert client.cancel(task.id).status is TaskStatus.CANCELLED
    client.delete(task.id)
    with pytest.raises(NotFound):
        client.get(task.id)


def test_all_pages_are_read(client: Client, flaky: Flaky) -> None:
    """A list has the items of all pages; a page is not requested before it is needed."""
    results = client.create_many({**GREET, "title": f"T{number}"} for number in range(25))
    assert all(result.task for result in results)
    flaky.asked.clear()
    listed = client.tasks(owner="ada", page_size=10)
    first = next(listed)
    assert len(flaky.asked) == 1
    assert len({first.id, *(task.id for task in listed)}) == 25
    assert len(flaky.asked) == 3


def test_many_tasks_are_created_by_several_requests(client: Client, flaky: Flaky) -> None:
    """As many as the API takes go with each; with the same key, nothing is created twice. None at all are refused."""
    assert MAX_BATCH == request_bodies.MAX_BATCH
    tasks = [{**GREET, "title": f"T{number}"} for number in range(2 * MAX_BATCH + 1)]
    flaky.asked.clear()
    results = client.create_many(tasks, idempotency_key="k")
    assert len(flaky.asked) == 3
    created = [result.task for result in results if result.task]
    assert [task.title for task in created] == [task["title"] for task in tasks]
    again = client.create_many(tasks, idempotency_key="k")
    assert [result.task.id for result in again if result.task] == [task.id for task in created]
    with pytest.raises(InvalidInput):
        client.create_many([])


def test_every_failure_raises_an_error_of_the_library(client: Client) -> None:
    """Each problem becomes the class that the library itself would raise, with the same message and attributes."""
    task = client.create(**GREET, id="t", schedule=DAILY)
    seen = client.create(**GREET, idempotency_key="k")
    expected: list[tuple[type[CloudschedError], Callable[[], object], str]] = [
        (NotFound, lambda: client.get("none"), ""),
        (InvalidInput, lambda: client.create(title="x"), "handler"),
        (UnknownHandler, lambda: client.create(**{**GREET, "handler": "x"}), "handler"),
        (InvalidPayload, lambda: client.create(**{**GREET, "payload": {}}), "payload.name"),
        (InvalidSchedule, lambda: client.create(**GREET, schedule={"rrule": "FREQ=NEVER"}), "schedule.rrule"),
        (KeyReused, lambda: client.create(**{**GREET, "title": "Other"}, idempotency_key="k"), "Idempotency-Key"),
        (PreconditionFailed, lambda: client.update("t", etag='"0-0"', title="x"), ""),
    ]
    for kind, call, field in expected:
        error = catch_error(call)
        assert type(error) is kind
        assert getattr(error, "field", "") == field
        assert str(error)
    assert type(catch_error(lambda: client.send_event(task.id, "approved"))) is NotAwaited
    client.cancel(task.id)
    assert type(catch_error(lambda: client.trigger(task.id))) is NotAllowed
    (result,) = client.create_many([{**GREET, "handler": "x"}])
    assert isinstance(result.error, UnknownHandler)
    assert client.create(**GREET, idempotency_key="k") == seen


def test_denied_requests_raise_the_matching_error(simulate: Callable[..., Simulation]) -> None:
    """Missing credentials, missing rights and an exhausted quota each raise their own error."""
    (key, kept), (looking, viewer) = create_key("ada", Role.USER, "ada"), create_key("v", Role.VIEWER)
    access = Access(api_keys=(str(kept), str(viewer)), max_active_tasks=1)
    sim = simulate(access=access)
    with WebServer(Request.application(Flaky(sim))) as server:
        server.serve()
        url = f"http://{server.address}"
        assert type(catch_error(lambda: Client(url).get("x"))) is Unauthenticated
        assert type(catch_error(lambda: Client(url, key=looking).create(**GREET))) is Forbidden
        client = Client(url, key=key)
        client.create(**GREET)
        full = catch_error(lambda: client.create(**GREET))
        assert isinstance(full, QuotaExceeded)
        assert full.retry_after is None


def test_unsafe_requests_are_not_repeated(client: Client, flaky: Flaky, waits: list[float]) -> None:
    """A feed whose response was lost is not made again, because nothing names it. Reads are repeated, a few times."""
    client.create(**GREET, id="t", schedule=DAILY)
    flaky.asked.clear()
    flaky.fail(*[503] * 10)
    assert type(catch_error(lambda: client.create_feed("ada"))) is Unavailable
    assert len(flaky.asked) == 1
    assert type(catch_error(lambda: client.get("t"))) is Unavailable
    assert len(flaky.asked) == 1 + 1 + RETRIES
    assert sum(waits) < 10


@pytest.mark.usefixtures("waits")
def test_a_trigger_is_repeated_with_its_key(client: Client, flaky: Flaky) -> None:
    """Under one key, which is made if none is given: so it starts one run, whose execution the answer names."""
    task = client.create(**GREET, id="t", schedule=DAILY)
    flaky.asked.clear()
    flaky.fail(503, 503)
    found = client.trigger(task.id, {"name": "Grace"})
    assert found.triggered is not None
    assert found.triggered.payload == {"name": "Grace"}
    assert len(flaky.asked) == 3
    assert (
        client.trigger(task.id, idempotency_key="k").triggered == client.trigger(task.id, idempotency_key="k").triggered
    )
    assert client.trigger(task.id, {"name": "Mary"}, validate_only=True).triggered is not None
    assert [each.reason for each in client.history(task.id).entries if each.action == "TRIGGERED"] == [
        None,
        "With a payload of its own.",
    ]


def test_redirects_are_not_followed(url: str, flaky: Flaky) -> None:
    """A redirect is not followed: it would pass the token to another server."""
    flaky.fails = [lambda: Response(status=307, headers={"Location": "http://127.0.0.1:1/"})]
    with Client(url, token=lambda: "t-1", platform_token="p-1", key="k-1") as client:  # noqa: S106 - no secrets
        assert type(catch_error(lambda: client.get("x"))) is Unavailable
    sent = flaky.asked[0].headers
    proof = [sent[name] for name in ("Authorization", "X-Serverless-Authorization", "X-Api-Key")]
    assert proof == ["Bearer t-1", "Bearer p-1", "k-1"]


def test_waiting_outlasts_an_outage(client: Client, flaky: Flaky, sim: Simulation, waits: list[float]) -> None:
    """The API may be down, overloaded or over its quota in between; none of that ends the wait."""
    task = client.create(**GREET, schedule={"at": "2027-01-01T00:00:00Z"})
    flaky.fail(*[503, 502, 429] * 4)

    def finish_and_fail() -> Response:
        sim.advance(MINUTE)
        return Response(status=503)

    flaky.fails.append(finish_and_fail)
    assert client.wait(task.id, HOUR).status == "SUCCEEDED"
    assert len(waits) == 13


def test_wait_ends_in_time_if_the_server_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each poll is one request, which may take hardly longer than the time that is left."""
    monkeypatch.setattr(task_inquiries, "MIN_POLL_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent, Client(f"http://127.0.0.1:{silent.getsockname()[1]}") as it:
        with pytest.raises(Unavailable):
            it.wait("x", timedelta(0))
        silent.settimeout(0)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_wait_raises_a_timeout_if_the_api_ever_responded(client: Client, flaky: Flaky) -> None:
    """An outage at the end of the wait does not change the error."""
    task = client.create(**GREET, schedule=DAILY)
    flaky.fails = [lambda: serve_api(flaky.sim.app, flaky.asked[-1])] + [lambda: Response(status=503)] * 50
    with pytest.raises(TimeoutError, match=r"within 0\.1 s"):
        client.wait(task.id, timedelta(seconds=0.1), every=timedelta(seconds=0.02))


def test_logs_follow_through_an_outage(
    client: Client, flaky: Flaky, sim: Simulation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After one response, later failures are retried; a wrong address raises at once."""
    client.create(**GREET, id="t", schedule=DAILY)
    monkeypatch.setattr(tasks_command, "time", type("", (), {"sleep": lambda _: sim.advance(DAY)}))
    flaky.fail(500)
    with pytest.raises(Unavailable):
        next(tasks_command.follow_executions(client, "t", 20, once=False))
    sim.advance(10 * HOUR)
    followed = tasks_command.follow_executions(client, "t", 20, once=False)
    assert next(followed).id == "20270101T090000Z"
    flaky.fail(500)
    assert next(followed).id == "20270102T090000Z"
    assert "will retry: The API at" in capsys.readouterr().err


@pytest.mark.parametrize("user", ["ada", "auth0|5f7c", "ada@example.com", "Zoë, the 100 %", "日本", "a&b=c+d;e"])
def test_it_has_the_authority_of_the_user(sim: Simulation, client: Client, user: str) -> None:
    """It creates tasks of theirs and finds no others; the client from which it comes is what it was."""
    acting = client.acting_for(user)
    created = acting.create(title="Mine", handler="greet", payload={"name": "Ada"})
    other = client.create(title="Not mine", handler="greet", payload={"name": "Ada"}, owner="bob")
    assert sim.app.get(created.id).owner == created.owner == user
    assert [each.id for each in acting.tasks()] == [created.id]
    with pytest.raises(NotFound):
        acting.get(other.id)
    assert {each.id for each in client.tasks()} == {created.id, other.id}
    assert client.acting_for("bob").get(other.id).id == other.id


NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_everything_that_is_listed_can_be_read(client: Client, sim: Simulation) -> None:
    """What ran, what will run, what waits, who works, what is counted, what may be named."""
    fields: dict[str, Any] = {"owner": "ada", "handler": "greet", "payload": {"name": "Ada"}}
    client.create(title="Now", id="now", labels=["team=a"], category="REPORT", **fields)
    client.create(title="Work", id="work", pull="gpu", lock_key="printer", **fields)
    client.create(title="Later", id="later", schedule="every day at 9", **fields)
    sim.advance(6 * MINUTE)
    (ran,) = client.find_executions(label="team=a", since=NOW, until=NOW + DAY)
    assert (ran.task_id, ran.title, ran.status) == ("now", "Now", ExecutionStatus.SUCCEEDED)
    assert (ran.category, list(client.find_executions(category=Category.REPORT))) == (Category.REPORT, [ran])
    assert list(client.find_executions(category="ANALYSIS")) == []
    coming = list(client.occurrences(NOW + 2 * DAY, owner="ada", since=NOW))
    assert [(one.task_id, one.utc) for one in coming] == [
        ("later", NOW + 9 * HOUR),
        ("later", NOW + 33 * HOUR),
    ]
    assert [(one.queue, one.waiting.value) for one in client.queues()] == [("gpu", 1)]
    assert [one.title for one in client.queued_tasks("gpu")] == ["Work"]
    assert (list(client.locks()), client.workers()) == ([], [])
    assert client.claim("gpu", worker="box")
    assert [[one.task_id for one in lock.holders] for lock in client.locks()] == [["work"]]
    assert [(one.worker, one.is_listening) for one in client.workers()] == [("box", True)]
    assert client.overview("ada").tasks[TaskStatus.COMPLETED].value == 1
    assert client.change_cursor() == client.change_cursor()
    assert "greet" in [one.name for one in client.handlers()]


def test_all_that_match_are_changed(client: Client, sim: Simulation) -> None:
    """Without a filter nothing is, and a pause with an end ends by itself."""
    fields: dict[str, Any] = {"owner": "ada", "handler": "greet", "payload": {"name": "Ada"}, "schedule": "every year"}
    for name in ("a", "b"):
        client.create(title="T", id=name, **fields)
    task = client.batch_change("PAUSE", ids=["a", "c"], idempotency_key="k")
    assert client.batch_change("PAUSE", ids=["a", "c"], idempotency_key="k").id == task.id
    sim.advance(MINUTE)
    assert client.wait(task.id, SECOND).content["changed"] == 1
    assert {each.id: each.status for each in client.tasks(handler="greet")} == {"a": "PAUSED", "b": "ACTIVE"}
    with pytest.raises(InvalidInput, match="would match every task"):
        client.batch_change("DELETE")
    client.pause_all("ada", until=NOW + HOUR)
    sim.advance(MINUTE)
    assert client.get("b").paused_until == NOW + HOUR
    sim.advance(HOUR)
    assert {each.id: each.status for each in client.tasks(handler="greet")} == {"a": "PAUSED", "b": "ACTIVE"}
    with pytest.raises(InvalidInput, match="does not go with"):
        client.batch_change("CANCEL", until=NOW + DAY, owner="ada")


def test_an_id_that_would_lead_to_another_operation_is_refused(client: Client, flaky: Flaky) -> None:
    """Servers and libraries take dots and empty parts out of a path, so no method sends one, wherever it has an id."""
    sent = {name for name in dir(Client) if isinstance(inspect.getattr_static(Client, name), operation | listing)}
    sent.remove("export_person")  # it waits until nobody comes
    methods = {name: inspect.signature(getattr(Client, name)).parameters for name in sent}

    def ask(name: str, parameter: str, value: str) -> list[str]:
        """Return the paths that a method asks for, given this for one of its parameters."""
        flaky.asked.clear()
        required = [each for each, one in methods[name].items() if one.default is one.empty and each != "self"]
        result = getattr(client, name)(**{**dict.fromkeys(required, "x"), parameter: value})
        if isinstance(result, Iterator):
            next(result, None)
        return [request.path for request in flaky.asked]

    found = set[tuple[str, str]]()
    for name, parameters in methods.items():
        for parameter in list(parameters)[1:]:
            with suppress(CloudschedError, TypeError, ValueError, AttributeError):
                ask(name, parameter, "marked-id")
            if any("marked-id" in request.path for request in flaky.asked):
                found.add((name, parameter))
    for name, parameter in found:
        for value in ("", ".", ".."):
            with pytest.raises(InvalidInput, match="No task, run, person or event"):
                ask(name, parameter, value)
            assert flaky.asked == []
    some = [("get", "task_id"), ("executions", "task_id"), ("execution", "execution_id"), ("send_event", "event")]
    assert {*some, ("person", "owner"), ("calendar", "calendar_id"), ("queued_tasks", "queue")} <= found
