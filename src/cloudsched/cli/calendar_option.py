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


def read_calendars(options: Sequence[str], now: datetime) -> tuple[CalendarRule, ...]:
    """Return the calendars of some options, each ``weekends`` or a file, with ``=before`` or the like.

    Raises:
        InvalidInput: A file cannot be read, or is no calendar.
    """
    return tuple(_read_rule(option, now) for option in options)


def find_default(rules: Sequence[CalendarRule]) -> str | None:
    """Return the id of the calendar that words such as "except holidays" mean: the first file."""
    return next((rule.id for rule in rules if rule.id != WEEKENDS), None)


def add_calendars(schedule: Schedule, rules: Sequence[CalendarRule]) -> Schedule:
    """Return a schedule with the days of its calendars, and with the calendars that it does not name yet.

    Raises:
        InvalidInput: The schedule names a calendar that is not among these, or is a single instant.
    """
    if rules and schedule.is_one_time:
        raise InvalidSchedule("calendar", "has no meaning for a single instant", "omit it")
    contents = {WEEKENDS: WEEKENDS_CONTENT} | {rule.id: rule.content for rule in rules}
    named = []
    for rule in schedule.calendars:
        content = contents.get(rule.id)
        if content is None:
            problem = f"has no days of {rule.id!r}: this command does not read stored calendars"
            raise InvalidInput("calendar", problem, f"Give its file: --calendar {rule.id}.ics.")
        named.append(rule.with_content(content))
    named += [rule for rule in rules if rule.id not in {each.id for each in named}]
    return schedule.model_copy(update={"calendars": tuple(named)})


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
