"""What becomes of a worker's claim: kept by heartbeats, ended with a result, or given back.

Only the holder of its lease may end a run, and it can say so as often as it takes to be heard. What follows from it is
sent at once, or left to the sweep: no queue delivers a worker's work again.
"""

from __future__ import annotations

import copy
import hmac
import logging
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from cloudsched.domain.documents.execution import ExecutionStatus, mark_of
from cloudsched.domain.transitions.lifecycle import moved
from cloudsched.engine.state.lease import LeaseState
from cloudsched.errors import LeaseLost, NotFound, QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from cloudsched.domain.documents.execution import ProgressStep, Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import Report
    from cloudsched.domain.transitions.planning import Wake
    from cloudsched.engine.execution.attempts import Begun, Runs
    from cloudsched.engine.execution.claimed_run import Held
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, Stored
    from cloudsched.engine.pull.offers import Claim, Offers, Wanted

log = logging.getLogger(__name__)

_LAPSED = ExecutionStatus.TIMED_OUT


class Pulls:
    """Hands out what is offered, and takes back what became of it."""

    def __init__(self, *, store: Store, offers: Offers, runs: Runs, clock: Clock, random: Random) -> None:
        self._store = store
        self._offers = offers
        self._runs = runs
        self._clock = clock
        self._random = random
        self._check: Callable[[Task, str | None], None] | None = None

    def guarded(self, check: Callable[[Task, str | None], None]) -> Self:
        """Return the same, for a caller to whom each task is shown by `check` before its claim is changed.

        It is shown with the queue that the claim came from; where there is no such claim, with the task's own.
        """
        twin = copy.copy(self)
        twin._check = check  # noqa: SLF001 - its own class
        return twin

    def claim(self, wanted: Wanted, limit: int = 1) -> list[Claim]:
        """Claim up to so many runs; see `Offers.claim`."""
        return self._offers.claim(wanted, limit)

    # ── What becomes of a claim: in the worker's own process ─────────────────────────────────────────────────────

    def begin(self, claim: Claim) -> Begun | None:
        """Return a claimed run, ready for its handler to be called; None if its lease has ended already."""
        with self._deferring(claim.stored.task.id):
            return self._runs.begun(claim.stored, claim.run)
        return None

    def call(self, begun: Begun) -> Report:
        """Call the handler, and return how that ended."""
        return self._runs.reported(begun)

    def end(self, begun: Begun, report: Report) -> Task | None:
        """Commit how an attempt ended, and send what follows; None if the lease was lost, and the result is dropped.

        Raises:
            StoreUnavailable: Whether it was committed is not known; asking again is safe.
        """
        finished = self._runs.committed(begun, report)
        self._follow(begun.held, begun.run, finished, begun.sent)
        if finished is None and begun.run.lease is not None:  # or a commit of which no answer came has ended it
            with suppress(LeaseLost, NotFound):
                return self._ended_before(begun.held.task, begun.run.execution_id, begun.run.lease.token)
        return finished

    def release(self, begun: Begun, reason: str) -> Task | None:
        """Let another worker run it; that costs no attempt, and it keeps its place. None if the lease was lost."""
        return self._released(begun.held, begun.run, begun.context.said.progress, reason)

    # ── What becomes of a claim: elsewhere ───────────────────────────────────────────────────────────────────────

    def heartbeat(
        self, task_id: str, execution_id: str, lease_token: str, progress: Sequence[ProgressStep] | None = None
    ) -> LeaseState:
        """Renew the lease, and put the progress in the place of what was said; say if it is lost or not wanted.

        Raises:
            NotFound: There is no such task.
        """
        stored, run = self._found(task_id, execution_id, lease_token)
        if run is None:
            return LeaseState(None, is_cancelled=True)
        return self._runs.held(stored, run).renew(run.progress if progress is None else progress)

    def finish(self, task_id: str, execution_id: str, lease_token: str, report: Report) -> Task:
        """Commit how an attempt ended, and send what follows. Safe to repeat: what was said first counts.

        The progress that heartbeats have said stays if the report has none.

        Raises:
            LeaseLost: It is no longer the caller's to end.
            NotFound: There is no such task.
        """
        stored, run = self._found(task_id, execution_id, lease_token)
        if run is None:
            return self._ended_before(stored.task, execution_id, lease_token)
        held = self._runs.held(stored, run)
        finished = held.finish(replace(report, progress=report.progress or run.progress), self._random)
        self._follow(held, run, finished)
        return finished or self._ended_before(held.task, execution_id, lease_token)

    def give_back(
        self,
        task_id: str,
        execution_id: str,
        lease_token: str,
        reason: str,
        progress: Sequence[ProgressStep] | None = None,
    ) -> Task:
        """Let another worker run it; that costs no attempt, and it keeps its place. Safe to repeat.

        Raises:
            LeaseLost: It is no longer the caller's.
            NotFound: There is no such task.
        """
        stored, run = self._found(task_id, execution_id, lease_token)
        if run is None:
            return self._ended_before(stored.task, execution_id, lease_token)
        held = self._runs.held(stored, run)
        released = self._released(held, run, run.progress if progress is None else progress, reason)
        return released or self._ended_before(held.task, execution_id, lease_token)

    def _found(self, task_id: str, execution_id: str, lease_token: str) -> tuple[Stored, Run | None]:
        """Return the task, and the run if it is this claim's; shown to the check with the queue that it came from.

        A task that is being deleted is there only for those who work on it: their lock is theirs until they have ended.
        """
        stored = self._store.load(task_id)
        if stored is None:
            raise NotFound("task", task_id)
        run = stored.task.run(execution_id)
        if run and run.lease and hmac.compare_digest(mark_of(run.lease.token), mark_of(lease_token)):
            queue = run.lease.queue
        else:
            run, queue = None, stored.task.pull.queue if stored.task.pull else None
        if self._check is not None:
            self._check(stored.task, queue)
        if run is None and stored.task.deleted_at is not None:
            raise NotFound("task", task_id)
        return stored, run

    def _ended_before(self, task: Task, execution_id: str, lease_token: str) -> Task:
        """Return the task if this claim was ended by the same request before. Raises LeaseLost if not, or NotFound."""
        if task.deleted_at is not None:
            raise NotFound("task", task.id)
        run, record = task.run(execution_id), self._store.execution(task.id, execution_id)
        mark = mark_of(lease_token)
        attempts = (*(run.attempts if run else ()), *(record.attempts if record else ()))
        was_released = run is not None and run.released == mark
        if not was_released and not any(each.claim == mark and each.status is not _LAPSED for each in attempts):
            raise LeaseLost(execution_id)
        with self._deferring(task.id):  # whoever committed it may have died before it sent what follows
            self._runs.send(task)
            self._runs.follow(task)
        return task

    def _released(self, held: Held, run: Run, progress: Sequence[ProgressStep], reason: str) -> Task | None:
        released = held.give_back(progress, reason)
        if released is not None:
            self._follow(held, run, released)
        return released

    def _follow(self, held: Held, run: Run, finished: Task | None, sent: tuple[Wake, ...] = ()) -> None:
        with self._deferring(held.task.id):
            self._runs.follow_end(held, run, finished, sent)

    @contextmanager
    def _deferring(self, task_id: str) -> Iterator[None]:
        """Leave to the sweep what cannot be sent now: no queue delivers this again, as it does an executor's work."""
        try:
            yield
        except QueueUnavailable as error:
            log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": task_id})
            # Failing that, somebody else has changed and sent it, or the sweep finds it as soon as it is overdue.
            with suppress(VersionConflict, StoreUnavailable):
                stored = self._store.load(task_id)
                if stored is not None:
                    self._store.commit(moved(stored.task, self._clock.now(), deferred=True), stored.version)
