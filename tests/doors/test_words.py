"""Words that the grammar understands are understood at every door that takes words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cases import try_each
from tests.doors.acts import Act
from tests.doors.doors import DONE, Agents, CommandLine, Door, FrontDoor, ManyNew, Pages
from tests.doors.world import WORLDS, headers_of

from cloudsched.cli.main import cloudsched as command_line
from cloudsched.engine.ports.task_query import TaskQuery
from cloudsched.language import read

DOORS: tuple[Door, ...] = (FrontDoor(), ManyNew(), Agents(), CommandLine(), Pages())
WORDS: dict[str, dict[str, Any]] = {
    "2097-12-04 at 18:00": {"at": "2097-12-04T18:00:00Z"},
    "2097-12-04, 6pm": {"at": "2097-12-04T18:00:00Z"},
    "every 90000 seconds": {"rrule": "FREQ=SECONDLY;INTERVAL=90000"},
    "every 1000000 minutes": {"rrule": "FREQ=MINUTELY;INTERVAL=1000000"},
}


@pytest.mark.parametrize("door", DOORS, ids=lambda each: each.name)
@try_each("words", WORDS)
def test_words_are_understood_at_every_door(door: Door, words: str) -> None:
    """A task has the schedule that they mean."""
    body = {"title": "Words", "handler": "open", "schedule": words, "timezone": "UTC"}
    with WORLDS.enter("own", "none") as (world, target):
        answer = door.attempt(world, "ada", Act("create words", "create_task", body, state="none"), target)
        assert answer.status == DONE, answer.text
        (task,) = [each for each in world.app.tasks(TaskQuery(handler="open")).items if each.title == "Words"]
        assert WORDS[words].items() <= task.to_wire()["schedule"].items()
        preview = world.ask("POST", "/v1/schedules/preview", {"schedule": words}, headers_of("ada")).get_json()
        assert WORDS[words].items() <= preview["schedule"].items()


@try_each("words", WORDS)
def test_words_are_understood_without_a_service(words: str) -> None:
    """By `read`, and by ``cloudsched next``, which reads the clock of this machine."""
    reading = read(words, now=datetime(2027, 1, 1, tzinfo=UTC), timezone="UTC")
    assert reading.schedule is not None
    wire = reading.schedule.model_dump(mode="json", by_alias=True)
    assert WORDS[words].items() <= wire.items()
    shown = CliRunner().invoke(command_line, ["next", words, "--json"])
    assert shown.exit_code == 0, shown.output
    assert WORDS[words].items() <= json.loads(shown.output)["schedule"].items()
