"""A schedule in words, as lists and pages show it. Only what does not depend on now is cached."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudsched.dashboard.times import parse_instant
from cloudsched.domain.schedules.describe import describe
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


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
