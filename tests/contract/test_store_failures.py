"""Failures of Firestore's calls, injected between the store and the emulator, before and after a write took effect."""

from __future__ import annotations

import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest

from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.firestore.task_counter import FirestoreTaskCounter
from cloudsched.domain.transitions.locks import Holder, Lock
from cloudsched.engine.ports.store import TaskQuery, VersionedLock
from cloudsched.errors import StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import MakeTask

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
C = grpc.StatusCode
TRANSIENT = (C.ABORTED, C.RESOURCE_EXHAUSTED, C.UNAVAILABLE, C.DEADLINE_EXCEEDED)
LOST_RACE = (C.FAILED_PRECONDITION, C.NOT_FOUND, C.ALREADY_EXISTS)
When = Literal["before", "after"]


class FaultyProxy(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """Passes calls on to the emulator, and fails some of them before or after they took effect."""

    def __init__(self, address: str) -> None:
        self.calls: Counter[str] = Counter()
        self.failures: list[tuple[grpc.StatusCode, When]] = []
        self._emulator = grpc.insecure_channel(address)

    def service(self, details: Any) -> Any:  # noqa: ANN401 - gRPC's own
        name = details.method.rpartition("/")[2]
        is_stream = name in {"RunQuery", "RunAggregationQuery"}
        call = (self._emulator.unary_stream if is_stream else self._emulator.unary_unary)(details.method)
        metadata = [(key, value) for key, value in details.invocation_metadata if key != "user-agent"]

        def answer(request: bytes, context: Any) -> list[bytes]:  # noqa: ANN401 - gRPC's own
            self.calls[name] += 1
            code, when = self.failures.pop(0) if self.failures else (None, "before")
            if code is not None and when == "before":
                context.abort(code, "injected")
            try:
                result = call(request, metadata=metadata)
                responses = list(result) if is_stream else [result]
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
            if code is not None:
                context.abort(code, "injected")
            return responses

        if is_stream:
            return grpc.unary_stream_rpc_method_handler(lambda request, context: iter(answer(request, context)))
        return grpc.unary_unary_rpc_method_handler(lambda request, context: answer(request, context)[0])

    def close(self) -> None:
        self._emulator.close()


@pytest.fixture
def proxy(firestore_address: str) -> Iterator[tuple[FaultyProxy, str]]:
    handler = FaultyProxy(firestore_address)
    server = grpc.server(ThreadPoolExecutor(4), handlers=(handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler, f"127.0.0.1:{port}"
    server.stop(None).wait()
    handler.close()


def open_store(address: str, deadline: timedelta = timedelta(minutes=1)) -> FirestoreStore:
    return FirestoreStore(project=f"demo-{uuid.uuid4().hex[:20]}", emulator=address, deadline=deadline)


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
def test_contention_and_overload_are_retried(
    proxy: tuple[FaultyProxy, str], make_task: MakeTask, code: grpc.StatusCode, when: When, *, is_new: bool
) -> None:
    """A commit that had no effect succeeds on retry; one that took effect conflicts with itself and is stored."""
    handler, address = proxy
    store = open_store(address)
    task = make_task()
    version = None if is_new else store.commit(task, None)
    changed = task.model_copy(update={"title": "changed"})
    handler.calls.clear()
    handler.failures = [(code, when)] * 2
    if when == "before":
        committed = store.commit(changed, version)
        assert handler.calls["Commit"] == 3
    else:
        with pytest.raises(VersionConflict):
            store.commit(changed, version)
        assert handler.calls["Commit"] == 2
        handler.failures.clear()
        committed = None
    stored = store.load(task.id)
    assert stored is not None
    assert stored.task == changed
    assert committed in {None, stored.version}
    store.close()


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
def test_committing_a_lock_is_retried_like_a_task(
    proxy: tuple[FaultyProxy, str], code: grpc.StatusCode, when: When
) -> None:
    """It is written once; a write that took effect conflicts with itself."""
    handler, address = proxy
    store = open_store(address)
    lock = Lock(key="k", holders=(Holder(task_id="t", execution_id="e", until=NOW),))
    handler.failures = [(code, when)]
    if when == "before":
        store.commit_lock(VersionedLock(lock, None))
    else:
        with pytest.raises(VersionConflict):
            store.commit_lock(VersionedLock(lock, None))
    assert handler.calls["Commit"] == 2
    assert store.load_lock("k").lock == lock
    store.close()


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
def test_reads_are_retried(proxy: tuple[FaultyProxy, str], make_task: MakeTask, code: grpc.StatusCode) -> None:
    """Documents and lists are read once the service recovers."""
    handler, address = proxy
    store = open_store(address)
    task = make_task()
    store.commit(task, None)
    handler.failures = [(code, "before"), (code, "after")]
    stored = store.load(task.id)
    assert stored is not None
    assert stored.task == task
    handler.failures = [(code, "before"), (code, "after")]
    assert store.list_tasks(TaskQuery(), limit=1).items == [task]
    assert handler.calls["GetDocument"] == handler.calls["RunQuery"] == 3
    store.close()


@pytest.mark.parametrize("code", LOST_RACE, ids=str)
def test_a_failed_precondition_is_a_conflict_at_once(
    proxy: tuple[FaultyProxy, str], make_task: MakeTask, code: grpc.StatusCode
) -> None:
    """The caller decides again after a lost race; the same commit is never sent twice."""
    handler, address = proxy
    store = open_store(address)
    handler.failures = [(code, "before")]
    with pytest.raises(VersionConflict):
        store.commit(make_task(), None)
    assert handler.calls["Commit"] == 1
    store.close()


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
def test_a_lasting_failure_ends_at_the_deadline(
    proxy: tuple[FaultyProxy, str], make_task: MakeTask, code: grpc.StatusCode
) -> None:
    """After a few retries the error is StoreUnavailable, so the queue redelivers; it is not a conflict."""
    handler, address = proxy
    store = open_store(address, timedelta(seconds=0.7))
    handler.failures = [(code, "before")] * 100
    with pytest.raises(StoreUnavailable):
        store.commit(make_task(), None)
    assert 1 <= handler.calls["Commit"] <= 6
    store.close()


@pytest.mark.parametrize("code", [*TRANSIENT, C.INTERNAL], ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
def test_counting_is_retried_like_any_read(proxy: tuple[FaultyProxy, str], code: grpc.StatusCode, when: When) -> None:
    """A count that failed for contention or overload is made again; any other refusal is raised at once."""
    handler, address = proxy
    counter = FirestoreTaskCounter(project=f"demo-{uuid.uuid4().hex[:20]}", database="(default)", emulator=address)
    handler.failures = [(code, when)]
    assert counter.count_unfinished("ada", 10) == 0
    assert handler.calls["RunAggregationQuery"] == 2
    handler.failures = [(C.PERMISSION_DENIED, when)]
    with pytest.raises(StoreUnavailable, match="PERMISSION_DENIED"):
        counter.count_unfinished("ada", 10)
    assert handler.calls["RunAggregationQuery"] == 3
    counter.close()
