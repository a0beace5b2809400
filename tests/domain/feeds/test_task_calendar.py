"""When the calendar of a task has its rule, and when its occurrences one by one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from icalendar import Calendar
from tests.cases import try_each

from cloudsched import Schedule
from cloudsched.domain.feeds.task_calendar import build_task_calendar, is_portable

if TYPE_CHECKING:
    from tests.conftest import MakeTask


@try_each(
    "rule, is_alike",
    [
        ("FREQ=YEARLY", True),
        ("FREQ=MONTHLY;BYDAY=1MO,-1FR", True),
        ("FREQ=WEEKLY;BYDAY=MO,TU", True),
        ("FREQ=DAILY", True),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", False),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", True),
        ("FREQ=HOURLY", False),
        ("FREQ=MINUTELY;INTERVAL=90", False),
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=FORWARD", False),
        ("FREQ=YEARLY;BYWEEKNO=20", False),
        ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1", False),
        ("FREQ=MONTHLY;BYDAY=1MO,FR", False),
        ("FREQ=MONTHLY;BYMONTHDAY=24", True),
        ("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", True),
        ("FREQ=YEARLY;BYDAY=20MO", False),
        ("FREQ=YEARLY;BYYEARDAY=100", False),
        ("FREQ=MONTHLY;BYMONTH=5,6", False),
        ("FREQ=MONTHLY;BYMONTHDAY=1,2;BYDAY=MO;BYSETPOS=1", False),
        ("FREQ=DAILY;BYMINUTE=5,10", False),
    ],
)
def test_a_rule_is_portable_if_all_programs_read_it_alike(rule: str, *, is_alike: bool) -> None:
    """Those that some read otherwise are given as single events instead."""
    assert is_portable(Schedule(rrule=rule, dtstart="2027-01-01T09:00:00", timezone="Europe/Berlin")) is is_alike


@pytest.mark.parametrize(
    ("now", "has_rule"), [(datetime(2027, 3, 1, tzinfo=UTC), False), (datetime(2027, 5, 1, tzinfo=UTC), True)]
)
def test_a_rule_that_a_clock_change_moves_is_given_as_single_events(
    make_task: MakeTask, now: datetime, *, has_rule: bool
) -> None:
    """One moved occurrence among many is enough: programs do not agree on where it goes."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T02:30:00", timezone="Europe/Berlin")
    calendar: Any = Calendar.from_ical(
        build_task_calendar(make_task(schedule=schedule, next_execution_time=schedule.after(now)), now)
    )
    events = calendar.walk("VEVENT")
    assert ("RRULE" in events[0], len(events) == 1) == (has_rule, has_rule)
