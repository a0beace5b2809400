"""Who changed what in a task and when: every change by hand is noted in its commit, within bounds, without secrets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.web.callers import HOUR, ApiWorld

from cloudsched import App, Context, Fail, Schedule, Settings
from cloudsched.domain.documents.json_limits import stored_size
from cloudsched.domain.transitions.run_records import MAX_HISTORY_BYTES
from cloudsched.testing import START

HOURLY = Schedule.every(HOUR, start=START + HOUR)
PRIVATE = "hunter2-and-more"


app = App(Settings())
"""A handler open to users that fails if it is told to, and one for workers."""


@app.handler("work", access="users")
def work(payload: dict[str, Any]) -> Fail | None:
    return Fail("as told") if payload.get("fails") else None


@app.handler("remote", pull="gpu", access="users")
def remote(ctx: Context) -> None:
    pass


def create(world: ApiWorld, who: str = "ada", **fields: Any) -> str:
    usual = {
        "owner": "ada",
        "title": "T",
        "handler": "work",
        "schedule": HOURLY.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    return str(world.ask(who, "/v1/tasks", usual | fields).json["id"])


def read(world: ApiWorld, task_id: str, who: str = "root") -> list[dict[str, Any]]:
    """Return a task's history, the earliest first."""
    entries: list[dict[str, Any]] = world.ask(who, f"/v1/tasks/{task_id}/history", method="GET").json["entries"]
    return entries[::-1]


def test_edit_shows_small_values_and_names_private_ones(world: ApiWorld) -> None:
    """An edit's fields are listed with their values from and to; a payload is named, and nowhere copied."""
    task_id = create(world, payload={"password": PRIVATE})
    changes = {"title": "U", "payload": {"password": PRIVATE * 2}, "labels": ["team=a"], "description": PRIVATE}
    assert world.ask("root", f"/v1/tasks/{task_id}", changes, "PATCH").status_code == 200
    assert world.ask("root", f"/v1/tasks/{task_id}", {"title": "U"}, "PATCH").status_code == 200
    created, edited = read(world, task_id)
    assert created["action"] == "CREATED"
    assert {each.pop("field"): each for each in edited["fields"]} == {
        "title": {"before": '"T"', "after": '"U"'},
        "payload": {},
        "labels": {"after": '["team=a"]'},
        "description": {},
    }
    assert PRIVATE not in world.ask("root", f"/v1/tasks/{task_id}/history", method="GET").text


def test_scheduler_notes_that_it_paused_a_task(world: ApiWorld) -> None:
    """A task that pauses itself after failures says so in its history, with the reason and nobody's name."""
    task_id = create(world, payload={"fails": True}, retry={"maxRetries": 0}, pauseAfterFailures=2)
    world.sim.advance(timedelta(hours=2, minutes=30))
    created, *_, entry = read(world, task_id)
    assert created["at"] < entry["at"]
    assert (entry["action"], entry.get("by")) == ("PAUSED", None)
    assert "2 failures" in entry["reason"]


def test_history_notes_an_attempt_that_an_admin_ended(world: ApiWorld) -> None:
    """If not the worker that claimed it but an admin ends an attempt, the history names the admin."""
    world.offer("t1", handler="remote")
    claim = world.claim("gpu-1")
    run = f"/v1/tasks/t1/executions/{claim['executionId']}"
    assert world.report("ops", "complete", run, claim["leaseToken"]).status_code == 200
    entry = read(world, "t1")[-1]
    assert (entry["action"], entry["by"]["subject"]) == ("ENDED", "key:ops")
    assert entry["executionId"] == claim["executionId"]


def test_history_is_bounded_and_says_what_it_lost(world: ApiWorld) -> None:
    """However often and with whatever texts a task is edited, its history stays small; lost entries are counted."""
    task_id = create(world)
    for number in range(70):
        title = f"{number}-" + "\N{SNOWMAN}" * (150 if number % 2 else 480)
        assert world.ask("ada", f"/v1/tasks/{task_id}", {"title": title}, "PATCH").status_code == 200
    answer = world.ask("ada", f"/v1/tasks/{task_id}/history", method="GET").json
    assert 5 < len(answer["entries"]) <= 50
    assert len(answer["entries"]) + answer["omittedEntries"] == 71
    stored = world.sim.app.get(task_id)
    assert stored_size([each.model_dump(by_alias=True, exclude_none=True) for each in stored.history]) < (
        MAX_HISTORY_BYTES + 1000
    )
    for _ in range(60):
        world.ask("ada", f"/v1/tasks/{task_id}/pause")
        world.ask("ada", f"/v1/tasks/{task_id}/resume")
    assert len(read(world, task_id)) == 50


@pytest.mark.parametrize("title", ["{}", "{} " + "\N{SNOWMAN}" * 450], ids=["many", "large"])
@pytest.mark.parametrize(("side", "stranger"), [("root", "ada"), ("ada", "root")])
def test_nobody_wipes_out_what_another_side_did(world: ApiWorld, side: str, stranger: str, title: str) -> None:
    """Neither with many changes nor with large ones; the numbers of the entries tell where some are missing."""
    task_id = create(world)
    assert world.ask(side, f"/v1/tasks/{task_id}/pause").status_code == 200
    for number in range(60):
        edit = {"title": title.format(number)}
        assert world.ask(stranger, f"/v1/tasks/{task_id}", edit, "PATCH").status_code == 200
    entries = read(world, task_id)
    assert ("PAUSED", f"key:{side}") in [(each["action"], each["by"]["subject"]) for each in entries]
    numbers = [each["number"] for each in entries]
    assert numbers == sorted(set(numbers))
    task = world.sim.app.get(task_id)
    assert (numbers[-1], task.omitted_history) == (62, 62 - len(numbers))
    whole = [each.number for each in task.whole_history]
    assert whole == list(range(whole[0], 63))
    assert whole[0] - 1 not in numbers
