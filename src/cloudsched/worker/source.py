"""What a worker asks of the desk that it gets its work from, and of each piece of work.

There are two desks: one at the store itself, and one behind the HTTP API.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from cloudsched.engine.state.lease import LeaseState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from cloudsched.domain.documents.execution import ProgressNote, Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.pull.offers import WorkerFilter


class ClaimedWork(Protocol):
    """One run that is this worker's as long as its lease lasts.

    * Its methods are called by one thread, in this order: `start` and `call`; then `finish` or `release`, again and again
      if there was no answer. Only `call` is made in another thread, beside the renewals of the lease.
    * Each of them raises `Unavailable` if there was no answer.
    """

    task: Task
    run: Run
    lease_keeper: LeaseKeeper

    def start(self) -> Context | None:
        """Return what the handler is given; None if the lease has ended already."""
        ...

    def call(self) -> AttemptReport:
        """Call the handler, and return how that ended."""
        ...

    def finish(self, report: AttemptReport) -> bool:
        """Say how it ended; return False if the lease was lost, so that this was dropped."""
        ...

    def release(self, reason: str) -> bool:
        """Let another worker run it, at no cost; return False if the lease was lost. May come before `start`."""
        ...


class WorkSource(Protocol):
    """Where a worker gets its work, and brings what became of it. Any thread may use it."""

    worker_filter: WorkerFilter
    """What the worker can run."""
    location: str
    """Where the desk is, in a few words for people."""

    @property
    def can_listen(self) -> bool:
        """Whether something rings here when there may be new work."""
        ...

    def claim(self, limit: int) -> Sequence[ClaimedWork]:
        """Claim up to so many runs.

        Raises:
            Unavailable: There was no answer.
            Unauthenticated: The worker could not prove who it is.
            Forbidden: It may not work here.
        """
        ...

    def listen(self, notify: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `notify` when there may be new work, as long as the context lasts, in any thread."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class LeaseKeeper:
    """A worker's hold on a run: its lease, renewed by the handler and by the worker, one at a time.

    Args:
        renew: Asks for the renewal.
        duration: How long the lease lasts at first.
    """

    def __init__(self, renew: Callable[[Sequence[ProgressNote]], LeaseState], duration: timedelta) -> None:
        self._renew = renew
        self._renew_lock = threading.Lock()
        self.duration = duration
        """How long the lease lasts from its last renewal: its task may be edited meanwhile."""
        self.renewed_at = time.monotonic()
        """When the lease was last renewed, on the machine's own clock."""
        self.is_lost = False
        """Whether it was found to be somebody else's, or nobody's."""
        self.is_cancelled = False
        """Whether the task was found not to want it any more."""
        self.has_stopped_renewing = False
        """Whether nobody renews it any more, so that it lapses."""

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseState:
        """Renew the lease, unless it was let go. Raises Unavailable if there was no answer."""
        with self._renew_lock:
            if self.has_stopped_renewing:
                return LeaseState(None, is_cancelled=True)
            state = self._renew(progress)
            self.renewed_at = time.monotonic()
            if state.until is not None and state.renewed_at is not None:
                self.duration = state.until - state.renewed_at
            self.is_lost = state.until is None
            self.is_cancelled = state.is_cancelled
            return state

    def stop_renewing(self) -> None:
        """Renew the lease no more, whoever asks for it: it is to lapse."""
        self.has_stopped_renewing = True


def mismatch_reason(worker_filter: WorkerFilter, task: Task) -> str | None:
    """Return why a worker must not run a task that was given to it; None if it may.

    The desk should have seen to that. A worker runs code on a machine of its own, so it looks for itself.
    """
    if task.pull is None or task.pull.queue != worker_filter.queue:
        where = f"in queue {task.pull.queue!r}" if task.pull else "for no worker"
        return f"it is {where}, and this worker is of queue {worker_filter.queue!r}"
    if task.pull.skill is not None and task.pull.skill not in worker_filter.skills:
        return f"it asks for the skill {task.pull.skill!r}, which this worker has not"
    if worker_filter.handlers is not None and task.handler not in worker_filter.handlers:
        return f"this worker has no handler {task.handler!r}"
    if worker_filter.owner not in {None, task.owner}:
        return f"it is owned by {task.owner!r}, and this worker works for {worker_filter.owner!r} alone"
    return None
