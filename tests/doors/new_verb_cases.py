"""The doors, asked for the verb that `new_verb` adds. `test_new_verb` runs this in a process of its own."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.clients.typescript_types import generate
from tests.doors.acts import ACTS
from tests.doors.doors import DOORS, FRONT, Door
from tests.doors.world import URL, WORLDS, World, headers_of
from werkzeug.test import Client as Browser

from cloudsched.cli.main import cloudsched as command_line
from cloudsched.dashboard.application import Dashboard
from cloudsched.web.api.openapi import build_document

ACT = next(each for each in ACTS if each.operation == "nudge")
"""The tests have it from the table, too."""
ITS_DOORS = [each for each in (FRONT, *DOORS) if each.why_not(ACT) is None]


def test_it_has_a_door_beside_the_api() -> None:
    names = {each.name for each in ITS_DOORS}
    assert {"the API", "the command line", "the dashboard"} <= names, names


@pytest.mark.parametrize("door", ITS_DOORS, ids=lambda each: each.name)
def test_a_door_does_it(door: Door) -> None:
    """It calls the decision, whose change is stored."""
    with WORLDS.enter("active") as (world, target):
        answer = door.attempt(world, "ada", ACT, target)
        assert answer.status == 0, answer
        assert world.app.get(target.task_id).title == "nudged: next"


def read_task(world: World, task_id: str) -> dict[str, object]:
    read: dict[str, object] = json.loads(world.ask("GET", f"/v1/tasks/{task_id}", None, headers_of("ada")).get_data())
    return read


def test_tasks_say_that_it_is_allowed() -> None:
    with WORLDS.enter("active") as (world, target):
        assert "nudge" in str(read_task(world, target.task_id)["allowedVerbs"])


def test_a_page_has_its_button() -> None:
    with WORLDS.enter("active") as (world, target):
        browser = Browser(Dashboard(world.client("ada"), place="a test", hosts=None))
        assert "Nudge it" in browser.get(f"/tasks/{target.task_id}", base_url=URL).text


def test_openapi_describes_it() -> None:
    document = build_document()
    described = document["paths"]["/v1/tasks/{taskId}/nudge"]["post"]
    assert described["summary"] == "Nudge a task."
    assert "SkipRequest" in json.dumps(described["requestBody"])
    assert "nudge" in document["components"]["schemas"]["Verb"]["enum"]


def test_a_command_explains_it() -> None:
    assert "Nudge a task." in CliRunner().invoke(command_line, ["tasks", "nudge", "--help"]).output


def test_typescript_has_its_method() -> None:
    assert "  nudge(taskId: string, occurrence?: " in generate()
