"""Pausing everything and restoring it: exactly what would have started by itself, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import DAY, HOUR, MINUTE, RoleHarness

from cloudsched import App, Settings

PATH = "/v1/tasks/batchChange"
EVERYTHING = {"action": "PAUSE", "filter": {"status": "ACTIVE"}}
HOURLY: dict[str, Any] = {"handler": "work", "payload": {}, "schedule": "every hour"}


app = App(Settings())
"""Work for users."""


app.handler("work", access="users")(lambda: None)


def ask(roles: RoleHarness, who: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a change, let it end, and return the answer."""
    answer = roles.ask(who, "POST", PATH, body)
    assert answer.status_code in {200, 202}, answer.text
    roles.sim.advance(MINUTE)
    return dict(answer.json)


def restore(roles: RoleHarness, stop: dict[str, Any], who: str = "admin", **more: Any) -> dict[str, Any]:
    """Take a stop back."""
    return ask(roles, who, {"action": "RESUME", "filter": {"pauseId": stop["id"]}, **more})


def read(roles: RoleHarness, task_id: str) -> dict[str, Any]:
    """Return a task."""
    return dict(roles.fetch("admin", f"/v1/tasks/{task_id}"))


def test_a_question_names_what_it_would_change(roles: RoleHarness) -> None:
    """The first ten by title; what is paused already, or has ended, does not count, nor do the changes."""
    for number in range(12):
        roles.task("ada", **HOURLY, id=f"t{number}")
    roles.ask("admin", "POST", "/v1/tasks/t0/pause", {})
    roles.ask("admin", "POST", "/v1/tasks/t1/cancel", {})
    found = ask(roles, "ada", {"action": "PAUSE", "filter": {"handler": "work"}, "dryRun": True})
    assert found["count"] == {"value": 10, "atLeast": False}
    assert {each["id"] for each in found["first"]} == {f"t{number}" for number in range(2, 12)}


def test_a_question_tells_nothing_of_the_tasks_of_others(roles: RoleHarness) -> None:
    """Not by their ids, and not by the id of a change: neither their titles nor their number."""
    roles.task("bob", **{**HOURLY, "title": "Secret"}, id="bobs")
    stop = ask(roles, "bob", EVERYTHING)
    for chosen in ({"ids": ["bobs"]}, {"pauseId": stop["id"]}):
        found = ask(roles, "ada", {"action": "RESUME", "filter": chosen, "dryRun": True})
        assert not found["count"]["value"]
        assert found["first"] == []


@pytest.mark.parametrize("end", [{}, {"until": "2040-01-01T00:00:00Z"}])
def test_what_a_pause_has_paused_is_restored_and_nothing_else(roles: RoleHarness, end: dict[str, str]) -> None:
    """What was paused before is not resumed, nor what somebody has paused, ended or deleted since.

    So it is if the pause has an end, and if everything was paused and restored in between.
    """
    for number in range(9):
        roles.task("ada", **HOURLY, id=f"t{number}")
    for number in range(4):
        roles.ask("admin", "POST", f"/v1/tasks/t{number}/pause", {})
    stop = ask(roles, "admin", {**EVERYTHING, **end})
    restore(roles, ask(roles, "admin", EVERYTHING))
    roles.ask("admin", "POST", "/v1/tasks/t8/resume", {})
    roles.ask("admin", "DELETE", "/v1/tasks/t7")
    found = restore(roles, stop, dryRun=True)
    assert found["count"] == {"value": 3, "atLeast": False}
    roles.ask("admin", "POST", "/v1/tasks/t6/pause", {})
    roles.ask("admin", "POST", "/v1/tasks/t5/cancel", {})
    assert restore(roles, stop, dryRun=True)["count"]["value"] == 1
    assert read(roles, stop["id"])["payload"]["outcome"]["changed"] == {"value": 5, "atLeast": False}
    restore(roles, stop)
    assert restore(roles, stop, dryRun=True)["count"]["value"] == 0
    again = restore(roles, stop)
    (run,) = roles.fetch("admin", f"/v1/tasks/{again['id']}/executions")["executions"]
    assert run["content"]["changed"] == 0, "restoring twice does nothing the second time"
    statuses = [read(roles, f"t{number}")["status"] for number in range(7)]
    assert statuses == ["PAUSED"] * 4 + ["ACTIVE", "CANCELLED", "PAUSED"]


