"""The option ``--calendar``: what days do to a schedule, without a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from cloudsched.domain.calendars.calendar_rule import CalendarRule, On
from cloudsched.domain.calendars.days import WEEKENDS, WEEKENDS_CONTENT, format_days
from cloudsched.domain.calendars.ics_days import read_ics_days
from cloudsched.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.recurrence.schedule import Schedule


def add_calendars(schedule: Schedule, options: Sequence[str], now: datetime) -> Schedule:
    """Return a schedule with the calendars of some options, each ``weekends`` or a file, with ``=before`` or the like.

    Raises:
        InvalidInput: A file cannot be read, or is no calendar.
    """
    if not options:
        return schedule
    if schedule.is_one_time:
        raise InvalidSchedule("calendar", "has no meaning for a single instant", "omit it")
    rules = tuple(_read_rule(option, now) for option in options)
    return schedule.model_copy(update={"calendars": rules})


def _read_rule(option: str, now: datetime) -> CalendarRule:
    place, _, on = option.rpartition("=")
    if on not in get_args(On) or not place:
        place, on = option, "skip"
    if place == WEEKENDS:
        return CalendarRule.model_validate({"id": WEEKENDS, "on": on}).with_content(WEEKENDS_CONTENT)
    try:
        text = Path(place).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("calendar", f"{place!r} cannot be read", "Give weekends, or an .ics file.") from error
    name = "".join(each if each.isascii() and (each.isalnum() or each in "_-") else "-" for each in Path(place).stem)
    rule = CalendarRule.model_validate({"id": name[:64] or "calendar", "on": on})
    return rule.with_content(format_days((), read_ics_days(text, now.date())))
