"""A time zone as a VTIMEZONE component: RFC 5545, section 3.6.5.

Each clock change that the zone's file lists is an observance of its own, and the rule that follows is one for each of
its two changes, with an RRULE. There are no lists of RDATEs, which Outlook ignores. DTSTART is the local time of the
change as the clocks showed it before.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.recurrence.iso8601 import EPOCH, FIRST_YEAR
from cloudsched.domain.recurrence.time_zones import SECONDS_A_DAY, ChangeDay, Footer, find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.recurrence.time_zones import Zone

_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_LAST_WEEK = 5
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_YEAR = 366 * SECONDS_A_DAY
_MOST_SUMMER = 2 * 3600
_YEARS_LISTED = 30
"""For how many years changes are listed one by one if their rule is one that no RRULE expresses."""


class _Observance(NamedTuple):
    begins: int
    """Seconds since 1970 on the clock as it was before."""
    offset_before: int
    offset: int
    rule: str | None = None


def vtimezone_lines(name: str, first: int, last: int | None = None) -> list[str]:
    """Return the content lines of a zone's VTIMEZONE.

    Args:
        name: The IANA name, which is also the TZID.
        first: The first instant for which it must be right, in seconds since 1970.
        last: The last one; None for all times.

    Raises:
        InvalidSchedule: There is no zone of that name.
    """
    zone = find_zone(name)
    year = max((EPOCH + timedelta(seconds=first)).year - 1, FIRST_YEAR)
    start = _year_begin(year)
    table = zone.table_for(first)
    observances = [_Observance(start, zone.offset_at(start), zone.offset_at(start))]
    for number, change in enumerate(table.changes):
        is_listed = change <= zone.repeats_from or not _recurs(zone)
        if change > start and is_listed and (last is None or change <= last):
            before = table.offsets[number]
            observances.append(_Observance(change + before, before, table.offsets[number + 1]))
    if _recurs(zone) and (last is None or last > zone.repeats_from):
        observances += _iter_yearly(zone.footer, max(start, zone.repeats_from), last)
    lines = ["BEGIN:VTIMEZONE", f"TZID:{name}"]
    for each in observances:
        kind = "DAYLIGHT" if _is_summer(each, observances) else "STANDARD"
        lines += [f"BEGIN:{kind}", f"DTSTART:{EPOCH + timedelta(seconds=each.begins):%Y%m%dT%H%M%S}"]
        lines += [f"TZOFFSETFROM:{_format_offset(each.offset_before)}", f"TZOFFSETTO:{_format_offset(each.offset)}"]
        lines += [f"RRULE:{each.rule}"] if each.rule else []
        lines.append(f"END:{kind}")
    return [*lines, "END:VTIMEZONE"]


def _is_summer(observance: _Observance, observances: list[_Observance]) -> bool:
    """Return whether clocks go back from this offset within a year: a guess, as its name changes nothing."""
    return any(
        each.offset_before == observance.offset
        and 0 < each.begins - observance.begins < _YEAR
        and 0 < each.offset_before - each.offset <= _MOST_SUMMER
        for each in observances
    )


def _recurs(zone: Zone) -> bool:
    return zone.footer is not None and zone.footer.summer is not None


def _iter_yearly(footer: Footer | None, after: int, last: int | None) -> Iterator[_Observance]:
    """Yield the observances of a zone's yearly rule from its first change after an instant on."""
    if footer is None or footer.summer is None or footer.starts is None or footer.ends is None:
        return
    kinds = ((footer.starts, footer.standard, footer.summer), (footer.ends, footer.summer, footer.standard))
    year = (EPOCH + timedelta(seconds=after)).year - 1
    for day, before, offset in kinds:
        first = next(each for each in range(year, year + 4) if day.local_seconds(each) - before > after)
        rule = yearly_rule(day)
        if rule is not None:
            yield _Observance(day.local_seconds(first), before, offset, rule)
            continue
        end = (EPOCH + timedelta(seconds=last)).year + 1 if last is not None else first + _YEARS_LISTED
        for each in range(first, max(end, first + 1)):
            yield _Observance(day.local_seconds(each), before, offset)


def yearly_rule(day: ChangeDay) -> str | None:
    """Return the RRULE of a yearly change; None if there is none."""
    if day.form != "M":
        return None
    month, week, weekday = day.numbers
    shift = day.time // SECONDS_A_DAY  # some changes are at 26:00 or at -1:00 of the day that the rule names
    name = _WEEKDAYS[(weekday + shift) % 7]
    rule = f"FREQ=YEARLY;BYMONTH={month}"
    if not shift:
        return f"{rule};BYDAY={-1 if week == _LAST_WEEK else week}{name}"
    begin = (_MONTH_LENGTHS[month - 1] - 6 if week == _LAST_WEEK else 7 * week - 6) + shift
    if begin < 1 or begin + 6 > _MONTH_LENGTHS[month - 1] or (month == _FEBRUARY and week == _LAST_WEEK):
        return None
    return f"{rule};BYMONTHDAY={','.join(str(begin + each) for each in range(7))};BYDAY={name}"


def _year_begin(year: int) -> int:
    return (EPOCH.replace(year=year) - EPOCH).days * SECONDS_A_DAY


def _format_offset(seconds: int) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{minutes // 60:02}{minutes % 60:02}" + (f"{rest:02}" if rest else "")
