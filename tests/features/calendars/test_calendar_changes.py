"""What follows a calendar's change when its writer or its followers die, and for tasks that have ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND
from tests.features.calendars.test_fetch_limits import calendars as calendars_of
from tests.instants import spread

from cloudsched import Task
from cloudsched.adapters.sqlite.records import SqliteRecords
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.system_tasks import FOLLOW_HANDLER, ChangeToFollow, Reached
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.task_link import TaskLink
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.tasks.schedule_parts import OPEN_FOR
from cloudsched.errors import StoreUnavailable, VersionConflict
from cloudsched.features.calendars.documents import Calendar
from cloudsched.features.calendars.schedule_days import FollowedCalendar
from cloudsched.testing import Simulation

DAILY = Schedule.model_validate({"rrule": "FREQ=DAILY;BYHOUR=12", "calendars": ["fr"]})


@pytest.fixture(autouse=True)
def greet(sim: Simulation) -> None:
    @sim.app.handler("greet")
    def greet(payload: dict[str, str]) -> str:
        return payload["name"]


def make_task(sim: Simulation, schedule: Schedule = DAILY, **more: Any) -> None:
    sim.app.create(id="t", handler="greet", schedule=schedule, payload={"name": "Ada"}, **more)


def put(sim: Simulation, *days: date) -> Calendar:
    return calendars_of(sim).put("fr", SYSTEM_OWNER, days=[(day, day, "Feast") for day in days], by=OWN_CODE)


def upcoming_days(sim: Simulation) -> set[date]:
    return {each.date() for each in sim.app.upcoming("t", 5)}


def open_changes(sim: Simulation) -> list[Task]:
    """Return the tasks that still plan the tasks of a changed calendar again."""
    query = TaskQuery(handler=FOLLOW_HANDLER, status=TaskStatus.ACTIVE)
    return list(sim.app.container.store.list_tasks(query, limit=5).items)


def list_records(sim: Simulation) -> list[tuple[date, ExecutionStatus]]:
    return sorted((each.scheduled_for.date(), each.status) for each in sim.executions("t"))


@pytest.mark.parametrize("edit", [{"max_runs": 2}, {"schedule": "0 15 * * *"}, {"schedule": DAILY, "max_runs": 3}])
def test_what_a_task_has_run_is_not_left_out_later(sim: Simulation, edit: dict[str, Any]) -> None:
    """The day on which a task ran becomes a holiday after its end: the record of the run stays the only one."""
    put(sim)
    make_task(sim, max_runs=1)
    sim.advance(DAY)
    (ran,) = list_records(sim)
    assert ran[1] is ExecutionStatus.SUCCEEDED
    put(sim, ran[0])
    sim.advance(20 * MINUTE)
    sim.app.update("t", **edit)
    sim.advance(DAY)
    assert ran in list_records(sim)
    assert len({day for day, _ in list_records(sim)}) == len(list_records(sim)) == 2


@pytest.mark.parametrize("ends", [("pause",), ("cancel",), ("pause", "cancel"), ("pause", "resume", "cancel")])
def test_what_was_left_out_since_the_last_run_is_recorded_when_a_task_stops(
    sim: Simulation, ends: tuple[str, ...]
) -> None:
    """Each holiday up to the pause or the cancel once, with its name; those that pass during the pause not at all."""
    today = sim.now.date()
    put(sim, *(today + timedelta(days) for days in range(2, 9)))
    make_task(sim)
    sim.advance(timedelta(days=4, hours=12) - (sim.now - sim.now.replace(hour=0, minute=0)))
    assert {status for _, status in list_records(sim)} == {ExecutionStatus.SUCCEEDED}
    for action in ends:
        getattr(sim.app, action)("t")
    sim.advance(timedelta(days=3, hours=1))
    if ends == ("pause",):
        sim.app.resume("t")
    sim.advance(4 * DAY)
    records = [each for each in sim.executions("t") if each.status is ExecutionStatus.SKIPPED]
    skipped = spread(records, sim.app.get("t").schedule)
    expected = {today + timedelta(days) for days in range(2, 5)}
    if ends == ("pause",):
        expected.add(today + 8 * DAY)
    assert sorted(each.scheduled_for.date() for each in skipped) == sorted(expected)
    assert all((each.message or "").startswith("Left out: Feast (fr).") for each in skipped)


@pytest.mark.parametrize("pause", [timedelta(0), OPEN_FOR, 3 * OPEN_FOR])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("last", [1, 2])
def test_no_change_is_left_behind_wherever_its_writer_dies(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, last: int, when: str, pause: timedelta
) -> None:
    """A writer stands still before the n-th commit, and dies before or after it: nobody writes again.

    All is followed, also if the one that follows has given up on the writer before it writes.
    """
    put(sim)
    make_task(sim)
    sim.advance(HOUR)
    holiday = sim.now.date() + timedelta(3)
    commits = [0]

    def dying(real: Any) -> Any:  # noqa: ANN401 - any commit of the store
        def commit(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401 - passed on
            commits[0] += 1
            if commits[0] < last:
                return real(*arguments, **more)
            with pytest.MonkeyPatch.context() as others:
                others.setattr(SqliteRecords, "write", write)
                others.setattr(SqliteStore, "commit", store_commit)
                sim.advance(pause)
            if when == "after":
                real(*arguments, **more)
            raise StoreUnavailable("The store", "the writer's process has died")

        return commit

    write, store_commit = SqliteRecords.write, SqliteStore.commit
    with monkeypatch.context() as patch:
        patch.setattr(SqliteRecords, "write", dying(write))
        patch.setattr(SqliteStore, "commit", dying(store_commit))
        with suppress(StoreUnavailable, VersionConflict):
            put(sim, holiday)
    assert commits[0] >= last
    sim.advance(3 * OPEN_FOR)
    assert not open_changes(sim)
    is_holiday = bool(calendars_of(sim).get("fr", SYSTEM_OWNER).content)
    assert is_holiday == (holiday not in upcoming_days(sim))


def test_a_late_task_is_found_although_its_writer_dies(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stored between the moment when a follower finds no such task, and the one when it forgets the task."""
    put(sim)
    holiday = sim.now.date() + timedelta(3)
    commit, delete = SqliteStore.commit, SqliteRecords.delete
    held: list[Any] = []

    def hold(self: Any, change: Commit) -> VersionedTask:  # noqa: ANN401 - a store
        if change.task.id == "t" and not held:
            held.append((self, change))
            raise StoreUnavailable("The store", "the writer stands still")
        return commit(self, change)

    def delete_late(self: Any, kind: Any, *arguments: Any) -> Any:  # noqa: ANN401 - as the port
        if kind is TaskLink and len(held) == 1:
            held.append(commit(*held[0]))
        return delete(self, kind, *arguments)

    monkeypatch.setattr(SqliteStore, "commit", hold)
    monkeypatch.setattr(SqliteRecords, "delete", delete_late)
    with pytest.raises(StoreUnavailable):
        make_task(sim)
    put(sim, holiday)
    sim.advance(4 * OPEN_FOR)
    assert len(held) == 2
    assert not open_changes(sim)
    assert holiday not in upcoming_days(sim)
    put(sim)
    sim.advance(4 * OPEN_FOR)
    assert holiday in upcoming_days(sim)


