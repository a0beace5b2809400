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

_AWS = re.compile(r"(cron|rate)\s*\((.*)\)\Z", re.IGNORECASE | re.DOTALL)
_AT = re.compile(r"@(every\b\s*(.*)|[a-z]+\Z)", re.IGNORECASE | re.DOTALL)
_REPEAT = re.compile(r"R(-?\d*)/(.*)\Z", re.IGNORECASE | re.DOTALL)
_GO_DURATION = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,8})s)?\Z", re.IGNORECASE)
_RATE = re.compile(r"(\d{1,7})\s*(second|minute|hour|day|week)s?\Z", re.IGNORECASE)
_CRON_FIELD = re.compile(r"[\d*?/,#LW-]+\Z|(?:[A-Z]{3})(?:[-,#L/\d]|[A-Z]{3})*\Z", re.IGNORECASE)
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_UNITS = (("WEEKLY", 604_800), ("DAILY", 86_400), ("HOURLY", 3600), ("MINUTELY", 60), ("SECONDLY", 1))
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_CRON_FIELDS = 5
_MOST_FIELDS = 7


class Foreign(NamedTuple):
    """A text in another scheduler's notation."""

    problem: str
    suggestion: str | None
    """The nearest valid form, or None if there is none."""


def is_foreign(text: str) -> bool:
    """Return whether a text is in another scheduler's notation."""
    return bool(_AWS.match(text) or _AT.match(text) or _REPEAT.match(text)) or _looks_like_cron(text)


def recognize(text: str) -> Foreign | None:
    """Return the notation of another scheduler that a text is in, or None if it is in none."""
    if aws := _AWS.match(text):
        if aws.group(1).lower() == "rate":
            return Foreign("is a rate of AWS", _suggest_interval(_parse_rate(aws.group(2).strip())))
        fields = aws.group(2).split()
        is_aws = len(fields) > _CRON_FIELDS
        return Foreign("is a cron expression of AWS", _suggest_cron(fields, sunday_is_one=is_aws))
    if at := _AT.match(text):
        if at.group(2) is None:
            return Foreign("is no macro: there are @hourly, @daily, @weekly, @monthly and @yearly", None)
        return Foreign("is an interval of Go's cron", _suggest_interval(_parse_go_duration(at.group(2).strip())))
    if repeat := _REPEAT.match(text):
        return Foreign("is a repeating interval of ISO 8601", _suggest_repeat(repeat.group(1), repeat.group(2)))
    return _recognize_cron(text) if _looks_like_cron(text) else None


def _recognize_cron(text: str) -> Foreign:
    fields = text.split()
    if len(fields) < _CRON_FIELDS:
        return Foreign("has four fields, and cron has five", _suggest_cron([*fields, "*"], sunday_is_one=False))
    sunday_is_one = "?" in text
    if len(fields) == _MOST_FIELDS:  # seconds first, a year last
        return Foreign("has seven fields, and cron has five", _suggest_cron(fields[1:], sunday_is_one=sunday_is_one))
    if fields[0] != "0" and (every := re.fullmatch(r"\*(?:/(\d{1,2}))?", fields[0])) and set(fields[1:]) <= {"*", "?"}:
        return Foreign("has six fields, and cron has five", _suggest_interval(int(every.group(1) or 1)))
    return Foreign("has six fields, and cron has five", _suggest_cron(fields[1:], sunday_is_one=sunday_is_one))


def _looks_like_cron(text: str) -> bool:
    """Return whether a text has the fields of a cron expression, but not five of them."""
    fields = text.split()
    if not 4 <= len(fields) <= _MOST_FIELDS or len(fields) == _CRON_FIELDS:  # noqa: PLR2004 - one of five may be missing
        return False
    return all(map(_CRON_FIELD.match, fields)) and ("*" in text or "?" in text)


