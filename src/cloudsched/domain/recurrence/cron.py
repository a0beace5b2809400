"""Cron expressions of five fields, as recurrence rules.

The fields are minute, hour, day of the month, month and day of the week (0 and 7 are Sunday), each ``*``, a
value, a range, a step or a list. Months and weekdays may have their names. ``L`` as day of the month is its
last day (``L-2`` the one two days earlier), ``5L`` or ``FRIL`` as weekday the month's last Friday, ``5#2``
its second.

Two rules follow Debian's cron and crontab(5):

- If day of the month and weekday are both restricted, a day that fits either counts. If one of the fields
  begins with ``*`` (such as ``*/2``), it must fit both.
- If the minute or the hour begins with ``*``, the job runs whenever the clock shows a matching time: not at
  all for times in a gap, and twice for times in a fold. Otherwise it is a daily job, and runs once on each
  day that it names.

One differs: a daily job in a gap runs at its shifted time (02:30 at 03:30), as the schedule's policy says.
Debian's cron runs it "soon after the change", at 03:00 (cron(8)).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from cloudsched.domain.recurrence.rrule import WEEKDAYS
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class _Field(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()


_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_MONTH_DAY = _Field("day of the month", 1, 31)
_MONTH = _Field("month", 1, 12, _MONTHS)
_WEEKDAY = _Field("day of the week", 0, 7, _DAYS)

_FIELD = re.compile(r"[0-9A-Za-z*?/,#-]+\Z")
_STEPPED = re.compile(r"([^/]+)(?:/(?!0+\Z)([0-9]{1,3}))?\Z")
_LAST_DAY = re.compile(r"L(?:-([0-9]{1,2}))?\Z")
_NTH_DAY = re.compile(r"([0-7]|[A-Z]{3})(?:#([1-5])|L)\Z")


class _Weekday(NamedTuple):
    nth: int
    code: str


def is_cron(text: str) -> bool:
    """Return whether a text looks like a cron expression."""
    fields = text.split()
    return text.lower() in _MACROS or (len(fields) == 5 and all(map(_FIELD.match, fields)))  # noqa: PLR2004 -- see above


def cron_rules(text: str) -> tuple[str, ...]:
    """Return the RRULE values whose union is equivalent to a cron expression."""
    minute, hour, month_day, month, weekday = _MACROS.get(text.lower(), text).upper().replace("?", "*").split()
    choices = _choose_days(month_day, weekday)
    by_month = _format_part("BYMONTH", _parse_values(_MONTH, month))

    minutes = _parse_values(_MINUTE, minute)
    hours = _parse_values(_HOUR, hour)
    if hours and minutes and not (minute.startswith("*") or hour.startswith("*")):
        times = _format_part("BYHOUR", hours) + _format_part("BYMINUTE", minutes)
        return tuple(_daily_rule(days, names) + by_month + times for days, names in choices)

    frequency = "FREQ=HOURLY" if minutes else "FREQ=MINUTELY"
    times = _format_part("BYHOUR", hours) + _format_part("BYMINUTE", minutes) + ";BYSECOND=0"
    rules: list[str] = []
    for days, names in choices:
        if days and any(name.nth < 0 or (name.nth and min(days) < 0) for name in names):
            # "the 1st, if it is among the last seven days": no limits say that, but a monthly rule does.
            hourly = _format_part("BYHOUR", hours or range(24))
            rules.append(
                _daily_rule(days, names) + by_month + hourly + _format_part("BYMINUTE", minutes or range(60)),
            )
        else:
            rules += [frequency + day + by_month + times for day in _day_limits(days, names)]

    if not rules:
        hint = "check the days of the month and the weekdays"
        raise InvalidSchedule("text", "names a day that no month has", hint)
    return tuple(rules)


def _choose_days(month_day: str, weekday: str) -> list[tuple[list[int], list[_Weekday]]]:
    """Return pairs of days of the month and weekdays. A day counts if it fits both parts of any pair."""
    month_days = _parse_month_days(month_day)
    weekdays = _parse_weekdays(weekday)
    if month_day.startswith("*") or weekday.startswith("*"):
        return [(month_days, weekdays)]
    if month_days and weekdays:
        return [(month_days, []), ([], weekdays)]
    return [([], [])]


def _daily_rule(month_days: list[int], weekdays: list[_Weekday]) -> str:
    named = _format_part("BYMONTHDAY", month_days)
    if weekdays:
        named += ";BYDAY=" + ",".join(f"{day.nth or ''}{day.code}" for day in weekdays)
    if month_days or any(day.nth for day in weekdays):
        return "FREQ=MONTHLY" + named
    if weekdays:
        return "FREQ=WEEKLY" + named
    return "FREQ=DAILY" + named


def _day_limits(month_days: list[int], weekdays: list[_Weekday]) -> list[str]:
    """Return the days as limits of an hourly rule, whose BYDAY takes no number.

    The second Friday, for example, is a Friday from the 8th to the 14th.
    """
    plain = [day.code for day in weekdays if not day.nth]
    limits = []
    if plain or not weekdays:
        limits.append(_format_part("BYMONTHDAY", month_days) + _format_part("BYDAY", plain))
    for nth, code in weekdays:
        if nth:
            if nth < 0:
                span = range(-7, 0)
            else:
                span = range(7 * nth - 6, min(7 * nth, _MONTH_DAY.highest) + 1)
            both = [day for day in span if not month_days or day in month_days]
            if both:
                limits.append(_format_part("BYMONTHDAY", both) + f";BYDAY={code}")
    return limits


def _parse_month_days(text: str) -> list[int]:
    plain = []
    days = []
    for item in text.split(","):
        last = _LAST_DAY.match(item)
        if last:
            back = int(last.group(1) or 0) + 1
            if back > _MONTH_DAY.highest:
                _refuse(_MONTH_DAY, item)
            days.append(-back)
        else:
            plain.append(item)
    if not plain:
        return days
    numbers = _parse_values(_MONTH_DAY, ",".join(plain))
    return numbers and numbers + days  # none if they are all


def _parse_weekdays(text: str) -> list[_Weekday]:
    plain = []
    days = []
    for item in text.split(","):
        numbered = _NTH_DAY.match(item)
        if numbered:
            name, nth = numbered.groups()
            days.append(_Weekday(int(nth or -1), _weekday_code(_parse_number(_WEEKDAY, name, item))))
        else:
            plain.append(item)
    if plain:
        # Sunday is 0 and 7, and last in iCalendar's order.
        numbers = sorted({number % 7 or 7 for number in _parse_values(_WEEKDAY, ",".join(plain))})
        if not numbers or len(numbers) == len(WEEKDAYS):
            return []
        days = [_Weekday(0, _weekday_code(number)) for number in numbers] + days
    return list(dict.fromkeys(days))


def _weekday_code(number: int) -> str:
    return WEEKDAYS[(number - 1) % 7]


def _parse_values(field: _Field, text: str) -> list[int]:
    """Return the values that a field lists, ascending, or an empty list if it lists all."""
    values: set[int] = set()
    for item in text.split(","):
        result = _STEPPED.match(item)
        if not result:
            _refuse(field, item)
        low, high = _parse_span(field, result.group(1), item, is_stepped=bool(result.group(2)))
        step = int(result.group(2) or 1)
        if low <= high:
            values.update(range(low, high + 1, step))
            continue
        # It wraps around, such as FRI-MON. Sunday has two numbers, but a week has seven days.
        count = len(WEEKDAYS) if field is _WEEKDAY else field.highest - field.lowest + 1
        wrapped = range(low, high + count + 1, step)
        values.update((value - field.lowest) % count + field.lowest for value in wrapped)

    if field is not _WEEKDAY and len(values) == field.highest - field.lowest + 1:
        return []
    return sorted(values)


def _parse_span(field: _Field, span: str, item: str, *, is_stepped: bool) -> tuple[int, int]:
    """Return the first and the last value of an item. A step continues a single value to the highest one."""
    if span == "*":
        return field.lowest, field.highest
    first, dash, last = span.partition("-")
    low = _parse_number(field, first, item)
    if dash:
        return low, _parse_number(field, last, item)
    if is_stepped:
        return low, field.highest
    return low, low


def _parse_number(field: _Field, text: str, item: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.lowest
    if not (text.isdigit() and field.lowest <= int(text) <= field.highest):
        _refuse(field, item)
    return int(text)


def _format_part(name: str, values: Sequence[object]) -> str:
    return f";{name}={','.join(map(str, values))}" if values else ""


_NTH: Final = re.compile(r"(?:((?:SU|MO|TU|WE|TH|FR|SA)[A-Z]*?)|([0-7]))(?:#([1-5])|L)\Z")
_NEAREST: Final = re.compile(r"0?([2-9]|1[0-9]|2[0-7])W\Z")
_WORKING: Final = "BYDAY=MO,TU,WE,TH,FR"
_EXTENSIONS: Final = {
    "L": "BYMONTHDAY=-1",
    **dict.fromkeys(("LW", "WL"), f"{_WORKING};BYSETPOS=-1"),
    **dict.fromkeys(("1W", "01W"), f"{_WORKING};BYSETPOS=1"),
}
_EXTENDED: Final = re.compile(r"#|(?<![A-Z])(?:L|W|LW|WL)(?![A-Z])")


def _suggest_rules(item: str) -> str:
    """Return the rules that an L, W or # of other schedulers means, or some like it."""
    joint = " or "
    if (near := _NEAREST.match(item)) is not None:
        day = int(near[1])
        joint = " and "
        parts = [
            f"BYMONTHDAY={day};{_WORKING}",
            f"BYMONTHDAY={day - 1};BYDAY=FR",
            f"BYMONTHDAY={day + 1};BYDAY=MO",
        ]
    elif (nth := _NTH.match(item)) is not None:
        name, number, place = nth.groups()
        weekday = (name and name[:2]) or _weekday_code(int(number))
        parts = [f"BYDAY={place or -1}{weekday}"]
    elif item in _EXTENSIONS:
        parts = [_EXTENSIONS[item]]
    else:
        parts = ["BYDAY=3FR", "BYDAY=-1FR", "BYMONTHDAY=-1"]
    return joint.join(f"FREQ=MONTHLY;{part}" for part in parts)


def _refuse(field: _Field, item: str) -> NoReturn:
    names = ""
    if field.names:
        names = f" or {field.names[0]} to {field.names[-1]}"
    hint = f"{field.lowest} to {field.highest}{names}, as a list, a range a-b or a step */n"
    if _EXTENDED.search(item) or _NTH.match(item):
        hint = f"write rrule, with BYHOUR and BYMINUTE: {_suggest_rules(item)}"
    raise InvalidSchedule("text", f"the {field.name} of a cron expression cannot be {item[:40]!r}", hint)
