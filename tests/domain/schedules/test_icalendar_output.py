"""What other programs find in the iCalendar text of a schedule: `icalendar` and `recurring-ical-events` read it.

``CLOUDSCHED_ICAL_ZONES`` sets in how many of the 20 zones each case is read; the cases take turns with the zones.
"""

from __future__ import annotations

import itertools
import os
import random
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
import recurring_ical_events  # type: ignore[import-untyped]  # it has no stubs
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar, Timezone
from tests.cases import try_each
from tests.domain.recurrence.test_rfc5545_cases import CASES, make_schedule

from cloudsched import Schedule
from cloudsched.domain.recurrence.icalendar import (
    escape_text,
    fold_line,
    join_lines,
    mend_lines,
    unescape_text,
    unfold,
)
from cloudsched.domain.recurrence.iso8601 import EPOCH
from cloudsched.domain.recurrence.rrule import Frequency, parse_rule
from cloudsched.domain.recurrence.time_zones import in_use, load_zone, parse_footer
from cloudsched.domain.schedules.icalendar_output import vtimezone_lines, yearly_rule
from cloudsched.errors import InvalidSchedule

pytestmark = pytest.mark.filterwarnings("ignore")  # those libraries' own
PARIS = "Europe/Paris"
ZONES = (
    *("UTC", "Europe/Paris", "Europe/London", "Europe/Dublin", "Europe/Moscow", "Asia/Tokyo", "Asia/Kolkata"),
    *("America/New_York", "America/Los_Angeles", "America/Sao_Paulo", "America/St_Johns", "America/Havana"),
    *("Asia/Kathmandu", "Asia/Gaza", "Asia/Jerusalem", "Africa/Cairo", "Africa/Casablanca"),
    *("Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham"),
)
ZONES_EACH = int(os.environ.get("CLOUDSCHED_ICAL_ZONES", "1"))
LINES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=300)


