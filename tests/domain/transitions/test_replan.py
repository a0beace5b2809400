"""What moves with the owner, and what does not: the decision alone, on tasks in each state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudsched import Schedule, Task
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.transitions.edits import NO_LEAD, new_task
from cloudsched.domain.transitions.lifecycle import cancel, delete, pause, resume
from cloudsched.domain.transitions.overlap_and_catch_up import due_ranges
from cloudsched.domain.transitions.planning import jittered_start, occurrence_from
from cloudsched.domain.transitions.replan import follow_owner
from cloudsched.domain.transitions.task_draft import TaskDraft

NOON = datetime(2027, 11, 30, 12, tzinfo=UTC)
BERLIN, NEW_YORK, TOKYO = "Europe/Berlin", "America/New_York", "Asia/Tokyo"
ZONES = (BERLIN, NEW_YORK, TOKYO, "Pacific/Honolulu", "Pacific/Kiritimati", "Asia/Kolkata", "UTC")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def make(rule: str = "FREQ=DAILY;BYHOUR=9", zone: str = BERLIN, **more: object) -> Task:
    schedule = Schedule(rrule=rule, dtstart="2027-11-01T00:00:00", timezone="owner").with_owner_zone(zone)
    draft = TaskDraft.of(id="t", owner="ada", handler="remind", schedule=schedule, **more)
    return new_task(draft, NOON, NO_LEAD)


def local(task: Task, at: datetime) -> str:
    return f"{at.astimezone(load_tzinfo(task.timezone)):%d %H:%M}"


def test_what_a_pause_has_kept_is_the_same_local_times_elsewhere() -> None:
    """Due and not started when it was paused: it runs once it is resumed, under its own local time."""
    due = NOON + DAY
    paused = pause(make(catch_up="all"), due + DAY, paused_by=None).task
    assert [(local(paused, each.next_at), local(paused, each.until)) for each in paused.backlog] == [
        ("01 09:00", "02 09:00")
    ]
    moved = follow_owner(paused, TOKYO, due + DAY + HOUR).task
    assert [(local(moved, each.next_at), local(moved, each.until)) for each in moved.backlog] == [
        ("01 09:00", "02 09:00")
    ]
    assert moved.status is TaskStatus.PAUSED
    resumed = resume(moved, due + DAY + 2 * HOUR).task
    assert resumed.next_execution_time is not None
    assert local(resumed, resumed.next_execution_time) == "01 09:00"


def test_west_what_has_not_started_waits_for_its_local_time() -> None:
    """It was due for an hour in Berlin, and nothing had run it: it is due at 9 in New York."""
    task = make()
    late = follow_owner(task, NEW_YORK, datetime(2027, 12, 1, 9, tzinfo=UTC)).task
    assert late.next_execution_time == datetime(2027, 12, 1, 14, tzinfo=UTC)
    assert late.zone_change is None
    assert late.history[-1].reason == "followed its owner from Europe/Berlin to America/New_York"


def test_east_what_was_due_before_is_as_late_as_it_was() -> None:
    """Due for an hour in New York, then to Berlin: it is an hour late, and not seven."""
    task = make(zone=NEW_YORK)
    now = datetime(2027, 11, 30, 15, tzinfo=UTC)
    moved = follow_owner(task, BERLIN, now).task
    assert moved.next_execution_time is not None
    assert jittered_start(moved, moved.next_execution_time) == now - HOUR
    again = follow_owner(moved, TOKYO, now + HOUR).task
    assert again.next_execution_time is not None
    assert now - HOUR <= jittered_start(again, again.next_execution_time) <= now + HOUR
    assert due_ranges(again, now + HOUR)[0].next_at == again.next_execution_time


def test_a_task_that_has_ended_only_gets_the_zone() -> None:
    """So an edit that opens it again goes on where its owner is; a deleted one, and one that is there, stay."""
    task = make()
    ended = cancel(task, NOON).task
    moved = follow_owner(ended, TOKYO, NOON).task
    assert (moved.timezone, moved.status, moved.revision) == (TOKYO, TaskStatus.CANCELLED, ended.revision)
    deleted = delete(task, NOON).task
    assert follow_owner(deleted, TOKYO, NOON).task is deleted
    assert follow_owner(task, BERLIN, NOON).task is task


@given(
    st.lists(st.tuples(st.sampled_from(ZONES), st.integers(0, 30)), max_size=30),
    st.booleans(),
    st.sampled_from([0, 20, 300]),
)
def test_each_local_day_runs_once_whatever_the_journeys(
    journeys: list[tuple[str, int]],
    twice: bool,  # noqa: FBT001 - drawn
    jitter: int,
) -> None:
    """The local times that come due, in the order in which they do, are those of the rule, without a gap.

    So journeys that end nowhere win little: no clock on Earth is more than 26 hours ahead of another.
    """
    rule = "FREQ=DAILY;BYHOUR=9,21" if twice else "FREQ=DAILY;BYHOUR=9"
    task = make(rule, catch_up="all", jitter=timedelta(minutes=jitter))
    now, names = NOON, list[datetime]()
    for zone, hours in [*journeys, (BERLIN, 66)]:
        task = follow_owner(task, zone, now).task
        now += hours * HOUR
        while (at := task.next_execution_time) is not None and jittered_start(task, at) <= now:
            names.append(at.astimezone(load_tzinfo(task.timezone)).replace(tzinfo=None))
            ran = task.model_copy(update={"planned_to": at})
            task = ran.model_copy(update={"next_execution_time": occurrence_from(ran, at)})
    step = timedelta(hours=12 if twice else 24)
    assert names == [names[0] + number * step for number in range(len(names))]
    assert names
    assert (len(names) - 1) * step <= now - NOON + 26 * HOUR


@pytest.mark.parametrize(("zone", "hours"), [(TOKYO, 8), (NEW_YORK, -6)])
def test_the_marks_of_a_plan_move_with_their_local_times(zone: str, hours: int) -> None:
    """What was processed, and where the plan goes on after a pause."""
    task = pause(make(), NOON, paused_by=None).task
    marked = task.model_copy(update={"planned_to": NOON - DAY, "plan_from": NOON, "earlier_planned_to": NOON - 2 * DAY})
    moved = follow_owner(marked, zone, NOON).task
    assert moved.planned_to == NOON - DAY - hours * HOUR
    assert moved.plan_from == NOON - hours * HOUR
    assert moved.earlier_planned_to == NOON - 2 * DAY - hours * HOUR


def test_a_gap_at_the_end_of_a_journey_runs_nothing_twice() -> None:
    """02:30 has run, 03:15 has not. In Berlin 02:30 is 03:30 that day, after it: 03:15 runs, and 03:30 does not."""
    rules = ["FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "FREQ=DAILY;BYHOUR=3;BYMINUTE=15"]
    schedule = Schedule(rrule=rules, dtstart="2027-03-27T12:00:00", timezone="owner")
    draft = TaskDraft.of(id="t", owner="ada", handler="remind", schedule=schedule.with_owner_zone("Etc/GMT+1"))
    task = new_task(draft, datetime(2027, 3, 27, 13, tzinfo=UTC))
    ran_at = datetime(2027, 3, 28, 3, 30, tzinfo=UTC)  # 02:30 there
    ran = task.model_copy(update={"planned_to": ran_at})
    task = ran.model_copy(update={"next_execution_time": occurrence_from(ran, ran_at)})
    assert task.next_execution_time is not None
    assert local(task, task.next_execution_time) == "28 03:15"
    moved = follow_owner(task, BERLIN, ran_at + HOUR / 4).task
    names = list[str]()
    while (at := moved.next_execution_time) is not None and len(names) < 3:
        names.append(local(moved, at))
        ran = moved.model_copy(update={"planned_to": at})
        moved = ran.model_copy(update={"next_execution_time": occurrence_from(ran, at)})
    assert names == ["28 03:15", "29 02:30", "29 03:15"]