def test_a_pause_with_an_end_does_not_end_while_everything_is_paused(roles: RoleHarness) -> None:
    """Once restored, it goes on as it was: until its own end, or from now on if that has passed."""
    for name, until in (("short", "in 2 hours"), ("long", "in 3 days")):
        roles.task("ada", **HOURLY, id=name)
        answer = roles.ask("admin", "POST", f"/v1/tasks/{name}/pause", {"until": until})
        assert answer.status_code == 200, answer.text
    roles.task("ada", **HOURLY, id="forever")
    roles.ask("admin", "POST", "/v1/tasks/forever/pause", {})
    roles.task("ada", **HOURLY, id="many")
    ask(roles, "admin", {**EVERYTHING, "until": (roles.sim.now + HOUR).isoformat()})
    stop = ask(roles, "admin", EVERYTHING)
    roles.sim.advance(5 * HOUR)
    assert read(roles, "short")["status"] == read(roles, "many")["status"] == "PAUSED"
    restore(roles, stop)
    assert read(roles, "short")["status"] == read(roles, "many")["status"] == "ACTIVE"
    assert read(roles, "long")["status"] == read(roles, "forever")["status"] == "PAUSED"
    roles.sim.advance(3 * DAY)
    assert read(roles, "long")["status"] == "ACTIVE"
    assert read(roles, "forever")["status"] == "PAUSED"


def test_what_is_paused_already_keeps_since_when_by_whom_and_why(roles: RoleHarness) -> None:
    """However long before everything was paused: by a budget, by a pause with an end, or by hand.

    Those that go on by themselves have an entry for each pause and its end, and what is said of a day has no other
    pause. While everything is paused, raising the budget resumes nothing: the restoration does.
    """
    budget = "/v1/people/bob/budget"
    for owner, name in (("bob", "held"), ("ada", "ends"), ("ada", "hand"), ("ada", "runs")):
        roles.task(owner, **HOURLY, id=name)
    roles.ask("admin", "PUT", budget, {"maxTokensPerMonth": 0})
    roles.ask("ada", "POST", "/v1/tasks/ends/pause", {"until": "in 20 days"})
    roles.ask("ada", "POST", "/v1/tasks/hand/pause", {})
    roles.sim.advance(6 * DAY)

    def tell(name: str) -> tuple[Any, ...]:
        shown = read(roles, name)
        day = roles.fetch("admin", f"/v1/tasks/{name}/explain?at={roles.sim.now:%Y-%m-%dT%H:%M:%SZ}")["findings"]
        pauses = [each["at"] for each in day if each["reason"] == "PAUSED"]
        return (*(shown.get(each) for each in ("status", "statusChangedAt", "message", "pausedUntil")), pauses)

    names = ("held", "ends", "hand")
    before = [tell(name) for name in names]
    said = roles.fetch("admin", "/v1/tasks/held/explain")["findings"][0]["sentence"]
    for who in ("admin", "bob"):
        stop = ask(roles, who, EVERYTHING)
        assert [tell(name) for name in names] == before
        if who == "admin":
            assert read(roles, "runs")["status"] == "PAUSED"
        now = roles.fetch("admin", "/v1/tasks/held/explain")["findings"][0]["sentence"]
        assert now == said.replace("again:", "again and the tasks that were paused meanwhile are restored:")
        restore(roles, stop, who)
        assert [tell(name) for name in names] == before
        end, begin = roles.fetch("admin", "/v1/tasks/held/history")["entries"][:2]
        assert (end["action"], begin["action"]) == ("RESUMED", "PAUSED")
        assert end["by"]["role"] == begin["by"]["role"] == ("admin" if who == "admin" else "owner")
    roles.ask("admin", "PUT", budget, {"maxTokensPerMonth": 10**6})
    roles.sim.advance(2 * HOUR)
    assert read(roles, "held")["status"] == "ACTIVE"
    roles.ask("admin", "PUT", budget, {"maxTokensPerMonth": 0})
    assert read(roles, "held")["status"] == "PAUSED"
    assert "held" in {each["id"] for each in ask(roles, "admin", {**EVERYTHING, "dryRun": True})["first"]}
    stop = ask(roles, "admin", EVERYTHING)
    assert roles.fetch("admin", "/v1/tasks?trouble=BUDGET")["tasks"] == [], "a budget alone does not let it go on"
    roles.ask("admin", "PUT", budget, {"maxTokensPerMonth": 10**6})
    roles.sim.advance(3 * HOUR)
    held = read(roles, "held")
    assert (held["status"], held["pauseId"]) == ("PAUSED", stop["id"]), "whose pause it is from then on"
    restore(roles, stop)
    assert read(roles, "held")["status"] == "ACTIVE"


