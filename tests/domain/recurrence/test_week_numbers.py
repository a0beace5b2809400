"""Weeks by their ISO number, judged by the calendar of Python's own `date`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from cloudsched.domain.schedules.schedule import Schedule

FIRST, LAST = date(1970, 1, 1), date(2110, 12, 31)


@pytest.mark.parametrize("week", [1, 2, 52, 53])
def test_weeks_at_the_turn_of_a_year_are_those_of_the_calendar(week: int) -> None:
    """January's first days may be in the last week of the year before, and December's last ones in the next's first."""
    schedule = Schedule(
        rrule=f"FREQ=YEARLY;BYWEEKNO={week};BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=12",
        dtstart="1970-01-01T12:00:00",
        timezone="UTC",
    )
    found = schedule.between(datetime(FIRST.year, 1, 1, tzinfo=UTC), datetime(LAST.year + 1, 1, 1, tzinfo=UTC))
    days = (FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1))
    assert [at.date() for at in found] == [day for day in days if day.isocalendar().week == week]