def _suggest_cron(fields: list[str], *, sunday_is_one: bool) -> str | None:
    """Return the five fields of an expression that may have a year as its sixth, or None if they are not valid."""
    if not _CRON_FIELDS <= len(fields) <= _CRON_FIELDS + 1:
        return None
    minute, hour, month_day, month, weekday = fields[:_CRON_FIELDS]
    if sunday_is_one:  # only the day itself is a number of this kind: 6#3 is the third Friday, */2 every other day
        weekday = re.sub(r"(?<![#/\d])([1-7])(?!\d)", lambda found: _DAYS[int(found.group(1)) - 1], weekday)
    suggestion = f"{minute} {hour} {month_day} {month} {weekday}".replace("?", "*")
    try:
        cron_rules(suggestion)
    except InvalidSchedule:
        return None
    return suggestion


def _suggest_interval(seconds: int | None) -> str | None:
    if not seconds:
        return None
    name, length = next(unit for unit in _UNITS if seconds % unit[1] == 0)
    count = seconds // length
    return f"FREQ={name}" + (f";INTERVAL={count}" if count > 1 else "")


def _parse_rate(text: str) -> int | None:
    found = _RATE.match(text)
    return int(found.group(1)) * _SECONDS[found.group(2).lower()] if found else None


def _parse_go_duration(text: str) -> int | None:
    found = _GO_DURATION.match(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(number or 0) for number in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _suggest_repeat(times: str, rest: str) -> str | None:
    parts = rest.split("/")
    length = next((found for part in parts if (found := _DURATION.match(part))), None)
    if length is None:
        return None
    years, months, weeks, days, hours, minutes, seconds = (int(number or 0) for number in length.groups())
    clock = (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds
    if (years or months) and clock:
        return None
    if years or months:
        count = years * 12 + months
        rule = "FREQ=YEARLY" if count % 12 == 0 else "FREQ=MONTHLY"
        count = count // 12 if count % 12 == 0 else count
        rule += f";INTERVAL={count}" if count > 1 else ""
    else:
        rule = _suggest_interval(clock) or ""
    if not rule:
        return None
    rule += f";COUNT={times}" if times.isdigit() and int(times) else ""
    start = parts[0] if len(parts) > 1 and parts[0][:1].isdigit() else None
    return rule if start is None else f"{rule} with dtstart {start.rstrip('Zz')}"


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
    """Return whether a text is in a notation that `parse_fields` reads, valid or not. Otherwise it is words."""
    text = text.strip()
    if _ICAL.match(text) or "=" in text or _DURATION.match(text) or _NOW.match(text) or is_foreign(text):
        return True
    if _DATE.match(text):
        return not _DATE_AND_WORDS.match(text)
    return is_cron(text) and ("*" in text or bool(_CRON_TIME.match(text)))


def parse_fields(text: str, *, timezone: str, now: datetime | None) -> dict[str, Any]:
    """Return the fields of the schedule that a text describes.

    Raises:
        InvalidSchedule: The notation is unknown, or the text is not valid in it.
    """
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise InvalidSchedule("text", f"is {len(text)} characters long", f"at most {MAX_LENGTH}")
    if _ICAL.match(text):
        return from_ical(text, timezone)
    if "=" in text:
        return {"rrule": text, "timezone": timezone}
    duration = _DURATION.match(text)
    numbers = [int(number or 0) for number in duration.groups()] if duration else []
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
        hint = f"write {foreign.suggestion}" if foreign.suggestion else f"write {_FORMS}"
        raise InvalidSchedule("text", f"{text[:60]!r} {foreign.problem}", hint)
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
    """Add a duration to now: years to days on the local calendar, the rest as real time (RFC 5545, section 3.3.6)."""
    if now is None:
        raise InvalidSchedule("at", f"{text!r} counts from now, and no `now` was given", "give one, or an instant")
    years, months, weeks, days, hours, minutes, seconds = numbers
    local = now.astimezone(load_tzinfo(timezone))
    try:
        if years or months or weeks or days:
            year, month = divmod(local.year * 12 + local.month - 1 + years * 12 + months, 12)
            day = min(local.day, monthrange(year, month + 1)[1])
            local = local.replace(year=year, month=month + 1, day=day, fold=0) + timedelta(weeks=weeks, days=days)
        return UTC_EPOCH + (local - UTC_EPOCH) + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    except (OverflowError, ValueError):
        raise InvalidSchedule("at", f"{text!r} from now is beyond the calendar", "give a shorter duration") from None