def stand_still(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Let something happen when a task and its calendar have next been read to plan the task again."""
    plan = FollowedCalendar.replan

    def wait(self: FollowedCalendar, *read: Any) -> Any:  # noqa: ANN401 - a transition
        monkeypatch.undo()
        meanwhile()
        return plan(self, *read)

    monkeypatch.setattr(FollowedCalendar, "replan", wait)


def test_a_run_that_knows_older_days_leaves_no_task_with_them(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands still while the days change back to what the task still has; then it goes on."""
    put(sim)
    make_task(sim)
    holiday = sim.now.date() + timedelta(3)
    put(sim, holiday)
    (follower,) = open_changes(sim)
    change = ChangeToFollow.from_payload(follower.payload)

    def change_back() -> None:
        put(sim)
        sim.advance(3 * OPEN_FOR)

    stand_still(monkeypatch, change_back)
    reached = sim.app.container.followers.follow(change, Reached())
    assert reached
    assert holiday not in upcoming_days(sim), "the older days were not written, so this tries nothing"
    assert sim.app.container.followers.follow(change, reached) is None
    assert holiday in upcoming_days(sim)


def test_an_attempt_that_has_lost_its_lease_plans_no_task_with_older_days(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands still until the next attempt has ended, and a newer change was followed; then it goes on."""
    put(sim)
    make_task(sim)
    first, second = sim.now.date() + timedelta(3), sim.now.date() + timedelta(4)
    put(sim, first)

    def change_again() -> None:
        put(sim, second)
        sim.advance(HOUR)
        assert not open_changes(sim)
        assert second not in upcoming_days(sim)

    stand_still(monkeypatch, change_again)
    sim.advance(timedelta(0))
    assert first in upcoming_days(sim)
    assert second not in upcoming_days(sim)


def test_a_writer_that_was_taken_for_dead_notes_its_change_again(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its change is finished without it before it writes the calendar; its write conflicts, and is noted anew."""
    put(sim)
    make_task(sim)
    holiday = sim.now.date() + timedelta(3)
    write = SqliteRecords.write
    waits = [True]

    def wait_long(self: Any, record: Any, version: Any) -> Any:  # noqa: ANN401 - as the port
        if isinstance(record, Calendar) and waits:
            waits.clear()
            sim.advance(3 * OPEN_FOR)
            assert not open_changes(sim)
        return write(self, record, version)

    monkeypatch.setattr(SqliteRecords, "write", wait_long)
    put(sim, holiday)
    monkeypatch.undo()
    sim.advance(3 * OPEN_FOR)
    assert not open_changes(sim)
    assert holiday not in upcoming_days(sim)


def test_a_change_is_followed_after_many_failures(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its task is tried again for hours while the store does not answer."""
    put(sim)
    make_task(sim)
    holiday = sim.now.date() + timedelta(3)
    failures = [0]

    def fail(_self: object, *_arguments: object) -> bool:
        failures[0] += 1
        raise RuntimeError("the process is out of memory")

    monkeypatch.setattr("cloudsched.engine.tasks.follow_changes.Followers.follow", fail)
    put(sim, holiday)
    sim.advance(HOUR)
    assert failures[0] > 5
    monkeypatch.undo()
    sim.advance(2 * HOUR)
    assert not open_changes(sim)
    assert holiday not in upcoming_days(sim)


@pytest.mark.parametrize("is_left_out", [False, True])
def test_an_occurrence_that_waits_for_its_jitter_outlives_a_change(sim: Simulation, *, is_left_out: bool) -> None:
    """Its time has passed, and it has not started: it runs once, unless its day is now a holiday."""
    put(sim)
    noon = sim.now.replace(hour=12, minute=0, second=0, microsecond=0)
    make_task(sim, jitter=6 * HOUR)
    sim.advance(noon - sim.now + SECOND)
    assert not list_records(sim), "it has started: nothing would be tested"
    other = [noon.date() + 3 * DAY]
    put(sim, *other, *([noon.date()] if is_left_out else []))
    sim.advance(12 * HOUR)
    assert noon.date() not in upcoming_days(sim)
    assert not {*other} & upcoming_days(sim)
    sim.advance(timedelta(days=1, hours=6))
    status = ExecutionStatus.SKIPPED if is_left_out else ExecutionStatus.SUCCEEDED
    assert [each for each in list_records(sim) if each[0] == noon.date()] == [(noon.date(), status)]


def test_a_backfill_runs_what_the_calendars_leave(sim: Simulation) -> None:
    """Days that are left out stay so, and moved occurrences run where they were moved."""
    start = sim.now.date()
    closed = [start + timedelta(1), start + timedelta(2)]
    put(sim, *closed)
    after = DAILY.model_copy(update={"rrule": "FREQ=DAILY;INTERVAL=2;BYHOUR=12", "dtstart": f"{start}T12:00:00"})
    moved = Schedule.model_validate({**after.model_dump(), "calendars": [{"id": "fr", "on": "after"}]})
    begin = sim.now
    sim.advance(7 * DAY)
    for name, schedule in (("left-out", DAILY), ("moved", moved)):
        anchored = schedule.model_copy(update={"dtstart": f"{start}T12:00:00"})
        sim.app.create(id=name, handler="greet", schedule=anchored, payload={"name": "Ada"})
        sim.app.backfill(name, begin, begin + 6 * DAY)
    sim.advance(30 * MINUTE)
    ran = {
        name: sorted(
            (each.scheduled_for.date() - start).days
            for each in sim.executions(name)
            if each.status is ExecutionStatus.SUCCEEDED and each.trigger is Trigger.BACKFILL
        )
        for name in ("left-out", "moved")
    }
    assert ran == {"left-out": [0, 3, 4, 5], "moved": [0, 3, 4]}
    notes = {(each.scheduled_for.date() - start).days: each.message for each in sim.executions("moved")}
    assert notes[3] == f"Moved from {closed[1]}: Feast (fr)."
