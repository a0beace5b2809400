"""Changes of all tasks that match a filter: counted first, with the caller's rights, and safe to repeat."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import DAY, MINUTE, SECOND, RoleHarness

from cloudsched import App, Context, Settings
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.engine.storage import matching_rows
from cloudsched.engine.tasks import batch_changes
from cloudsched.engine.tasks.scheduler import Scheduler

PATH = "/v1/tasks/batchChange"
YEARLY: dict[str, Any] = {"handler": "work", "payload": {}, "schedule": "every year"}


@pytest.fixture
def calls() -> list[str]:
    """The ids of the tasks for which ``fail`` was called."""
    return []


@pytest.fixture
def app(calls: list[str]) -> App:
    """Work for users, work for servers only, and work that always fails."""
    app = App(Settings())

    app.handler("work", access="users")(lambda: None)

    app.handler("maintain")(lambda: None)

    @app.handler("fail", access="users", retry=False)
    def fail(ctx: Context) -> None:
        calls.append(ctx.task.id)
        raise ValueError("broken")

    return app


def change(roles: RoleHarness, who: str, action: str, **more: Any) -> dict[str, Any]:
    """Start a change, let it end, and return the content of its execution."""
    answer = roles.ask(who, "POST", PATH, {"action": action, "filter": more})
    assert answer.status_code == 202, answer.text
    return read_result(roles, who, answer.json["id"])


def read_result(roles: RoleHarness, who: str, task_id: str) -> dict[str, Any]:
    """Let a change end, and return the content of its execution."""
    roles.sim.advance(MINUTE)
    (execution,) = roles.fetch(who, f"/v1/tasks/{task_id}/executions")["executions"]
    assert execution["status"] == "SUCCEEDED", execution
    return dict(execution["content"])


def count(roles: RoleHarness, who: str, action: str, **more: Any) -> int:
    """Return how many tasks a change would concern."""
    return int(roles.ask(who, "POST", PATH, {"action": action, "filter": more, "dryRun": True}).json["count"]["value"])


def read_outcome(roles: RoleHarness, task_id: str, *, is_exact: bool = True) -> dict[str, Any]:
    """Return what the task of a change says that it has come to, its numbers alone: all are exact, or none is."""
    outcome = roles.fetch("admin", f"/v1/tasks/{task_id}")["payload"]["outcome"]
    for name in batch_changes.COUNTS:
        assert outcome[name]["atLeast"] != is_exact
        outcome[name] = outcome[name]["value"]
    return dict(outcome)


def statuses(roles: RoleHarness) -> dict[str, str]:
    """Return the status of each task but the changes themselves."""
    found = roles.fetch("admin", "/v1/tasks?pageSize=500")["tasks"]
    return {task["id"]: task["status"] for task in found if task["handler"] != BATCH_CHANGE_HANDLER}


def read_count(answer: dict[str, Any]) -> tuple[int, bool]:
    """Return the number in an answer, and whether there may be more."""
    return answer["count"]["value"], answer["count"]["atLeast"]


# ── Abuse ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_no_index_has_is_counted_by_reading_some(roles: RoleHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count says if it stopped before the end; the change itself goes on to the end, page after page."""
    for number in range(9):
        handler = "work" if number % 4 == 0 else "fail"
        roles.task("ada", **YEARLY | {"handler": handler}, id=f"t{number}")
    chosen = {"handler": "work", "dueUntil": "2040-01-01T00:00:00Z"}

    def ask() -> dict[str, Any]:
        body = {"action": "pause", "filter": chosen, "dryRun": True}
        found: dict[str, Any] = roles.ask("ada", "POST", PATH, body).json
        return found

    assert read_count(ask()) == (3, False)
    monkeypatch.setattr(matching_rows, "MAX_LOOKED_THROUGH", 2)
    monkeypatch.setattr(batch_changes, "MAX_READ", 4)
    monkeypatch.setattr(batch_changes, "_PREVIEW_SIZE", 2)
    count, is_at_least = read_count(ask())
    assert count <= 3
    assert is_at_least
    assert change(roles, "ada", "pause", **chosen)["changed"] == 3


