"""The interfaces between a worker and its source of work, and the keeper of one run's lease.

There are two sources: the store itself, and the HTTP API.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from cloudsched.engine.durable.user_calls import is_async
from cloudsched.engine.handlers.context import Context, LeaseRenewal
from cloudsched.engine.options.failure_hooks import failure_hook

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from cloudsched.domain.documents.execution import ProgressNote, Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.procedure import Procedure
    from cloudsched.features.pull.work_queue import WorkerFilter


class ClaimedWork(ABC):
    """One claimed run, which belongs to this worker while its lease lasts.

    * The methods are called in this order: `start`, `call`, then `finish` or `release`, repeated until answered.
      `finish` is repeated, too, after each `AsyncHookDue` that it raises. Different threads may make the calls, one
      after the other. The lease is renewed beside them.
    * Each of them raises `Unavailable` if the source did not answer.
    """

    def __init__(self, task: Task, run: Run, registry: Registry) -> None:
        self.task = task
        self.run = run
        self.registry = registry
        self.lease_keeper: LeaseKeeper = LeaseKeeper(self.renew, task.expected_duration)

    @property
    def is_async(self) -> bool:
        """Return whether its handler, if there is one, runs on the event loop."""
        handler = self.registry.find(self.task.handler)
        return handler is not None and handler.is_async

    @property
    def has_blocking_hook(self) -> bool:
        """Return whether a failure calls a hook, of the handler or of the app, that is not asynchronous."""
        hooks = [failure_hook(self.registry, self.task), *self.registry.registrations.failure_hooks]
        return any(hook is not None and not is_async(hook) for hook in hooks)

    @abstractmethod
    def start(self) -> Context | None:
        """Return the handler's context, None if the lease has already ended."""

    @abstractmethod
    def call(self) -> Procedure[AttemptReport]:
        """Return the procedure that calls the handler and returns its outcome."""

    @abstractmethod
    def finish(self, report: AttemptReport) -> bool:
        """Report the outcome. Return False if the lease was lost, so that the report was dropped."""

    @abstractmethod
    def release(self, reason: str) -> bool:
        """Return the run without counting an attempt, or False if the lease was lost. Allowed before `start`."""

    @abstractmethod
    def renew(self, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        """Renew the lease."""


class WorkSource(Protocol):
    """The place at which a worker claims its work and reports the results. Thread-safe."""

    worker_filter: WorkerFilter
    """The filter of the work that the worker can run."""
    location: str
    """A short description of where the source is, for messages."""
    wait: timedelta
    """The longest that a claim waits for work, if there is none."""

    @property
    def can_listen(self) -> bool:
        """Return whether `listen` notifies of new work."""
        ...

    def claim(self, limit: int) -> Sequence[ClaimedWork]:
        """Claim up to `limit` runs. Raises Unavailable, Unauthenticated, or Forbidden for another queue."""
        ...

    def listen(self, notify: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `notify`, in any thread, when there may be new work, for as long as the context lasts."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class LeaseKeeper:
    """Keeps the lease of one run: the handler and the worker renew it through this, one at a time."""

    def __init__(self, renew: Callable[[Sequence[ProgressNote]], LeaseRenewal], duration: timedelta) -> None:
        self._renew = renew
        self._renew_lock = threading.Lock()
        self.duration: timedelta = duration
        """The duration of the lease from its last renewal. It changes when the task is edited."""
        self.renewed_at: float = time.monotonic()
        """The time of the last renewal, by `time.monotonic`."""
        self.is_lost: bool = False
        """True if the last renewal found that the lease was no longer this worker's."""
        self.is_cancelled: bool = False
        """True if the last renewal found that the run was cancelled."""
        self.has_stopped_renewing: bool = False
        """True if renewals have stopped for good, so that the lease expires."""

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        """Renew the lease, unless renewals were stopped. Raises Unavailable if the source did not answer."""
        with self._renew_lock:
            if self.has_stopped_renewing:
                return LeaseRenewal(None, is_cancelled=True)
            state = self._renew(progress)
            self.renewed_at = time.monotonic()
            if state.until is not None and state.renewed_at is not None:
                self.duration = state.until - state.renewed_at
            self.is_lost = state.until is None
            self.is_cancelled = state.is_cancelled
            return state

    def stop_renewing(self) -> None:
        """Let the lease expire: every later `renew` reports it as lost."""
        self.has_stopped_renewing = True
