"""SKIP of RFC 7529, section 4.1: where a date that does not exist moves to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.cases import try_each

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule


def list_dates(rule: str, dtstart: str, count: int) -> list[str]:
    schedule = Schedule(rrule=rule, dtstart=dtstart)
    return [f"{at:%Y-%m-%d}" for at in schedule.upcoming(datetime(2000, 1, 1, tzinfo=UTC), count)]


@try_each(
    "rule, dtstart, dates",
    [
        ("FREQ=MONTHLY", "2014-01-31", ["2014-01-31", "2014-03-31", "2014-05-31"]),
        ("FREQ=MONTHLY;SKIP=OMIT", "2014-01-31", ["2014-01-31", "2014-03-31", "2014-05-31"]),
        # A missing date becomes the last day of its month, or the first of the next; others stay.
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=BACKWARD", "2014-01-31", ["2014-01-31", "2014-02-28", "2014-03-31"]),
        ("FREQ=MONTHLY;SKIP=FORWARD", "2014-01-31", ["2014-01-31", "2014-03-01", "2014-03-31", "2014-05-01"]),
        # Dates that are moved to one day are one occurrence, which COUNT counts once.
        (
            "FREQ=MONTHLY;BYMONTHDAY=28,29,30;BYMONTH=2;SKIP=BACKWARD;COUNT=2",
            "2026-01-01",
            ["2026-02-28", "2027-02-28"],
        ),
        ("FREQ=MONTHLY;BYMONTHDAY=1,31;SKIP=FORWARD;COUNT=3", "2026-02-01", ["2026-02-01", "2026-03-01", "2026-03-31"]),
        # From the end, a day may lie in the month or year before, or in the next one.
        ("FREQ=MONTHLY;BYMONTHDAY=-31;BYMONTH=2;SKIP=BACKWARD", "2027-01-01", ["2027-01-31"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-31;BYMONTH=2;SKIP=FORWARD", "2027-01-01", ["2027-02-01"]),
        ("FREQ=YEARLY;BYYEARDAY=366;SKIP=BACKWARD", "2027-01-01", ["2027-12-31", "2028-12-31"]),
        ("FREQ=YEARLY;BYYEARDAY=366;SKIP=FORWARD", "2027-01-01", ["2028-01-01", "2028-12-31", "2030-01-01"]),
    ],
)
def test_a_date_that_does_not_exist(rule: str, dtstart: str, dates: list[str]) -> None:
    """It is left out without SKIP and with OMIT, and moves to the day before or after otherwise."""
    assert list_dates(rule, dtstart, len(dates)) == dates


def test_a_date_moved_to_the_next_month_is_sorted_by_its_instant() -> None:
    """The last one of February moves to the evening of 1 March, after the first one of March in the morning."""
    schedule = Schedule(
        rrule="FREQ=MONTHLY;BYMONTHDAY=1,31;BYHOUR=9,17;BYSETPOS=1,-1;SKIP=FORWARD", dtstart="2026-02-01T00:00:00"
    )
    found = schedule.upcoming(datetime(2026, 2, 1, 12, tzinfo=UTC), 3)
    assert [f"{at:%m-%dT%H}" for at in found] == ["03-01T09", "03-01T17", "03-31T17"]
    assert schedule.next_after(datetime(2026, 3, 1, 12, tzinfo=UTC)) == found[1]


def test_other_calendars_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="GREGORIAN"):
        Schedule(rrule="RSCALE=CHINESE;FREQ=YEARLY", dtstart="2026-02-01T00:00:00")
    with pytest.raises(InvalidSchedule, match="SKIP"):
        Schedule(rrule="FREQ=YEARLY;SKIP=SIDEWAYS", dtstart="2026-02-01T00:00:00")