def test_a_change_has_the_rights_of_its_caller_and_no_others(roles: RoleHarness) -> None:
    """A user cannot start by it what only servers may start; what is refused is said, and the others are changed."""
    roles.task("ada", **YEARLY, id="mine")
    roles.task("ada", **{**YEARLY, "handler": "maintain"}, id="theirs")
    change(roles, "admin", "pause", owner="ada")
    assert statuses(roles) == {"mine": "PAUSED", "theirs": "PAUSED"}
    resume = roles.ask("ada", "POST", PATH, {"action": "resume", "filter": {"status": "PAUSED"}}).json
    result = read_result(roles, "ada", resume["id"])
    assert (result["changed"], result["refused"]) == (1, 1)
    assert "still delivered" not in resume["description"]
    (refusal,) = result["refusals"]
    assert refusal["taskId"] == "theirs"
    outcome = {"changed": 1, "skipped": 0, "refused": 1, "state": "DONE_IN_PART"}
    assert read_outcome(roles, resume["id"]) == outcome
    assert "only servers" in refusal["problem"]
    assert statuses(roles) == {"mine": "ACTIVE", "theirs": "PAUSED"}
    assert change(roles, "admin", "resume", owner="ada")["changed"] == 1


def test_even_a_forged_payload_reaches_only_its_owner_s_tasks(roles: RoleHarness) -> None:
    """Its rights come from the task's owner, and not from what it says."""
    roles.task("bob", **YEARLY, id="of-bob")
    payload = {"action": "delete", "filter": {"owner": "bob"}}
    forged = roles.task("ada", handler=BATCH_CHANGE_HANDLER, payload=payload)
    roles.sim.advance(6 * MINUTE)
    (execution,) = roles.fetch("admin", f"/v1/tasks/{forged}/executions")["executions"]
    assert execution["content"]["changed"] == 0
    assert "of-bob" in statuses(roles)


OF_ADA = {"action": "pause", "filter": {"owner": "ada"}}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"action": "pause", "filter": {}}, "would match every task"),
        ({"action": "pause"}, "filter"),
        (
            {"action": "pause", "filter": {"category": "REPORT"}},
            "dueFrom, dueUntil, handler, ids, label, owner, pauseId, status",
        ),
        ({"action": "pause", "filter": {"label": "a"}}, "filter.label"),
        ({"action": "pause", "filter": {"ids": ["x"] * 501}}, "filter.ids"),
        ({"action": "delete", "filter": {"ids": ["../x"]}}, "filter.ids"),
        ({"action": "pause", "filter": {"handler": "work"}, "dryRun": "yes"}, "dryRun"),
        ({**OF_ADA, "until": "2000-01-01T00:00:00Z"}, "is in the past"),
        ({**OF_ADA, "until": "2027-02-01T09:00:00"}, "until"),
        ({**OF_ADA, "until": "Monday"}, "until"),
        ({**OF_ADA, "until": 7}, "until"),
        ({**OF_ADA, "until": "2027-02-01T09:00:00Z", "action": "resume"}, "does not go with RESUME"),
        ({**OF_ADA, "until": "2027-02-01T09:00:00Z", "action": "delete"}, "does not go with DELETE"),
    ],
    ids=str,
)
def test_a_filter_or_an_end_that_cannot_be_is_refused(roles: RoleHarness, body: dict[str, Any], says: str) -> None:
    """When it is counted and when it is started, with the reason; nothing is created, and nothing paused."""
    roles.task("ada", **YEARLY)
    for more in ({}, {"dryRun": True}):
        answer = roles.ask("ada", "POST", PATH, {**body, **more, **({} if "dryRun" not in body else body)})
        assert answer.status_code == 400, answer.text
        assert says in answer.text
    assert [each["status"] for each in roles.fetch("admin", "/v1/tasks")["tasks"]] == ["ACTIVE"]


