"""A zone that means another one than people think is asked back, whichever door it comes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import try_each
from tests.doors.acts import Act
from tests.doors.doors import DONE, Agents, CommandLine, Door, FrontDoor, ManyNew, Pages
from tests.doors.world import WORLDS

from cloudsched import App, Schedule
from cloudsched.domain.documents.person import Person
from cloudsched.errors import CloudschedError, InvalidInput

DOORS: tuple[Door, ...] = (FrontDoor(), ManyNew(), Agents(), CommandLine(), Pages())
MEANT = {
    "GMT+1": ("Etc/GMT-1", "1 hour ahead of UTC"),
    "UTC+2": ("Etc/GMT-2", "2 hours ahead of UTC"),
    "gmt-5": ("Etc/GMT+5", "5 hours behind UTC"),
    "UTC+02:00": ("Etc/GMT-2",),
    "+02:00": ("Etc/GMT-2",),
    "UTC+5:30": ("Asia/Kolkata",),
    "GMT+25": ("Europe/Paris",),
    "EST": ("America/New_York", "Australia/Sydney"),
    "MST": ("America/Denver", "America/Phoenix"),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "CST": ("America/Chicago", "Asia/Shanghai", "America/Havana"),
    "BST": ("Europe/London", "Asia/Dhaka"),
    "AEST": ("Australia/Brisbane", "Australia/Sydney"),
    "PDT": ("America/Los_Angeles",),
}
"""What people write, and what the answer names."""


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("name", MEANT)
def test_a_zone_that_is_none_is_refused_with_the_zone_that_is_meant(door: Door, name: str) -> None:
    """In the field beside the words."""
    body: dict[str, Any] = {"title": "There", "handler": "open", "schedule": "every day at 9:00", "timezone": name}
    with WORLDS.enter("own", "none") as (world, target):
        answer = door.attempt(world, "ada", Act("create there", "create_task", body, state="none"), target)
    assert answer.status != DONE
    for part in MEANT[name]:
        assert part in answer.text.replace("&#39;", "'"), answer.text


IN_PYTHON: dict[str, Callable[[App, str], object]] = {
    "a schedule": lambda _, name: Schedule.parse("0 9 * * *", timezone=name),
    "an instant's zone": lambda _, name: Schedule(at="2027-01-01T00:00:00Z", timezone=name),
    "app.create": lambda app, name: app.create(owner="ada", handler="open", schedule="every day at 9", timezone=name),
    "app.update": lambda app, name: app.update("it", schedule="every day at 9", timezone=name),
    "a draft": lambda app, name: app.draft("stretch every day at 9:00", timezone=name, owner="ada"),
    "a person": lambda _, name: Person.model_validate({"id": "ada", "timezone": name}),
}


@pytest.mark.parametrize("how", IN_PYTHON)
@try_each("name", MEANT)
def test_a_zone_that_is_none_is_refused_in_python(how: str, name: str) -> None:
    """By everything that takes the name of a zone."""
    with WORLDS.enter("own", "none") as (world, _):
        world.app.create(id="it", owner="ada", handler="open", schedule="every day at 9")
        with pytest.raises((CloudschedError, ValueError)) as refused:
            IN_PYTHON[how](world.app, name)
    assert all(part in str(refused.value) for part in MEANT[name]), refused.value


def test_the_zone_of_a_stored_task_is_no_reason_to_refuse_its_edits() -> None:
    """A task that was stored before stays as it is, and can be edited; a new schedule needs another zone."""
    with WORLDS.enter("own", "none") as (world, _):
        app = world.app
        task = app.create(owner="ada", handler="open", schedule="every day at 9", timezone="America/Panama")
        stored = app.container.store.load(task.id)
        assert stored is not None
        old = task.schedule.copy_unchecked(timezone="EST")
        app.container.engine.committer.try_to_change(stored, world.sim.now, schedule=old, timezone="EST")
        assert app.update(task.id, title="Still").schedule == old
        assert app.pause(task.id).title == "Still"
        with pytest.raises(InvalidInput, match="America/New_York or Australia/Sydney"):
            app.update(task.id, schedule={"rrule": "FREQ=DAILY", "timezone": "EST"})
