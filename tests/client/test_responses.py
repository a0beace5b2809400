"""How the client treats responses that are not the API's, do not end, or request too long a wait."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest
from tests.authorities import A_USER
from tests.client.harness import DAILY, GREET, IN_BOTH_COLOURS, Flaky, catch_error
from tests.web.callers import DAY, HOUR, SECOND
from werkzeug.wrappers import Response

from cloudsched import App
from cloudsched.client import AsyncClient, Client
from cloudsched.client import flow as client_answers
from cloudsched.client.views import ExplanationView, PersonView, TaskView, reader
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.explanation.findings import Explanation
from cloudsched.domain.responses.api_responses import Person, Task
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import Misconfigured, QuotaExceeded, Unavailable
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation
from cloudsched.web.api.responses import show_person, task_to_json

HTML = "<html>Log in to go on.</html>"
NOT_THE_API: dict[str, Callable[[], Response]] = {
    "a page": lambda: Response(HTML, 200, mimetype="text/html"),
    "a list": lambda: Response("[]", 200, mimetype="application/json"),
    "too deep": lambda: Response("[" * 100_000, 200, mimetype="application/json"),
    "another object": lambda: Response('{"status": "ok"}', 200, mimetype="application/json"),
    "other lists": lambda: Response('{"claims": {}, "results": 7, "tasks": [1], "occurrences": [{}]}', 200),
    "a redirect": lambda: Response("", 302, headers={"Location": "https://login.example"}),
}
CALLS: dict[str, Callable[[Client], object]] = {
    "create": lambda client: client.create(**GREET),
    "create_many": lambda client: client.create_many([GREET]),
    "get": lambda client: client.get("t"),
    "tasks": lambda client: list(client.tasks()),
    "update": lambda client: client.update("t", title="x"),
    "pause": lambda client: client.pause("t"),
    "send_event": lambda client: client.send_event("t", "go"),
    "tree": lambda client: client.tree("t"),
    "executions": lambda client: list(client.executions("t")),
    "execution": lambda client: client.execution("t", "x"),
    "inbox": lambda client: list(client.inbox("ada")),
    "claim": lambda client: client.claim("gpu"),
}


@pytest.mark.parametrize("what", NOT_THE_API)
def test_a_response_not_from_the_api_raises_unavailable(
    client: Client, flaky: Flaky, url: str, waits: list[float], what: str
) -> None:
    """A captive portal's page, or any JSON that was not asked for, is one error for all calls, and says where."""
    for name, call in CALLS.items():
        flaky.fails = [NOT_THE_API[what]]
        error = catch_error(lambda call=call: call(client))  # type: ignore[misc]
        assert type(error) is Unavailable, name
        assert f"The API at {url} cannot be reached: the response is not the API's: " in str(error), name
    assert waits == []


def test_a_deletion_needs_a_response_of_the_api(client: Client, flaky: Flaky) -> None:
    """A page with status 200 has deleted nothing."""
    client.create(**GREET, id="t", schedule=DAILY)
    flaky.fails = [NOT_THE_API["a page"]]
    assert type(catch_error(lambda: client.delete("t"))) is Unavailable
    client.delete("t")


@contextmanager
def serve_slowly(head: bytes) -> Iterator[str]:
    """Serve every client some bytes, and then one byte each twentieth of a second for as long as it listens."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        connection.recv(65536)
                        connection.sendall(head)
                        while not ended.wait(0.05):
                            connection.sendall(b" ")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join(60)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "head",
    [OK + b"X-Long: ", OK + b"Content-Length: 100\r\n\r\n{", OK + b"Transfer-Encoding: chunked\r\n\r\n"],
    ids=["head", "body", "chunks"],
)
@IN_BOTH_COLOURS
def test_a_response_that_does_not_end_is_unavailable(head: bytes, waits: list[float], *, is_async: bool) -> None:
    """The timeout applies to the whole call: not to each of its bytes, nor to each sending of its request."""

    async def retry_async(url: str) -> None:
        async with AsyncClient(url, timeout=0.2) as client:
            await client.retry("t")

    with serve_slowly(head) as where:
        if is_async:
            error = catch_error(lambda: asyncio.run(retry_async(where)))
        else:
            error = catch_error(lambda: Client(where, timeout=0.2).retry("t"))
    assert isinstance(error, Unavailable)
    assert "within 0.2 s" in str(error)
    assert waits == []


def test_an_oversized_response_is_not_read(client: Client, flaky: Flaky, monkeypatch: pytest.MonkeyPatch) -> None:
    """A response larger than any of the API's does not fill the memory."""
    monkeypatch.setattr(client_answers, "MAX_RESPONSE_BYTES", 1000)
    flaky.fails = [lambda: Response(json.dumps({"tasks": [], "more": "x" * 2000}))]
    with pytest.raises(Unavailable, match="longer than 1000 bytes"):
        list(client.tasks())
    assert list(client.tasks()) == []


