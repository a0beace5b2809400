"""Schedules as iCalendar text: RFC 5545.

A calendar with one event for each rule, as a component should have no more than one RRULE. Where the format
differs from a `Schedule`, it is written so that other programs find the same occurrences:

- DTSTART is always an occurrence there. If it is none here, the rule's first occurrence takes its place, or
  EXDATE removes it.
- UNTIL is in UTC, and a date in RDATE or EXDATE becomes the times that it means.
- The policies for clock changes, which iCalendar cannot express, are ``X-CLOUDSCHED-`` properties, and SKIP
  is that of RFC 7529. Few programs read them.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.expand import DAY, LAST_SECOND
from cloudsched.domain.recurrence.icalendar import (
    EXACT_PROPERTY,
    POLICIES,
    digest_lines,
    escape_text,
    join_lines,
)
from cloudsched.domain.recurrence.iso8601 import EPOCH, FIRST_YEAR, Moment, parse_moment, utc_seconds
from cloudsched.domain.recurrence.recurrence_set import Recurrence, compile_recurrence, list_instants
from cloudsched.domain.recurrence.rrule import Frequency, parse_rule
from cloudsched.domain.recurrence.time_zones import SECONDS_A_DAY, ChangeDay, Footer, Zone, find_zone
from cloudsched.domain.recurrence.wall_clock import wall_clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.schedules.describe import Describable

_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_LAST_WEEK = 5
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_YEAR = 366 * SECONDS_A_DAY
_MOST_SUMMER = 2 * 3600
_YEARS_LISTED = 30
"""The number of years whose changes are listed one by one, if no RRULE expresses the changes' rule."""


class _Observance(NamedTuple):
    begins: int
    """Seconds since 1970 on the clock as it was before."""
    offset_before: int
    offset: int
    rule: str | None = None


def vtimezone_lines(name: str, first: int) -> list[str]:
    """Return the content lines of a zone's VTIMEZONE, right from `first` on, in seconds since 1970."""
    zone = find_zone(name)
    year = max((EPOCH + timedelta(seconds=first)).year - 1, FIRST_YEAR)
    start = (EPOCH.replace(year=year) - EPOCH).days * SECONDS_A_DAY
    table = zone.table_for(first)
    observances = [_Observance(start, zone.offset_at(start), zone.offset_at(start))]

    for number, change in enumerate(table.changes):
        is_listed = change <= zone.repeats_from or not _recurs(zone)
        if change > start and is_listed:
            before = table.offsets[number]
            observances.append(_Observance(change + before, before, table.offsets[number + 1]))

    if _recurs(zone):
        observances += _iter_yearly(zone.footer, max(start, zone.repeats_from))
    lines = ["BEGIN:VTIMEZONE", f"TZID:{name}"]

    for each in observances:
        kind = "STANDARD"
        if _is_summer(each, observances):
            kind = "DAYLIGHT"
        lines += [f"BEGIN:{kind}", f"DTSTART:{EPOCH + timedelta(seconds=each.begins):%Y%m%dT%H%M%S}"]
        lines += [
            f"TZOFFSETFROM:{_format_offset(each.offset_before)}",
            f"TZOFFSETTO:{_format_offset(each.offset)}",
        ]
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


def _iter_yearly(footer: Footer | None, after: int) -> Iterator[_Observance]:
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
        for each in range(first, first + _YEARS_LISTED):
            yield _Observance(day.local_seconds(each), before, offset)


def yearly_rule(day: ChangeDay) -> str | None:
    """Return the RRULE of a yearly change, or None if there is none."""
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


def _format_offset(seconds: int) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    sign = "-" if seconds < 0 else "+"
    text = f"{sign}{minutes // 60:02}{minutes % 60:02}"
    return f"{text}{rest:02}" if rest else text


_END = re.compile(r";(UNTIL|COUNT)=[^;]+")
_MAX_EXCLUDED = 1000
"""The most occurrences of one day that are listed. For a fuller day, EXDATE names the date (see
`from_ical`)."""
_HEAD = ("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//cloudsched//Schedule//EN")


