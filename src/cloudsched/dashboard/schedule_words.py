"""A schedule in words, and its next occurrences. Only what does not depend on now is cached."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.dashboard.times import find_clock_changes, find_zone, parse_instant
from cloudsched.dashboard.visit import UTC_ZONE
from cloudsched.dashboard.words import only_if
from cloudsched.domain.schedules.describe import describe
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit


class _Words(NamedTuple):
    first: datetime | None
    """The first occurrence. None if it is not known here, as with calendars."""
    ahead: str
    """The words while it is ahead, which name it."""
    begun: str


def describe_schedule(schedule: Mapping[str, Any] | str, now: datetime) -> str:
    """Return a schedule of the API's, or its JSON, in words. They say when it is first due only if that is ahead."""
    text = schedule if isinstance(schedule, str) else json.dumps(schedule, sort_keys=True)
    words = _find_words(text)
    if words.first is not None and words.first >= now:
        return words.ahead
    return words.begun


@lru_cache(maxsize=4000)
def _find_words(text: str) -> _Words:
    try:
        schedule = Schedule.model_validate_json(text).rebase()
    except (CloudschedError, ValueError):  # of a newer API, or cut
        return _Words(None, text, text)
    return _Words(_find_first(schedule), describe(schedule).text, describe(schedule, has_begun=True).text)


def _find_first(schedule: Schedule) -> datetime | None:
    if schedule.is_adjusted or schedule.dtstart is None:
        return None
    try:
        first = schedule.first()
    except CloudschedError:
        return None
    return None if first is None else parse_instant(first.isoformat())


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
        row = {"at": at, "utc": f"{at:%d %b %H:%M}", "change": "", "isOverdue": at <= visit.now}
        if at - before <= _FAR:
            for change in find_clock_changes(before, at, zone):
                row["change"] = change.describe(zone) + only_if(zone != visit.zone, f" in {zone.key}")
        rows.append(row)
        before = at
    return rows
