"""What names no time, or says now, runs now, whichever door it comes through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.cases import try_each
from tests.doors.acts import Act
from tests.doors.doors import DONE, Agents, CommandLine, Door, FrontDoor, ManyNew, Pages
from tests.doors.world import WORLDS, headers_of
from tests.web.callers import DAY, SECOND

from cloudsched import Schedule, Task
from cloudsched.adapters.clocks import ManualClock
from cloudsched.engine.ports.search import TaskQuery

DOORS: tuple[Door, ...] = (FrontDoor(), ManyNew(), Agents(), CommandLine(), Pages())
SAID = ("now", "right now", "immediately", "PT0S", "in 0 seconds", "in 0 minutes")
NOTHING: dict[str, Any] = {"title": "At once", "handler": "open"}

SOON = ("in 1 second", "PT1S")


@contextmanager
def each_look_takes(duration: timedelta, clock: ManualClock) -> Iterator[None]:
    """Let a clock move by much at each look, as that of a busy machine, or not at all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "each_look", duration)
        yield


@pytest.mark.parametrize("moves_by", [timedelta(0), timedelta(milliseconds=1), 2 * SECOND], ids=str)
@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("words", (*SAID, *SOON))
def test_what_says_now_runs_now(door: Door, words: str, moves_by: timedelta) -> None:
    """It is no instant in the past, whatever reading it took, and the setting for drafts has no part in it."""
    with WORLDS.enter() as (world, target):
        act = Act("create now", "create_task", {**NOTHING, "schedule": words, "timezone": "UTC"}, state="none")
        with each_look_takes(moves_by, world.sim.clock):
            answer = door.attempt(world, "ada", act, target)
        assert answer.status == DONE, answer.text
        (task,) = [each for each in world.app.tasks(TaskQuery(handler="open")).items if each.title == "At once"]
        assert task.is_one_time
        assert task.next_execution_time is not None
        assert task.next_execution_time <= world.sim.now + SECOND
        world.sim.advance(timedelta(seconds=1 if words in SOON else 0))
        assert world.app.get(task.id).status == "COMPLETED"


@pytest.mark.parametrize(
    "how",
    [
        "the API",
        "app.create",
        "app.run_now",
        "client.create",
        "client.create, a schedule of no delay",
        "client.run_now",
        "validateOnly",
        "an edit",
    ],
)
def test_what_names_no_time_runs_now(how: str) -> None:
    """The same for requests, for Python in the process and for the client."""
    with WORLDS.enter() as (world, _), world.client("ada") as client:
        later: Task = world.app.create(owner="ada", title="Later", handler="open", schedule=Schedule.after(DAY))
        found: Any
        if how == "the API":
            found = world.ask("POST", "/v1/tasks", NOTHING, headers_of("ada")).get_json()
        elif how == "app.create":
            found = world.app.create(owner="ada", **NOTHING).to_wire()
        elif how == "app.run_now":
            found = world.app.run_now("open", owner="ada").to_wire()
        elif how == "client.create":
            found = client.create(**NOTHING).to_wire()
        elif how == "client.create, a schedule of no delay":
            found = client.create(**NOTHING, schedule=Schedule.after(timedelta(0))).to_wire()
        elif how == "client.run_now":
            found = client.run_now("open").to_wire()
        elif how == "validateOnly":
            found = world.ask("POST", "/v1/tasks?validateOnly=true", NOTHING, headers_of("ada")).get_json()
        else:
            found = client.update(later.id, schedule="now").to_wire()
        due = datetime.fromisoformat(found["nextExecutionTime"])
        assert world.sim.now - SECOND < due <= world.sim.now


def test_a_task_of_an_id_of_ones_own_runs_once_however_often_the_client_asks() -> None:
    """Running it now is a creation, which is safe to repeat; `trigger` runs what there is once more."""
    with WORLDS.enter() as (world, _), world.client("ada") as client:
        made = [client.run_now("open", id="mine", title="Mine") for _ in range(2)]
        world.sim.advance(timedelta(0))
        client.run_now("open", id="mine", title="Mine")
        world.sim.advance(timedelta(0))
        assert {each.id for each in made} == {made[0].id}
        assert len(world.app.executions(made[0].id).items) == 1


@try_each("words", (*SAID, *SOON))
def test_an_edit_to_now_runs_now_on_a_clock_that_moves(words: str) -> None:
    """By Python and by the client."""
    with WORLDS.enter() as (world, _), world.client("ada") as client:
        for update in (world.app.update, client.update):
            later = world.app.create(owner="ada", title="Later", handler="open", schedule=Schedule.after(DAY))
            with each_look_takes(2 * SECOND, world.sim.clock):
                update(later.id, schedule=words)
            world.sim.advance(SECOND)
            assert world.app.get(later.id).status == "COMPLETED"