class IcalEvent(NamedTuple):
    """The times of one event."""

    start: Moment
    """DTSTART: a local time of the schedule's zone, or an instant."""
    rule: str | None = None
    dates: tuple[int, ...] = ()
    """RDATE, in seconds since 1970 UTC."""
    excluded: tuple[int, ...] = ()
    """EXDATE."""
    excluded_days: tuple[int, ...] = ()
    """Days since 1970 with more occurrences than are listed."""


def to_ical(schedule: Describable, content: str) -> str:
    """Return a schedule as a VCALENDAR that `from_ical` reads back, or only its rules if it is not anchored.

    It is read back exactly from `content`, its JSON form.
    """
    if schedule.at is None and schedule.dtstart is None:
        return join_lines(f"RRULE:{rule}" for rule in schedule.rules)
    if schedule.at is not None:
        timezone = "UTC"
    else:
        timezone = schedule.timezone
    events = split_events(schedule)
    policies = [f"{name}:{schedule.policies[field]}" for name, field in POLICIES.items() if field in schedule.policies]
    bodies = [[*event_lines(each, timezone), *policies] for each in events]
    uids = [f"{digest_lines(body)}@cloudsched" for body in bodies]
    exact = f"{EXACT_PROPERTY};DIGEST={digest_lines([line for body in bodies for line in body])}:{escape_text(content)}"
    lines = [*_HEAD]
    lines += vtimezone_lines(timezone, min(each.start.wall for each in events)) if timezone != "UTC" else []
    for number, body in enumerate(bodies):
        if number:
            link = f"RELATED-TO;RELTYPE=SIBLING:{uids[0]}"
        else:
            link = exact
        lines += [
            "BEGIN:VEVENT",
            f"UID:{uids[number]}",
            "DTSTAMP:19700101T000000Z",
            *body,
            link,
            "END:VEVENT",
        ]
    return join_lines([*lines, "END:VCALENDAR"])


def split_events(schedule: Describable) -> list[IcalEvent]:
    """Return the events of an anchored schedule: one for each rule that fires at all."""
    if schedule.at is not None:
        return [IcalEvent(Moment(utc_seconds(schedule.at), 0, is_date=False))]
    start = parse_moment(str(schedule.dtstart), "dtstart").wall
    events = [event for rule in schedule.rules if (event := _rule_event(schedule, rule, start)) is not None]
    dates = _list_dates(schedule, start)
    if not events:
        first, *dates = dates
        offset = find_zone(schedule.timezone).offset_at(first)
        events = [IcalEvent(Moment(first + offset, offset, is_date=False))]
    events[0] = events[0]._replace(dates=tuple(dates))
    return [_exclude(schedule, event) for event in events]


def event_lines(event: IcalEvent, timezone: str) -> list[str]:
    """Return the properties that say when an event is."""
    lines = [f"DTSTART{_format_start(event.start, timezone)}"]
    lines += [f"RRULE:{event.rule}"] if event.rule else []
    lines += [f"RDATE{_format_instant(each, timezone)}" for each in event.dates]
    lines += [f"EXDATE{_format_instant(each, timezone)}" for each in event.excluded]
    return lines + [f"EXDATE;VALUE=DATE:{EPOCH + timedelta(days=each):%Y%m%d}" for each in event.excluded_days]


def _rule_event(schedule: Describable, text: str, start: int) -> IcalEvent | None:
    """Return the event of one rule, with its own exclusion of DTSTART, or None if the rule never fires."""
    rule = parse_rule(text)
    recurrence = _compile(schedule, (text,))
    first = recurrence.first_from(-LAST_SECOND)
    if first is None:
        return None
    if rule.until is not None and not rule.until.is_utc:
        ends = recurrence.clock.instants(rule.until.seconds)
        text = _ending(text, max(ends or (rule.until.seconds - recurrence.clock.zone.smallest,)))
    begins = wall_clock(schedule.timezone).instants(start)[0]
    if first == begins:
        return IcalEvent(Moment(start, None, is_date=False), text)
    wall = first + recurrence.clock.zone.offset_at(first)
    is_regular = wall_clock(schedule.timezone, "SKIP").instants(wall) == (first,)
    if rule.frequency <= Frequency.DAILY and rule.skip == "OMIT" and is_regular:
        return IcalEvent(Moment(wall, None, is_date=False), text)
    if rule.count is not None:  # DTSTART would count
        text = _ending(text, max(_iter_between(recurrence, -LAST_SECOND, LAST_SECOND)))
    return IcalEvent(Moment(start, None, is_date=False), text, excluded=(begins,))


