"""An edit means what it says, whichever door it comes through: the zone stays, or moves as it is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from tests.doors.acts import Act
from tests.doors.doors import DONE, Agents, CommandLine, Door, FrontDoor, Pages
from tests.doors.world import WORLDS, Target, World, headers_of

from cloudsched import Task
from cloudsched.errors import InvalidInput

HOME, AWAY = "Europe/Paris", "Asia/Tokyo"


class When(NamedTuple):
    """The clock times at which a task runs next, and whether it goes on."""

    times: tuple[str, ...]
    repeats: bool


BEFORE = {
    "in words": ("every day at 7:15", When(("07:15",), repeats=True)),
    "once in words": ("in 3 days at 7:15", When(("07:15",), repeats=False)),
    "cron": ("15 7 * * *", When(("07:15",), repeats=True)),
    "a rule": ("FREQ=DAILY;BYHOUR=7;BYMINUTE=15", When(("07:15",), repeats=True)),
    "a local time": ("2027-01-10T07:15:00", When(("07:15",), repeats=False)),
    "two times": ("every day at 7:15 and 20:45", When(("07:15", "20:45"), repeats=True)),
}
AFTER: dict[str, tuple[str | None, When | None]] = {
    "nothing": (None, None),
    "in words": ("every day at 9:30", When(("09:30",), repeats=True)),
    "on another day": ("every Tuesday at 19:00", When(("19:00",), repeats=True)),
    "once in words": ("in 4 days at 10:20", When(("10:20",), repeats=False)),
    "cron": ("30 9 * * *", When(("09:30",), repeats=True)),
    "a rule": ("FREQ=DAILY;BYHOUR=9;BYMINUTE=30", When(("09:30",), repeats=True)),
    "a local time": ("2027-01-12T10:20:00", When(("10:20",), repeats=False)),
    "a change": ("an hour later", None),
}
"""What is written, and what it is from then on; None if it needs what was there before."""


def ask_python(world: World, task_id: str, change: dict[str, Any]) -> Task:
    return world.app.update(task_id, **change)


def ask_client(world: World, task_id: str, change: dict[str, Any]) -> None:
    with world.client("ada") as client:
        client.update(task_id, **change)


def through(door: Door) -> Callable[[World, str, dict[str, Any]], None]:
    def ask(world: World, task_id: str, change: dict[str, Any]) -> None:
        answer = door.attempt(world, "ada", Act("edit", "update_task", change), Target("own", "ada", task_id))
        assert answer.status == DONE, answer.text

    return ask


DOORS = {
    "Python": ask_python,
    "client": ask_client,
    **{each.name: through(each) for each in (FrontDoor(), CommandLine(), Agents(), Pages())},
}
NAMES_ZONE = "MCP tools"
"""The door whose every edit of a schedule names a zone."""


def read_plan(task: Task) -> When:
    """Return what the clock of the task's zone shows at its next instants."""
    zone, start = ZoneInfo(task.timezone), task.created_at
    plan = [at.astimezone(zone) for at in task.schedule.upcoming(start, 30)]
    return When(tuple(sorted({f"{at:%H:%M}" for at in plan})), repeats=len(plan) > 1)


def expect(before: str, after: str) -> When:
    was, becomes = BEFORE[before][1], AFTER[after][1]
    if becomes is not None:
        return becomes
    hours = 1 if after == "a change" else 0
    moved = [datetime.fromisoformat(f"2027-01-01T{each}") + timedelta(hours=hours) for each in was.times]
    return When(tuple(f"{each:%H:%M}" for each in moved), was.repeats)


@pytest.mark.parametrize("door", DOORS)
def test_a_zone_stays_unless_another_is_given(door: str) -> None:
    """Whatever was written before, and whatever is written now: words, cron, a rule, a local time, or nothing."""
    wrong = []
    for (before, after), zone in product(product(BEFORE, AFTER), (None, HOME, AWAY)):
        if AFTER[after][0] is None and (zone is None or door == NAMES_ZONE):
            continue  # nothing is asked for
        given = HOME if door == NAMES_ZONE and zone is None else zone
        change = {"schedule": AFTER[after][0], "timezone": given}
        with WORLDS.enter() as (world, _):
            made = world.app.create(owner="ada", title="It", handler="open", schedule=BEFORE[before][0], timezone=HOME)
            DOORS[door](world, made.id, {name: value for name, value in change.items() if value is not None})
            task = world.app.get(made.id)
        if (task.timezone, read_plan(task)) != (zone or HOME, expect(before, after)):
            wrong.append((before, after, zone, task.schedule.describe()))
    assert not wrong


def test_python_is_told_what_was_assumed() -> None:
    """The task that a call returns says it, as the API's answer does; one that is loaded has nothing to say."""
    with WORLDS.enter() as (world, _):
        app = world.app
        made = app.create(owner="ada", handler="open", schedule="tomorrow", timezone=HOME)
        assert "No time was given" in made.assumed[0]
        assert app.get(made.id).assumed == ()
        assert app.update(made.id, schedule="0 9 * * *").assumed == (f"The time zone stays {HOME}.",)
        assert app.update(made.id, schedule="0 9 * * *", timezone=AWAY).assumed == ()
        assert "It runs once, and no longer repeats." in app.update(made.id, schedule="now").assumed
        assert app.create(owner="ada", handler="open", schedule="0 9 * * *").assumed[-1:] == (
            "No time zone was given, so it is UTC.",
        )
        assert made == app.create(owner="ada", handler="open", schedule="tomorrow", timezone=HOME).model_copy(
            update={name: getattr(made, name) for name in type(made).model_fields}
        )


def test_a_task_that_follows_its_owner_goes_on_until_a_zone_is_given() -> None:
    """Words and notations leave it so; a zone ends it, and "owner" begins it, with its times."""
    with WORLDS.enter() as (world, _):
        app = world.app
        lives = {"name": "Ada", "timezone": HOME}
        assert world.ask("PUT", "/v1/people/ada", lives, headers_of("ada")).status_code in {200, 201}
        made = app.create(owner="ada", handler="open", schedule="every day at 7:15", timezone="owner")
        for text in ("every day at 9:30", "30 9 * * *", "an hour later", "FREQ=DAILY;BYHOUR=9;BYMINUTE=30"):
            assert app.update(made.id, schedule=text).schedule.follows_owner, text
        task = app.update(made.id, timezone=AWAY)
        assert (task.schedule.follows_owner, task.timezone, read_plan(task).times) == (False, AWAY, ("09:30",))
        task = app.update(made.id, timezone="owner")
        assert (task.schedule.follows_owner, read_plan(task).times) == (True, ("09:30",))


@pytest.mark.parametrize("text", ["next week", "tomorrow", "2 hours later", "also Saturdays", "except holidays"])
def test_a_phrase_that_is_no_whole_schedule_and_no_change_of_this_one_is_refused(text: str) -> None:
    """Nothing of what was said is left out in silence, and the task stays as it is."""
    with WORLDS.enter() as (world, _):
        made = world.app.create(owner="ada", handler="open", schedule="every 2 hours")
        with pytest.raises(InvalidInput):
            world.app.update(made.id, schedule=text)
        assert world.app.get(made.id) == made
