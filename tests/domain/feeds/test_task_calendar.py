"""When the calendar of a task has its rule, and when its occurrences one by one."""

from __future__ import annotations

import pytest

from cloudsched import Schedule
from cloudsched.domain.feeds.task_calendar import is_portable


@pytest.mark.parametrize(
    ("rule", "is_alike"),
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