def test_who_paused_a_task_is_said_as_its_history_knows_it(roles: RoleHarness) -> None:
    """The owner is not blamed for what an admin's key did, alone or together with others."""
    roles.task("ada", **HOURLY, id="t")
    roles.task("ada", **HOURLY, id="own")
    roles.ask("ada", "POST", "/v1/tasks/own/pause", {})
    assert read(roles, "own")["message"] == "Paused by its owner."
    stop = ask(roles, "admin", EVERYTHING)
    (entry, *_) = roles.fetch("admin", "/v1/tasks/t/history")["entries"]
    who = entry["by"]["subject"]
    assert who
    assert read(roles, "t")["message"] == f"Paused by {who}."
    said = roles.fetch("ada", "/v1/tasks/t/explain")
    assert f"by {who}," in said["findings"][0]["sentence"]
    restore(roles, stop)
    assert read(roles, "t")["message"] == f"Resumed by {who}."


def test_a_resume_of_many_is_taken_back_exactly(roles: RoleHarness) -> None:
    """What it has resumed is paused again, and what ran before, or was changed by somebody since, is left alone."""
    for name in ("a", "b", "c", "d", "ran", "bobs"):
        roles.task("bob" if name == "bobs" else "ada", **HOURLY, id=name)
    for name in ("a", "b", "c", "d"):
        roles.ask("admin", "POST", f"/v1/tasks/{name}/pause", {})
    resumed = ask(roles, "admin", {"action": "RESUME", "filter": {"owner": "ada", "status": "PAUSED"}})
    assert [read(roles, name)["status"] for name in ("a", "b", "c", "d")] == ["ACTIVE"] * 4
    roles.ask("admin", "POST", "/v1/tasks/b/pause", {})
    roles.ask("admin", "POST", "/v1/tasks/b/resume", {})
    roles.ask("admin", "POST", "/v1/tasks/c/cancel", {})
    roles.ask("admin", "PATCH", "/v1/tasks/d", {"title": "Edited"})
    back = {"action": "PAUSE", "filter": {"pauseId": resumed["id"]}}
    found = ask(roles, "admin", {**back, "dryRun": True})
    assert (found["count"]["value"], sorted(each["id"] for each in found["first"])) == (2, ["a", "d"])
    assert ask(roles, "bob", {**back, "dryRun": True})["count"]["value"] == 0
    assert restore(roles, resumed, dryRun=True)["count"]["value"] == 0, "it holds nothing paused"
    again = ask(roles, "admin", back)
    statuses = {name: read(roles, name)["status"] for name in ("a", "b", "c", "d", "ran", "bobs")}
    assert statuses == {
        "a": "PAUSED",
        "b": "ACTIVE",
        "c": "CANCELLED",
        "d": "PAUSED",
        "ran": "ACTIVE",
        "bobs": "ACTIVE",
    }
    assert ask(roles, "admin", {**back, "dryRun": True})["count"]["value"] == 0
    restore(roles, again)
    assert [read(roles, name)["status"] for name in ("a", "d")] == ["ACTIVE", "ACTIVE"]
