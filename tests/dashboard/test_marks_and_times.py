"""What ran, what waited and what never ran are told apart, and each has one figure wherever it stands."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.dashboard.conftest import NOW, look
from tests.dashboard.test_waterfall_waits import SECOND, START, at, attempt, record, seconds, step
from tests.web.callers import HOUR

from cloudsched.dashboard.charts.run_marks import draw_runs
from cloudsched.dashboard.charts.waterfall_rows import Waterfall, make_waterfall
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.times import write_duration
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.domain.documents.execution import ExecutionStatus

RULES = ("FREQ=MINUTELY", "FREQ=HOURLY", "FREQ=DAILY", "FREQ=WEEKLY;INTERVAL=2", "FREQ=MINUTELY;INTERVAL=15")


def draw(call: dict[str, Any]) -> Waterfall:
    """Return the waterfall of a run that called another after 10 seconds, as it is after 100."""
    found = record(attempt(1, 0, 10, "SUCCEEDED"), steps=[call], finishedAt=at(100))
    return make_waterfall(found, START + 100 * SECOND)


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


def test_a_record_says_how_many_occurrences_it_stands_for() -> None:
    """A row of what was skipped in an outage is no single run."""
    covers = {"count": 2159, "until": "2027-03-23T13:58:00Z"}
    row = build_execution({**record(status="SKIPPED"), "taskId": "t", "covers": covers}, look())
    assert "2,158 more, up to Tue 23 Mar 2027 14:58 +0100" in row["outcome"].replace("\N{NO-BREAK SPACE}", " ")


def test_took_is_what_a_function_ran_on_both_pages() -> None:
    """A run that was retried after hours ran for seconds: the list and its own page have the same figure."""
    found = record(attempt(1, 0, 2), attempt(2, 34_920, 34_923, "SUCCEEDED"), status="SUCCEEDED")
    row = build_execution({**found, "taskId": "t"}, look())
    assert row["took"] == write_duration(5 * SECOND)
    assert make_waterfall(found, NOW).sums["ran"] == 5 * SECOND


@pytest.mark.parametrize("finished", [None, 100])
def test_a_call_begins_when_its_task_starts(finished: int | None) -> None:
    """Until then it waits, and its calls have not run."""
    call = step("CALL", 10, finished, childStartedAt=at(60))
    found = make_waterfall(
        record(attempt(1, 0, 10, "SUCCEEDED"), steps=[call], finishedAt=at(100)), START + 100 * SECOND
    )
    assert [(bar.kind, bar.end - bar.start) for bar in found.rows[1].bars] == [
        ("worker", 50 * SECOND),
        ("past" if finished else "run", 40 * SECOND),
    ]
    assert seconds(found.sums) == {"ran": 10, "worker": 50, "calls": 40}


def test_a_call_that_has_not_started_is_not_drawn_as_running() -> None:
    call = step("CALL", 10, None, hasNotStarted="waits for a worker")
    found = make_waterfall(
        record(attempt(1, 0, 10, "SUCCEEDED"), steps=[call], finishedAt=at(100)), START + 100 * SECOND
    )
    assert {bar.kind for bar in found.rows[1].bars} == {"worker"}
    assert (found.rows[1].took, found.rows[1].note) == (timedelta(0), "waits for a worker")
    assert "calls" not in seconds(found.sums)


def test_an_attempt_whose_time_has_passed_is_not_called_the_next() -> None:
    """It was due: a lost lease or a paused queue holds it up."""
    retrying = {**record(attempt(1, 0, 2)), "taskId": "t", "status": "RETRYING", "finishedAt": None}
    late = build_execution({**retrying, "nextAttemptAt": (NOW - 3 * HOUR).isoformat()}, look())
    soon = build_execution({**retrying, "nextAttemptAt": (NOW + 3 * HOUR).isoformat()}, look())
    assert (late["untilWord"], soon["untilWord"]) == ("next attempt was due", "next attempt")
