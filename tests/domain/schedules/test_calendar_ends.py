"""Where the dates of a calendar end, and months in which every day is taken."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.cases import try_each

from cloudsched.domain.schedules.calendar_days import format_days
from cloudsched.domain.schedules.calendar_recurrence import describe_ends
from cloudsched.domain.schedules.calendar_rule import CalendarRule
from cloudsched.domain.schedules.schedule import Schedule

LAST = date(2027, 12, 31)
"""The last date of the calendar: a Friday, after which its dates end."""


def make_schedule(rule: str, on: str, *spans: tuple[date, date], weekends: bool = False, **more: Any) -> Schedule:
    """Return a schedule at 9 in Paris that respects dates, and weekends if wished."""
    content = format_days((), [(first, last, "closed") for first, last in spans])
    rules = [CalendarRule.model_validate({"id": "hd", "on": on}).with_content(content)]
    if weekends:
        rules.append(CalendarRule.model_validate({"id": "weekends", "on": on}))
    plain = Schedule(rrule=rule, dtstart="2027-01-01T09:00:00", timezone="Europe/Paris")
    return plain.model_copy(update={"calendars": tuple(rules), **more})


def find_days(schedule: Schedule, first: date, last: date) -> list[date]:
    zone = ZoneInfo("Europe/Paris")
    start, end = (datetime(each.year, each.month, each.day, tzinfo=zone) for each in (first, last + timedelta(1)))
    return [each.astimezone(zone).date() for each in schedule.between(start.astimezone(UTC), end.astimezone(UTC))]


@try_each(
    "on, weekends, day",
    [
        ("after", False, date(2028, 1, 1)),
        ("after", True, date(2028, 1, 3)),
        ("before", False, date(2027, 12, 23)),
        ("before", True, date(2027, 12, 23)),
    ],
)
def test_a_move_crosses_the_end_of_the_dates(on: str, day: date, *, weekends: bool) -> None:
    """The last date's occurrence moves to the first free day beyond, which no holiday takes, or back over the dates."""
    schedule = make_schedule("FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31", on, (date(2027, 12, 24), LAST), weekends=weekends)
    assert find_days(schedule, date(2027, 12, 1), date(2028, 1, 31)) == [day]


@try_each("number", [1, -1, 3])
def test_a_month_without_a_business_day_is_left_out(number: int) -> None:
    """Nothing runs in a month that is closed, nor does its run slip into another; it is recorded with the reason."""
    closed = (date(2027, 7, 30), date(2027, 9, 1))
    schedule = make_schedule("FREQ=MONTHLY", "skip", closed, weekends=True, business_day=number)
    found = find_days(schedule, date(2027, 7, 1), date(2027, 9, 30))
    assert [each.month for each in found] == [7, 9]
    start = datetime(2027, 7, 31, tzinfo=UTC)
    at = schedule.find_skipped(start, datetime(2027, 9, 30, tzinfo=UTC))
    assert at is not None
    assert at.date() == date(2027, 8, 1)
    assert schedule.adjustment_note(at) == "Left out: closed (hd)."


def test_the_end_of_the_dates_is_said_only_beyond_it() -> None:
    """The sentence names the first day without dates; days of the week never end, and are not said to."""
    rules = make_schedule("FREQ=DAILY", "skip", (date(2027, 12, 24), LAST), weekends=True).calendars
    assert describe_ends(rules, LAST) == []
    said = 'Calendar "hd" has no dates from 2028-01-01 on: all later days count as free.'
    assert describe_ends(rules, LAST + timedelta(1)) == [said]
    both = CalendarRule(id="b").with_content(format_days(["SU"], [(LAST, LAST, "")]))
    assert "all later days but its days of the week" in describe_ends([both], date(2028, 2, 1))[0]
