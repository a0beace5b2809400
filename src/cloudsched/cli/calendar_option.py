"""The option ``--calendar``: what days do to a schedule.

What can be a calendar's id is one: ``closed`` is stored. Anything else is a file, which has a dot or a slash:
``closed.ics``, ``./closed``. ``weekends`` is always there.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cloudsched.domain.calendars.calendar_rule import CalendarRule, On
from cloudsched.domain.calendars.days import WEEKENDS, WEEKENDS_CONTENT, format_days
from cloudsched.domain.schedules.ics_days import read_ics_days
from cloudsched.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule


class StoredCalendars:
    """Reads stored calendars; nothing is imported or asked before one is read.

    Args:
        options: Where the API is, and the credentials: what `connection_options` gives a command.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def read(self, calendar_id: str) -> str:
        """Return the text of a calendar's days.

        Raises:
            NotFound: There is no such calendar for the caller.
            Unavailable: The API does not answer.
        """
        from cloudsched.cli.api_group import explain_errors  # noqa: PLC0415 - most uses ask nobody
        from cloudsched.client.client import Client  # noqa: PLC0415 - likewise

        credentials = {name: self._options[name] for name in ("key", "token", "platform_token")}
        with explain_errors(self._options), Client(self._options["url"], **credentials) as client:
            calendar = client.calendar(calendar_id)
        days = [
            (date.fromisoformat(day["date"]), date.fromisoformat(day.get("until") or day["date"]), day.get("name", ""))
            for day in calendar.days
        ]
        return format_days(calendar.weekdays, days)


_ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)


def read_calendars(options: Sequence[str], now: datetime, stored: StoredCalendars) -> tuple[CalendarRule, ...]:
    """Return the calendars of some options, each ``weekends``, a stored one or a file, with ``=before`` or the like.

    Raises:
        InvalidInput: A file cannot be read, or is no calendar.
        NotFound: There is no such stored calendar.
    """
    return tuple(_read_rule(option, now, stored) for option in options)


def find_default(rules: Sequence[CalendarRule]) -> str | None:
    """Return the id of the calendar that words such as "except holidays" mean: the first one."""
    return next((rule.id for rule in rules if rule.id != WEEKENDS), None)


def add_calendars(schedule: Schedule, rules: Sequence[CalendarRule], stored: StoredCalendars) -> Schedule:
    """Return a schedule with the days of its calendars, and with the calendars that it does not name yet.

    Calendars that it names and that are not among these are stored ones.

    Raises:
        InvalidSchedule: The schedule is a single instant.
        NotFound: There is no such stored calendar.
    """
    if rules and schedule.is_one_time:
        raise InvalidSchedule("calendar", "has no meaning for a single instant", "omit it")
    contents = {WEEKENDS: WEEKENDS_CONTENT} | {rule.id: rule.content or "" for rule in rules}
    named = []
    for rule in schedule.calendars:
        content = contents.get(rule.id)
        named.append(rule.with_content(stored.read(rule.id) if content is None else content))
    named += [rule for rule in rules if rule.id not in {each.id for each in named}]
    return schedule.copy_unchecked(calendars=tuple(named))


def _read_rule(option: str, now: datetime, stored: StoredCalendars) -> CalendarRule:
    place, _, on = option.rpartition("=")
    if on not in get_args(On) or not place:
        place, on = option, "skip"
    if place == WEEKENDS:
        return CalendarRule.model_validate({"id": WEEKENDS, "on": on}).with_content(WEEKENDS_CONTENT)
    if _ID.fullmatch(place):
        return CalendarRule.model_validate({"id": place, "on": on}).with_content(stored.read(place))
    try:
        text = Path(place).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("calendar", f"{place!r} cannot be read", "Give an .ics file, or a calendar's id.") from error
    name = "".join(each if each.isascii() and (each.isalnum() or each in "_-") else "-" for each in Path(place).stem)
    rule = CalendarRule.model_validate({"id": name[:64] or "calendar", "on": on})
    return rule.with_content(format_days((), read_ics_days(text, now.date())))
