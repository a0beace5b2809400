"""Create or change a task: load, decide, commit, and log.

A decision is a pure function of what was read, and returns a `Commit`. It is made again after each conflict.

A journal is archived when its execution finishes, by whatever means (its handler, an expired lease, a cancel by its
owner): its entries become the record's `steps`, and the commit that writes the record removes them. So no journal
outlives its execution. If their task has a callback, executions that end without a report of their attempt get it here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution, ExecutionStatus
from cloudsched.domain.documents.usage import add_usage
from cloudsched.domain.transitions.commit import ArchivedJournal, Commit, Committed, TaskWrite, VersionedTask
from cloudsched.domain.transitions.growth import fit_runs
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.engine.ports.procedure import LongCall, Procedure, StoreCommit, run_procedure
from cloudsched.engine.state.event_log import log_changes
from cloudsched.errors import Contended, PreconditionFailed, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.durable.archive import JournalArchive
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.state.deliveries import DeliveryPlanner

S = TypeVar("S")
T = TypeVar("T")
UNREAD: Any = object()

MAX_CONFLICTS = 50
"""The number of times that a change is tried before it fails. Each conflict means that another change took effect."""


def compare_and_set(
    what: str,
    load: Callable[[], S],
    change: Callable[[S], T],
    first: Any = UNREAD,  # noqa: ANN401 - an S; mypy would infer S from it alone
) -> T:
    """Call ``change(load())`` until its commit meets no conflict, and return its result.

    `change` runs again after each conflict, so nothing but its commit may have an effect before that. `first` is an
    earlier read, for its first call. Raises Contended if others kept changing it.
    """
    current = load() if first is UNREAD else first
    for remaining in reversed(range(MAX_CONFLICTS)):
        try:
            return change(current)
        except PreconditionFailed:
            raise
        except VersionConflict:
            if remaining:
                current = load()
    raise Contended(what, MAX_CONFLICTS)


class Committer:
    """Loads, decides, commits and logs: the one way in which a task is created or changed."""

    def __init__(
        self,
        store: Store,
        archive: JournalArchive,
        deliveries: DeliveryPlanner | None = None,
        on_failure: Callable[[Task, Execution], None] = lambda *_: None,
    ) -> None:
        self._store = store
        self._archive = archive
        self._deliveries = deliveries
        self._on_failure = on_failure

    def apply(
        self,
        what: str,
        load: Callable[[], S],
        decide: Callable[[S], Commit | T],
        first: Any = UNREAD,  # noqa: ANN401 - an S
    ) -> Committed | T:
        """Load, decide and commit in this thread. See `plan`."""

        def decide_and_commit(read: S) -> Committed | T:
            decided = decide(read)
            return Committed(self.commit(decided), decided) if isinstance(decided, Commit) else decided

        return compare_and_set(what, load, decide_and_commit, first)

    def plan(
        self,
        what: str,
        load: Callable[[], S],
        decide: Callable[[S], Commit | T],
        first: Any = UNREAD,  # noqa: ANN401 - an S
    ) -> Procedure[Committed | T]:
        """Load, decide and commit, all of it again after each conflict, and return what was committed.

        If `decide` returns something other than a commit, this returns it as it is. The arguments and errors are those
        of `compare_and_set`.
        """
        current = load() if first is UNREAD else first
        for remaining in reversed(range(MAX_CONFLICTS)):
            try:
                decided = decide(current)
                if not isinstance(decided, Commit):
                    return decided
                return Committed((yield from self.plan_commit(decided)), decided)
            except PreconditionFailed:
                raise
            except VersionConflict:
                if remaining:
                    current = load()
        raise Contended(what, MAX_CONFLICTS)

    def commit(self, commit: Commit) -> VersionedTask:
        """Commit what was decided in this thread. See `plan_commit`."""
        if commit.base is not None:
            return run_procedure(self.plan_commit(commit))
        created = self._store.commit(commit)
        log_changes(commit, None)
        return created

    def plan_commit(self, commit: Commit) -> Procedure[VersionedTask]:
        """Commit a decision, and return the task as committed. A new task has no journals, hooks or callbacks yet.

        Large journals are stored as blobs before failure hooks are called. The commit itself comes last. Raises
        VersionConflict if a task or the lock has changed since it was read, or a new task exists.
        """
        if commit.base is None:
            created: VersionedTask = yield StoreCommit(self._store, commit)
            log_changes(commit, None)
            return created
        before = commit.base.task
        final = [each for each in commit.executions if each.status.is_final]
        with_journal = [run for run in before.runs if run.steps or commit.effects.journals.get(run.execution_id)]
        has_journals = bool(final and (commit.entries or with_journal))
        whole = self._archive_journals(commit, before, final) if has_journals else commit
        deliveries = self._deliveries
        callbacks: tuple[TaskWrite, ...] = ()
        if deliveries is not None and commit.task.on_completion is not None and commit.task.deleted_at is None:
            callbacks = deliveries.plan_callbacks(whole.task, whole.executions, whole.others)
        if deliveries is not None and commit.task.ping is not None and commit.task.deleted_at is None:
            callbacks = (*callbacks, *deliveries.plan_pings(before, whole.task, whole.executions))
        if callbacks:
            whole = whole.having(others=(*whole.others, *callbacks))
        for each in final:
            if each.status in FAILURE_STATUSES:  # an attempt that timed out has said nothing: its task is as it was
                about = before if each.status is ExecutionStatus.TIMED_OUT else commit.task
                yield LongCall(partial(self._on_failure, about, each))
        whole = _count(whole, before)
        committed: VersionedTask = yield StoreCommit(self._store, whole)
        log_changes(whole, before)
        for other in whole.others:
            log_changes(other, None if other.base is None else other.base.task)
        if deliveries is not None and callbacks:
            deliveries.dispatch(callbacks)
        return committed

    def try_to_change(self, stored: VersionedTask, now: datetime, **changes: Any) -> Task | None:
        """Commit changes that a conflicting change makes superfluous. Return None on a conflict."""
        try:
            return self.commit(Commit(with_changes(stored.task, now, **changes), stored)).task
        except VersionConflict:
            return None

    def defer(self, task_id: str, now: datetime) -> None:
        """Mark a task whose dispatches the queue did not take, so that the next sweep sends them.

        If this fails too, somebody else has changed and dispatched it, or the sweep finds it once it is overdue.
        """
        with suppress(StoreUnavailable):
            stored = self._store.load(task_id)
            if stored is not None:
                self.try_to_change(stored, now, deferred=True)

    def _archive_journals(self, commit: Commit, before: Task, final: Sequence[Execution]) -> Commit:
        """Return the commit with the journals of the runs that end as a part of their records."""
        records = {each.id: each for each in commit.executions}
        ids = {each.id for each in final}.difference(run.execution_id for run in commit.task.runs)
        ended = [run for run in before.runs if run.execution_id in ids]
        archived = list[ArchivedJournal]()
        for run in ended:
            journal = commit.effects.journals.get(run.execution_id)
            if journal is None:
                journal = self._archive.load(commit.task.id, run) if run.steps else ()
            if journal:
                records[run.execution_id] = self._archive.archive(records[run.execution_id], journal)
            if run.steps:
                archived.append(ArchivedJournal(run.execution_id, max(run.steps, len(journal))))
        ended_ids = {run.execution_id for run in ended}
        entries = [each for each in commit.entries if each.execution_id not in ended_ids]
        return commit.having(executions=tuple(records.values()), entries=entries, archived=archived)


def _count(commit: Commit, before: Task) -> Commit:
    """Return the commit with its costs counted in its task, whose runs fit. New tasks count for themselves.

    A claim by a dispatch is counted by the commit that ends its lease, so that a claim alone need not write the sums.
    """
    task = fit_runs(commit.task) if commit.task.runs else commit.task
    writes, deletes = commit.count_writes(new_tasks=False)
    was_leased, is_leased = (
        sum([run.lease is not None and run.lease.worker is None for run in each.runs]) for each in (before, task)
    )
    claims = was_leased - is_leased
    used: dict[str, float] = {
        "reads": commit.effects.reads + (commit.lock is not None) + claims,
        "writes": writes + claims,
        "deletes": deletes + sum([each.size for each in commit.archived]),
        "dispatches": commit.effects.dispatches + claims,
    }
    if ended := sum([each.status.is_final and each.started_at is not None for each in commit.executions]):
        estimated = {"queries": before.query_per_execution, "tokens": before.tokens_per_execution}
        used |= {"executions": ended, **{f"estimated_{name}": ended * each for name, each in estimated.items()}}
    if any(used.values()):
        task = task.model_copy(update={"usage": add_usage(task.usage, task.handler, task.updated_at, used)})
    return commit if task is commit.task else commit.having(task=task)