@pytest.fixture(autouse=True)
def one_database() -> Iterator[None]:
    """The other program takes its zones from the tzdata package, too, instead of the machine's older files."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(to=before)
    zoneinfo.ZoneInfo.clear_cache()


def read_elsewhere(text: str, begin: datetime, end: datetime) -> list[datetime]:
    """Return the instants that another program finds in a calendar."""
    events = recurring_ical_events.of(Calendar.from_ical(text)).between(begin, end)
    return sorted(at for each in events if begin <= (at := each["DTSTART"].dt.astimezone(UTC)) < end)


def is_read_alike(case: dict[str, Any]) -> bool:
    """Whether the reader, and dateutil on which it stands, follow the RFC for a case."""
    parsed = parse_rule(case["rrule"])
    weeks = parsed.week_numbers and not parsed.weekdays  # it takes all days of the week instead of DTSTART's
    set_of_week = parsed.frequency == Frequency.WEEKLY and parsed.positions  # it counts from DTSTART on
    mixed = len({bool(day.nth) for day in parsed.weekdays}) > 1  # it drops the plain ones
    hours = parsed.frequency > Frequency.DAILY and case.get("exdates")  # it also drops what EXDATE names in UTC
    return not weeks and not set_of_week and not mixed and not hours


READ_ALIKE = [number for number, case in enumerate(CASES) if is_read_alike(case)]


@given(LINES)
def test_folded_lines_are_short_and_whole(line: str) -> None:
    """No piece has more than 75 octets or splits a character, and the pieces are the line."""
    assert all(len(piece.encode()) <= 75 for piece in fold_line(line).split("\r\n"))
    assert [*unfold(mend_lines(join_lines([line])))] == ([(1, line.strip())] if line.strip() else [])


@given(st.text())
def test_escaped_text_stays_in_its_line(value: str) -> None:
    """Whatever a user writes is one value of one property."""
    assert len(f"X:{escape_text(value)}".splitlines()) == 1


@given(LINES)
def test_escaped_text_comes_back(value: str) -> None:
    """What is read is what was written."""
    assert unescape_text(escape_text(f"{value}\n{value}")) == f"{value}\n{value}"


def test_vtimezones_have_the_zones_offsets() -> None:
    """For every zone, from long ago and from now on, another program computes the same offsets."""
    chance = random.Random(1)  # noqa: S311 - the same choices on each run
    for name in in_use.names:
        first = int(datetime(chance.choice([1985, 2026]), 5, 1, tzinfo=UTC).timestamp())
        zone = cast("Timezone", Timezone.from_ical(join_lines(vtimezone_lines(name, first)))).to_tz(lookup_tzid=False)
        for _ in range(10):
            instant = first + chance.randrange(25 * 365 * 86_400)
            offset = datetime.fromtimestamp(instant, zone).utcoffset()
            assert offset == timedelta(seconds=load_zone(name).offset_at(instant)), (name, instant)


@try_each("month", range(1, 13))
def test_the_rule_of_a_clock_change_names_its_days(month: int) -> None:
    """Wherever there is a rule, python-dateutil finds the day of the change by it, year after year.

    A rule may be missing only for times that lead out of the day that it names.
    """
    for week, days in itertools.product(range(1, 6), range(-6, 7)):
        footer = parse_footer(f"STD0DST,M{month}.{week}.{(week + days) % 7}/{24 * days + 3},J365")
        assert footer.starts is not None
        rule = yearly_rule(footer.starts)
        if rule is None:
            assert days
            continue
        changes = [EPOCH + timedelta(seconds=footer.starts.local_seconds(year)) for year in range(2020, 2035)]
        found = rrulestr(rule, dtstart=datetime(2019, 1, 1, 3))  # noqa: DTZ001 - local times
        assert found.between(changes[0].replace(tzinfo=None), changes[-1].replace(tzinfo=None), inc=True) == [
            each.replace(tzinfo=None) for each in changes
        ], (week, days)


@try_each("number", READ_ALIKE)
def test_another_program_finds_the_same_occurrences(number: int) -> None:
    """In every zone, those of all cases that the other program reads as the RFC says."""
    case: dict[str, Any] = CASES[number]
    for each in range(ZONES_EACH):
        zone = ZONES[(number + each) % len(ZONES)]
        if zone != case["tzid"] and "UNTIL" in case["rrule"]:
            zone = case["tzid"]  # elsewhere it may never fire
        schedule = make_schedule(case, zone)
        first = schedule.first()
        assert first is not None
        begin = first - timedelta(days=2)
        some = schedule.upcoming(begin, 100)
        assert read_elsewhere(schedule.to_ical(), begin, some[-1] + timedelta(seconds=1)) == some, case["id"]


@try_each(
    "fields",
    [
        {"rrule": "FREQ=WEEKLY;BYDAY=MO", "dtstart": "2027-01-01T09:00:00"},
        {"rrule": "FREQ=WEEKLY;BYDAY=MO;INTERVAL=2;COUNT=5", "dtstart": "2027-01-01T09:00:00"},
        {"rrule": "FREQ=HOURLY;INTERVAL=7;BYHOUR=3,4,5;COUNT=9", "dtstart": "2027-01-01T09:00:00", "timezone": "UTC"},
        {"rrule": "FREQ=DAILY;UNTIL=20270110", "dtstart": "2027-01-01T09:00:00"},
        {"rrule": "FREQ=DAILY;UNTIL=20270110T090000", "dtstart": "2027-01-01T09:00:00"},
        {"rrule": ["FREQ=DAILY;COUNT=3", "FREQ=WEEKLY;BYDAY=TU"], "dtstart": "2027-01-01T09:00:00"},
        {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00", "exdates": ["2027-01-03", "2027-01-05T09:00:00"]},
        {
            "rrule": "FREQ=DAILY",
            "dtstart": "2027-01-01T09:00:00",
            "rdates": ["2027-01-03T12:00:00Z", "2027-10-31T02:30:00+01:00"],
        },
        {
            "rdates": ["2027-01-09", "2027-01-08T10:00:00"],
            "dtstart": "2027-01-01T09:00:00",
            "rrule": "FREQ=DAILY;UNTIL=20261231T000000Z",
        },
        {"at": datetime(2027, 1, 1, 9, tzinfo=UTC)},
    ],
)
def test_times_that_icalendar_says_otherwise(fields: dict[str, Any]) -> None:
    """Starts that are no occurrences, ends in local time, dates, and several rules are found elsewhere as here."""
    schedule = Schedule(**{"timezone": PARIS, **fields})
    begin, end = datetime(2026, 12, 1, tzinfo=UTC), datetime(2028, 2, 1, tzinfo=UTC)
    assert read_elsewhere(schedule.to_ical(), begin, end) == schedule.between(begin, end)
    assert Schedule.parse(schedule.to_ical()) == schedule


def test_an_event_is_the_same_in_whatever_order_its_properties_stand() -> None:
    """Programs write them in an order of their own; what iCalendar cannot say comes back all the same."""
    schedule = Schedule(
        rrule="FREQ=WEEKLY;BYDAY=MO",
        dtstart="2027-01-01T09:00:00",
        timezone=PARIS,
        exdates=["2027-03-29T09:00:00"],
    )
    lines = schedule.to_ical().splitlines()
    times = [place for place, line in enumerate(lines) if line.startswith(("DTSTART;", "RRULE", "EXDATE"))][-3:]
    for place, line in zip(times, [lines[each] for each in reversed(times)], strict=True):
        lines[place] = line
    assert Schedule.parse("\r\n".join(lines)) == schedule


def test_a_changed_event_is_read_as_it_was_changed() -> None:
    """If another program moves the event, what was written first does not come back; several events are refused."""
    text = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00", timezone=PARIS).to_ical()
    moved = Schedule.parse(text.replace(":20270101T090000", ":20270101T100000"))
    assert moved == Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T10:00:00", timezone=PARIS)
    two = Schedule(
        rrule=["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO"], dtstart="2027-01-01T09:00:00", timezone=PARIS
    ).to_ical()
    with pytest.raises(InvalidSchedule, match="more than one event"):
        Schedule.parse(two.replace(":20270101T090000", ":20270101T100000"))
