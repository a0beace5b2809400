"""Calendars applied to schedules, held against a plain walk over days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import try_each
from tests.engine.harness import DAY, HOUR, MINUTE

from cloudsched.domain.schedules.calendar_days import WEEKDAYS, format_days, parse_days, to_day
from cloudsched.domain.schedules.calendar_rule import CalendarRule
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput, InvalidSchedule

CalendarParts = tuple[str, set[str], list[tuple[date, date, str]]]
START, END = datetime(2027, 3, 1, tzinfo=UTC), datetime(2027, 5, 1, tzinfo=UTC)
WEEKENDS = CalendarRule(id="weekends")

days = st.dates(date(2027, 3, 1), date(2027, 5, 1))
intervals = st.lists(st.tuples(days, st.integers(0, 9), st.sampled_from(["", "A", "Ferié"])), max_size=6)
calendars = st.builds(
    lambda on, weekdays, spans: (on, weekdays, [(first, first + timedelta(more), name) for first, more, name in spans]),
    st.sampled_from(["skip", "before", "after"]),
    st.sets(st.sampled_from(WEEKDAYS), max_size=3),
    intervals,
)
base_rules = st.sampled_from(
    [
        "FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
        "FREQ=DAILY;BYHOUR=1,9,23;BYMINUTE=0,30",
        "FREQ=WEEKLY;BYDAY=MO,SU;BYHOUR=9",
        "FREQ=MONTHLY;BYMONTHDAY=1,15,28;BYHOUR=3",
        "FREQ=DAILY;INTERVAL=3;COUNT=15;BYHOUR=2",
        "FREQ=HOURLY;INTERVAL=5",
        "FREQ=DAILY;UNTIL=20270401T000000Z",
    ]
)
zones = st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Santiago"])


@given(
    st.lists(calendars, min_size=1, max_size=3),
    base_rules,
    zones,
    st.sampled_from(["shift", "skip"]),
    st.sampled_from(["first", "last", "both"]),
    st.none() | st.sampled_from([1, 3, 20, -1, -5]),
)
@settings(max_examples=60, deadline=None)
def test_a_schedule_with_calendars_is_what_a_plain_walk_over_days_finds(
    some: list[CalendarParts],
    rule: str,
    zone: str,
    gap: Any,  # noqa: ANN401 - a policy
    fold: Any,  # noqa: ANN401 - the same
    business_day: int | None,
) -> None:
    """Every occurrence is left out, stays or moves as a walk over the days says, under every policy for clocks."""
    plain = Schedule(rrule=rule, dtstart="2027-02-20T02:15:00", timezone=zone, gap=gap, fold=fold)
    rules = [
        CalendarRule(id=f"c{n}", on=on).with_content(format_days(w, spans)) for n, (on, w, spans) in enumerate(some)
    ]
    schedule = plain.model_copy(update={"calendars": tuple(rules), "business_day": business_day})
    expected, skipped = walk(plain, some, business_day, ZoneInfo(zone))
    found = schedule.between(START - 5 * DAY, END)
    assert found == sorted(each for each in expected if START - 5 * DAY <= each < END)
    left_out = list[datetime]()
    at = schedule.find_skipped(START, END)
    while at is not None and at < END:
        left_out.append(at)
        at = schedule.find_skipped(at, END)
    assert left_out == sorted(each for each in skipped if START < each < END)
    for each in found[:10]:
        assert schedule.occurs(each)
        is_plain = plain.occurs(each) and walk_day(each, some, business_day, ZoneInfo(zone)) == local_date(each, zone)
        assert (schedule.adjustment_note(each) is None) == is_plain


def local_date(instant: datetime, zone: str) -> date:
    return instant.astimezone(ZoneInfo(zone)).date()


def is_taken(day: date, calendar: CalendarParts) -> bool:
    _, weekdays, spans = calendar
    return WEEKDAYS[day.weekday()] in weekdays or any(first <= day <= last for first, last, _ in spans)


def walk_day(
    instant: datetime, calendars: Sequence[CalendarParts], business_day: int | None, zone: ZoneInfo
) -> date | None:
    """Return the day to which an occurrence moves, by walking day by day; None if it is left out."""
    day = instant.astimezone(zone).date()
    one = DAY

    def is_free(each: date) -> bool:
        noon = datetime(each.year, each.month, each.day, 12, tzinfo=zone)
        is_skipped = noon.astimezone(UTC).astimezone(zone).date() != each
        return not is_skipped and not any(is_taken(each, calendar) for calendar in calendars)

    if business_day is not None:
        month = [day.replace(day=1) + timedelta(n) for n in range(31)]
        free = [each for each in month if each.month == day.month and is_free(each)]
        index = business_day - 1 if business_day > 0 else business_day
        return free[index] if -len(free) <= index < len(free) else None
    on = next((calendar[0] for calendar in calendars if is_taken(day, calendar)), None)
    if on is None or on.upper() == "SKIP":
        return None if on else day
    while not is_free(day):
        day += one if on.upper() == "AFTER" else -one
    return day


def walk(
    plain: Schedule, calendars: Sequence[CalendarParts], business_day: int | None, zone: ZoneInfo
) -> tuple[set[datetime], set[datetime]]:
    expected, skipped = set[datetime](), set[datetime]()
    for instant in plain.between(START - 60 * DAY, END + 60 * DAY):
        local = instant.astimezone(zone)
        day = walk_day(instant, calendars, business_day, zone)
        if day is None:
            skipped.add(instant)
        elif day == local.date():
            expected.add(instant)
        else:
            for wall in said_walls(plain, instant, zone):
                expected.update(read_wall(datetime.combine(day, wall.time()), zone, plain.gap, plain.fold))
    return expected, skipped


def said_walls(plain: Schedule, instant: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the times that a rule says for an instant: after a gap it may be an earlier one than the clock shows."""
    shown = instant.astimezone(zone).replace(tzinfo=None)
    if "HOURLY" in str(plain.rrule):
        return [shown]
    as_said = plain.model_copy(update={"timezone": "UTC", "rrule": str(plain.rrule).partition(";COUNT")[0]})
    walls = [shown, shown - 30 * MINUTE, shown - HOUR]
    return [
        wall
        for wall in walls
        if as_said.occurs(wall.replace(tzinfo=UTC)) and instant in read_wall(wall, zone, plain.gap, plain.fold)
    ]


