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

    from cloudsched.domain.documents.execution import ProgressStep, Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import Report
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.pull.offers import Wanted


class Assignment(Protocol):
    """One run that is this worker's as long as its lease lasts.

    * Its methods are called by one thread, in this order: `begin` and `call`; then `end` or `release`, again and again
      if there was no answer. Only `call` is made in another thread, beside the renewals of the lease.
    * Each of them raises `Unavailable` if there was no answer.
    """

    task: Task
    run: Run
    hold: Hold

    def begin(self) -> Context | None:
        """Return what the handler is given; None if the lease has ended already."""
        ...

    def call(self) -> Report:
        """Call the handler, and return how that ended."""
        ...

    def end(self, report: Report) -> bool:
        """Say how it ended; return False if the lease was lost, so that this was dropped."""
        ...

    def release(self, reason: str) -> bool:
        """Let another worker run it, at no cost; return False if the lease was lost. May come before `begin`."""
        ...


class Desk(Protocol):
    """Where a worker gets its work, and brings what became of it. Any thread may use it."""

    wanted: Wanted
    """What the worker can run."""
    place: str
    """Where the desk is, in a few words for people."""

    @property
    def listens(self) -> bool:
        """Whether something rings here when there may be new work."""
        ...

    def claim(self, limit: int) -> Sequence[Assignment]:
        """Claim up to so many runs.

        Raises:
            Unavailable: There was no answer.
            Unauthenticated: The worker could not prove who it is.
            Forbidden: It may not work here.
        """
        ...

    def listening(self, ring: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `ring` when there may be new work, as long as the context lasts, in any thread."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class Hold:
    """A worker's hold on a run: its lease, renewed by the handler and by the worker, one at a time.

    Args:
        renew: Asks for the renewal.
        duration: How long the lease lasts at first.
    """

    def __init__(self, renew: Callable[[Sequence[ProgressStep]], LeaseState], duration: timedelta) -> None:
        self._ask = renew
        self._asking = threading.Lock()
        self.duration = duration
        """How long the lease lasts from its last renewal: its task may be edited meanwhile."""
        self.renewed_at = time.monotonic()
        """When the lease was last renewed, on the machine's own clock."""
        self.is_lost = False
        """Whether it was found to be somebody else's, or nobody's."""
        self.is_cancelled = False
        """Whether the task was found not to want it any more."""
        self.is_let_go = False
        """Whether nobody renews it any more, so that it lapses."""

    def renew(self, progress: Sequence[ProgressStep]) -> LeaseState:
        """Renew the lease, unless it was let go. Raises Unavailable if there was no answer."""
        with self._asking:
            if self.is_let_go:
                return LeaseState(None, is_cancelled=True)
            state = self._ask(progress)
            self.renewed_at = time.monotonic()
            if state.until is not None and state.renewed_at is not None:
                self.duration = state.until - state.renewed_at
            self.is_lost = state.until is None
            self.is_cancelled = state.is_cancelled
            return state

    def let_go(self) -> None:
        """Renew the lease no more, whoever asks for it: it is to lapse."""
        self.is_let_go = True


def misfit(wanted: Wanted, task: Task) -> str | None:
    """Return why a worker must not run a task that was given to it; None if it may.

    The desk should have seen to that. A worker runs code on a machine of its own, so it looks for itself.
    """
    if task.pull is None or task.pull.queue != wanted.queue:
        where = f"in queue {task.pull.queue!r}" if task.pull else "for no worker"
        return f"it is {where}, and this worker is of queue {wanted.queue!r}"
    if task.pull.skill is not None and task.pull.skill not in wanted.skills:
        return f"it asks for the skill {task.pull.skill!r}, which this worker has not"
    if wanted.handlers is not None and task.handler not in wanted.handlers:
        return f"this worker has no handler {task.handler!r}"
    if wanted.owner not in {None, task.owner}:
        return f"it is owned by {task.owner!r}, and this worker works for {wanted.owner!r} alone"
    return None