def test_a_user_has_few_of_them_at_a_time(roles: RoleHarness) -> None:
    """The sixth open one is 429; a repetition of one that is open is not, nor is the sixth after they have ended.

    The same key is the same change, as often as one likes, and 422 for another; another owner's key is another one.
    """
    body = {"action": "pause", "filter": {"handler": "work"}}
    keys = [{"Idempotency-Key": str(number)} for number in range(6)]
    asked = [roles.ask("ada", "POST", PATH, body, **key) for key in keys]
    assert [each.status_code for each in asked] == [202] * 5 + [429]
    first = asked[0].json["id"]
    assert roles.ask("ada", "POST", PATH, body, **keys[0]).json["id"] == first
    assert roles.ask("ada", "POST", PATH, {**body, "action": "delete"}, **keys[0]).status_code == 422
    assert roles.ask("bob", "POST", PATH, body, **keys[0]).json["id"] != first
    roles.task("ada", **YEARLY, id="later")
    roles.sim.advance(MINUTE)
    assert roles.ask("ada", "POST", PATH, body, **keys[0]).json["status"] == "COMPLETED"
    assert roles.ask("ada", "POST", PATH, body, **keys[5]).status_code == 202


# ── What it does ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_counted_is_what_is_changed(roles: RoleHarness) -> None:
    """Each verb concerns the tasks that it changes, by every filter; the count is that of the list.

    A change does not change changes: one that deletes all tasks of its owner ends, and says what it did.
    """
    for number in range(7):
        more = {"labels": ["team=a"]} if number < 3 else {}
        roles.task("ada" if number % 2 else "bob", **YEARLY, **more, id=f"t{number}")
    assert count(roles, "admin", "pause", label="team=a") == 3
    assert count(roles, "admin", "resume", label="team=a") == 0
    assert change(roles, "admin", "pause", label="team=a")["changed"] == 3
    assert count(roles, "admin", "pause", label="team=a") == 0
    assert count(roles, "admin", "cancel", owner="bob") == 4
    assert change(roles, "admin", "resume", owner="ada")["changed"] == 1
    assert change(roles, "admin", "cancel", owner="bob")["changed"] == 4
    assert change(roles, "admin", "delete", status="CANCELLED")["changed"] == 4
    assert set(statuses(roles)) == {"t1", "t3", "t5"}
    soon = (roles.sim.now + 400 * DAY).isoformat()
    assert count(roles, "admin", "pause", dueUntil=soon) == 3
    assert change(roles, "admin", "pause", dueUntil=soon, handler="work")["changed"] == 3
    assert change(roles, "admin", "delete", ids=["t1", "t5"])["changed"] == 2
    assert statuses(roles) == {"t3": "PAUSED"}
    assert change(roles, "ada", "delete", owner="ada")["changed"] == 1
    assert change(roles, "ada", "pause", owner="ada")["changed"] == 0
    assert set(statuses(roles)) == set()


def test_what_failed_is_retried_once(roles: RoleHarness, calls: list[str]) -> None:
    """Only executions that failed before the request; one that fails again is not retried again by the same change."""
    for name in ("a", "b"):
        roles.task("ada", payload={}, handler="fail", id=name)
    roles.task("ada", payload={}, handler="work", id="good")
    roles.sim.advance(6 * MINUTE)
    assert sorted(calls) == ["a", "b"]
    assert count(roles, "ada", "retryFailed", owner="ada") == 2
    started = roles.ask("ada", "POST", PATH, {"action": "retryFailed", "filter": {"owner": "ada"}}).json
    assert read_result(roles, "ada", started["id"])["changed"] == 2
    assert sorted(calls) == ["a", "a", "b", "b"]
    roles.ask("ada", "POST", f"/v1/tasks/{started['id']}/trigger")
    roles.sim.advance(MINUTE)
    assert len(calls) == 4
    assert change(roles, "ada", "retryFailed", status="FAILED")["changed"] == 2


