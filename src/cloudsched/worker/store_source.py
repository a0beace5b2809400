"""The desk at the store itself: the worker is part of the app, as executors are, and durable handlers work in full."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.pull import queue_keys
from cloudsched.engine.handlers.context import Context
from cloudsched.errors import Forbidden, LeaseLost, NotFound, StoreUnavailable
from cloudsched.worker.source import LeaseKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from cloudsched.app import App
    from cloudsched.domain.documents.execution import ProgressNote
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.execution.attempts import StartedAttempt
    from cloudsched.engine.pull.offers import WorkerClaim, WorkerFilter
    from cloudsched.engine.state.lease import LeaseState

MAX_SKEW = timedelta(seconds=10)
"""How far this machine's clock may be from the store's: leases are measured by the clocks of all who write."""
CLOCK_CHECK_SECONDS = 600.0
"""How often that is looked at. It costs one read."""
_PERMISSION_CODES = ("PERMISSION_DENIED", "UNAUTHENTICATED")
"""What Firestore says to somebody who may not use it, however often they ask."""


class StoreSource:
    """A `Desk` that is the store of an app.

    Args:
        app: Whose store, and whose handlers.
        worker_filter: What the worker can run.
        location: Where that is, for people.
    """

    def __init__(self, app: App, worker_filter: WorkerFilter, location: str) -> None:
        self._app = app
        self._checked_at: float | None = None
        self.worker_filter = worker_filter
        self.location = location

    def claim(self, limit: int) -> Sequence[StoreWork]:
        """Claim runs: a read for each offer that is looked at, a commit for each claim.

        Raises:
            StoreUnavailable: The store did not answer, or this machine's clock is not right.
            Forbidden: The store is not for this account.
        """
        try:
            with clock_errors_as_unavailable():
                self._require_synchronized_clock()
                claims = self._app.worker_claims.claim(self.worker_filter, limit)
        except StoreUnavailable as error:
            if error.reason.startswith(_PERMISSION_CODES):
                raise Forbidden(
                    f"{error}. Is this account allowed to use the database? It needs datastore.user."
                ) from error
            raise
        return [StoreWork(self._app, claim) for claim in claims]

    @property
    def can_listen(self) -> bool:
        """Whether the app's store can be listened to."""
        return self._app.listener is not None

    def listen(self, notify: Callable[[], None]) -> AbstractContextManager[None]:
        """Listen, if the app's store can be listened to."""
        listener = self._app.listener
        if listener is None:
            return nullcontext()
        return listener.listen(
            queue_keys(self.worker_filter.queue, self.worker_filter.skills), self.worker_filter.owner, notify
        )

    def close(self) -> None:
        """Leave the app to whoever made it."""

    def _require_synchronized_clock(self) -> None:
        """Check now and then that this machine's clock is the store's: what it leases would end too early, or too late.

        The clock of a local stack, which can be moved, is another one for all alike.
        """
        is_recent = self._checked_at is not None and time.monotonic() - self._checked_at < CLOCK_CHECK_SECONDS
        if is_recent or self._app.settings.tasks_emulator is not None:
            return
        before = self._app.clock.now()
        there = self._app.store.check()
        off = timedelta(0) if there is None else min(self._app.clock.now() - there, max(before - there, timedelta(0)))
        if abs(off) > MAX_SKEW:
            how = f"{abs(off).total_seconds():.0f} s {'ahead of' if off > timedelta(0) else 'behind'} the store's"
            raise StoreUnavailable("The store", f"this machine's clock is {how}; set it, or work through the API")
        self._checked_at = time.monotonic()


class StoreWork:
    """A run that was claimed in the store."""

    def __init__(self, app: App, claim: WorkerClaim) -> None:
        self._app = app
        self._claim = claim
        self._started_attempt: StartedAttempt | None = None
        self.task = claim.stored.task
        self.run = claim.run
        self.lease_keeper = LeaseKeeper(self._renew, self.task.expected_duration)

    def start(self) -> Context | None:
        """Send what may run beside it, and return its context, which renews the lease through this worker's hold."""
        with clock_errors_as_unavailable():
            begun = self._app.worker_claims.start(self._claim)
        if begun is None:
            return None
        context = Context(self.task, self.run, self._app.clock, self.lease_keeper.renew, begun.context.durable_run)
        self._started_attempt = replace(begun, context=context)
        return context

    def call(self) -> AttemptReport:
        """Call the handler."""
        return self._app.worker_claims.invoke_handler(self._attempt)

    def finish(self, report: AttemptReport) -> bool:
        """Commit how it ended, and send what follows."""
        with clock_errors_as_unavailable():
            return self._app.worker_claims.finish(self._attempt, report) is not None

    def release(self, reason: str) -> bool:
        """Give it back."""
        with clock_errors_as_unavailable():
            if self._started_attempt is not None:
                return self._app.worker_claims.release(self._started_attempt, reason) is not None
            try:
                self._app.worker_claims.release_by_token(*self._key, reason)
            except (LeaseLost, NotFound):
                return False
            return True

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.task.id, self.run.execution_id, self.run.lease.token if self.run.lease else ""

    @property
    def _attempt(self) -> StartedAttempt:
        if self._started_attempt is None:
            raise ValueError(f"execution {self.run.execution_id} has not begun")
        return self._started_attempt

    def _renew(self, progress: Sequence[ProgressNote]) -> LeaseState:
        with clock_errors_as_unavailable():
            return self._attempt.claimed_run.renew(progress)


@contextmanager
def clock_errors_as_unavailable() -> Iterator[None]:
    """Say of a local clock that does not answer that the store does not: neither can be worked with."""
    try:
        yield
    except ConnectionError as error:
        raise StoreUnavailable("The local stack", str(error)) from error
