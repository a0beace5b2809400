"""What the Firestore store promises beyond the port: the stored fields, the RPCs it makes, what failures mean."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest
from google.cloud import firestore
from google.cloud.firestore_v1.types import firestore as messages
from tests.conftest import MakeTask
from tests.harness import new_project

from cloudsched.adapters.firestore import store as firestore_adapter
from cloudsched.adapters.firestore.list_fields import PRIVATE_FIELDS, TaskVersion
from cloudsched.adapters.firestore.protos import Write
from cloudsched.adapters.firestore.rpc import FirestoreRpc
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.domain.documents.document import SCHEMA_VERSION
from cloudsched.domain.documents.execution import Execution, Message
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.errors import InvalidInput, Misconfigured, StoreUnavailable, VersionConflict

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
READ = TaskVersion(7, 0, 500)
"""The version of a task that was read."""
PATIENCE = timedelta(minutes=1)
"""How long a call may take on a busy machine."""


def test_other_clients_read_what_was_written(
    firestore_address: str,
    monkeypatch: pytest.MonkeyPatch,
    make_task: MakeTask,
    make_execution: Callable[..., Execution],
    make_message: Callable[..., Message],
) -> None:
    """Web and mobile clients listen to these documents: camelCase, and Firestore's own types."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
    project = new_project()
    client = firestore.Client(project=project)
    store = FirestoreStore(project=project, emulator=firestore_address, deadline=PATIENCE)
    task = make_task(payload={"at": {"depth": [1, "two", None]}})
    store.commit(Commit(task, None, [make_execution(task, "e1")], [make_message(task, "m1")]))
    found = client.document(f"tasks/{task.id}").get().to_dict()
    assert found is not None
    assert found["nextExecutionTime"] == task.next_execution_time
    assert found["createdAt"] == NOW
    assert found["isOneTime"] is True
    assert found["status"] == "ACTIVE"
    assert found["payload"] == {"at": {"depth": [1, "two", None]}}
    assert found["schedule"]["at"] == task.next_execution_time
    assert found["schemaVersion"] == SCHEMA_VERSION
    private = found.pop("private")
    assert len(private["commitId"]) == 16
    assert private["changed"]["shard"] == 0
    assert set(found) == set(task.to_stored()) - {*PRIVATE_FIELDS}
    active = client.collection("tasks").where(filter=firestore.FieldFilter("status", "==", "ACTIVE")).get()
    assert [each.id for each in active] == [task.id]
    assert client.document(f"tasks/{task.id}/executions/e1").get().get("scheduledFor") == NOW
    assert client.document(f"inboxes/ada/messages/{task.id}-m1").get().get("taskId") == task.id
    store.close()
    client.close()  # type: ignore[no-untyped-call]  # as it is shipped


