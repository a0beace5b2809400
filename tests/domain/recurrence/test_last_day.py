"""Schedules fire up to and on the last day of the calendar, and end after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.cases import try_each

from cloudsched.domain.schedules.schedule import Schedule

LAST_DAY = datetime(9998, 12, 31, tzinfo=UTC)


@try_each(
    "rule",
    [
        "FREQ=DAILY",
        "FREQ=DAILY;BYMONTHDAY=30,31",
        "FREQ=DAILY;BYMONTH=12;BYMONTHDAY=-1",
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU",
        "FREQ=MONTHLY;BYMONTHDAY=-2,-1",
        "FREQ=YEARLY;BYYEARDAY=-2,-1",
        "FREQ=HOURLY;BYHOUR=9;BYMONTHDAY=30,31",
        "FREQ=MINUTELY;BYHOUR=9;BYMINUTE=0;BYMONTHDAY=30,31",
    ],
)
def test_the_last_day_is_an_occurrence(rule: str) -> None:
    """Whether it is asked for from the day before or from years before, and nothing follows."""
    schedule = Schedule(rrule=rule, dtstart="9990-12-30T09:00:00", timezone="UTC")
    last = LAST_DAY.replace(hour=9)
    assert schedule.next_after(last - timedelta(seconds=1)) == last
    assert schedule.next_after(LAST_DAY - timedelta(hours=1)) == last
    assert schedule.next_after(last) is None


@pytest.mark.parametrize("interval", [1, 3, 9])
def test_the_last_second_is_an_occurrence(interval: int) -> None:
    """Of a rule in elapsed time, which has no days to search."""
    schedule = Schedule(rrule=f"FREQ=SECONDLY;INTERVAL={interval}", dtstart="9998-12-31T23:59:50", timezone="UTC")
    last = LAST_DAY + timedelta(days=1, seconds=-1)
    assert schedule.next_after(last - timedelta(seconds=1)) == last
    assert schedule.next_after(last) is None
