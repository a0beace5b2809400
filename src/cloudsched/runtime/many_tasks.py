"""The parts of an app that concern many tasks at once, each created on first use, and the alarm of the sweep.

After each sweep a dead-man's switch is called, which alarms the operator when everything here is gone. A good
sweep calls one address, a bad one the other. Without a second address a bad sweep calls nobody, and the
silence alerts. The call comes after the sweep's own work is done, and the sweep never fails because of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from cloudsched.engine.sweep.due_work import DueWork
from cloudsched.engine.sweep.shard_sweeps import SweepNotes
from cloudsched.runtime.lazy_property import lazy_property

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.queries.overview import Overview
    from cloudsched.engine.sweep.sweeper import Sweep
    from cloudsched.engine.sweep.zone_watch import ZoneWatch
    from cloudsched.engine.tasks.batch_changes import BatchChangeRun, BatchChanges
    from cloudsched.engine.tasks.scheduler import Scheduler
    from cloudsched.engine.usage.ledger import UsageLedger
    from cloudsched.engine.usage.usage_report import UsageReport, UsageSummation
    from cloudsched.engine.usage.usage_watch import UsageWatch


class ManyTasks:
    """Counts tasks, and changes those that match a filter."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        scheduler: Callable[[], Scheduler],
        engine: Callable[[], EngineContext],
        *,
        build_lock: threading.RLock,
        sweep_alarm: SweepAlarm | None = None,
        own_version: str = "",
    ) -> None:
        self._store = store
        self._sweep_alarm = sweep_alarm
        self._own_version = own_version
        self.has_free_counts = False
        """True where no count is billed."""
        self._engine = engine
        self._clock = clock
        self._scheduler = scheduler
        self.build_lock = build_lock

    @lazy_property
    def overview(self) -> Overview:
        """Counts tasks and executions, and caches the counts for some seconds."""
        from cloudsched.engine.queries.overview import KEPT_SECONDS, LOCAL_COUNT, LOCAL_SECONDS, MAX_COUNT, Overview

        least, most = (LOCAL_SECONDS, LOCAL_COUNT) if self.has_free_counts else (KEPT_SECONDS, MAX_COUNT)
        return Overview(self._store, self._clock, time.monotonic, self.sweep_notes, least, most)

    @lazy_property
    def summation(self) -> UsageSummation:
        """Sums up what tasks have counted."""
        from cloudsched.engine.usage.usage_report import UsageSummation

        return UsageSummation(self._store, self._clock, self.ledger)

    @lazy_property
    def ledger(self) -> UsageLedger:
        """Keeps what was used, by owner and month."""
        from cloudsched.engine.usage.ledger import UsageLedger

        return UsageLedger(self._store.records, self._clock)

    @lazy_property
    def usage(self) -> UsageReport:
        """Shows what was used."""
        from cloudsched.engine.usage.usage_report import UsageReport

        return UsageReport(self._store, self.ledger, self.summation, self._clock)

    @lazy_property
    def _usage_watch(self) -> UsageWatch:
        from cloudsched.engine.usage.usage_watch import UsageWatch

        return UsageWatch(self._clock, self._engine().usage_limit, self.summation)

    def sweep(self, sweep: Callable[[], Sweep]) -> Sweep:
        """Run one sweep: repair due tasks, apply new time zone data, and report usage and health."""
        if self._sweep_alarm is None:
            return self._sweep(sweep)
        return self._sweep_alarm.run(lambda: self._sweep(sweep))

    def _sweep(self, sweep: Callable[[], Sweep]) -> Sweep:
        self.zone_watch.run()
        found = self.sweep_notes.run(sweep)
        self._usage_watch.run()
        return found

    @lazy_property
    def zone_watch(self) -> ZoneWatch:
        """Replans tasks when time zone data change."""
        from cloudsched.engine.sweep.zone_watch import ZoneWatch

        return ZoneWatch(self._engine())

    @lazy_property
    def sweep_notes(self) -> SweepNotes:
        """Notes when the sweep ran last."""
        return SweepNotes(self._store, self._clock, lambda: self.due_work.state, self._own_version)

    @lazy_property
    def due_work(self) -> DueWork:
        """Watches whether due work starts."""
        return DueWork(self._store, self._clock, time.monotonic, self.sweep_notes.find_state)

    @lazy_property
    def batch_changes(self) -> BatchChanges:
        """Previews what a batch change concerns, and starts it."""
        from cloudsched.engine.tasks.batch_changes import BatchChanges

        return BatchChanges(self._store, self._clock, self._scheduler)

    @lazy_property
    def batch_change_run(self) -> BatchChangeRun:
        """Carries out batch changes."""
        from cloudsched.engine.tasks.batch_changes import BatchChangeRun

        return BatchChangeRun(self._store, self._scheduler())


MAX_OVERDUE_SECONDS: Final = 600.0
"""The longest that work may have been due in a good sweep."""


class AddressCaller(Protocol):
    """Calls an address, and never raises (`adapters.safe_http.dead_man_switch`)."""

    def call(self, address: str, overdue: float, text: str) -> None:
        """Call an address with the age of the oldest due work, in seconds, and a line of text."""
        ...


class SweepAlarm:
    """Calls the switch's addresses: that of good sweeps, and that of bad ones if there is one."""

    def __init__(self, addresses: tuple[str, ...], caller: AddressCaller) -> None:
        self._good = addresses[0]
        self._bad = addresses[1] if len(addresses) > 1 else None
        self._caller = caller

    def run(self, sweep: Callable[[], Sweep]) -> Sweep:
        """Sweep, and report the result to the switch. Return or raise what the sweep does."""
        try:
            found = sweep()
        except Exception as error:
            self._tell(self._bad, 0.0, f"the sweep failed: {type(error).__name__}")
            raise
        is_good = found.overdue_seconds <= MAX_OVERDUE_SECONDS and not found.failed
        counts = f"examined={found.examined} dispatched={found.dispatched} unsent={found.unsent} failed={found.failed}"
        text = f"overdueSeconds={found.overdue_seconds:.0f} {counts}"
        self._tell(self._good if is_good else self._bad, found.overdue_seconds, text)
        return found

    def _tell(self, address: str | None, overdue: float, text: str) -> None:
        if address is not None:
            self._caller.call(address, overdue, text)
