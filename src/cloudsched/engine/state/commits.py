"""Create or change a task: load, decide, commit, and log.

A decision is a pure function of what was read, and returns a `Commit`. It is made again after each
conflict.

What a task may have beside that adds its part to a commit by the hooks of its option
(`engine.state.options`).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.domain.documents.execution import MISSED_STATUSES
from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.transitions.commit import Commit, Committed, TaskWrite, VersionedTask
from cloudsched.domain.transitions.expiry import W, goes_on, keep_record, settle_expiry
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.run_records import fit_runs
from cloudsched.engine.ports.procedure import Procedure, StoreCommit, run_procedure
from cloudsched.engine.state.event_log import log_changes
from cloudsched.engine.state.options import NO_CALLS, FailureCalls, Options
from cloudsched.errors import (
    Contended,
    DamagedDocument,
    PreconditionFailed,
    StoreUnavailable,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.engine.ports.store import Store

S = TypeVar("S")
T = TypeVar("T")
UNREAD: Any = object()

NO_OPTIONS = Options({})

MAX_CONFLICTS = 50
"""The number of times that a change is tried before it fails.

Each conflict means that another change took effect.
"""


def compare_and_set(
    what: str,
    load: Callable[[], S],
    change: Callable[[S], T],
    first: Any = UNREAD,  # noqa: ANN401 - an S; mypy would infer S from it alone
) -> T:
    """Run ``change(load())`` until its commit meets no conflict, and return its result.

    `change` runs again after each conflict, so nothing but its commit may have an effect before that.
    `first` is an earlier read, for its first run. Raises Contended if others kept changing it.
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

    options: Options
    """What is done with each commit beside writing it.

    It is set once the engine that they work with is whole.
    """

    def __init__(
        self,
        store: Store,
        options: Options = NO_OPTIONS,
        log: Callable[[TaskWrite, Task | None], object] = log_changes,
    ) -> None:
        self._store = store
        self._log = log
        self.options = options

    def apply(
        self,
        what: str,
        load: Callable[[], S],
        decide: Callable[[S], Commit | T],
        first: Any = UNREAD,  # noqa: ANN401 - an S
    ) -> Committed | T:
        """Load, decide and commit, all of it again after each conflict, and return what was committed.

        If `decide` returns something other than a commit, this returns it as it is. The arguments and
        errors are those of `compare_and_set`.
        """

        def change(current: S) -> Committed | T:
            decided = decide(current)
            if not isinstance(decided, Commit):
                return decided
            return Committed(run_procedure(self.commit(decided)), decided)

        return compare_and_set(what, load, change, first)

    def commit(self, commit: Commit) -> Procedure[VersionedTask]:  # noqa: C901 - one hook after the other
        """Commit a decision, and return the task as committed.

        The hooks of options are not called for a new task.

        The commit itself comes last. Raises VersionConflict if a task or the lock has changed since it
        was read, or a new task exists.
        """
        if commit.base is None:
            created: VersionedTask = yield StoreCommit(partial(self._store.commit, commit), commit)
            self._log(commit, None)
            return created
        before = commit.base.task
        whole, calls = self._complete_records(commit, before) if commit.executions else (commit, NO_CALLS)
        for concerns, option in self.options.before_commit:
            if concerns(whole):
                whole = option.before_commit(whole, before)
        if whole.task.runs and (fitted := fit_runs(whole.task)) is not whole.task:
            whole = whole.having(task=fitted)
        whole = self._settle_expiry(whole)
        if whole.others:
            whole = whole.having(others=tuple(map(self._settle_expiry, whole.others)))
        for call in calls.before:
            yield call
        write = StoreCommit(partial(self._store.commit, whole), whole)
        committed = Committed((yield write), whole)  # guard: stored claim
        for each in (whole, *whole.others):
            self._log(each, None if each.base is None else each.base.task)
        for call in calls.after:
            yield call
        for concerns, option in self.options.after_commit:
            if concerns(committed):
                option.after_commit(committed)
        return committed.stored

    def _complete_records(self, commit: Commit, before: Task) -> tuple[Commit, FailureCalls]:
        """Return a commit with what the options add to its records, and the calls before and after it."""
        whole = commit
        calls = NO_CALLS
        for concerns, option in self.options.before_record:
            if concerns(whole):
                whole = option.before_record(whole, before)
        if MISSED_STATUSES.isdisjoint(map(attrgetter("status"), commit.executions)):
            return whole, calls
        for _, option in self.options.before_failure:
            whole = option.before_failure(whole, before)
        for _, option in self.options.calls_for_failure:
            more = option.calls_for_failure(commit, before)
            calls = FailureCalls((*calls.before, *more.before), (*calls.after, *more.after))
        return whole, calls

    def _settle_expiry(self, write: W) -> W:
        """Return a change with what it says of the removal of its task. See `transitions.expiry`."""
        was_to_go = write.base is not None and write.base.task.expire_at is not None
        if was_to_go and goes_on(write):
            record = None
            last = write.task.last_execution_id
            with suppress(DamagedDocument):
                record = None if last is None else self._store.load_execution(write.task.id, last)
            return keep_record(write, record)
        return settle_expiry(write) if write.executions or write.task.status in FINAL_STATUSES else write

    def try_to_change(self, stored: VersionedTask, now: datetime, **changes: Any) -> Task | None:
        """Commit changes that a conflicting change makes superfluous. Return None on a conflict."""
        try:
            return run_procedure(self.commit(Commit(with_changes(stored.task, now, **changes), stored))).task
        except VersionConflict:
            return None

    def defer(self, task_id: str, now: datetime) -> None:
        """Mark a task whose dispatches the queue did not take, so that the next sweep sends them.

        If this fails too, somebody else has changed and dispatched it, or the sweep finds it once it is
        overdue.
        """
        with suppress(StoreUnavailable):
            stored = self._store.load(task_id)
            if stored is not None:
                self.try_to_change(stored, now, deferred=True)
