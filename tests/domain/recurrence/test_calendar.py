"""Months that end early, leap days, weeks across the year's end, and the phase of intervals."""

from __future__ import annotations

from datetime import UTC, datetime

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


def test_a_leap_day_rule_skips_a_century_year_without_one() -> None:
    assert list_dates("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "1996-02-29", "2093-01-01", 2) == [
        "2096-02-29",
        "2104-02-29",
    ]


def test_week_53() -> None:
    """Whether 1 January is in week 53 or 52 depends on the year before: 2005 was, 2011 was not."""
    expected = ["2005-01-01", "2010-01-02", "2016-01-02", "2021-01-02", "2027-01-02"]
    assert list_dates("FREQ=YEARLY;BYWEEKNO=53;BYDAY=SA", "2000-01-01", "2000-01-01", 5) == expected
    expected = ["2000-01-01", "2000-12-30", "2001-12-29", "2002-12-28", "2003-12-27", "2005-01-01"]
    assert list_dates("FREQ=YEARLY;BYWEEKNO=-1;BYDAY=SA", "2000-01-01", "1999-12-31", 6) == expected


def test_a_week_number_alone_means_the_weekday_of_dtstart() -> None:
    """Unlike dateutil, which yields all seven days of the week."""
    expected = ["2027-05-19", "2028-05-17", "2029-05-16"]
    assert list_dates("FREQ=YEARLY;BYWEEKNO=20", "2026-05-13", "2026-05-13", 3) == expected


def test_weekdays_with_and_without_a_number() -> None:
    """The rule names every Monday and the second Tuesday; dateutil yields nothing."""
    expected = ["2027-02-01", "2027-02-08", "2027-02-09", "2027-02-15", "2027-02-22", "2027-03-01"]
    assert list_dates("FREQ=MONTHLY;BYDAY=MO,2TU", "2027-01-31", "2027-01-31", 6) == expected


def test_a_numbered_weekday_counts_within_bymonth_or_the_year() -> None:
    """With BYMONTH, the last Sunday of October; without it, the 20th Monday of the year."""
    assert list_dates("FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU", "2027-01-01", "2027-01-01", 2) == [
        "2027-10-31",
        "2028-10-29",
    ]
    assert list_dates("FREQ=YEARLY;BYDAY=20MO", "1997-05-19", "1997-05-18", 2) == ["1997-05-19", "1998-05-18"]


def test_bysetpos_counts_from_the_start_of_the_week_of_dtstart() -> None:
    """The third working day of the week is Wednesday; dateutil counts from DTSTART and yields Friday."""
    expected = ["2024-10-23", "2024-10-28", "2024-10-30"]
    assert list_dates("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,3", "2024-10-23", "2024-10-22", 3) == expected


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
