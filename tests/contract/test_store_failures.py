"""Failures of Firestore's calls, injected between the store and the emulator, before and after a write took effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Literal

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest
from tests.conftest import NOW, MakeExecution, MakeMessage, MakeTask
from tests.contract.conftest import load
from tests.engine.harness import MINUTE
from tests.harness import new_project

from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.domain.documents.execution import Run
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import ArchivedJournal, Commit
from cloudsched.errors import StoreUnavailable, VersionConflict
from cloudsched.features.locks.lock import Holder, Lock, VersionedLock

pytestmark = pytest.mark.usefixtures("skipped_pauses")
C = grpc.StatusCode
TRANSIENT = (C.ABORTED, C.RESOURCE_EXHAUSTED, C.UNAVAILABLE, C.DEADLINE_EXCEEDED)
LOST_RACE = (C.FAILED_PRECONDITION, C.NOT_FOUND, C.ALREADY_EXISTS)
When = Literal["before", "after"]


class FaultyProxy(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """Passes calls on to the emulator, and fails some of them before or after they took effect."""

    def __init__(self, address: str) -> None:
        self.calls: Counter[str] = Counter()
        self.failures: list[tuple[grpc.StatusCode | None, When]] = []
        """What happens to the next calls, one after the other; None lets one pass."""
        self.failing_method: str | None = None
        """The only method that fails; None for any."""
        self._emulator = grpc.insecure_channel(address)

    def service(self, details: Any) -> Any:  # noqa: ANN401 - gRPC's own
        name = details.method.rpartition("/")[2]
        is_stream = name in {"RunQuery", "RunAggregationQuery"}
        call = (self._emulator.unary_stream if is_stream else self._emulator.unary_unary)(details.method)
        metadata = [(key, value) for key, value in details.invocation_metadata if key != "user-agent"]

        def answer(request: bytes, context: Any) -> list[bytes]:  # noqa: ANN401 - gRPC's own
            self.calls[name] += 1
            may_fail = self.failures and self.failing_method in {None, name}
            code, when = self.failures.pop(0) if may_fail else (None, "before")
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
def faulty(firestore_address: str) -> Iterator[tuple[FaultyProxy, FirestoreStore]]:
    handler = FaultyProxy(firestore_address)
    server = grpc.server(ThreadPoolExecutor(4), handlers=(handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    store = FirestoreStore(project=new_project(), emulator=f"127.0.0.1:{port}", deadline=MINUTE)
    yield handler, store
    store.close()
    server.stop(None).wait()
    handler.close()


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
def test_contention_and_overload_are_retried(
    faulty: tuple[FaultyProxy, FirestoreStore], make_task: MakeTask, code: grpc.StatusCode, when: When, *, is_new: bool
) -> None:
    """A commit that had no effect succeeds on retry; one that took effect conflicts with itself and is stored."""
    handler, store = faulty
    task = make_task()
    written = None if is_new else store.commit(Commit(task))
    changed = task.model_copy(update={"title": "changed"})
    handler.calls.clear()
    handler.failures = [(code, when)] * 2
    if when == "before":
        committed = store.commit(Commit(changed, written))
        assert handler.calls["Commit"] == 3
    else:
        with pytest.raises(VersionConflict):
            store.commit(Commit(changed, written))
        assert handler.calls["Commit"] == 2
        handler.failures.clear()
        committed = None
    stored = load(store, task.id)
    assert stored.task == changed
    assert committed in (None, stored)


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
def test_a_lasting_failure_ends_at_the_deadline(
    faulty: tuple[FaultyProxy, FirestoreStore], make_task: MakeTask, code: grpc.StatusCode
) -> None:
    """After a few retries, whose pauses double, the error is StoreUnavailable, so the queue redelivers."""
    handler, store = faulty
    handler.failures = [(code, "before")] * 100
    with pytest.raises(StoreUnavailable):
        store.commit(Commit(make_task()))
    assert 5 <= handler.calls["Commit"] <= 40


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
def test_all_parts_of_a_commit_are_written_once(
    faulty: tuple[FaultyProxy, FirestoreStore],
    make_task: MakeTask,
    make_execution: MakeExecution,
    make_message: MakeMessage,
    code: grpc.StatusCode,
    when: When,
) -> None:
    """Task, record, message, lock and journal are stored together, and the archived journal is gone."""
    handler, store = faulty
    task = make_task()
    entries = [
        JournalEntry(number=number, kind=StepKind.NOW, execution_id=execution, started_at=NOW)
        for number, execution in ((1, "old"), (2, "old"), (1, "new"))
    ]
    written = store.commit(Commit(task, entries=entries[:2]))
    lock = VersionedLock(Lock(key="k", holders=(Holder(task_id=task.id, execution_id="new", until=NOW),)), None)
    record, message = make_execution(task, "old"), make_message(task, "old")
    handler.calls.clear()
    handler.failures = [(code, when)]
    archived = [ArchivedJournal("old", 2)]
    with nullcontext() if when == "before" else pytest.raises(VersionConflict):
        store.commit(Commit(task, written, [record], [message], linked=lock, entries=entries[2:], archived=archived))
    assert handler.calls["Commit"] == 2
    assert store.load_execution(task.id, "old") == record
    assert store.inbox.list(task.owner, limit=5).items == [message]
    assert store.locks.load("k").lock == lock.lock
    assert (list(store.load_journal(task.id, "old")), list(store.load_journal(task.id, "new"))) == ([], entries[2:])


@pytest.mark.parametrize("code", TRANSIENT, ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("failed_commit", [1, 2, 3])
def test_purging_is_retried_like_a_commit(
    faulty: tuple[FaultyProxy, FirestoreStore],
    make_task: MakeTask,
    make_execution: MakeExecution,
    code: grpc.StatusCode,
    when: When,
    failed_commit: int,
) -> None:
    """Whichever of its commits fails, the journal, the records and the task are gone after one call."""
    handler, store = faulty
    task, names = _store_deleted(store, make_task, make_execution)
    handler.calls.clear()
    handler.failing_method = "Commit"
    handler.failures = [*[(None, when)] * (failed_commit - 1), (code, when)]
    store.sweep.purge(task.id)
    assert not handler.failures
    assert handler.calls["Commit"] >= 3
    assert _find_left(store, task.id, names) == []


@pytest.mark.parametrize("code", LOST_RACE, ids=str)
def test_a_purge_that_loses_a_race_stops_and_can_be_repeated(
    faulty: tuple[FaultyProxy, FirestoreStore],
    make_task: MakeTask,
    make_execution: MakeExecution,
    code: grpc.StatusCode,
) -> None:
    """Somebody else changed the task: nothing more is deleted by this call, and the next one removes the rest."""
    handler, store = faulty
    task, names = _store_deleted(store, make_task, make_execution)
    handler.calls.clear()
    handler.failing_method = "Commit"
    handler.failures = [(code, "before")]
    store.sweep.purge(task.id)
    assert handler.calls["Commit"] == 1
    assert _find_left(store, task.id, names) == ["task", "journal", *names]
    store.sweep.purge(task.id)
    assert _find_left(store, task.id, names) == []


def _store_deleted(store: FirestoreStore, make_task: MakeTask, make_execution: MakeExecution) -> tuple[Task, list[str]]:
    """Store a task that is marked as deleted, with an open journal and two records; return it and their ids."""
    task = make_task(deleted_at=NOW, runs=(Run(execution_id="open", scheduled_for=NOW, due_at=NOW, steps=1),))
    entry = JournalEntry(number=1, kind=StepKind.NOW, execution_id="open", started_at=NOW)
    names = ["e1", "e2"]
    store.commit(Commit(task, None, [make_execution(task, name) for name in names], entries=[entry]))
    return task, names


def _find_left(store: FirestoreStore, task_id: str, names: list[str]) -> list[str]:
    left = ["task"] if store.load(task_id) else []
    left += ["journal"] if store.load_journal(task_id, "open") else []
    return left + [name for name in names if store.load_execution(task_id, name)]
