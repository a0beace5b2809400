"""What every store promises to concurrent callers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conftest import NOW, MakeExecution, MakeTask
from tests.contract.conftest import load

from cloudsched.adapters.firestore.rpc import FirestoreRpc
from cloudsched.adapters.sqlite.database import SqliteDatabase
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Run
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.engine.ports.store import Store
from cloudsched.errors import VersionConflict

CALLERS = 8


def commit_concurrently(store: Store, commits: Sequence[Commit]) -> list[VersionedTask | None]:
    """Make all commits at the same time; None stands for a conflict."""
    barrier = threading.Barrier(len(commits))

    def call(each: Commit) -> VersionedTask | None:
        barrier.wait()
        try:
            return store.commit(each)
        except VersionConflict:
            return None

    with ThreadPoolExecutor(len(commits)) as pool:
        return list(pool.map(call, commits))


@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
def test_of_many_that_expect_one_version_exactly_one_wins(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, *, is_new: bool
) -> None:
    for _ in range(10):
        task = make_task()
        written = None if is_new else store.commit(Commit(task))
        claims = [
            Commit(task.model_copy(update={"message": str(n)}), written, [make_execution(task, f"e{n}")])
            for n in range(CALLERS)
        ]
        won = [number for number, outcome in enumerate(commit_concurrently(store, claims)) if outcome is not None]
        stored = load(store, task.id)
        assert won == [int(stored.task.message)]
        assert [each.id for each in store.search.list_executions(task.id, limit=CALLERS).items] == [f"e{won[0]}"]


def test_lists_stay_whole_while_others_write(store: Store, make_task: MakeTask) -> None:
    tasks = [make_task(id=f"t{number}") for number in range(10)]
    for task in tasks:
        store.commit(Commit(task))
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            store.commit(Commit(make_task(id=f"u{number}", wake_at=None)))
            number += 1

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            for _ in range(20):
                found = store.sweep.list_due(tasks[0].wake_at or tasks[0].created_at, limit=100)
                assert [task.id for task in found.items] == [task.id for task in tasks]
        finally:
            stop.set()
        writer.result()


def _commit_method(store: Store) -> tuple[type, str]:
    """Return the class and the name of the method through which a store commits, to interrupt it there."""
    return (SqliteDatabase, "write") if isinstance(store, SqliteStore) else (FirestoreRpc, "commit")


@pytest.mark.parametrize("crash_after", [1, 2])
def test_an_interrupted_purge_is_finished_by_the_next(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, monkeypatch: pytest.MonkeyPatch, crash_after: int
) -> None:
    """The task is removed last: while an execution is left, there is a task to purge again."""
    for module in ("cloudsched.adapters.sqlite.sweep", "cloudsched.adapters.firestore.sweep"):
        monkeypatch.setattr(f"{module}.PURGE_BATCH_SIZE", 2)
    task = make_task()
    task = task.model_copy(update={"deleted_at": task.created_at})
    store.commit(Commit(task, None, [make_execution(task, f"e{number}") for number in range(5)]))
    adapter, method = _commit_method(store)
    real, calls = getattr(adapter, method), list[object]()

    def crash_in_commit(database: object, argument: object) -> object:
        if len(calls) == crash_after:
            raise KeyboardInterrupt
        calls.append(argument)
        return real(database, argument)

    monkeypatch.setattr(adapter, method, crash_in_commit)
    with pytest.raises(KeyboardInterrupt):
        store.sweep.purge(task.id)
    monkeypatch.setattr(adapter, method, real)
    assert store.load(task.id) is not None
    assert len(store.search.list_executions(task.id, limit=10).items) == 5 - 2 * crash_after
    store.sweep.purge(task.id)
    assert store.load(task.id) is None
    assert not store.search.list_executions(task.id, limit=10).items


@pytest.mark.parametrize("overtaken_at", range(4))
def test_a_purge_does_not_remove_a_task_recreated_meanwhile(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, monkeypatch: pytest.MonkeyPatch, overtaken_at: int
) -> None:
    """Before any of its commits, another purge may finish and the task be recreated, with records of the same names."""
    for module in ("cloudsched.adapters.sqlite.sweep", "cloudsched.adapters.firestore.sweep"):
        monkeypatch.setattr(f"{module}.PURGE_BATCH_SIZE", 2)
    runs = (Run(execution_id="open", scheduled_for=NOW, due_at=NOW, steps=1),)
    entries = (JournalEntry(execution_id="open", number=1, kind=StepKind.NOW, started_at=NOW),)
    task = make_task(runs=runs)
    executions = [make_execution(task, f"e{number}") for number in range(3)]
    gone = task.model_copy(update={"deleted_at": task.created_at})
    store.commit(Commit(gone, None, executions, entries=entries))
    adapter, method = _commit_method(store)
    real, calls = getattr(adapter, method), list[object]()

    def recreate_before_commit(database: object, argument: object) -> object:
        calls.append(argument)
        if len(calls) == overtaken_at + 1:
            monkeypatch.setattr(adapter, method, real)
            store.sweep.purge(task.id)
            store.commit(Commit(task, None, executions, entries=entries))
        return real(database, argument)

    monkeypatch.setattr(adapter, method, recreate_before_commit)
    store.sweep.purge(task.id)
    assert len(calls) == overtaken_at + 1
    found = load(store, task.id)
    assert found.task == task
    assert [each.id for each in store.search.list_executions(task.id, limit=10).items] == ["e2", "e1", "e0"]
    assert list(store.load_journal(task.id, "open")) == list(entries)
