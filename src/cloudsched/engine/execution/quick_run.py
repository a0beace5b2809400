"""A run of a quick handler: its claim is committed together with its result, or with the first heartbeat.

Until then nothing in the store says that the handler is called. So another delivery of the same occurrence may call it,
too; the version that was read is the precondition of the one commit, and of several only one takes effect. After a
conflict the claim is decided again on what is stored now: who has lost it (another delivery recorded the run; the task
was paused, edited, cancelled or deleted) commits nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.claim import Claim, on_dispatch
from cloudsched.domain.transitions.planning import executor_wakeups, start_time
from cloudsched.domain.transitions.quick import fits_quick
from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.planning import Dispatch
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.attempt_end import Decision
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.store import VersionedTask

MAX_QUICK_LATENESS = timedelta(minutes=1)
"""A run that is later than this is claimed first: the handler may have killed the processes that tried it before, and
only attempts that were claimed are counted."""


@dataclass(frozen=True, slots=True)
class QuickClaim:
    """A claim that is committed with its result."""

    claim: Claim
    run: Run
    reads: int
    """How many documents were read for it."""
    dispatches: int
    """How many dispatches it took."""

    @property
    def reason(self) -> str:
        """Which attempt is claimed."""
        return self.claim.reason


def can_run_quick(registry: Registry, before: Task, claim: Claim, now: datetime) -> bool:
    """Return whether a claim may be committed with its result.

    Not if the next occurrence may come due meanwhile, since that is dispatched by the same commit; and not if its task
    needs more than a quick handler may have, since that was not quick when the task was made.

    Args:
        registry: The handlers.
        before: The task as it is stored.
        claim: What would be committed.
        now: The current time.
    """
    task, run = claim.transition.task, claim.run
    if not registry.is_quick(task.handler) or run is None or run.steps or not fits_quick(task):
        return False
    known = before.find_run(run.execution_id)
    has_lost_lease = known is not None and known.lease is not None
    if has_lost_lease or now - run.due_at > MAX_QUICK_LATENESS:
        return False
    following = task.next_execution_time
    return following is None or start_time(task, following) - now > task.expected_duration


class QuickRun(ClaimedRun):
    """A run whose claim is not committed yet.

    Args:
        engine: The engine's parts.
        stored: The task as it was read.
        claim: The claim.
        dispatch: What was delivered.
    """

    def __init__(self, engine: EngineContext, stored: VersionedTask, claim: QuickClaim, dispatch: Dispatch) -> None:
        super().__init__(engine, _as_claimed(stored, claim.claim), claim.run)
        self._claim = claim
        self._dispatch = dispatch
        self._records = claim.claim.transition.executions
        """What the claim records: the occurrences before it that are not run."""
        self._is_committed = False
        """Whether the claim is."""

    def _read(self, task_id: str) -> VersionedTask | None:
        """Read the task again, and claim the run on it as of the instant at which it was claimed first."""
        stored = super()._read(task_id)
        if stored is None or self._is_committed:
            return stored
        stored_run = stored.task.find_run(self.run.execution_id)
        if stored_run and stored_run.lease and stored_run.lease.token_hash == self._token_hash:
            self._is_committed = True  # although the answer was lost
            return stored
        claimed_at = self._claimed_at
        claim = on_dispatch(stored.task, self._dispatch, claimed_at, self._token_hash)
        if not isinstance(claim, Claim) or not can_run_quick(self._engine.registry, stored.task, claim, claimed_at):
            return stored  # without the lease: nothing is committed
        if claim.run is None or _identity(claim.run) != _identity(self.run):
            return stored
        self._records = claim.transition.executions
        return _as_claimed(stored, claim)

    def _write(
        self,
        stored: VersionedTask,
        decision: Decision,
        journals: dict[str, Sequence[JournalEntry]] | None,
        call_hooks: Callable[[], None],
        *,
        reads: int = 0,
        dispatches: int = 0,
    ) -> VersionedTask:
        """Commit a decision, and the claim with it unless that is committed."""
        if self._is_committed:
            return super()._write(stored, decision, journals, call_hooks, reads=reads, dispatches=dispatches)
        transition = decision.transition
        whole = replace(transition, executions=(*self._records, *transition.executions))
        committed = super()._write(
            stored,
            replace(decision, transition=whole),
            journals,
            call_hooks,
            reads=self._claim.reads,
            dispatches=self._claim.dispatches,
        )
        self._is_committed = True
        run = committed.task.find_run(self.run.execution_id)
        if run is not None and run.lease is not None:  # the handler goes on; what follows from its end comes with that
            self._dispatch_wakeups(committed.task)
        return committed

    def _dispatch_wakeups(self, task: Task) -> None:
        """Dispatch what may run while the handler goes on; if the queue cannot be reached, its end does so."""
        wakeups = executor_wakeups(task)
        with suppress(QueueUnavailable):
            self._engine.sender.send(task, wakeups, self._engine.now())
            self.sent_wakeups = wakeups

    @property
    def _claimed_at(self) -> datetime:
        assert self.run.lease is not None  # noqa: S101 - `ClaimedRun` checks it
        return self.run.lease.started_at


def _as_claimed(stored: VersionedTask, claim: Claim) -> VersionedTask:
    """Return the task as the claim leaves it, with the version that is stored."""
    return replace(stored, task=claim.transition.task)


def _identity(run: Run) -> tuple[str, int]:
    return run.execution_id, run.attempt
