"""Detect the notation of a schedule's text, and parse it to the schedule's fields."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from cloudsched.domain.recurrence.cron import cron_rules, is_cron
from cloudsched.domain.recurrence.icalendar import from_ical
from cloudsched.domain.recurrence.iso8601 import EPOCH, UTC_EPOCH, parse_moment
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.recurrence.wall_clock import wall_clock
from cloudsched.errors import InvalidSchedule

_CRON_FIELD = re.compile(r"[\d*?/,#LW-]+\Z|(?:[A-Z]{3})(?:[-,#L/\d]|[A-Z]{3})*\Z", re.IGNORECASE)
_AN_INTERVAL = "write it like FREQ=MINUTELY;INTERVAL=5"
_FOREIGN = (
    (
        r"cron\s*\(.*\)\Z",
        "is a cron expression of AWS",
        "write its first five fields alone, with the names of weekdays: 0 9 * * MON-FRI",
    ),
    (r"rate\s*\(.*\)\Z", "is a rate of AWS", _AN_INTERVAL),
    (r"@every\b", "is an interval of Go's cron", _AN_INTERVAL),
    (r"@[a-z]+\Z", "is no macro of cron", "there are @hourly, @daily, @weekly, @monthly and @yearly"),
    (r"R-?\d*/", "is a repeating interval of ISO 8601", "write it like FREQ=HOURLY;COUNT=5, with a dtstart"),
)
"""Notations of other schedulers: how each begins, what it is, and what to write instead."""
_FEWEST_FIELDS = 4
_CRON_FIELDS = 5
_MOST_FIELDS = 7


class Foreign(NamedTuple):
    """A text in another scheduler's notation."""

    problem: str
    hint: str


def recognize(text: str) -> Foreign | None:
    """Return the notation of another scheduler that a text is in, or None if it is in none."""
    for pattern, problem, hint in _FOREIGN:
        if re.match(pattern, text, re.IGNORECASE | re.DOTALL):
            return Foreign(problem, hint)
    fields = text.split()
    is_cron_like = _FEWEST_FIELDS <= len(fields) <= _MOST_FIELDS and len(fields) != _CRON_FIELDS
    is_plain = len(fields) > _CRON_FIELDS and _CRON_TIME.match(text)  # four numbers may be words
    if is_cron_like and all(map(_CRON_FIELD.match, fields)) and ("*" in text or "?" in text or is_plain):
        return Foreign(
            f"has {len(fields)} fields, and cron has five",
            "leave out seconds (the first of six) and the year (the last of seven), and name weekdays: 0 9 * * MON-FRI",
        )
    return None


MAX_LENGTH = 65_536
CRON_START = EPOCH.isoformat()

_ICAL = re.compile(r"(BEGIN|DTSTART|RRULE|RDATE|EXDATE)[:;]", re.IGNORECASE)
_CRON_TIME = re.compile(r"@|[\d/,-]+\s+[\d/,-]+\s")
"""The beginning of a cron expression that names its minutes and hours. Five words may be a sentence, too."""
_DATE = re.compile(r"\d{4}-?\d{2}-?\d{2}", re.ASCII)
_DATE_AND_WORDS = re.compile(r"\d{4}-\d{2}-\d{2}(?![T\d]).*?[^\W\dZ_]", re.ASCII | re.IGNORECASE | re.DOTALL)
"""Words that name their day as ISO 8601 does: ``2026-12-04 at 18:00``."""
_NOW = re.compile(r"now\Z", re.IGNORECASE)
_DURATION = re.compile(
    r"\+?P(?=[\dT])(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,9})D)?"
    r"(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12})S)?)?\Z",
    re.ASCII | re.IGNORECASE,
)
_FORMS = (
    "an RRULE (FREQ=DAILY), an iCalendar block, cron (0 9 * * 1-5), an instant (2027-01-31T09:00:00Z), "
    "a duration from now (PT5M) or now"
)


def is_notation(text: str) -> bool:
    """Return whether a text is in a notation that `parse_fields` reads, valid or not.

    Otherwise it is words.
    """
    text = text.strip()
    if _ICAL.match(text) or "=" in text or _DURATION.match(text) or _NOW.match(text) or recognize(text):
        return True
    if _DATE.match(text):
        return not _DATE_AND_WORDS.match(text)
    return is_cron(text) and ("*" in text or bool(_CRON_TIME.match(text)))


def parse_fields(text: str, *, timezone: str, now: datetime | None) -> dict[str, Any]:
    """Return the fields of the schedule that a text describes."""
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise InvalidSchedule("text", f"is {len(text)} characters long", f"at most {MAX_LENGTH}")
    if _ICAL.match(text):
        return from_ical(text, timezone)
    if "=" in text:
        return {"rrule": text, "timezone": timezone}

    duration = _DURATION.match(text)
    if duration:
        numbers = [int(number or 0) for number in duration.groups()]
    else:
        numbers = []

    if any(numbers):
        return {"at": _add_duration(text, numbers, timezone, now), "timezone": timezone}
    if duration or _NOW.match(text):
        return {"delay": timedelta(0), "timezone": timezone}
    if _DATE.match(text):
        return {**_read_point(text, timezone), "timezone": timezone}
    if is_cron(text):
        # A cron expression means the same from any start, so any DTSTART will do.
        return {"rrule": cron_rules(text), "dtstart": None if now else CRON_START, "timezone": timezone}
    if foreign := recognize(text):
        raise InvalidSchedule("text", f"{text[:60]!r} {foreign.problem}", foreign.hint)

    raise InvalidSchedule(
        "text",
        f"{text[:40]!r} is not a schedule",
        f"write {_FORMS}; for plain words use cloudsched.language.read",
    )


def _read_point(text: str, timezone: str) -> dict[str, Any]:
    moment = parse_moment(text, "at")
    if moment.offset is not None:
        return {"at": UTC_EPOCH + timedelta(seconds=moment.wall - moment.offset)}
    at = UTC_EPOCH + timedelta(seconds=wall_clock(timezone).instants(moment.wall)[0])
    return {"at": at, "local": moment._replace(is_date=False).isoformat()}


def _add_duration(text: str, numbers: list[int], timezone: str, now: datetime | None) -> datetime:
    """Add a duration to now: years to days on the calendar, the rest as real time (RFC 5545, 3.3.6)."""
    if now is None:
        raise InvalidSchedule(
            "at",
            f"{text!r} counts from now, and no `now` was given",
            "give one, or an instant",
        )

    years, months, weeks, days, hours, minutes, seconds = numbers
    local = now.astimezone(load_tzinfo(timezone))
    try:
        if years or months or weeks or days:
            year, month = divmod(local.year * 12 + local.month - 1 + years * 12 + months, 12)
            day = min(local.day, monthrange(year, month + 1)[1])
            local = local.replace(year=year, month=month + 1, day=day, fold=0) + timedelta(
                weeks=weeks,
                days=days,
            )
        return UTC_EPOCH + (local - UTC_EPOCH) + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    except (OverflowError, ValueError):
        raise InvalidSchedule(
            "at",
            f"{text!r} from now is beyond the calendar",
            "give a shorter duration",
        ) from None
