"""What ran, what waited and what never ran are told apart, and each has one figure wherever it stands."""

from __future__ import annotations

import pytest
from tests.dashboard.test_waterfall import SECOND, START
from tests.web.callers import HOUR

from cloudsched.dashboard.charts import draw_runs
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.domain.documents.execution import ExecutionStatus

RULES = ("FREQ=MINUTELY", "FREQ=HOURLY", "FREQ=DAILY", "FREQ=WEEKLY;INTERVAL=2", "FREQ=MINUTELY;INTERVAL=15")


@pytest.mark.parametrize("rule", RULES)
def test_a_first_occurrence_is_named_only_while_it_is_ahead(rule: str) -> None:
    """The same process says so before it, and no longer after it."""
    schedule = {"rrule": rule, "dtstart": "2027-03-20T09:00:00", "timezone": "UTC"}
    first = START + HOUR
    assert "first on Saturday 20 March 2027" in describe_schedule(schedule, first - SECOND)
    assert "first on" not in describe_schedule(schedule, first + SECOND)
    assert "first on" in describe_schedule(schedule, first - SECOND), "a clock may be set back"


def test_the_marks_of_runs_differ_by_what_came_of_them() -> None:
    """Skipped, cancelled, expired, failed, suspended and succeeded runs each have a mark of their own."""
    kinds = [each for each in ExecutionStatus if each is not ExecutionStatus.TIMED_OUT]
    marks = [str(draw_runs([each])).split("<line", 1)[1] for each in kinds]
    assert len(set(marks)) == len(kinds)
