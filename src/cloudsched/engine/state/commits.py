"""Commit a transition atomically, and archive the journal of every execution that it finishes.

A journal is archived when its execution finishes, by whatever means (its handler, an expired lease, a cancel by its
owner): its entries become the record's `steps`, and the commit that writes the record removes them. So no journal
outlives its execution. If their task has a callback, executions that end without an attempt's own word get it here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.domain.transitions.growth import fit_runs
from cloudsched.domain.transitions.lifecycle import Transition, with_changes
from cloudsched.domain.transitions.usage import count_ended, with_usage
from cloudsched.engine.ports.billed_writes import count_billed_writes
from cloudsched.engine.ports.store import ArchivedJournal, VersionedTask
from cloudsched.engine.state.event_log import log_changes
from cloudsched.errors import StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.delivery.callbacks import CompletionCallbacks
    from cloudsched.engine.durable.archive import JournalArchive
    from cloudsched.engine.ports.store import DeliveryMark, Store, TaskWrite, VersionedLock


class TransitionCommitter:
    """Commits transitions on the version of the task that was read."""

    def __init__(self, store: Store, archive: JournalArchive, callbacks: CompletionCallbacks | None = None) -> None:
        self._store = store
        self._archive = archive
        self._callbacks = callbacks

    def commit(  # noqa: PLR0913 - the parts of one commit
        self,
        transition: Transition,
        stored: VersionedTask,
        lock: VersionedLock | None = None,
        known_journals: dict[str, Sequence[JournalEntry]] | None = None,
        before_commit: Callable[[], None] = lambda: None,
        others: Sequence[TaskWrite] = (),
        *,
        delivered: DeliveryMark | None = None,
        reads: int = 1,
        dispatches: int = 0,
    ) -> VersionedTask:
        """Commit a transition on the task that was read, and return the task as committed.

        Args:
            transition: What to commit.
            stored: The task as it was read.
            lock: The lock to commit with it, if it changes.
            known_journals: The journals that the caller has already loaded, by execution id.
            before_commit: Called right before the commit, after large journals have been stored as blobs.
            others: Other tasks that are created or edited in the same commit.
            delivered: What the end of a delivery says about others.
            reads: How many documents were read for it, its lock apart: the task, if it was not known.
            dispatches: How many dispatches it took.

        Raises:
            VersionConflict: A task or the lock has changed since it was read.
            BlobsUnavailable: A journal is too large for its record, and the blob store cannot be reached.
        """
        fitted = fit_runs(transition.task)
        executions, archived = transition.executions, list[ArchivedJournal]()
        finished_runs = tuple(_finished_runs(stored, transition)) if executions else ()
        for run in finished_runs:
            journal = (known_journals or {}).get(run.execution_id)
            if journal is None:
                journal = self._archive.load(stored.task.id, run) if run.steps else ()
            if journal:
                executions = tuple(
                    self._archive.archive(each, journal) if each.id == run.execution_id else each for each in executions
                )
            if run.steps:
                archived.append(ArchivedJournal(run.execution_id, max(run.steps, len(journal))))
        finished_ids = {run.execution_id for run in finished_runs}
        callbacks = () if self._callbacks is None else self._callbacks.plan(fitted, executions, others)
        others = (*others, *callbacks)
        before_commit()
        entries = [entry for entry in transition.entries if entry.execution_id not in finished_ids]
        parts = len(executions) + len(transition.messages) + len(entries)
        edited = [each for each in others if each.stored is not None]  # new ones count for themselves
        writes, deletes = count_billed_writes(
            fitted, stored.version, parts, lock=lock, others=edited, delivered=delivered
        )
        used = UsageCounts.build(
            reads=reads + (lock is not None),
            writes=writes,
            deletes=deletes + sum(each.size for each in archived),
            dispatches=dispatches,
            **(count_ended(stored.task, executions) if executions else {}),
        )
        task = with_usage(fitted, fitted.updated_at, used)
        version = self._store.commit(
            task,
            stored.version,
            executions,
            transition.messages,
            lock,
            entries=entries,
            archived=archived,
            others=others,
            delivered=delivered,
        )
        log_changes(stored.task, Transition(task, transition.executions, transition.messages, transition.entries))
        for other in others:
            before = None if other.stored is None else other.stored.task
            log_changes(before, Transition(other.task, tuple(other.executions)))
        if self._callbacks is not None and callbacks:
            self._callbacks.dispatch(callbacks)
        return VersionedTask(task, version)


def _finished_runs(stored: VersionedTask, transition: Transition) -> Iterator[Run]:
    finished_ids = {each.id for each in transition.executions if each.status.is_final}
    for run in stored.task.runs:
        if run.execution_id in finished_ids and transition.task.find_run(run.execution_id) is None:
            yield run


def mark_deferred(store: Store, task_id: str, now: datetime) -> None:
    """Mark a task whose dispatches the queue did not take, so that the next sweep sends them.

    If this fails too, another process has changed and dispatched the task, or the sweep finds it once it is overdue.
    """
    with suppress(VersionConflict, StoreUnavailable):
        stored = store.load(task_id)
        if stored is not None:
            store.commit(with_changes(stored.task, now, deferred=True), stored.version)
