"""What a feed makes of executions, and where it stops."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from icalendar import Calendar
from tests.conftest import MakeTask

from cloudsched import Schedule
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.people.feed_text import MAX_EVENTS, MAX_PAST, FeedTask, build_feed

NOW = datetime(2027, 1, 31, 12, tzinfo=UTC)
NOT_RUN = {ExecutionStatus.SKIPPED, ExecutionStatus.CANCELLED, ExecutionStatus.EXPIRED}


def read(text: str) -> Any:  # noqa: ANN401 - its types are unions of everything
    return Calendar.from_ical(text)


def make_execution(
    status: ExecutionStatus = ExecutionStatus.SUCCEEDED, age: timedelta = timedelta(days=1)
) -> Execution:
    at = NOW - age
    return Execution(id=f"{at:%Y%m%dT%H%M%SZ}", task_id="t", owner="ada", scheduled_for=at, status=status)


@pytest.mark.parametrize("status", list(ExecutionStatus))
def test_what_was_not_run_is_cancelled(make_task: MakeTask, status: ExecutionStatus) -> None:
    """A skipped, expired or cancelled occurrence stays in the calendar, struck out; the description says why."""
    task = make_task(schedule=Schedule.once(NOW), next_execution_time=None)
    text = build_feed([FeedTask(task, [make_execution(status)])], NOW, title="Tasks")
    (event,) = read(text).walk("VEVENT")
    assert (event["STATUS"] == "CANCELLED") == (status in NOT_RUN)
    assert str(event["DESCRIPTION"]).lower().startswith(status.lower().replace("_", " "))


def test_only_the_last_thirty_days_are_shown(make_task: MakeTask) -> None:
    """And of one task at most the latest 100 executions; then the calendar says so."""
    task = make_task(schedule=Schedule.once(NOW), next_execution_time=None)
    old = make_execution(age=timedelta(days=31))
    assert "VEVENT" not in build_feed([FeedTask(task, [old])], NOW, title="Tasks")
    many = [make_execution(age=timedelta(minutes=number)) for number in range(MAX_PAST + 1)]
    calendar = read(build_feed([FeedTask(task, many)], NOW, title="Tasks"))
    shown = {event["DTSTART"].dt for event in calendar.walk("VEVENT")}
    assert shown == {execution.scheduled_for for execution in many[:MAX_PAST]}
    assert f"{MAX_PAST} past" in calendar["X-WR-CALDESC"]


def test_a_feed_has_a_last_event(make_task: MakeTask) -> None:
    """However many tasks there are, it stops at a number that its description names."""
    task = make_task(schedule=Schedule.once(NOW), next_execution_time=None)
    history = FeedTask(task, [make_execution(age=timedelta(minutes=number)) for number in range(MAX_PAST)])
    calendar = read(build_feed([history] * (MAX_EVENTS // MAX_PAST + 1), NOW, title="Tasks", is_cut=True))
    assert len(calendar.walk("VEVENT")) == MAX_EVENTS
    assert f"{MAX_EVENTS} events" in calendar["X-WR-CALDESC"]
    assert "does not show all tasks" in calendar["X-WR-CALDESC"]
