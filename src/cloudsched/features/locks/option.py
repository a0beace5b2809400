"""The lock of a task: its runs wait in line for the tasks that have the same key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import Run, WaitingFor
from cloudsched.domain.transitions.claim import DeliveryAction, DeliveryResult, Hop
from cloudsched.domain.transitions.commit import Commit, Committed, Effects
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.wakeups import Dispatch, executor_wakeups, offer_expiry
from cloudsched.engine.state.options import Option
from cloudsched.features.locks.lock import Grants, is_held_by
from cloudsched.features.locks.locks import Locks

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.engine_context import EngineContext


class HeldLock(Option):
    """Acquires the lock with a claim, and releases it with the end of the attempt."""

    def __init__(self, engine: EngineContext) -> None:
        self._locks = Locks(engine.store, engine.sender)
        self._clock = engine.clock

    def before_claim(
        self,
        claim: Commit,
        dispatch: Dispatch | None,
        now: datetime,
    ) -> Commit | DeliveryResult | Hop:
        """Return the claim with the lock. Without a run, return it with the lock that the record frees."""
        run = claim.effects.run
        if run is None:
            return claim if dispatch is None else self._record(claim, dispatch)
        key = claim.task.scoped_lock_key
        if run.lock_key != key:  # it has none yet, or the task was edited since its last attempt
            run = run.model_copy(update={"lock_key": key})
            task = claim.task.model_copy(update={"runs": claim.task.runs_with(run)})
            claim = claim.having(task=task, effects=replace(claim.effects, run=run))

        if key is None:
            return claim
        if dispatch is None:
            return self._claim_for_worker(key, claim, run, now)
        acquired = self._locks.acquire(key, claim.task, run, dispatch, now)
        if acquired.is_acquired:
            return claim.having(linked=acquired.lock)  # guard: stored lock
        return _wait(key)

    def _claim_for_worker(self, key: str, claim: Commit, run: Run, now: datetime) -> Commit:
        """Return a worker's claim with the lock, or that the run waits for it instead."""
        acquired = self._locks.acquire_for_worker(key, claim.task, run, now)
        if acquired.is_acquired:
            return claim.having(linked=acquired.lock)
        assert claim.base is not None  # noqa: S101 - a claim is of a task that was read
        offered = next(each for each in claim.base.task.runs if each.execution_id == run.execution_id)
        waiting = on_lock_taken(claim.base.task, offered, now)
        return waiting.having(base=claim.base, linked=acquired.lock, effects=Effects(sends=acquired.grants))

    def _record(self, record: Commit, dispatch: Dispatch) -> Commit | DeliveryResult:
        assert record.base is not None  # noqa: S101 - it is of a task that was read
        task = record.base.task
        run = task.find_run(dispatch.execution_id)
        if run is None:
            return record
        if self._waits_on(task, run, dispatch):
            return _wait(task.lock_key)
        # A run without a lease does not hold the lock; if it waits for it, it stays in the wait list.
        if run.lease is None:
            return record
        return self._release(record, run, self._clock.now())

    def _waits_on(self, task: Task, run: Run, dispatch: Dispatch) -> bool:
        """Return whether a run that left its queue for its lock has to wait on.

        A grant offers it again. Any other dispatch, such as the sweep's, does so only if the lock is free
        or the run has expired. Otherwise the run would go back and forth between its queue and the wait
        list while others hold it.
        """
        if run.waiting_for is not WaitingFor.LOCK or task.workers is None or dispatch.turn_key:
            return False
        expiry = offer_expiry(task, run)
        now = self._clock.now()
        return (expiry is None or now < expiry) and self._locks.wait_if_taken(task, run, now)

    def on_outcome(self, commit: Commit, run: Run, _report: AttemptReport, now: datetime) -> Commit:
        """Return the commit with the lock released."""
        return self._release(commit, run, now)

    def on_lease_change(self, commit: Commit, run: Run) -> Commit | None:
        """Return the commit with the lock held as long as the lease.

        None if another run had it before it was read.
        """
        if run.lock_key is None:
            return commit
        leased = commit.task.find_run(run.execution_id)
        if leased is None or leased.lease is None:
            return self._release(commit, run, self._clock.now())
        lock = self._locks.extend(run.lock_key, commit.task.id, leased, leased.lease.until)  # guard: extended lock
        # guard: held lock
        if not is_held_by(lock.lock, commit.task.id, run.execution_id, self._clock.now()):
            return None
        return commit.having(linked=lock)

    def _release(self, commit: Commit, run: Run, now: datetime) -> Commit:
        """Return the commit with the lock released that the run holds, if it holds one."""
        if run.lock_key is None:
            return commit
        lock, grants = self._locks.release(run.lock_key, commit.task.id, run, now)
        return commit.having(linked=lock, effects=replace(commit.effects, sends=grants))

    def on_dispatch(self, committed: Committed) -> None:
        """Notify the waiters that the commit grants the lock."""
        grants = committed.commit.effects.sends
        assert isinstance(grants, Grants)  # noqa: S101 - as `_release` says
        self._locks.notify(grants, self._clock.now())

    def on_lost(self, task: Task, execution_id: str, run: Run | None) -> None:
        """Release what the run may still hold. If it has ended, notify whoever waited for it."""
        key = task.scoped_lock_key if run is None else run.lock_key
        if key is not None:
            self._locks.cancel(key, task.id, execution_id, self._clock.now())

    def on_leave(self, task: Task) -> None:
        """Remove the waits of its runs."""
        self._locks.cancel_task(task, self._clock.now())

    def on_drop(self, dispatch: Dispatch, task: Task | None) -> None:
        """Stop waiting for a lock that the execution no longer needs.

        Requeue its worker group if no worker came.
        """
        waiting = (dispatch.turn_key, dispatch.task_id, dispatch.execution_id)
        now = self._clock.now()
        if task is None:
            if dispatch.turn_key:
                self._locks.cancel(*waiting, now)
            return
        run = task.find_run(dispatch.execution_id)
        lock_key = task.scoped_lock_key
        if dispatch.turn_key and (dispatch.turn_key, dispatch.revision) != (lock_key, task.revision):
            self._locks.cancel(*waiting, now, revision=dispatch.revision)
        if task.is_active and run is not None and run.waiting_for is not None:
            if has_missed_grant(run, dispatch):  # else it stays in the wait list until a worker claims it
                self._locks.cancel_group(task, now)
        elif lock_key is not None and all(
            each.execution_id != dispatch.execution_id for each in executor_wakeups(task)
        ):
            self._locks.cancel(lock_key, task.id, dispatch.execution_id, now)


def _wait(lock_key: str | None) -> DeliveryResult:
    """Return that a run waits: the release of the lock dispatches it again."""
    return DeliveryResult(DeliveryAction.WAITING, f"others hold {lock_key!r}")


def has_missed_grant(run: Run, dispatch: Dispatch) -> bool:
    """Return whether a dispatch was sent because a lock grant ended and no worker had claimed the run."""
    return run.waiting_for is WaitingFor.WORKER and run.turn_until is None and dispatch.due_at > run.due_at


def on_lock_taken(task: Task, offered: Run, now: datetime) -> Commit:
    """Take an offered run off its queue until the lock is granted.

    The dispatch for the grant offers it again.
    """
    blocked = offered.model_copy(update={"waiting_for": WaitingFor.LOCK, "turn_until": None})
    return Commit(with_changes(task, now, runs=task.runs_with(blocked)))
