"""Work claimed at the store itself: the worker is part of the app, as executors are. Durable handlers work in full."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.engine.handlers.context import Context, LeaseRenewal
from cloudsched.engine.ports.clock import MAX_SKEW, measure_skew
from cloudsched.errors import ClockSkewed, Forbidden, LeaseLost, NotFound, StoreUnavailable
from cloudsched.features.pull.fields import queue_keys
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.worker.source import ClaimedWork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.app import App
    from cloudsched.domain.documents.execution import ProgressNote
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.execution.attempt import Attempt
    from cloudsched.engine.ports.procedure import Procedure

CLOCK_CHECK_SECONDS = 600.0
"""The seconds between two comparisons of the clocks. Each costs one read."""
_PERMISSION_CODES = ("PERMISSION_DENIED", "UNAUTHENTICATED")
"""Firestore's answers to an account without access. Retrying does not help."""


class StoreSource:
    """A `WorkSource` that is the store of an app."""

    def __init__(self, app: App, worker_filter: WorkerFilter, location: str) -> None:
        self._app = app
        self._checked_at: float | None = None
        self.worker_filter = worker_filter
        self.location = location
        self.wait: timedelta = timedelta(0)

    def claim(self, limit: int) -> Sequence[StoreWork]:
        """Claim runs: a read for each offer examined, a commit for each claim. Raises StoreUnavailable or Forbidden."""
        try:
            self._require_synchronized_clock()
            pull = PullWiring.of(self._app.container)
            pull.presence.note(self.worker_filter, THIS_PROCESS)
            claims = pull.work_queue.claim(self.worker_filter, THIS_PROCESS, limit)
        except StoreUnavailable as error:
            if error.reason.startswith(_PERMISSION_CODES):
                raise Forbidden(
                    f"{error}. Is this account allowed to use the database? It needs datastore.user."
                ) from error
            raise
        return [StoreWork(self._app, claim) for claim in claims]

    @property
    def can_listen(self) -> bool:
        """Return whether the app has a listener."""
        return self._app.container.listener is not None

    def listen(self, notify: Callable[[], None]) -> AbstractContextManager[None]:
        """Listen through the app's listener, if it has one."""
        listener = self._app.container.listener
        if listener is None:
            return nullcontext()
        return listener.listen(
            queue_keys(self.worker_filter.queue, self.worker_filter.skills), self.worker_filter.owner, notify
        )

    def close(self) -> None:
        """Do nothing: the caller owns the app."""

    def _require_synchronized_clock(self) -> None:
        """Check every `CLOCK_CHECK_SECONDS` that this machine's clock agrees with the store's.

        With a wrong clock the leases it takes would end too early or too late. A local stack's movable clock is not
        checked: all its processes share it.
        """
        is_recent = self._checked_at is not None and time.monotonic() - self._checked_at < CLOCK_CHECK_SECONDS
        if is_recent or self._app.container.settings.tasks_emulator is not None:
            return
        clock = self._app.container.clock
        store = self._app.container.store
        earliest = clock.now()
        store_time = store.check()
        skew = timedelta(0) if store_time is None else measure_skew(earliest, store_time, clock.now())
        if abs(skew) > MAX_SKEW:
            raise ClockSkewed(skew, MAX_SKEW)
        self._checked_at = time.monotonic()


class StoreWork(ClaimedWork):
    """A run claimed at the store."""

    def __init__(self, app: App, claim: Attempt) -> None:
        super().__init__(claim.begun_task, claim.run, app.container.registry)
        self._app = app
        self._claims = PullWiring.of(app.container).worker_claims
        self._claim = claim
        self._started_attempt: Attempt | None = None

    def start(self) -> Context | None:
        """Dispatch what may run alongside it, and return a context that renews the lease through the lease keeper."""
        started = self._claims.start(self._claim)
        if started is None:
            return None
        context = Context(
            self.task, self.run, self._app.container.clock, self.lease_keeper.renew, started.context.durable_run
        )
        started.context = context
        self._started_attempt = started
        return context

    def call(self) -> Procedure[AttemptReport]:
        """Call the handler."""
        return self._app.container.executor.call(self._attempt)

    def finish(self, report: AttemptReport) -> bool:
        """Commit the outcome and dispatch what follows."""
        return self._claims.finish(self._attempt, report) is not None

    def release(self, reason: str) -> bool:
        """Return the run to its queue."""
        if self._started_attempt is not None:
            return self._claims.release(self._started_attempt, reason) is not None
        try:
            self._claims.release_by_token(*self._key, reason)
        except (LeaseLost, NotFound):
            return False
        return True

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.task.id, self.run.execution_id, self._claim.lease_token

    @property
    def _attempt(self) -> Attempt:
        if self._started_attempt is None:
            raise ValueError(f"execution {self.run.execution_id} has not started")
        return self._started_attempt

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        """Renew the lease in the store."""
        return self._attempt.renew(progress)
