"""The port for the current time, and whether a machine's clock agrees with the store's.

Leases are taken by one machine's clock and judged by others'.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, TypeAlias

from cloudsched.errors import ClockSkewed

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.ports.store import Store

    Loaded: TypeAlias = tuple[VersionedTask | None, datetime]

log = logging.getLogger(__name__)

MAX_SKEW = timedelta(seconds=10)
"""The largest allowed difference between this machine's clock and the store's."""


class Clock(Protocol):
    """Tells the current time."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware and in UTC."""
        ...


def measure_skew(before: datetime, store_time: datetime, after: datetime) -> timedelta:
    """Return the least time by which this machine's clock is ahead of the store's, negative if it is behind.

    The store told its time between two instants of this clock: anything between them is no difference.
    """
    return min(after - store_time, max(before - store_time, timedelta(0)))


def load(store: Store, clock: Clock, task_id: str) -> Loaded:
    """Return a task, or None, with the time for which everything is decided: the clock may be set in a moment."""
    return store.load(task_id), clock.now()


def load_checked(store: Store, clock: Clock, task_id: str) -> Loaded:
    """Return the same. Raises ClockSkewed if this machine's clock does not agree with the store's."""
    before = clock.now()
    stored, now = load(store, clock, task_id)
    if now - before > MAX_SKEW:  # a difference could hide in a read that took so long
        before = now
        stored, now = load(store, clock, task_id)
    if stored is None or stored.read_at is None:
        return stored, now
    skew = measure_skew(before, stored.read_at, now)
    if abs(skew) > MAX_SKEW:
        error = ClockSkewed(skew, MAX_SKEW)
        log.error("%s", error, extra={"action": "clock_skewed", "taskId": task_id})
        raise error
    return stored, now
