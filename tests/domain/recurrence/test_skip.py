"""SKIP of RFC 7529, section 4.1: where a date that does not exist moves to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule


def list_dates(rule: str, dtstart: str, count: int) -> list[str]:
    schedule = Schedule(rrule=rule, dtstart=dtstart)
    return [f"{at:%Y-%m-%d}" for at in schedule.upcoming(datetime(2000, 1, 1, tzinfo=UTC), count)]


def test_skip_omit() -> None:
    """Without SKIP, and with OMIT, months without a 31st have no occurrence."""
    for skip in ("", ";SKIP=OMIT", ";RSCALE=GREGORIAN;SKIP=OMIT"):
        found = list_dates(f"FREQ=MONTHLY{skip}", "2014-01-31", 4)
        assert found == ["2014-01-31", "2014-03-31", "2014-05-31", "2014-07-31"]


def test_skip_backward() -> None:
    """A missing date becomes the last day of its month; longer months still use the day of the rule."""
    found = list_dates("RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=BACKWARD;COUNT=4", "2014-01-31", 9)
    assert found == ["2014-01-31", "2014-02-28", "2014-03-31", "2014-04-30"]


def test_skip_forward() -> None:
    """A missing date becomes the first day of the next month."""
    found = list_dates("FREQ=MONTHLY;SKIP=FORWARD", "2014-01-31", 4)
    assert found == ["2014-01-31", "2014-03-01", "2014-03-31", "2014-05-01"]


def test_dates_moved_to_the_same_day_are_one_occurrence() -> None:
    """The 28th, 29th, 30th and 31st of February become one day, and COUNT counts it once."""
    found = list_dates("FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYMONTH=2;SKIP=BACKWARD;COUNT=3", "2026-01-01", 9)
    assert found == ["2026-02-28", "2027-02-28", "2028-02-28"]
    found = list_dates("FREQ=MONTHLY;BYMONTHDAY=1,31;SKIP=FORWARD;COUNT=4", "2026-02-01", 9)
    assert found == ["2026-02-01", "2026-03-01", "2026-03-31", "2026-04-01"]


def test_days_counted_from_the_end() -> None:
    """In a shorter month the 31st day from the end lies in the month before; the 366th of a shorter year likewise."""
    assert list_dates("FREQ=MONTHLY;BYMONTHDAY=-31;BYMONTH=2;SKIP=BACKWARD", "2027-01-01", 1) == ["2027-01-31"]
    assert list_dates("FREQ=MONTHLY;BYMONTHDAY=-31;BYMONTH=2;SKIP=FORWARD", "2027-01-01", 1) == ["2027-02-01"]
    assert list_dates("FREQ=YEARLY;BYYEARDAY=366;SKIP=BACKWARD", "2027-01-01", 2) == ["2027-12-31", "2028-12-31"]
    assert list_dates("FREQ=YEARLY;BYYEARDAY=366;SKIP=FORWARD", "2027-01-01", 2) == ["2028-01-01", "2028-12-31"]


def test_a_date_moved_to_the_next_month_is_sorted_by_its_instant() -> None:
    """The last one of February moves to the evening of 1 March, after the first one of March in the morning."""
    schedule = Schedule(
        rrule="FREQ=MONTHLY;BYMONTHDAY=1,31;BYHOUR=9,17;BYSETPOS=1,-1;SKIP=FORWARD", dtstart="2026-02-01T00:00:00"
    )
    found = schedule.upcoming(datetime(2026, 2, 1, 12, tzinfo=UTC), 3)
    assert [f"{at:%m-%dT%H}" for at in found] == ["03-01T09", "03-01T17", "03-31T17"]
    assert schedule.next_after(datetime(2026, 3, 1, 12, tzinfo=UTC)) == found[1]


def test_a_date_moved_to_the_next_year_is_found() -> None:
    """Also by a search that begins in that year."""
    schedule = Schedule(rrule="FREQ=YEARLY;BYYEARDAY=366;SKIP=FORWARD", dtstart="2027-01-01T09:00:00")
    found = schedule.upcoming(datetime(2028, 1, 1, tzinfo=UTC), 3)
    assert [f"{at:%Y-%m-%d}" for at in found] == ["2028-01-01", "2028-12-31", "2030-01-01"]


def test_other_calendars_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="GREGORIAN"):
        Schedule(rrule="RSCALE=CHINESE;FREQ=YEARLY", dtstart="2026-02-01T00:00:00")
    with pytest.raises(InvalidSchedule, match="SKIP"):
        Schedule(rrule="FREQ=YEARLY;SKIP=SIDEWAYS", dtstart="2026-02-01T00:00:00")
