"""Months that end early, leap days, weeks across the year's end, and the phase of intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cloudsched.domain.schedules.schedule import Schedule


def list_dates(rule: str, dtstart: str, after: str, count: int) -> list[str]:
    schedule = Schedule(rrule=rule, dtstart=dtstart)
    return [f"{at:%Y-%m-%d}" for at in schedule.upcoming(datetime.fromisoformat(after).replace(tzinfo=UTC), count)]


def test_dtstart_keeps_its_day_for_decades() -> None:
    """Decades later, "the 31st" is still the 31st, and 29 February still a leap day."""
    assert list_dates("FREQ=MONTHLY", "1997-01-31", "2027-02-01", 3) == ["2027-03-31", "2027-05-31", "2027-07-31"]
    assert list_dates("FREQ=YEARLY", "1996-02-29", "2027-03-01", 2) == ["2028-02-29", "2032-02-29"]
    assert list_dates("FREQ=YEARLY;INTERVAL=3", "1996-02-29", "2027-03-01", 2) == ["2032-02-29", "2044-02-29"]


@pytest.mark.parametrize(
    ("week_start", "expected"),
    [("MO", ["1997-08-05", "1997-08-10", "1997-08-19"]), ("SU", ["1997-08-05", "1997-08-17", "1997-08-19"])],
)
def test_wkst_determines_which_weeks_an_interval_reaches(week_start: str, expected: list[str]) -> None:
    rule = f"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST={week_start}"
    assert list_dates(rule, "1997-08-05", "1997-08-04", 3) == expected


def test_intervals_keep_their_phase_for_decades() -> None:
    """Wherever the search begins, the 7,000th occurrence is 7,000 intervals after the first."""
    first = datetime(1997, 1, 6, 9, tzinfo=UTC)
    for rule, seconds in {
        "FREQ=WEEKLY;INTERVAL=2": 14 * 86_400,
        "FREQ=DAILY;INTERVAL=5": 5 * 86_400,
        "FREQ=HOURLY;INTERVAL=7": 7 * 3600,
        "FREQ=MINUTELY;INTERVAL=97": 97 * 60,
    }.items():
        schedule = Schedule(rrule=rule, dtstart="1997-01-06T09:00:00")
        for number in (1, 700, 7000):
            found = schedule.next_after(datetime.fromtimestamp(first.timestamp() + number * seconds - 1, UTC))
            assert found is not None
            assert (found - first).total_seconds() == number * seconds


def test_second_60_is_second_59() -> None:
    """There are no leap seconds here; RFC 5545, section 3.3.12."""
    schedule = Schedule(rrule="FREQ=DAILY;BYSECOND=60", dtstart="2027-01-01T09:00:00")
    assert schedule.first() == datetime(2027, 1, 1, 9, 0, 59, tzinfo=UTC)


@pytest.mark.parametrize("week", [1, 2, 52, 53])
def test_weeks_at_the_turn_of_a_year_are_those_of_the_calendar(week: int) -> None:
    """January's first days may be in the last week of the year before, and December's last ones in the next's first."""
    rule = f"FREQ=YEARLY;BYWEEKNO={week};BYDAY=MO,TU,WE,TH,FR,SA,SU"
    schedule = Schedule(rrule=rule, dtstart="1970-01-01T12:00:00")
    first, end = datetime(1970, 1, 1, 12, tzinfo=UTC), datetime(2111, 1, 1, tzinfo=UTC)
    days = (first + timedelta(days=number) for number in range((end - first).days + 1))
    assert schedule.between(first, end) == [day for day in days if day.isocalendar().week == week]