def _exclude(schedule: Describable, event: IcalEvent) -> IcalEvent:
    recurrence = _compile(schedule, (event.rule,) if event.rule else ())
    clock = recurrence.clock
    dates = set(event.dates)
    excluded = set(event.excluded) - dates
    days = set()

    for number, text in enumerate(schedule.exdates):
        moment = parse_moment(text, f"exdates.{number}")
        if not moment.is_date:
            found = list_instants(moment, clock, 0)
            excluded.update(each for each in found if each in dates or recurrence.first_from(each) == each)
            continue
        begin = moment.wall - clock.zone.largest
        end = moment.wall + DAY - clock.zone.smallest
        found = (
            *_iter_between(recurrence, begin, end, _MAX_EXCLUDED),
            *(each for each in dates if begin <= each <= end),
        )
        on_day = [each for each in found if (each + clock.zone.offset_at(each)) // DAY == moment.wall // DAY]
        if len(found) >= _MAX_EXCLUDED:
            days.add(moment.wall // DAY)
        else:
            excluded.update(on_day)

    return event._replace(excluded=tuple(sorted(excluded)), excluded_days=tuple(sorted(days)))


def _list_dates(schedule: Describable, start: int) -> list[int]:
    """Return the instants of RDATE, and of DTSTART if there is no rule."""
    clock = _compile(schedule, ()).clock
    if schedule.rules:
        dates = set()
    else:
        dates = set(clock.instants(start))
    for number, text in enumerate(schedule.rdates):
        dates.update(list_instants(parse_moment(text, f"rdates.{number}"), clock, start % DAY))
    return sorted(dates)


def _compile(schedule: Describable, rules: tuple[str, ...]) -> Recurrence:
    """Return the instants of some rules alone, or of DTSTART alone if there are none."""
    return compile_recurrence(
        time_zones.in_use,
        rules,
        str(schedule.dtstart),
        schedule.timezone,
        (),
        (),
        schedule.gap,
        schedule.fold,
        schedule.sub_daily,
    )


def _iter_between(recurrence: Recurrence, begin: int, end: int, limit: int | None = None) -> Iterator[int]:
    instant = recurrence.first_from(begin)
    while instant is not None and instant <= end and limit != 0:
        yield instant
        limit = None if limit is None else limit - 1
        instant = recurrence.first_from(instant + 1)


def _ending(rule: str, last: int) -> str:
    return f"{_END.sub('', rule)};UNTIL={EPOCH + timedelta(seconds=last):%Y%m%dT%H%M%SZ}"


def _format_start(start: Moment, timezone: str) -> str:
    if start.offset is not None:
        return _format_instant(start.wall - start.offset, timezone)
    when = f"{EPOCH + timedelta(seconds=start.wall):%Y%m%dT%H%M%S}"
    if timezone == "UTC":
        return f":{when}Z"
    return f";TZID={timezone}:{when}"


def _format_instant(instant: int, timezone: str) -> str:
    """Return an instant as a local time, or in UTC if that local time would mean another instant."""
    wall = instant + find_zone(timezone).offset_at(instant)
    if timezone == "UTC" or wall_clock(timezone).instants(wall) != (instant,):
        return f":{EPOCH + timedelta(seconds=instant):%Y%m%dT%H%M%SZ}"
    return f";TZID={timezone}:{EPOCH + timedelta(seconds=wall):%Y%m%dT%H%M%S}"
