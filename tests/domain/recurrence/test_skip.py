"""SKIP of RFC 7529, section 4.1: what becomes of a date that does not exist."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.errors import InvalidSchedule


def dates(rule: str, dtstart: str, count: int) -> list[str]:
    schedule = Schedule(rrule=rule, dtstart=dtstart)
    return [f"{at:%Y-%m-%d}" for at in schedule.upcoming(datetime(2000, 1, 1, tzinfo=UTC), count)]


def test_skip_omit() -> None:
    """Without SKIP, and with OMIT, months without a 31st have no occurrence."""
    for skip in ("", ";SKIP=OMIT", ";RSCALE=GREGORIAN;SKIP=OMIT"):
        found = dates(f"FREQ=MONTHLY{skip}", "2014-01-31", 4)
        assert found == ["2014-01-31", "2014-03-31", "2014-05-31", "2014-07-31"]


def test_skip_backward() -> None:
    """The last day of the month stands in; the day of the month that was meant is not forgotten."""
    found = dates("RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=BACKWARD;COUNT=4", "2014-01-31", 9)
    assert found == ["2014-01-31", "2014-02-28", "2014-03-31", "2014-04-30"]


def test_skip_forward() -> None:
    """The first of the next month stands in."""
    found = dates("FREQ=MONTHLY;SKIP=FORWARD", "2014-01-31", 4)
    assert found == ["2014-01-31", "2014-03-01", "2014-03-31", "2014-05-01"]


@pytest.mark.parametrize(("skip", "stand_in"), [("FORWARD", "03-01"), ("BACKWARD", "02-28")])
def test_a_leap_day_birthday(skip: str, stand_in: str) -> None:
    found = dates(f"RSCALE=GREGORIAN;FREQ=YEARLY;SKIP={skip};COUNT=5", "2012-02-29", 9)
    assert found == ["2012-02-29", *(f"{year}-{stand_in}" for year in (2013, 2014, 2015)), "2016-02-29"]


def test_a_date_that_several_mean_is_one() -> None:
    """The 28th, 29th, 30th and 31st of February are one day, and COUNT counts it once."""
    found = dates("FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYMONTH=2;SKIP=BACKWARD;COUNT=3", "2026-01-01", 9)
    assert found == ["2026-02-28", "2027-02-28", "2028-02-28"]
    found = dates("FREQ=MONTHLY;BYMONTHDAY=1,31;SKIP=FORWARD;COUNT=4", "2026-02-01", 9)
    assert found == ["2026-02-01", "2026-03-01", "2026-03-31", "2026-04-01"]


def test_days_counted_from_the_end() -> None:
    """The 31st day from the end of a shorter month lies before it; the 366th of a shorter year too."""
    assert dates("FREQ=MONTHLY;BYMONTHDAY=-31;BYMONTH=2;SKIP=BACKWARD", "2027-01-01", 1) == ["2027-01-31"]
    assert dates("FREQ=MONTHLY;BYMONTHDAY=-31;BYMONTH=2;SKIP=FORWARD", "2027-01-01", 1) == ["2027-02-01"]
    assert dates("FREQ=YEARLY;BYYEARDAY=366;SKIP=BACKWARD", "2027-01-01", 2) == ["2027-12-31", "2028-12-31"]
    assert dates("FREQ=YEARLY;BYYEARDAY=366;SKIP=FORWARD", "2027-01-01", 2) == ["2028-01-01", "2028-12-31"]


def test_what_moves_into_the_next_month_keeps_its_place_in_time() -> None:
    """February's last pick lies on 1 March in the evening, after March's first in the morning."""
    schedule = Schedule(
        rrule="FREQ=MONTHLY;BYMONTHDAY=1,31;BYHOUR=9,17;BYSETPOS=1,-1;SKIP=FORWARD", dtstart="2026-02-01T00:00:00"
    )
    found = schedule.upcoming(datetime(2026, 2, 1, 12, tzinfo=UTC), 3)
    assert [f"{at:%m-%dT%H}" for at in found] == ["03-01T09", "03-01T17", "03-31T17"]
    assert schedule.after(datetime(2026, 3, 1, 12, tzinfo=UTC)) == found[1]


def test_other_calendars_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="GREGORIAN"):
        Schedule(rrule="RSCALE=CHINESE;FREQ=YEARLY", dtstart="2026-02-01T00:00:00")
    with pytest.raises(InvalidSchedule, match="SKIP"):
        Schedule(rrule="FREQ=YEARLY;SKIP=SIDEWAYS", dtstart="2026-02-01T00:00:00")
