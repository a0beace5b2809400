"""The parts of an app that serve workers; each is created, and its module imported, on first use."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cloudsched.adapters.clocks import ManualClock
from cloudsched.runtime.factories import lazy_property, open_firestore_listener

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from cloudsched.config.settings import Settings
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.attempts import AttemptRunner
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.listener import Listener
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.pull.claims import WorkerClaims
    from cloudsched.engine.pull.offers import WorkQueue
    from cloudsched.engine.pull.presence import PresenceNotes


class WorkerParts:
    """Has what workers claim from, report to and are notified by."""

    if TYPE_CHECKING:
        build_lock: threading.RLock
        _store: Store | None
        _monotonic: Callable[[], float] | None

        @property
        def settings(self) -> Settings: ...  # noqa: D102
        @property
        def clock(self) -> Clock: ...  # noqa: D102
        @property
        def store(self) -> Store: ...  # noqa: D102
        @property
        def engine(self) -> EngineContext: ...  # noqa: D102
        @property
        def attempt_runner(self) -> AttemptRunner: ...  # noqa: D102

    @lazy_property
    def worker_claims(self) -> WorkerClaims:
        """Renews, releases and ends the claims of workers."""
        from cloudsched.engine.pull.claims import WorkerClaims  # noqa: PLC0415 - see the module's docstring

        return WorkerClaims(self.engine, self.attempt_runner)

    @lazy_property
    def work_queue(self) -> WorkQueue:
        """Claims offered work for workers."""
        from cloudsched.engine.pull.offers import WorkQueue  # noqa: PLC0415 - see the module's docstring

        stands_still = isinstance(self.clock, ManualClock)  # a simulation's result must not depend on a slow machine
        monotonic = self._monotonic or ((lambda: 0.0) if stands_still else time.monotonic)
        return WorkQueue(self.engine, monotonic)

    @lazy_property
    def presence(self) -> PresenceNotes:
        """Notes which workers listen."""
        from cloudsched.engine.pull.presence import PresenceNotes  # noqa: PLC0415 - see the module's docstring

        return PresenceNotes(self.store, self.clock)

    @lazy_property
    def listener(self) -> Listener | None:
        """Notifies workers of new work; None with stores that workers must poll."""
        if self._store is None and self.settings.require_store() == "firestore":
            return open_firestore_listener(self.settings)
        return None
