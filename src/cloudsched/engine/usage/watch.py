"""What the sweep does for usage: enforce budgets every five minutes, and sum up all tasks once a day."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.usage_sheet import UsageFront
from cloudsched.errors import CloudschedError, VersionConflict

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.usage.budgets import Budgets
    from cloudsched.engine.usage.report import UsageSummation

log = logging.getLogger(__name__)

BUDGETS_EVERY: Final = timedelta(minutes=5)
"""How often budgets are looked at."""
SUMS_EVERY: Final = timedelta(days=1)
"""How often all tasks are summed up: at least once in the two months that a task's own counts last."""
_NOTE_ID: Final = "budgets"
_SLACK: Final = timedelta(seconds=10)
"""A sweep comes every minute, and not to the second."""


class UsageWatch:
    """Looks after each sweep whether there is something to do.

    When it was done last is noted for all processes: a process that has just started reads that, once.
    """

    def __init__(self, store: Store, clock: Clock, budgets: Budgets, summation: UsageSummation) -> None:
        self._store = store
        self._clock = clock
        self._budgets = budgets
        self._summation = summation
        self._budgets_at: datetime | None = None
        self._sums_at: datetime | None = None

    def run(self) -> None:
        """Do what is due. A failure is logged, and never makes a sweep fail."""
        now = self._clock.now()
        try:
            if _is_due(self._budgets_at, now, BUDGETS_EVERY):
                self._enforce(now)
            if _is_due(self._sums_at, now, SUMS_EVERY):
                front = self._summation.sum_up(None, at_most_every=SUMS_EVERY - _SLACK)
                self._sums_at = None if front.page_token else (front.summed_at or now)
        except CloudschedError as error:
            log.warning("usage is not summed up: %s", error, extra={"action": "usage_not_summed"})

    def _enforce(self, now: datetime) -> None:
        stored = self._store.records.load(UsageFront, _NOTE_ID)
        noted_at = None if stored is None else stored.record.summed_at
        if not _is_due(noted_at, now, BUDGETS_EVERY):
            self._budgets_at = noted_at
            return
        note = UsageFront(id=_NOTE_ID, owner=SYSTEM_OWNER, created_at=now, updated_at=now, summed_at=now)
        self._budgets_at = now
        with suppress(VersionConflict):  # another sweep looks
            version = self._store.records.write(note, None if stored is None else stored.version)
            if not self._budgets.enforce_all():  # the next sweep continues
                self._budgets_at = None
                self._store.records.write(note.model_copy(update={"summed_at": None}), version)


def _is_due(last: datetime | None, now: datetime, interval: timedelta) -> bool:
    return last is None or not timedelta(0) <= now - last < interval - _SLACK
