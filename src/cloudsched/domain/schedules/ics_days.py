"""Read the days of an iCalendar file: each event takes the days from its start to its end."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.calendars.days import MAX_INTERVALS
from cloudsched.domain.recurrence.content_lines import unescape_text, unfold
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT: Final = 2_000_000
"""How many characters of iCalendar are read."""
YEARS_AHEAD: Final = 10
"""How far ahead an event that recurs is followed."""
_LINE: Final = re.compile(r"^([A-Za-z0-9-]+)((?:;[^:\"]*(?:\"[^\"]*\"[^:\"]*)*)?):(.*)$", re.DOTALL)
_DATE: Final = re.compile(r"^\d{8}")
_MAX_LENGTH: Final = timedelta(days=3660)


def read_ics_days(text: str, today: date) -> list[tuple[date, date, str]]:
    """Return the intervals of days of a calendar's events, from the year before today on.

    A time of day in the file counts as its whole day, as written there. Cancelled events count for nothing.

    Raises:
        InvalidInput: It is no iCalendar file, or has too many events.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInput("ics", f"has {len(text)} characters", f"At most {MAX_TEXT}.")
    if "BEGIN:VCALENDAR" not in text[:2000].upper():
        raise InvalidInput("ics", "is no iCalendar text", "It begins with BEGIN:VCALENDAR.")
    first, end = date(today.year - 1, 1, 1), date(today.year + YEARS_AHEAD, 12, 31)
    found = list[tuple[date, date, str]]()
    for event in _iter_events(text):
        if event.get("STATUS", "").upper() == "CANCELLED" or "DTSTART" not in event:
            continue
        name = unescape_text(event.get("SUMMARY", ""))
        start, length = _read_days(event)
        for day in _iter_starts(event, start, first - length, end):
            if day + length >= first:
                found.append((day, day + length, name))
            if len(found) > MAX_INTERVALS:
                raise InvalidInput("ics", f"has more than {MAX_INTERVALS} days and intervals", "Give fewer.")
    return found


def _iter_events(text: str) -> Iterator[dict[str, str]]:
    event: dict[str, str] | None = None
    nested = 0
    for line in unfold(text):
        parts = _LINE.match(line.strip())
        if parts is None:
            continue
        name, value = parts.group(1).upper(), parts.group(3)
        if name == "BEGIN" and value.strip().upper() == "VEVENT":
            event, nested = {}, 0
        elif name == "END" and value.strip().upper() == "VEVENT" and event is not None:
            yield event
            event = None
        elif name in {"BEGIN", "END"}:
            nested += 1 if name == "BEGIN" else -1
        elif event is not None and not nested:
            if name == "EXDATE" and name in event:
                value = f"{event[name]},{value}"
            event[name] = value


def _read_days(event: dict[str, str]) -> tuple[date, timedelta]:
    """Return an event's first day, and how much later its last one is."""
    start = _to_date(event["DTSTART"])
    if "DTEND" not in event:
        return start, timedelta(0)
    last = _to_date(event["DTEND"])
    if "T" not in event["DTEND"] or event["DTEND"].strip().rstrip("Z").endswith("T000000"):
        last -= timedelta(days=1)  # it ends before that day
    if last - start > _MAX_LENGTH:
        raise InvalidInput("ics", f"has an event from {start} to {last}", "At most ten years each.")
    return start, max(timedelta(0), last - start)


def _iter_starts(event: dict[str, str], start: date, first: date, end: date) -> Iterator[date]:
    """Yield the first days of an event's occurrences."""
    if "RRULE" not in event:
        yield start
        return
    left_out = {_to_date(each) for each in event.get("EXDATE", "").split(",") if each}
    rule = re.sub(r"(UNTIL=\d{8})T\d{6}Z?", r"\1", event["RRULE"], flags=re.IGNORECASE)
    try:
        schedule = Schedule(rrule=rule, dtstart=start.isoformat())
        at = datetime(first.year, first.month, first.day, tzinfo=UTC)
        days = schedule.between(at, datetime(end.year, end.month, end.day, tzinfo=UTC))
    except InvalidSchedule as error:
        raise InvalidInput("ics", f"has a rule that cannot be read: {error.problem}", error.hint) from error
    yield from (each.date() for each in days if each.date() not in left_out)


def _to_date(value: str) -> date:
    digits = _DATE.match(value.strip())
    try:
        return datetime.strptime(digits.group() if digits else "", "%Y%m%d").date()  # noqa: DTZ007 - only its date
    except ValueError:
        raise InvalidInput("ics", f"has the date {value[:20]!r}", "Write 20270714.") from None
