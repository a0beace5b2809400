"""What every store promises about journals, and about the tasks that are calls of another."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.cases import try_each
from tests.conftest import MakeExecution, MakeTask

from cloudsched.domain.documents.execution import Run
from cloudsched.domain.documents.journal import JournalEntry, StepError, StepKind, StepStatus
from cloudsched.domain.documents.task import Parent, TaskStatus
from cloudsched.domain.transitions.commit import ArchivedJournal, Commit
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.store import Store

NOW = datetime(2027, 1, 1, 9, 0, 0, 123456, tzinfo=UTC)
NESTED = {"list": [[1, [2.0]], []], "text": "Grüße", "none": None}


def entry(number: int, execution_id: str = "e", **fields: Any) -> JournalEntry:
    usual = {"kind": StepKind.STEP, "name": "step", "started_at": NOW, "status": StepStatus.SUCCEEDED}
    return JournalEntry(number=number, execution_id=execution_id, **(usual | fields))


def test_a_journal_is_read_as_it_was_written_in_the_order_of_its_numbers(store: Store, make_task: MakeTask) -> None:
    task = make_task()
    entries = [
        entry(11, result=NESTED, attempts=2, finished_at=NOW),
        entry(2, kind=StepKind.CALL, status=StepStatus.FAILED, child="c", error=StepError(type="E", message="m")),
        entry(1, kind=StepKind.SLEEP, name="", due_at=NOW, status=StepStatus.WAITING),
    ]
    store.commit(Commit(task, entries=[*entries, entry(1, "other")]))
    assert list(store.load_journal(task.id, "e")) == sorted(entries, key=lambda each: each.number)
    assert [each.execution_id for each in store.load_journal(task.id, "other")] == ["other"]


@try_each("key", ["none", "", "a/b", ".", "__a__", "x" * 2000])
def test_a_missing_journal_is_empty(store: Store, make_task: MakeTask, key: str) -> None:
    task = make_task()
    store.commit(Commit(task, entries=[entry(1)]))
    assert list(store.load_journal(task.id, key)) == []
    assert list(store.load_journal(key, "e")) == []


def test_an_entry_is_overwritten(store: Store, make_task: MakeTask) -> None:
    task = make_task()
    written = store.commit(Commit(task, entries=[entry(1, status=StepStatus.WAITING), entry(2)]))
    store.commit(Commit(task, written, entries=[entry(1, result="done")]))
    assert [each.result for each in store.load_journal(task.id, "e")] == ["done", None]


def test_an_archived_journal_is_removed_by_the_commit_that_writes_its_record(
    store: Store, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """Whatever its length; the journal of another execution stays."""
    task = make_task()
    entries = [entry(number, result=number) for number in range(1, 1001)]
    written = store.commit(Commit(task, entries=[*entries, entry(1, "other")]))
    record = make_execution(task, steps=tuple(each.to_record() for each in entries))
    store.commit(Commit(task, written, [record], archived=[ArchivedJournal("e", 1000)]))
    assert list(store.load_journal(task.id, "e")) == []
    assert len(store.load_journal(task.id, "other")) == 1
    assert store.load_execution(task.id, record.id) == record


def test_purge_removes_the_journals_of_open_runs(store: Store, make_task: MakeTask) -> None:
    run = Run(execution_id="e", scheduled_for=NOW, due_at=NOW, steps=2)
    gone, stays = make_task(runs=(run,), deleted_at=NOW), make_task(runs=(run,))
    for task in (gone, stays):
        store.commit(Commit(task, entries=[entry(1), entry(2)]))
    store.sweep.purge(gone.id)
    assert list(store.load_journal(gone.id, "e")) == []
    assert len(store.load_journal(stays.id, "e")) == 2


def test_calls_are_listed_by_their_parent(store: Store, make_task: MakeTask) -> None:
    def call(parent: str, step: int, status: TaskStatus) -> str:
        place = Parent(task_id=parent, execution_id="e", step=step, depth=1)
        task = make_task(parent=place, status=status, id=f"{parent}-{step}")
        store.commit(Commit(task))
        return task.id

    store.commit(Commit(make_task()))
    ended = call("p", 1, TaskStatus.COMPLETED)
    active = call("p", 2, TaskStatus.ACTIVE)
    call("q", 1, TaskStatus.ACTIVE)
    assert {task.id for task in store.list_tasks(TaskQuery(parent="p"), limit=10).items} == {ended, active}
    query = TaskQuery(parent="p", status=TaskStatus.ACTIVE)
    assert [task.id for task in store.list_tasks(query, limit=10).items] == [active]
    first = store.list_tasks(TaskQuery(parent="p"), limit=1)
    rest = store.list_tasks(TaskQuery(parent="p"), limit=1, page_token=first.next_page_token)
    assert {t.id for t in (*first.items, *rest.items)} == {ended, active}
