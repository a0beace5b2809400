"""A journal within its bounds fits every store: while it is written, in its record, and when it is retried by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import NOW, MakeTask

from cloudsched.adapters.blobs import FileBlobs
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Run
from cloudsched.domain.documents.journal import (
    MAX_COMMIT_ENTRIES,
    MAX_STEPS,
    JournalEntry,
    StepError,
    StepKind,
    StepStatus,
)
from cloudsched.domain.documents.task import MAX_NAME, TaskStatus
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.retry_execution import retry
from cloudsched.domain.transitions.run_records import execution_record
from cloudsched.engine.durable.archive import JournalArchive
from cloudsched.engine.options.table import TABLE
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.engine.ports.store import Store
from cloudsched.engine.state.commits import Committer
from cloudsched.engine.state.options import Options

JOURNALS = "cloudsched.engine.options.journals:Journals"
ERROR = StepError(type="ValueError", message="x" * 1000)


def journal(size: int, **fields: Any) -> list[JournalEntry]:
    usual = {"kind": StepKind.STEP, "status": StepStatus.SUCCEEDED, "started_at": NOW, "finished_at": NOW}
    return [JournalEntry(number=n, execution_id="e", **(usual | fields)) for n in range(1, size + 1)]


def store_run(store: Store, make_task: MakeTask, entries: Sequence[JournalEntry]) -> VersionedTask:
    """Store a task whose only run has this journal, as its handler writes it: some at a time."""
    run = Run(execution_id="e", scheduled_for=NOW, due_at=NOW, steps=len(entries))
    task = make_task(runs=(run,), next_execution_time=None)
    written = store.commit(Commit(task))
    for begin in range(0, len(entries), 200):
        written = store.commit(Commit(task, written, entries=entries[begin : begin + 200]))
    return written


def fail_run(committer: Committer, stored: VersionedTask) -> VersionedTask:
    (run,) = stored.task.runs
    task = stored.task.model_copy(update={"runs": (), "status": TaskStatus.FAILED, "last_execution_id": "e"})
    record = execution_record(stored.task, run, ExecutionStatus.FAILED, NOW)
    return run_procedure(committer.commit(Commit(task, stored, (record,))))


def load_record(store: Store, task_id: str) -> Execution:
    found = store.load_execution(task_id, "e")
    assert found is not None
    return found


def make_committer(store: Store, archive: JournalArchive) -> Committer:
    return Committer(store, Options({JOURNALS: TABLE[JOURNALS]}, SimpleNamespace(archive=lambda: archive)))


@pytest.mark.parametrize(
    "entries",
    [
        journal(1100, status=StepStatus.FAILED, error=ERROR, name="step"),
        journal(MAX_STEPS, name="n" * MAX_NAME),
        journal(900, name="page", result="x" * 15_000),
        journal(16, name="numbers", result=[7] * 8_000),
        journal(3, name="small", result={"list": [[1, [2.5]]], "none": None}),
    ],
    ids=["errors", "names", "results", "numbers", "a small one"],
)
def test_a_finished_journal_is_archived_and_a_retry_continues_from_it(
    store: Store, make_task: MakeTask, entries: list[JournalEntry]
) -> None:
    """A reader sees all steps at any time, wherever they are stored, and again once the retry has ended."""
    journals = JournalArchive(store, FileBlobs())
    committer = make_committer(store, journals)
    stored = fail_run(committer, store_run(store, make_task, entries))
    assert list(store.load_journal(stored.task.id, "e")) == []
    for _ in range(2):
        whole = journals.load_execution(load_record(store, stored.task.id))
        assert whole.steps == tuple(entry.to_record() for entry in entries)
        again = journals.restore_for_retry(retry(stored.task, whole, NOW), "e").having(base=stored)
        stored = run_procedure(committer.commit(again))
        (run,) = stored.task.runs
        assert run.steps == len(entries)
        assert list(journals.load(stored.task.id, run)) == entries
        stored = fail_run(committer, stored)


@pytest.mark.parametrize(
    ("size", "is_inline"), [(MAX_COMMIT_ENTRIES, True), (MAX_COMMIT_ENTRIES + 1, False)], ids=["fits", "one more"]
)
def test_a_retry_restores_as_many_entries_as_a_commit_takes(
    store: Store, make_task: MakeTask, size: int, *, is_inline: bool
) -> None:
    """Up to that number they are entries again; one more, and all of them stand in a blob."""
    journals = JournalArchive(store, FileBlobs())
    committer = make_committer(store, journals)
    stored = fail_run(committer, store_run(store, make_task, journal(size, name="s")))
    whole = journals.load_execution(load_record(store, stored.task.id))
    restored = journals.restore_for_retry(retry(stored.task, whole, NOW), "e")
    assert len(restored.entries) == (size if is_inline else 0)
    assert (restored.task.runs[0].restored_reference is None) is is_inline


def test_entries_of_a_retry_replace_restored_ones(store: Store, make_task: MakeTask) -> None:
    """One entry is repeated, another is new; the final record has both."""
    journals = JournalArchive(store, FileBlobs())
    committer = make_committer(store, journals)
    entries = journal(30, name="page", result="x" * 15_000)
    stored = fail_run(committer, store_run(store, make_task, entries))
    whole = journals.load_execution(load_record(store, stored.task.id))
    restored = journals.restore_for_retry(retry(stored.task, whole, NOW), "e").having(base=stored)
    stored = run_procedure(committer.commit(restored))
    (run,) = stored.task.runs
    assert run.restored_reference is not None
    again, new = (entries[6].model_copy(update={"number": n, "result": "new"}) for n in (7, 31))
    task = stored.task.model_copy(update={"runs": (run.model_copy(update={"steps": 31}),)})
    stored = run_procedure(committer.commit(Commit(task, stored, entries=(again, new))))
    expected = [*entries[:6], again, *entries[7:], new]
    assert list(journals.load(task.id, task.runs[0])) == expected
    stored = fail_run(committer, stored)
    assert journals.load_execution(load_record(store, task.id)).steps == tuple(each.to_record() for each in expected)


def test_a_journal_whose_restored_part_is_missing_is_incomplete(store: Store, make_task: MakeTask) -> None:
    """Its run detects that, and can be finished."""
    journals, empty = JournalArchive(store, FileBlobs()), JournalArchive(store, FileBlobs())
    stored = fail_run(make_committer(store, journals), store_run(store, make_task, journal(30, result="x" * 15_000)))
    whole = journals.load_execution(load_record(store, stored.task.id))
    assert empty.load_execution(load_record(store, stored.task.id)).steps_reference is not None
    restored = journals.restore_for_retry(retry(stored.task, whole, NOW), "e").having(base=stored)
    stored = run_procedure(make_committer(store, empty).commit(restored))
    assert list(empty.load(stored.task.id, stored.task.runs[0])) == []
    fail_run(make_committer(store, empty), stored)
    assert load_record(store, stored.task.id).steps == ()
