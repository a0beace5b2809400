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
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", True),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", True),
        ("FREQ=HOURLY", False),
        ("FREQ=MINUTELY;INTERVAL=90", False),
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=FORWARD", False),
        ("FREQ=YEARLY;BYWEEKNO=20", False),
        ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1", False),
        ("FREQ=MONTHLY;BYDAY=1MO,FR", False),
    ],
)
def test_a_rule_is_portable_if_all_programs_read_it_alike(rule: str, *, is_alike: bool) -> None:
    """Those that some read otherwise are given as single events instead."""
    assert is_portable(Schedule(rrule=rule, dtstart="2027-01-01T09:00:00", timezone="Europe/Berlin")) is is_alike
