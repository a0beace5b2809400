"""Working days of countries, beside those that the package ``holidays`` counts."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import holidays
from tests.cases import try_each
from tests.engine.harness import DAY

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.calendar_days import format_days
from cloudsched.domain.schedules.calendar_rule import CalendarRule
from cloudsched.domain.schedules.schedule import Schedule

YEARS = range(2026, 2031)
COUNTRIES = [
    ("DE", "Europe/Berlin"),
    ("US", "America/New_York"),
    ("CL", "America/Santiago"),
    ("AU", "Australia/Sydney"),
    ("JP", "Asia/Tokyo"),
    ("GL", "America/Nuuk"),
]


def make_schedule(country: str, zone: str, rule: str, on: str, business_day: int | None = None) -> Schedule:
    """Return a schedule at 02:30, which clocks skip once a year in most of these zones."""
    days = [(day, day, name) for day, name in find_holidays(country).items()]
    calendars = tuple(
        CalendarRule.model_validate({"id": name, "on": on}).with_content(content)
        for name, content in (("weekends", "weekdays SA,SU"), ("own", format_days((), days)))
    )
    plain = Schedule(rrule=rule, dtstart="2026-01-01T02:30:00", timezone=zone)
    return plain.model_copy(update={"calendars": calendars, "business_day": business_day})


def find_holidays(country: str) -> Any:  # noqa: ANN401 - the package's own types
    """Return a country's holidays, whose weekends are Saturdays and Sundays."""
    return holidays.country_holidays(country, years=range(YEARS[0] - 1, YEARS[-1] + 2))


def list_days(schedule: Schedule) -> list[date]:
    """Return the days of the schedule's occurrences in all years but the first and the last."""
    begin, end = datetime(YEARS[1], 1, 1, 12, tzinfo=UTC), datetime(YEARS[-1], 1, 1, 12, tzinfo=UTC)
    return [each.astimezone(load_tzinfo(schedule.timezone)).date() for each in schedule.between(begin, end)]


def is_within(day: date) -> bool:
    """Return whether a day is in these years, but not their first one."""
    return date(YEARS[1], 1, 2) <= day <= date(YEARS[-1], 1, 1)


@try_each("country, zone", COUNTRIES)
def test_a_business_day_is_the_nth_working_day_of_its_month(country: str, zone: str) -> None:
    """Counted from the first of the month or from its end; each once."""
    known = find_holidays(country)
    months = [date(year, month, 1) for year in YEARS for month in range(1, 13)]
    for number in (1, 3, 10, -1, -4):
        found = list_days(make_schedule(country, zone, "FREQ=MONTHLY;BYMONTHDAY=9", "skip", number))
        if number > 0:
            expected = [known.get_nth_working_day(first - DAY, number) for first in months]
        else:
            expected = [known.get_nth_working_day(first, number) for first in months]
        assert found == [day for day in expected if is_within(day)], number


@try_each("country, zone", COUNTRIES)
def test_each_working_day_has_one_run(country: str, zone: str) -> None:
    """A daily task runs on each of them once, whether it skips the others or moves from them; and on no other day."""
    known = find_holidays(country)
    days = [date(YEARS[0], 1, 1) + DAY * number for number in range(366 * len(YEARS))]
    working = [day for day in days if is_within(day) and known.is_working_day(day)]
    for on in ("skip", "before", "after"):
        assert list_days(make_schedule(country, zone, "FREQ=DAILY", on)) == working, on


@try_each("country, zone", COUNTRIES)
def test_a_day_moves_to_the_nearest_working_day(country: str, zone: str) -> None:
    """The 24th of each month, to the one before or after."""
    known = find_holidays(country)
    for on, step in (("before", -1), ("after", 1)):
        expected = []
        for first in (date(year, month, 24) for year in YEARS for month in range(1, 13)):
            day = first
            while not known.is_working_day(day):
                day += DAY * step
            expected.append(day)
        found = list_days(make_schedule(country, zone, "FREQ=MONTHLY;BYMONTHDAY=24", on))
        assert found == [day for day in expected if is_within(day)], on
