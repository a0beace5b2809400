"""The next occurrences of a task, with the clock changes between them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.times import find_clock_changes, find_zone
from cloudsched.dashboard.visit import UTC_ZONE

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_FAR: Final = timedelta(days=1000)
"""Between occurrences that are further apart, no clock changes are looked for."""


def build_upcoming(due: list[datetime], visit: Visit, own_zone: str) -> list[Json]:
    """Return the next occurrences, each with the clock change before it that moves its UTC time, if there is one.

    Those whose time has passed have not started, and are overdue.
    """
    zone = find_zone(own_zone) or UTC_ZONE
    rows = []
    before = visit.now
    for at in due:
        row = {"at": at, "change": "", "isOverdue": at <= visit.now}
        if at - before <= _FAR:
            for change in find_clock_changes(before, at, zone):
                row["change"] = change.describe(zone)
        rows.append(row)
        before = at
    return rows