@pytest.mark.parametrize("proof", ["a\n", "ä", "\ud800", "a\0b"])
def test_credentials_that_fit_no_header_raise_at_once(url: str, flaky: Flaky, proof: str) -> None:
    """A key or token with a line break, say, is refused at once without being repeated; nothing is sent."""
    for named in ({"key": proof}, {"token": proof}, {"platform_token": lambda: proof}):
        error = catch_error(lambda named=named: Client(url, **named).get("t"))  # type: ignore[misc]
        assert isinstance(error, Misconfigured)
        assert proof not in str(error)
    assert flaky.asked == []


def test_a_service_is_not_asked_before_it_said(client: Client, flaky: Flaky, waits: list[float]) -> None:
    """Retry-After is waited for if the timeout leaves time, and else told at once. What is no time is ignored."""
    at = datetime.now(UTC) + 20 * SECOND
    for asked in ("7", format_datetime(at, usegmt=True)):
        flaky.fails = [partial(Response, status=503, headers={"Retry-After": asked})]
        assert list(client.tasks()) == []
    assert 7 <= waits[0] < 8
    assert 15 < waits[1] < 25
    waits.clear()
    flaky.fails = [lambda: Response(status=503, headers={"Retry-After": "3600"})]
    error = catch_error(lambda: list(client.tasks()))
    assert isinstance(error, Unavailable)
    assert (error.retry_after, waits) == (HOUR, [])
    for said, seconds in (("²", None), ("60", 60)):
        flaky.fails = [partial(Response, "{}", 429, {"Retry-After": said})]
        error = catch_error(lambda: client.create(**GREET))
        assert isinstance(error, QuotaExceeded)
        assert (error.retry_after, waits) == (seconds, [])


@pytest.fixture
def content(sim: Simulation) -> dict[str, Any]:
    """Return a task as the API sends it."""
    task = sim.app.create(handler="greet", payload={"name": "Ada"}, owner="ada", schedule="every day at 9", title="T")
    return task_to_json(task)


def test_the_client_reads_by_the_models_that_the_api_answers_with(app: App, content: dict[str, Any]) -> None:
    """Each field of a task, a person and an explanation is written once, and what is read is what was sent."""
    assert issubclass(TaskView, Task)
    assert issubclass(PersonView, Person)
    assert issubclass(ExplanationView, Explanation)
    task = TaskView.from_response(content)
    assert task.to_wire() == content
    assert isinstance(task.schedule, Schedule)
    spec = PersonSpec.model_validate({"email": {"address": "ada@example.com"}, "devices": [{"token": "t"}]})
    sent = show_person(PeopleWiring.of(app.container).people.put("ada", spec, by=A_USER).person).to_wire()
    assert reader(PersonView)(sent).to_wire() == sent


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("category", "GARDENING"),
        ("deliveryChannels", ["PIGEON"]),
        ("schedule", {"at": "when the moon is full"}),
        ("retry", {"maxRetries": "endless"}),
    ],
)
def test_a_value_that_only_a_newer_api_knows_is_kept(content: dict[str, Any], field: str, value: object) -> None:
    """A list of tasks is not lost because one of them has a category that this client does not know."""
    task = TaskView.from_response({**content, field: value})
    assert task.model_dump(by_alias=True, warnings=False)[field] == value
    assert task.title == "T"


def test_fields_that_only_a_newer_api_has_are_kept_at_any_depth(sim: Simulation, content: dict[str, Any]) -> None:
    """In a task, in its schedule, and in an execution, which is the stored document itself."""
    content["schedule"]["leapSeconds"] = "smear"
    task = TaskView.from_response({**content, "mood": "fine"})
    assert (task.model_extra, task.schedule.model_extra) == ({"mood": "fine"}, {"leapSeconds": "smear"})
    sim.advance(DAY)
    sent = next(iter(sim.executions(task.id))).to_wire()
    sent["attempts"][0]["host"] = "box"
    execution = reader(Execution)({**sent, "region": "moon"})
    assert (execution.model_extra, execution.attempts[0].model_extra) == ({"region": "moon"}, {"host": "box"})


@pytest.mark.parametrize(
    ("field", "value"), [("status", "DREAMING"), ("id", None), ("priority", "ULTRA"), ("revision", {})]
)
def test_what_is_no_task_is_refused(content: dict[str, Any], field: str, value: object) -> None:
    """What says which task it is and how it is getting on must be readable; otherwise it may be a proxy's answer."""
    assert TaskView.from_response(content).priority is Priority.NORMAL
    with pytest.raises(Unavailable, match="it is not a task"):
        TaskView.from_response({**content, field: value})