class Fake(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """Stands in for Firestore: notes every call, and answers as it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.commits: list[Any] = []
        self.metadata: list[dict[str, str]] = []
        self.failures: list[tuple[grpc.StatusCode, str]] = []

    def service(self, details: Any) -> Any:  # noqa: ANN401 - gRPC's own
        name = details.method.rpartition("/")[2]

        def answer(request: bytes, context: Any) -> bytes:  # noqa: ANN401 - gRPC's own
            self.calls.append(name)
            self.metadata.append(dict(context.invocation_metadata()))
            if self.failures:
                context.abort(*self.failures.pop(0))
            if name == "Commit":
                self.commits.append(messages.CommitRequest.deserialize(request))
                return bytes(messages.CommitResponse.serialize({"write_results": [{"update_time": NOW}]}))
            if name == "BatchGetDocuments":
                asked = messages.BatchGetDocumentsRequest.deserialize(request).documents
                answer = {"missing": asked[0], "read_time": NOW}
                return bytes(messages.BatchGetDocumentsResponse.serialize(answer))
            return b""

        if name in {"RunQuery", "BatchGetDocuments"}:
            return grpc.unary_stream_rpc_method_handler(lambda request, context: iter([answer(request, context)]))
        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def fake() -> Iterator[tuple[Fake, FirestoreStore]]:
    handler = Fake()
    limits = (("grpc.max_receive_message_length", -1),)
    server = grpc.server(ThreadPoolExecutor(2), handlers=(handler,), options=limits)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    store = FirestoreStore(project="demo", emulator=f"127.0.0.1:{port}", deadline=PATIENCE)
    yield handler, store
    store.close()
    server.stop(None).wait()


def test_a_load_is_one_read_and_a_commit_one_call(
    fake: tuple[Fake, FirestoreStore],
    make_task: MakeTask,
    make_execution: Callable[..., Execution],
    make_message: Callable[..., Message],
) -> None:
    handler, store = fake
    assert store.load("a") is None
    assert handler.calls == ["BatchGetDocuments"]
    task = make_task()
    store.commit(Commit(task, VersionedTask(task, READ), [make_execution(task)], [make_message(task, "m")]))
    assert handler.calls == ["BatchGetDocuments", "Commit"]
    writes = handler.commits[0].writes
    assert [write.update.name.partition("/documents/")[2] for write in writes] == [
        f"tasks/{task.id}",
        f"tasks/{task.id}/executions/20270101T090000Z",
        f"inboxes/ada/messages/{task.id}-m",
    ]
    assert "update_time" in writes[0].current_document
    assert handler.metadata[-1]["google-cloud-resource-prefix"] == "projects/demo/databases/(default)"
    assert handler.metadata[-1]["x-goog-request-params"] == "database=projects%2Fdemo%2Fdatabases%2F%28default%29"


C = grpc.StatusCode
_AGAIN = 2
_ONCE = 1


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(
    ("code", "calls_of_read", "calls_of_commit"),
    [
        (C.UNAVAILABLE, _AGAIN, _AGAIN),
        (C.RESOURCE_EXHAUSTED, _AGAIN, _AGAIN),
        (C.INTERNAL, _AGAIN, _ONCE),
        (C.UNKNOWN, _ONCE, _ONCE),
        (C.PERMISSION_DENIED, _ONCE, _ONCE),
        (C.UNAUTHENTICATED, _ONCE, _ONCE),
        (C.CANCELLED, _ONCE, _ONCE),
        (C.DEADLINE_EXCEEDED, _AGAIN, _AGAIN),
        (C.ABORTED, _AGAIN, _AGAIN),
    ],
)
def test_a_call_is_retried_where_google_says_so(
    fake: tuple[Fake, FirestoreStore],
    make_task: MakeTask,
    code: grpc.StatusCode,
    calls_of_read: int,
    calls_of_commit: int,
) -> None:
    handler, store = fake
    calls: Sequence[tuple[Callable[[], object], int]] = (
        (lambda: store.load_execution("a", "b"), calls_of_read),
        (lambda: store.list_tasks(TaskQuery(), limit=1), calls_of_read),
        (lambda: store.commit(Commit(make_task())), calls_of_commit),
    )
    for call, expected in calls:
        handler.calls.clear()
        handler.failures = [(code, "for a test")]
        if expected == _ONCE:
            with pytest.raises(StoreUnavailable, match=f"{code.name}: for a test"):
                call()
        else:
            call()
        assert len(handler.calls) == expected


@pytest.mark.parametrize("code", [C.FAILED_PRECONDITION, C.ALREADY_EXISTS, C.NOT_FOUND])
def test_a_commit_that_lost_a_race_is_a_conflict(
    fake: tuple[Fake, FirestoreStore], make_task: MakeTask, code: grpc.StatusCode
) -> None:
    handler, store = fake
    handler.failures = [(code, "for a test")]
    with pytest.raises(VersionConflict):
        store.commit(Commit(make_task(), VersionedTask(make_task(), READ)))
    assert len(handler.calls) == 1


@pytest.mark.parametrize(
    ("code", "details", "error", "hint"),
    [
        (C.NOT_FOUND, "The database (default) does not exist for project demo.", Misconfigured, "databases create"),
        (C.FAILED_PRECONDITION, "The query requires an index.", Misconfigured, "firestore.indexes.json"),
        (C.INVALID_ARGUMENT, "too large", InvalidInput, "too large"),
    ],
)
def test_a_permanent_error_says_what_to_do(
    fake: tuple[Fake, FirestoreStore], code: grpc.StatusCode, details: str, error: type[Exception], hint: str
) -> None:
    handler, store = fake
    handler.failures = [(code, details)]
    with pytest.raises(error, match=hint):
        store.list_tasks(TaskQuery(), limit=1)


def test_a_missing_database_is_no_conflict(fake: tuple[Fake, FirestoreStore], make_task: MakeTask) -> None:
    handler, store = fake
    missing = (C.NOT_FOUND, "The database (default) does not exist for project demo.")
    calls: list[Callable[[], object]] = [lambda: store.load("a"), lambda: store.commit(Commit(make_task()))]
    for call in calls:
        handler.failures = [missing]
        with pytest.raises(Misconfigured, match="databases create"):
            call()


def test_no_call_takes_longer_than_the_deadline(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where nothing listens, nor where a server accepts the connection and never responds."""
    monkeypatch.setattr(firestore_adapter, "DEADLINE", PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as gone:
        ports = [each.getsockname()[1] for each in (silent, gone)]
        gone.close()
        for port in ports:
            store = FirestoreStore(project="demo", emulator=f"127.0.0.1:{port}", deadline=timedelta(seconds=0.1))
            for call in (lambda s=store: s.load("a"), lambda s=store: s.commit(Commit(make_task())), store.check):
                begun = time.monotonic()
                with pytest.raises(StoreUnavailable):
                    call()
                assert time.monotonic() - begun < 15  # gRPC itself gives up after twenty seconds
            store.close()


def test_a_purge_does_not_walk_over_what_it_has_deleted(
    firestore_address: str,
    make_task: MakeTask,
    make_execution: Callable[..., Execution],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each query continues after the last name that was deleted, and there is none after the last batch."""
    monkeypatch.setattr("cloudsched.adapters.firestore.sweep.PURGE_BATCH_SIZE", 2)
    store = FirestoreStore(project=new_project(), emulator=firestore_address, deadline=PATIENCE)
    task = make_task(deleted_at=NOW)
    store.commit(Commit(task, None, [make_execution(task, f"e{number}") for number in range(5)]))
    starts, query = list[str](), FirestoreRpc.query

    def record(self: FirestoreRpc, parent: str, asked: Any) -> Any:  # noqa: ANN401 - protobuf messages
        starts.append("".join(each.reference_value.rpartition("/")[2] for each in asked.start_at.values))
        return query(self, parent, asked)

    monkeypatch.setattr(FirestoreRpc, "query", record)
    store.sweep.purge(task.id)
    assert starts == ["", "e1", "e3"]
    monkeypatch.undo()
    assert store.load(task.id) is None
    assert not store.search.list_executions(task.id, limit=9).items
    store.close()


@pytest.mark.parametrize("is_recreated", [False, True])
def test_executions_of_a_missing_task_are_purged_unless_it_is_recreated(
    firestore_address: str,
    make_task: MakeTask,
    make_execution: Callable[..., Execution],
    monkeypatch: pytest.MonkeyPatch,
    is_recreated: bool,  # noqa: FBT001 - a case
) -> None:
    """Firestore deletes a document without its subcollections."""
    project = new_project()
    store = FirestoreStore(project=project, emulator=firestore_address, deadline=timedelta(minutes=1))
    task = make_task()
    store.commit(Commit(task, None, [make_execution(task, "e")]))
    rpc, commit = (
        FirestoreRpc(f"projects/{project}/databases/(default)", firestore_address, PATIENCE),
        FirestoreRpc.commit,
    )
    rpc.commit([Write(delete=f"projects/{project}/databases/(default)/documents/tasks/{task.id}")])

    def overtaken(self: FirestoreRpc, writes: Sequence[Any]) -> Any:  # noqa: ANN401 - Firestore's response
        monkeypatch.setattr(FirestoreRpc, "commit", commit)
        store.commit(Commit(task, None, [make_execution(task, "e")]))
        return commit(self, writes)

    if is_recreated:
        monkeypatch.setattr(FirestoreRpc, "commit", overtaken)
    store.sweep.purge(task.id)
    assert (store.load(task.id) is not None) is is_recreated
    assert (store.load_execution(task.id, "e") is not None) is is_recreated
    rpc.close()
    store.close()


def test_a_commit_beyond_ten_mebibytes_is_refused_before_it_is_sent(
    fake: tuple[Fake, FirestoreStore], make_task: MakeTask, make_message: Callable[..., Message]
) -> None:
    """Firestore takes no larger request; the error names the largest document. A smaller one is sent."""
    handler, store = fake
    task = make_task()
    messages = [make_message(task, f"m{number:02}", body="x" * 1_000_000) for number in range(11)]
    store.commit(Commit(task, messages=messages[:10]))
    with pytest.raises(InvalidInput, match=rf"^inboxes/ada/messages/{task.id}-m00: is .* bytes"):
        store.commit(Commit(task, messages=messages))
    assert handler.calls == ["Commit"]
