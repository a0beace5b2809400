"""A recurrence rule as data: RFC 5545, section 3.3.10, with SKIP of RFC 7529.

This module only parses. `days`, `expand` and `wall_clock` compute the occurrences.

The RFC leaves room, and other implementations accept more than it allows. This module reads such cases as
follows:

- Parts may come in any order and any case, each at most once.
- ``SKIP`` may stand without ``RSCALE``, and the only calendar is the Gregorian one.
- ``BYSECOND=60`` is second 59: there are no leap seconds here (RFC 5545, section 3.3.12).
- ``UNTIL`` as a date is the midnight at which that day begins, as elsewhere: occurrences later that day are
  excluded. As a local time it is read in the schedule's zone.
- ``BYYEARDAY``, ``BYWEEKNO`` and ``BYMONTHDAY`` where the RFC does not allow them
  (``FREQ=MONTHLY;BYYEARDAY=…``) limit the days that the rule would otherwise select, as in every other
  implementation that accepts them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, get_args

from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_LENGTH = 8192
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

Skip = Literal["OMIT", "BACKWARD", "FORWARD"]


class Frequency(IntEnum):
    """The seven frequencies, from the longest period to the shortest."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


class NthDay(NamedTuple):
    """One BYDAY entry: every such weekday if ``nth`` is 0, else the nth of its period (negative: from the end).

    Weekdays count from Monday, 0.
    """

    nth: int
    weekday: int


class Until(NamedTuple):
    """The last moment of a rule, in seconds since 1970 as shown by a clock: UTC, or the zone's."""

    seconds: int
    is_utc: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One parsed RRULE. Lists are sorted and free of duplicates. An absent part is an empty tuple or None."""

    frequency: Frequency
    interval: int = 1
    count: int | None = None
    until: Until | None = None
    week_start: int = 0
    seconds: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    weekdays: tuple[NthDay, ...] = ()
    month_days: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    week_numbers: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    skip: Skip = "OMIT"


class _Range(NamedTuple):
    field: str
    lowest: int
    highest: int
    signed: bool


_LISTS = {
    "BYSECOND": _Range("seconds", 0, 60, signed=False),
    "BYMINUTE": _Range("minutes", 0, 59, signed=False),
    "BYHOUR": _Range("hours", 0, 23, signed=False),
    "BYMONTHDAY": _Range("month_days", 1, 31, signed=True),
    "BYYEARDAY": _Range("year_days", 1, 366, signed=True),
    "BYWEEKNO": _Range("week_numbers", 1, 53, signed=True),
    "BYMONTH": _Range("months", 1, 12, signed=False),
    "BYSETPOS": _Range("positions", 1, 366, signed=True),
}
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}\Z")
_DAY = re.compile(rf"([+-]?[0-9]{{1,2}})?({'|'.join(WEEKDAYS)})\Z")
_UNTIL = re.compile(r"([0-9]{8})(?:T([0-9]{6})(Z?))?\Z")
_MOST_WEEKDAYS = 53
"""The most Mondays, for example, of a year."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- seconds "as a clock shows them" have no zone


@lru_cache(maxsize=500)
def normalize_rule(text: str) -> str:
    """Return a rule's text in upper case, without spaces and without the prefix ``RRULE:``."""
    return "".join(text.split()).upper().removeprefix("RRULE:").rstrip(";")


@lru_cache(maxsize=2048)
def parse_rule(text: str) -> Rule:
    """Parse the value of an RRULE property, such as ``FREQ=WEEKLY;BYDAY=MO,WE``."""
    if len(text) > MAX_LENGTH:
        _refuse(f"the rule is {len(text)} characters long", f"at most {MAX_LENGTH} are allowed")
    parts = _split_parts(normalize_rule(text))
    if "FREQ" not in parts:
        _refuse("the rule has no FREQ", "begin with FREQ=DAILY, for example")
    frequency = Frequency[_parse_choice("FREQ", parts.pop("FREQ"), [each.name for each in Frequency])]
    values: dict[str, object] = {}
    for name, value in parts.items():
        if name not in _PARTS:
            _refuse(f"{name[:40]} is not a part of a rule", f"known parts: FREQ, {', '.join(_PARTS)}")
        field, read = _PARTS[name]
        values[field] = read(name, value)
    values.pop("calendar", None)  # there is only one
    rule = Rule(frequency, **values)  # type: ignore[arg-type]  # _PARTS gives each field its type
    _check(rule)
    return rule


