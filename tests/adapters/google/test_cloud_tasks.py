"""What the Cloud Tasks dispatcher promises beyond the port: the request it sends, one call, and what failures mean."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest
from google.cloud.tasks_v2.types import HttpMethod, cloudtasks, target
from google.cloud.tasks_v2.types import queue as queue_types
from google.cloud.tasks_v2.types import task as task_types
from tests.harness import WAIT_SECONDS

from cloudsched.adapters.google import backoff
from cloudsched.adapters.google import cloud_tasks as cloudtasks_adapter
from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
from cloudsched.domain.documents.policy import Priority
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import QueueUnavailable

AT = datetime(2027, 1, 1, 9, 0, 0, 123456, tzinfo=UTC)
ENVELOPE = QueueMessage("abc-task", AT, b'{"a":1}', "the token")
QUEUES = "projects/p/locations/l/queues"
C = grpc.StatusCode
OVERLOAD = (C.ABORTED, C.RESOURCE_EXHAUSTED, C.UNAVAILABLE, C.DEADLINE_EXCEEDED, C.INTERNAL)


class Fake(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """A fake Cloud Tasks: records every request and responds as the test says."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.metadata: list[dict[str, str]] = []
        self.failures: list[tuple[grpc.StatusCode, str]] = []
        self.silent = 0
        self.end_of_silence = threading.Event()

    def service(self, details: Any) -> Any:  # noqa: ANN401 - gRPC's own
        kind = cloudtasks.CreateTaskRequest if details.method.endswith("CreateTask") else cloudtasks.CreateQueueRequest
        reply = task_types.Task if kind is cloudtasks.CreateTaskRequest else queue_types.Queue

        def answer(request: bytes, context: Any) -> bytes:  # noqa: ANN401 - gRPC's own
            self.requests.append(kind.deserialize(request))
            self.metadata.append(dict(context.invocation_metadata()))
            if self.silent:
                self.silent -= 1
                self.end_of_silence.wait(WAIT_SECONDS)
            if self.failures:
                context.abort(*self.failures.pop(0))
            return bytes(reply.serialize(reply()))

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def fake() -> Iterator[tuple[Fake, str]]:
    handler = Fake()
    server = grpc.server(ThreadPoolExecutor(2), handlers=(handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler, f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.fixture
def dispatcher(fake: tuple[Fake, str]) -> Iterator[CloudTasksDispatcher]:
    """A dispatcher whose attempts do not time out, and so are not retried, when the machine is busy."""
    opened = connect(fake[1])
    yield opened
    opened.close()


def connect(emulator: str, **changes: Any) -> CloudTasksDispatcher:
    """Open a dispatcher. Its tries and its deadline are long, unless they are to be otherwise."""
    patient = {"deadline": timedelta(seconds=2 * WAIT_SECONDS), "attempt_timeout": timedelta(seconds=WAIT_SECONDS)}
    place = {"project": "p", "location": "l", "queue": "q", "url": "https://run.app/x", "emulator": emulator}
    return CloudTasksDispatcher(**{**place, **patient, **changes})


def test_a_dispatch_is_one_request(fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher) -> None:
    dispatcher.create(ENVELOPE)
    (request,) = fake[0].requests
    assert request.parent == f"{QUEUES}/q"
    assert request.task == task_types.Task(
        name=f"{QUEUES}/q/tasks/abc-task",
        http_request=target.HttpRequest(
            url="https://run.app/x",
            http_method=HttpMethod.POST,
            headers={"Content-Type": "application/json", "X-Cloudsched-Token": "the token"},
            body=b'{"a":1}',
        ),
        schedule_time=AT,
        dispatch_deadline=timedelta(minutes=30),
    )
    assert fake[0].metadata[0]["x-goog-request-params"] == "parent=projects%2Fp%2Flocations%2Fl%2Fqueues%2Fq"


def test_the_queue_authenticates_with_an_oidc_token_if_an_invoker_is_set(fake: tuple[Fake, str]) -> None:
    opened = connect(
        fake[1],
        invoker="me@p.iam.gserviceaccount.com",
        audience="https://run.app",
        dispatch_deadline=timedelta(minutes=1),
    )
    opened.create(ENVELOPE)
    task = fake[0].requests[0].task
    opened.close()
    assert task.http_request.oidc_token.service_account_email == "me@p.iam.gserviceaccount.com"
    assert task.http_request.oidc_token.audience == "https://run.app"
    assert task.dispatch_deadline == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("priority", "queue"),
    [(Priority.CRITICAL, "q-critical"), (Priority.HIGH, "q-high"), (Priority.NORMAL, "q"), (Priority.LOW, "q-low")],
)
def test_each_priority_has_its_queue_and_falls_back_to_the_normal_one(
    fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher, priority: Priority, queue: str
) -> None:
    envelope = QueueMessage("n", AT, b"", "t", priority)
    dispatcher.create(envelope)
    assert [request.parent for request in fake[0].requests] == [f"{QUEUES}/{queue}"]
    fake[0].requests.clear()
    fake[0].failures = [(C.NOT_FOUND, "Queue does not exist.")]
    if priority is not Priority.NORMAL:
        dispatcher.create(envelope)
        assert [request.parent for request in fake[0].requests] == [f"{QUEUES}/{queue}", f"{QUEUES}/q"]
        assert fake[0].requests[1].task.name == f"{QUEUES}/q/tasks/n"


MISSING = pytest.mark.parametrize("code", [C.NOT_FOUND, C.PERMISSION_DENIED], ids=str)
"""How Cloud Tasks answers for a queue that does not exist, the latter to a caller with a role on other queues only."""


@MISSING
def test_hops_have_their_queue_or_else_that_of_their_priority(
    fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher, code: grpc.StatusCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deployment without that queue works as before, and asks for it once in some minutes only."""
    now = [1_000.0]
    monkeypatch.setattr(cloudtasks_adapter, "time", SimpleNamespace(monotonic=lambda: now[0]))
    hop = QueueMessage("n", AT, b"", "t", Priority.HIGH, is_hop=True)
    fake[0].failures = [(code, "for a test")]
    parents = []
    for seconds in (0.0, 1.0, cloudtasks_adapter.MISSING_SECONDS):
        now[0] += seconds
        fake[0].requests.clear()
        dispatcher.create(hop)
        parents.append([request.parent.rpartition("/")[2] for request in fake[0].requests])
    assert parents == [["q-hops", "q-high"], ["q-high"], ["q-hops"]]


@MISSING
def test_a_priority_is_spread_over_its_queues(fake: tuple[Fake, str], code: grpc.StatusCode) -> None:
    """Those of its queues that do not exist yet, or not any more, are replaced by its first one."""
    opened = connect(fake[1], queues_per_priority=3)
    messages = [QueueMessage(f"n{number}", AT, b"", "t", Priority.LOW) for number in range(30)]
    for message in messages:
        opened.create(message)
    places = {request.task.name.rpartition("/")[2]: request.parent for request in fake[0].requests}
    assert set(places.values()) == {f"{QUEUES}/q-low", f"{QUEUES}/q-low-q2", f"{QUEUES}/q-low-q3"}
    spread = next(each for each in messages if places[each.name].endswith("q3"))
    fake[0].requests.clear()
    fake[0].failures = [(code, "for a test")]
    opened.create(spread)
    opened.close()
    assert [request.parent for request in fake[0].requests] == [f"{QUEUES}/q-low-q3", f"{QUEUES}/q-low"]


def test_a_caller_without_any_role_is_told_so(fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher) -> None:
    """What is refused everywhere is an error that names the code, not a missing queue."""
    fake[0].failures = [(C.PERMISSION_DENIED, "for a test")] * 2
    with pytest.raises(QueueUnavailable, match="PERMISSION_DENIED"):
        dispatcher.create(QueueMessage("n", AT, b"", "t", Priority.HIGH))


def test_a_name_that_is_taken_is_no_error(fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher) -> None:
    fake[0].failures = [(C.ALREADY_EXISTS, "Requested entity already exists")]
    dispatcher.create(ENVELOPE)
    assert len(fake[0].requests) == 1


def test_a_missing_queue_says_how_to_make_it(fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher) -> None:
    fake[0].failures = [(C.NOT_FOUND, "Queue does not exist.")]
    with pytest.raises(QueueUnavailable, match="gcloud tasks queues create q`"):
        dispatcher.create(ENVELOPE)


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize("code", OVERLOAD, ids=str)
@pytest.mark.parametrize("took_effect", [False, True], ids=["before", "after"])
def test_a_dispatch_is_handed_over_again_since_its_name_makes_that_safe(
    fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher, code: grpc.StatusCode, *, took_effect: bool
) -> None:
    """Contention and overload are retried; if the failed try took effect, the name exists, and that is a success."""
    fake[0].failures = [(code, "for a test"), *([(C.ALREADY_EXISTS, "for a test")] if took_effect else [])]
    dispatcher.create(ENVELOPE)
    assert len(fake[0].requests) == 2


def test_the_normal_queue_takes_over_within_the_same_deadline(
    fake: tuple[Fake, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that turns out not to exist late in the deadline leaves the other one no deadline of its own."""
    now = [0.0]
    stepped = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(backoff, "time", stepped)
    opened = connect(fake[1], deadline=timedelta(seconds=WAIT_SECONDS))
    missing = (C.NOT_FOUND, "Queue does not exist.")
    fake[0].failures = [*[(C.ABORTED, "for a test")] * 3, missing, *[(C.ABORTED, "for a test")] * 100]
    with pytest.raises(QueueUnavailable, match="ABORTED"):
        opened.create(QueueMessage("n", AT, b"", "t", Priority.HIGH))
    opened.close()
    assert now[0] < WAIT_SECONDS


def test_an_attempt_without_a_response_is_retried_before_the_deadline(fake: tuple[Fake, str]) -> None:
    """The attempt times out long before the deadline; on a busy machine a later attempt may time out as well."""
    fake[0].silent = 1
    dispatcher = connect(fake[1], attempt_timeout=timedelta(seconds=1))
    dispatcher.create(ENVELOPE)
    dispatcher.close()
    fake[0].end_of_silence.set()
    assert len(fake[0].requests) >= 2


@pytest.mark.parametrize("code", [C.PERMISSION_DENIED, C.FAILED_PRECONDITION, C.INVALID_ARGUMENT, C.UNAUTHENTICATED])
def test_a_refusal_is_raised_at_once_and_without_the_token(
    fake: tuple[Fake, str], dispatcher: CloudTasksDispatcher, code: grpc.StatusCode
) -> None:
    fake[0].failures = [(code, "for a test")]
    with pytest.raises(QueueUnavailable, match=f"{code.name}: for a test") as caught:
        dispatcher.create(ENVELOPE)
    assert len(fake[0].requests) == 1
    assert "the token" not in str(caught.value)


def test_no_call_takes_longer_than_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where nothing listens, nor where a server accepts the connection and never responds.

    gRPC itself gives up such a connection after twenty seconds, with another code.
    """
    monkeypatch.setattr(cloudtasks_adapter, "DEADLINE", timedelta(hours=1))
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as gone:
        ports = {"DEADLINE_EXCEEDED": silent.getsockname()[1], "UNAVAILABLE": gone.getsockname()[1]}
        gone.close()
        for code, port in ports.items():
            opened = connect(f"127.0.0.1:{port}", deadline=timedelta(seconds=0.3))
            with pytest.raises(QueueUnavailable, match=code):
                opened.create(ENVELOPE)
            opened.close()