def test_a_task_that_came_later_is_left_as_it_is(roles: RoleHarness) -> None:
    """So is one that has changed meanwhile and matches no longer: each is judged when its turn comes."""
    roles.task("ada", **YEARLY, labels=["team=a"], id="moved")
    roles.task("ada", **YEARLY, labels=["team=a"], id="kept")
    asked = {"action": "delete", "filter": {"ids": ["moved", "kept", "new"], "label": "team=a"}}
    started = roles.ask("admin", "POST", PATH, asked).json
    roles.ask("admin", "PATCH", "/v1/tasks/moved", {"labels": ["team=b"]})
    roles.sim.clock.advance(SECOND)
    roles.task("ada", **YEARLY, labels=["team=a"], id="new")
    assert read_result(roles, "admin", started["id"]) == {"changed": 1, "skipped": 2, "refused": 0, "refusals": []}
    assert set(statuses(roles)) == {"moved", "new"}


def test_a_change_that_was_killed_half_way_goes_on(roles: RoleHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task is changed, none twice; only what the dead process did last is not counted.

    What somebody has taken back since, of the page that is done again, stays as it is.
    """
    monkeypatch.setattr(batch_changes, "PAGE_SIZE", 4)
    for number in range(10):
        roles.task("ada", **YEARLY, id=f"t{number}")
    original, paused = Scheduler.pause, list[str]()

    class Killed(ControlFlow):
        """The process is gone."""

    def pause(self: Scheduler, task_id: str, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - a Task
        paused.append(task_id)
        if len(paused) == 7:
            raise Killed
        return original(self, task_id, *given, **named)

    monkeypatch.setattr(Scheduler, "pause", pause)
    started = roles.ask("ada", "POST", PATH, {"action": "pause", "filter": {"handler": "work"}}).json
    assert "still delivered" in started["description"]
    with pytest.raises(Killed):
        roles.sim.advance(MINUTE)
    path = f"/v1/tasks/{started['id']}/executions"
    (execution,) = roles.fetch("ada", path)["executions"]
    assert [note["text"] for note in execution["progress"]] == ["4 changed, 0 skipped, 0 refused"]
    assert read_outcome(roles, started["id"]) == {"changed": 4, "skipped": 0, "refused": 0}
    assert roles.ask("ada", "POST", f"/v1/tasks/{paused[4]}/resume").status_code == 200
    roles.sim.advance(15 * MINUTE)
    (execution,) = roles.fetch("ada", path)["executions"]
    assert execution["content"] == {"changed": 8, "skipped": 1, "refused": 0, "refusals": []}
    assert read_outcome(roles, started["id"], is_exact=False) == {
        "changed": 8,
        "skipped": 1,
        "refused": 0,
        "state": "DONE",
    }
    found = roles.fetch("ada", "/v1/tasks?handler=work")["tasks"]
    told = {each["id"]: (each["status"], each["revision"]) for each in found}
    assert told.pop(paused[4])[0] == "ACTIVE"
    assert [*told.values()] == [("PAUSED", 2)] * 9


def test_a_user_takes_back_no_stop_of_an_admins(roles: RoleHarness) -> None:
    """The restoration has the rights of who asks for it, task by task."""
    roles.task("ada", **YEARLY, id="t")
    stop = roles.ask("admin", "POST", PATH, {"action": "pause", "filter": {"status": "ACTIVE"}}).json
    roles.sim.advance(MINUTE)
    refused = roles.ask("ada", "POST", "/v1/tasks/t/pause", {"until": "tomorrow"})
    assert refused.status_code == 409, "nor does a pause with an end shorten it"
    roles.ask("ada", "POST", PATH, {"action": "resume", "filter": {"pauseId": stop["id"]}})
    roles.sim.advance(MINUTE)
    status = roles.fetch("ada", "/v1/tasks/t")["status"]
    plain = roles.ask("ada", "POST", "/v1/tasks/t/resume", {})
    assert (status == "ACTIVE") == (plain.status_code == 200), "as if she had asked for it alone"