def _split_parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            _refuse(f"{part[:40]!r} is not NAME=VALUE", "write the rule like FREQ=WEEKLY;BYDAY=MO,WE")
        if name in parts:
            _refuse(f"{name[:40]} is given twice", "give each part once, with a list of values")
        parts[name] = value
    return parts


def _parse_choice(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        _refuse(f"{name} cannot be {value[:40]!r}", f"one of {', '.join(allowed)}")
    return value


def _parse_integer(name: str, value: str) -> int:
    if not _NUMBER.match(value):
        _refuse(f"{name} cannot be {value[:40]!r}", "a whole number is needed")
    return int(value)


def _parse_positive(name: str, value: str) -> int:
    number = _parse_integer(name, value)
    if number < 1:
        _refuse(f"{name} cannot be {number}", "1 or more")
    return number


def _parse_list(name: str, value: str) -> tuple[int, ...]:
    _, lowest, highest, signed = _LISTS[name]
    numbers = {_parse_integer(name, item) for item in value.split(",")}
    for number in numbers:
        if lowest <= number <= highest or (signed and -highest <= number <= -lowest):
            continue
        span = f"{lowest} to {highest}"
        if signed:
            span += f" or -{highest} to -{lowest}"
        _refuse(f"{name} cannot be {number}", span)
    if name == "BYSECOND":
        numbers = {min(number, 59) for number in numbers}
    return tuple(sorted(numbers))


def _parse_weekdays(name: str, value: str) -> tuple[NthDay, ...]:
    days = set()
    for item in value.split(","):
        result = _DAY.match(item)
        number = (result and result.group(1)) or ""
        is_known = not number or 1 <= abs(int(number)) <= _MOST_WEEKDAYS
        if not result or not is_known:
            hint = "a weekday such as MO, or its number in the period such as -1FR"
            _refuse(f"{name} cannot be {item[:40]!r}", hint)
        days.add(NthDay(int(number or 0), WEEKDAYS.index(result.group(2))))
    return tuple(sorted(days))


def _parse_until(name: str, value: str) -> Until:
    result = _UNTIL.match(value)
    if not result:
        _refuse(f"{name} cannot be {value[:40]!r}", "such as 20271231T235959Z, 20271231T235959 or 20271231")
    day, time, utc = result.groups()
    try:
        moment = datetime.strptime(day + (time or "000000"), "%Y%m%d%H%M%S")  # noqa: DTZ007 -- see _EPOCH
    except ValueError:
        _refuse(f"{name} is {value!r}, which no calendar has", "check the month, the day and the time")
    return Until(int((moment - _EPOCH).total_seconds()), is_utc=bool(utc))


_PARTS: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "INTERVAL": ("interval", _parse_positive),
    "COUNT": ("count", _parse_positive),
    "UNTIL": ("until", _parse_until),
    "WKST": ("week_start", lambda name, value: WEEKDAYS.index(_parse_choice(name, value, WEEKDAYS))),
    "BYDAY": ("weekdays", _parse_weekdays),
    **{name: (span.field, _parse_list) for name, span in _LISTS.items()},
    "SKIP": ("skip", lambda name, value: _parse_choice(name, value, get_args(Skip))),
    "RSCALE": ("calendar", lambda name, value: _parse_choice(name, value, ["GREGORIAN"])),
}


def _check(rule: Rule) -> None:
    """Refuse combinations that RFC 5545 forbids and that have no single meaning."""
    if rule.count is not None and rule.until is not None:
        _refuse("COUNT and UNTIL exclude each other", "keep one of them")
    if any(day.nth for day in rule.weekdays):
        if rule.frequency > Frequency.MONTHLY:
            _refuse(
                f"BYDAY takes no number with FREQ={rule.frequency.name}",
                "use FREQ=MONTHLY or FREQ=YEARLY for the nth weekday",
            )
        if rule.week_numbers:
            _refuse("BYDAY takes no number together with BYWEEKNO", "a week has each weekday once")
    names = ["weekdays", *(each.field for each in _LISTS.values() if each.field != "positions")]
    if rule.positions and not any(getattr(rule, name) for name in names):
        _refuse("BYSETPOS picks from what another BY part names, and there is none", "add BYDAY, for example")


def _refuse(problem: str, hint: str) -> NoReturn:
    raise InvalidSchedule("rrule", problem, hint)
