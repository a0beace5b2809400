"""Which dispatches carry a task to its occurrences: named for what they may run, and never beyond the horizon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudsched import Task, TaskDraft
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.recurrence.iso8601 import LAST_INSTANT
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.edits import NO_LEAD, new_task
from cloudsched.domain.transitions.planning import jittered_start, requested_id, stamp
from cloudsched.domain.transitions.wakeups import (
    executor_wakeups,
    repair_number,
    wake_instant,
)
from cloudsched.testing import START

INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds


def make_task_at(at: datetime, **policy: object) -> Task:
    draft = TaskDraft.of(id="t", owner="ada", handler="h", schedule=at, **policy)
    return new_task(draft, START)


@given(one=INSTANTS, other=INSTANTS)
def test_an_execution_is_named_by_its_instant(one: datetime, other: datetime) -> None:
    """The same instant, in whatever zone, has the same id; ids sort as their instants do, second by second."""
    zone = datetime.fromisoformat("2027-01-01T00:00:00+05:30").tzinfo
    assert stamp(one) == stamp(one.astimezone(zone))
    assert (stamp(one) == stamp(other)) == (one == other)
    whole = [at.replace(microsecond=0) for at in (one, other)]
    assert sorted(map(stamp, whole)) == [stamp(at) for at in sorted(whole)]


def test_requested_runs_have_ids_of_their_own() -> None:
    """One instant that is scheduled, triggered and part of two backfills has four executions."""
    later = START + timedelta(hours=1)
    ids = {
        stamp(START),
        requested_id(START, Trigger.MANUAL, START),
        requested_id(START, Trigger.BACKFILL, START),
        requested_id(START, Trigger.BACKFILL, later),
    }
    assert len(ids) == 4
    with pytest.raises(ValueError, match="instant of the request"):
        requested_id(START, Trigger.MANUAL, None)


@given(occurrence=INSTANTS, jitter=st.timedeltas(timedelta(0), timedelta(days=1)))
def test_jitter_is_stable_per_occurrence(occurrence: datetime, jitter: timedelta) -> None:
    """An occurrence starts within the jitter after its instant, and at the same moment however often it is asked."""
    task = make_task_at(START + timedelta(days=1), jitter=jitter)
    start = jittered_start(task, occurrence)
    assert occurrence <= start <= occurrence + jitter
    assert start == jittered_start(task, occurrence)


def test_jitter_spreads_occurrences_and_tasks() -> None:
    """A thousand tasks at nine do not start together, and one task does not always start at the same minute."""
    task = make_task_at(START + timedelta(days=1), jitter=timedelta(hours=1))
    days = [START + timedelta(days=number) for number in range(200)]
    offsets = sorted(jittered_start(task, day) - day for day in days)
    assert len(set(offsets)) == 200
    for number in range(10):
        tenth = [at for at in offsets if number * 6 <= at.total_seconds() / 60 < (number + 1) * 6]
        assert 5 <= len(tenth) <= 45
    other = task.model_copy(update={"id": "u"})
    assert jittered_start(other, days[0]) != jittered_start(task, days[0])


def test_the_last_occurrence_of_the_calendar_can_be_planned() -> None:
    """Jitter that would start the last occurrence of a recurring task after the calendar starts it at its end."""
    days = Schedule(rrule="FREQ=DAILY", dtstart="9998-12-29T23:59:59")
    task = new_task(
        TaskDraft.of(id="t", owner="ada", handler="h", schedule=days, jitter=timedelta(days=1)),
        START,
        NO_LEAD,
    )
    last = datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC)
    wake = wake_instant(task.model_copy(update={"next_execution_time": last}))
    assert wake is not None
    assert last <= wake <= LAST_INSTANT


def test_the_repair_number_grows_ever_more_slowly() -> None:
    """It changes each minute at first, then less and less often, then every ten minutes, and never decreases."""
    numbers = [repair_number(timedelta(minutes=minutes)) for minutes in range(180)]
    assert numbers[0] == 1
    assert numbers == sorted(numbers)
    changes = [minute for minute in range(1, 180) if numbers[minute] != numbers[minute - 1]]
    assert changes[:4] == [1, 2, 4, 8]
    assert all(later - sooner <= 12 for sooner, later in pairwise(changes))


def test_a_paused_ended_or_deleted_task_has_no_dispatch() -> None:
    """Not even if it has an instant at which it would be due."""
    task = make_task_at(START + timedelta(days=1))
    assert [each.due_at for each in executor_wakeups(task)] == [START + timedelta(days=1)]
    for change in ({"status": "PAUSED"}, {"deleted_at": START}):
        assert executor_wakeups(task.model_copy(update=change)) == ()