def read_wall(wall: datetime, zone: ZoneInfo, gap: str, fold: str) -> set[datetime]:
    first, second = (wall.replace(tzinfo=zone, fold=each).astimezone(UTC) for each in (0, 1))
    if first == second:
        return {first}
    if first < second:  # the clock shows it twice
        return {"first": {first}, "last": {second}, "both": {first, second}}[fold]
    return {first} if gap == "shift" else set()


def with_calendars(rule: str, *calendars: CalendarRule, **more: Any) -> Schedule:
    return Schedule(rrule=rule, dtstart="2027-01-01T09:00:00", timezone="Europe/Paris").model_copy(
        update={"calendars": calendars, **more}
    )


def calendar(on: Any, *spans: tuple[str, str, str]) -> CalendarRule:  # noqa: ANN401 - one of three
    content = format_days((), [(date.fromisoformat(a), date.fromisoformat(b), name) for a, b, name in spans])
    return CalendarRule(id="fr", on=on).with_content(content)


def local_times(schedule: Schedule, start: datetime, count: int) -> list[str]:
    zone = ZoneInfo(schedule.timezone)
    return [each.astimezone(zone).strftime("%Y-%m-%d %H:%M") for each in schedule.upcoming(start, count)]


@try_each("on, day", [("after", "2027-03-29"), ("before", "2027-03-26")])
def test_a_moved_occurrence_keeps_the_time_that_the_rule_says(on: Any, day: str) -> None:  # noqa: ANN401 - one of three
    """Sunday's 02:30 is in a gap, and would be 03:30 there: moved, it meets the other day's own 02:30."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T02:30:00", timezone="Europe/Berlin").model_copy(
        update={"calendars": (WEEKENDS.model_copy(update={"on": on}),)}
    )
    times = local_times(schedule, datetime(2027, 3, 24, tzinfo=UTC), 6)
    assert [each for each in times if each.startswith(day)] == [f"{day} 02:30"]


def test_a_move_to_a_day_whose_last_hour_is_missing_stays_on_it() -> None:
    """In Nuuk clocks go from 23:00 to midnight: 23:30 of that Saturday is 22:30, and not on Sunday, which is taken."""
    before = calendar("before", ("2027-03-28", "2027-03-28", "closed"))
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T23:30:00", timezone="America/Nuuk").model_copy(
        update={"calendars": (before,)}
    )
    times = local_times(schedule, datetime(2027, 3, 26, 12, tzinfo=UTC), 3)
    assert times == ["2027-03-26 23:30", "2027-03-27 22:30", "2027-03-29 23:30"]


def test_a_calendar_that_takes_every_day_leaves_nothing_and_ends() -> None:
    """A search among no free days ends, with nothing or with the error for rules too sparse to search."""
    every_day = CalendarRule(id="all", on="after").with_content("weekdays " + ",".join(WEEKDAYS))
    assert with_calendars("FREQ=DAILY;COUNT=500", every_day).next_after(START) is None


def test_a_schedule_whose_calendars_are_not_loaded_is_refused() -> None:
    """A calendar's name alone says nothing about its days: nothing is planned as if there were none."""
    with pytest.raises(InvalidSchedule, match="not known here"):
        with_calendars("FREQ=DAILY", CalendarRule(id="fr")).next_after(START)


def test_callers_cannot_set_the_days_and_do_not_see_them() -> None:
    """The days come from the store alone, and are in no JSON for callers."""
    with pytest.raises(InvalidSchedule, match="content"):
        Schedule.model_validate({"rrule": "FREQ=DAILY", "calendars": [{"id": "a", "content": ""}]})
    schedule = with_calendars("FREQ=DAILY", WEEKENDS)
    assert "content" not in schedule.model_dump_json()
    stored = schedule.model_dump(by_alias=True, context={"stored": True})
    assert Schedule.model_validate(stored, context={"stored": True}) == schedule


@given(st.sets(st.sampled_from(WEEKDAYS)), intervals)
def test_the_text_of_a_calendar_is_read_back(weekdays: set[str], spans: list[tuple[date, int, str]]) -> None:
    """Every day of every interval, and no other, is on the calendar that is read back from its text."""
    some = [(first, first + timedelta(more), name) for first, more, name in spans]
    found = parse_days(format_days(weekdays, some))
    for number in range(90):
        day = date(2027, 2, 20) + timedelta(number)
        assert (found.find(to_day(day)) is not None) == is_taken(day, ("", weekdays, some))


def test_the_size_of_a_calendar_is_bounded() -> None:
    """Too many days, too much text and an interval that ends before it begins are refused."""
    day = date(2027, 1, 1)
    with pytest.raises(InvalidInput, match="1001 days"):
        format_days((), [(day, day, "")] * 1001)
    with pytest.raises(InvalidInput, match="bytes"):
        format_days((), [(day + timedelta(n), day + timedelta(n), "x" * 80) for n in range(900)])
    with pytest.raises(InvalidInput, match="before it begins"):
        format_days((), [(day, day - timedelta(1), "")])
