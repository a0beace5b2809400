"""The port for the current time, and whether a machine's clock agrees with the store's.

Leases are taken by one machine's clock and judged by others'.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

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
