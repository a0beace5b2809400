"""Read the fields of a schedule as callers write them, into their canonical form."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.iso8601 import FIRST_YEAR, LAST_YEAR, UTC_EPOCH, parse_moment, to_utc
from cloudsched.domain.recurrence.rrule import MAX_LENGTH, normalize_rule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from pydantic import ValidationInfo

MAX_RULES = 20
MAX_DATES = 1000


def read_instant(at: datetime) -> datetime:
    """Return an instant in UTC."""
    if at.tzinfo is None:
        raise InvalidSchedule("at", "has no time zone", "give an aware datetime, or an offset such as Z")
    try:
        to_utc(at)
    except ValueError:
        hint = f"{FIRST_YEAR} to {LAST_YEAR}, in UTC as well"
        raise InvalidSchedule("at", f"the year {at.year} is out of range", hint) from None
    return UTC_EPOCH + (at - UTC_EPOCH)  # a plain datetime, even if the store returns a subclass


def read_rules(value: object) -> object:
    """Return the canonical text of one or several rules: a string for one, a tuple for several, None for none."""
    if isinstance(value, str):
        if len(value) > MAX_LENGTH:
            raise InvalidSchedule("rrule", f"the rule is {len(value)} characters long", f"at most {MAX_LENGTH}")
        text = normalize_rule(value)
        if not text:
            raise InvalidSchedule("rrule", "is empty", "write it like FREQ=DAILY, or leave it out")
        if "=" not in text:
            raise InvalidSchedule("rrule", f"{value[:40]!r} is not a rule", _rule_hint(value))
        return text
    if isinstance(value, list | tuple) and all(isinstance(rule, str) for rule in value):
        if len(value) > MAX_RULES:
            raise InvalidSchedule("rrule", f"{len(value)} rules", f"at most {MAX_RULES}")
        rules = tuple(dict.fromkeys(read_rules(rule) for rule in value))
        return rules if len(rules) > 1 else next(iter(rules), None)
    return value


def _rule_hint(text: str) -> str:
    from cloudsched.domain.recurrence.parse import is_notation  # noqa: PLC0415 -- only for mistakes

    like = "write it like FREQ=WEEKLY;BYDAY=MO,WE"
    return f"{like}; cron is no rule but the schedule itself: {text[:40]!r}" if is_notation(text) else like


def read_dtstart(value: object) -> object:
    """Return a local time as canonical ISO text."""
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, str):
        moment = parse_moment(value, "dtstart")
        if moment.offset is not None:
            raise InvalidSchedule(
                "dtstart", "is a local time and takes no offset", "leave the offset out; timezone says where"
            )
        return moment._replace(is_date=False).isoformat()
    return value


def read_dates(value: object, info: ValidationInfo) -> object:
    """Return a list of dates and times as canonical ISO texts."""
    field = str(info.field_name)
    if isinstance(value, str | datetime):
        value = (value,)
    if isinstance(value, list | tuple):
        if len(value) > MAX_DATES:
            raise InvalidSchedule(field, f"{len(value)} dates", f"at most {MAX_DATES}")
        dates = (date.isoformat() if isinstance(date, datetime) else date for date in value)
        return tuple(
            parse_moment(date, f"{field}.{number}").isoformat() if isinstance(date, str) else date
            for number, date in enumerate(dates)
        )
    return value
