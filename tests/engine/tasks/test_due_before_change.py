"""Occurrences that came due before a pause, a cancel or a new plan, through the app: runs, records and the sweep."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Context, Schedule, Settings, Task
from cloudsched.domain.transitions.locks import Holder, Lock
from cloudsched.engine.ports.store import VersionedLock
from cloudsched.testing import START, Simulation

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MINUTELY = Schedule(rrule="FREQ=MINUTELY", dtstart="2027-01-01T00:01:00")
HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T01:00:00")
app = App(Settings())


@app.handler("work", retry=False)
def work(_: Context) -> str:
    return "done"


@pytest.fixture(name="app")
def use_app() -> App:
    return app


def make(task_id: str = "t", **more: Any) -> Task:
    return app.create(**{"id": task_id, "owner": "ada", "title": "Work", "handler": "work", "schedule": HOURLY, **more})


def statuses(sim: Simulation) -> list[tuple[float, str]]:
    """Return when each occurrence came due, in hours from the start, and how it ended."""
    found = [((each.scheduled_for - START) / HOUR, each.status.value) for each in sim.executions("t")]
    return sorted(found)


def test_three_hours_without_a_delivery_then_pause_and_resume(sim: Simulation) -> None:
    """With catchUp all, the three occurrences run after the resume, in their order."""
    make(catch_up={"mode": "all"})
    sim.clock.advance(3.5 * HOUR)
    app.pause("t")
    app.resume("t")
    sim.advance(2 * MINUTE)
    assert statuses(sim) == [(1, "SUCCEEDED"), (2, "SUCCEEDED"), (3, "SUCCEEDED")]
    assert app.get("t").next_execution_time == START + 4 * HOUR


@pytest.mark.parametrize("verb", ["resume", "cancel"])
def test_a_one_off_that_was_paused_while_it_waited_at_a_lock(sim: Simulation, verb: str) -> None:
    """It runs once it is resumed and the lock is free; or its cancel leaves a record."""
    holder = Holder(task_id="another", execution_id="e", until=START + 90 * MINUTE)
    app.container.store.commit_lock(VersionedLock(Lock(key="press", holders=(holder,)), None))
    make(schedule=Schedule.once(START + 2 * MINUTE), lock_key="press")
    sim.advance(HOUR)
    assert statuses(sim) == []
    app.pause("t")
    sim.advance(HOUR)
    getattr(app, verb)("t")
    sim.advance(5 * HOUR)
    ((_, status),) = statuses(sim)
    assert status == {"resume": "SUCCEEDED", "cancel": "CANCELLED"}[verb]
    assert app.get("t").status == {"resume": "COMPLETED", "cancel": "CANCELLED"}[verb]


def test_what_a_cancel_records_goes_with_its_task(sim: Simulation) -> None:
    """Three thousand occurrences have two records, which are there at once, until the task's retention is over."""
    make(schedule=MINUTELY, retention=HOUR)
    sim.clock.advance(50 * HOUR)
    app.cancel("t")
    skipped, cancelled = sorted(sim.executions("t"), key=lambda each: each.scheduled_for)
    assert skipped.covers is not None
    assert (skipped.status, skipped.covers.count, cancelled.status) == ("SKIPPED", 2999, "CANCELLED")
    sim.advance(HOUR + 2 * MINUTE)
    assert app.container.store.load("t") is None


def test_a_delete_takes_the_records_with_it(sim: Simulation) -> None:
    """Nothing of the task is left, and nothing is recorded later."""
    make(schedule=MINUTELY)
    sim.clock.advance(50 * HOUR)
    app.pause("t")
    app.delete("t")
    sim.advance(5 * MINUTE)
    assert app.container.store.load("t") is None
    assert not app.container.store.list_executions("t", limit=10).items
