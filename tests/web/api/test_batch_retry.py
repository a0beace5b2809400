"""Failures over HTTP: summed up by error and place, and retried together, with the caller's rights."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import MINUTE, RoleHarness

from cloudsched import App, Context, Settings
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.engine.tasks import batch_changes

RETRY = "/v1/executions/batchRetry"
IS_MENDED: list[bool] = []


@pytest.fixture
def app() -> App:
    """Work that fails in two ways until it is mended, and what calls it."""
    app = App(Settings())
    IS_MENDED.clear()

    @app.handler("load", access="users", retry=0)
    def load(ctx: Context) -> str:
        if not IS_MENDED:
            raise ConnectionError(f"the host of {ctx.task.title} is gone")
        return "done"

    @app.handler("parse", access="users", retry=0)
    def parse() -> None:
        if not IS_MENDED:
            raise ValueError("no JSON")

    @app.handler("calls", access="users", retry=0)
    def calls(ctx: Context) -> None:
        ctx.call("parse", {}).result()

    return app


def run(roles: RoleHarness, owner: str, handler: str, count: int = 1) -> None:
    """Let so many tasks run once."""
    for number in range(count):
        body = {"owner": owner, "title": f"{handler} {number}", "handler": handler}
        assert roles.create_task("admin", body).status_code == 201
    roles.sim.advance(MINUTE)


def find(roles: RoleHarness, who: str, path: str) -> Any:  # noqa: ANN401 - JSON
    answer = roles.ask(who, "GET", path)
    assert answer.status_code == 200, answer.text
    return answer.json


def ask(roles: RoleHarness, who: str, *, dry: bool = False, **chosen: Any) -> Any:  # noqa: ANN401 - JSON
    answer = roles.ask(who, "POST", RETRY, {"filter": chosen, "dryRun": dry})
    assert answer.status_code == (200 if dry else 202), answer.text
    return answer.json


def retry(roles: RoleHarness, who: str, **chosen: Any) -> dict[str, Any]:
    """Retry, let that end, and return the counts."""
    task = ask(roles, who, **chosen)
    roles.sim.advance(MINUTE)
    (execution,) = find(roles, who, f"/v1/tasks/{task['id']}/executions")["executions"]
    return dict(execution["content"])


def test_what_no_index_has_is_looked_for_page_by_page(roles: RoleHarness) -> None:
    """By the error, its type, and how long it took; each execution is on exactly one page."""
    run(roles, "ada", "load", 7)
    run(roles, "ada", "parse", 7)
    found: list[str] = []
    path = "/v1/executions?errorType=ValueError&pageSize=2"
    page = find(roles, "admin", path)
    while True:
        found += [each["id"] + each["taskId"] for each in page["executions"]]
        assert {each["error"]["type"] for each in page["executions"]} <= {"ValueError"}
        if "nextPageToken" not in page:
            break
        page = find(roles, "admin", f"{path}&pageToken={page['nextPageToken']}")
    assert len(found) == len(set(found)) == 7
    assert find(roles, "admin", "/v1/executions?minDuration=PT1H")["executions"] == []
    assert len(find(roles, "admin", "/v1/executions?error=HOST%20of")["executions"]) == 7


def test_calls_are_left_out_if_that_is_asked(roles: RoleHarness) -> None:
    """A call names the execution that made it; who made it is in both lists."""
    run(roles, "ada", "calls")
    roles.sim.advance(60 * MINUTE)
    every = find(roles, "admin", "/v1/executions?status=FAILED")["executions"]
    caller, call = sorted(every, key=lambda each: "calledBy" in each)
    assert call["calledBy"] == {"taskId": caller["taskId"], "executionId": caller["id"]}
    alone = find(roles, "admin", "/v1/executions?status=FAILED&calls=false")["executions"]
    assert [each["id"] for each in alone] == [caller["id"]]
    assert ask(roles, "admin", dry=True, status="FAILED")["count"]["value"] == 1
    change = {"action": "RETRY_FAILED", "filter": {"owner": "ada"}}
    asked = roles.ask("ada", "POST", "/v1/tasks/batchChange", {**change, "dryRun": True}).json
    assert asked["count"]["value"] == 1, "a user may change no calls"
    done = roles.ask("ada", "POST", "/v1/tasks/batchChange", change).json
    roles.sim.advance(MINUTE)
    done = find(roles, "ada", f"/v1/tasks/{done['id']}")
    assert done["payload"]["outcome"]["refused"]["value"] == 0


def test_a_retry_names_the_first_ten_and_the_count_then_retries_all(roles: RoleHarness) -> None:
    """Those that match alone; a second time there is nothing left to retry. With the same key the same task answers."""
    run(roles, "ada", "load", 23)
    run(roles, "ada", "parse")
    IS_MENDED.append(True)
    asked = ask(roles, "admin", dry=True, errorType="ConnectionError")
    assert asked["count"] == {"value": 23, "atLeast": False}
    assert len(asked["first"]) == 10
    assert asked["first"][0]["error"].startswith("ConnectionError")
    assert retry(roles, "admin", errorType="ConnectionError") == {
        "changed": 23, "skipped": 0, "refused": 0, "refusals": [],
    }  # fmt: skip
    failed = find(roles, "admin", "/v1/executions?outcome=FAILED")["executions"]
    assert {each["error"]["type"] for each in failed} == {"ValueError"}
    body = {"filter": {"handler": "parse"}}
    tasks = [roles.ask("ada", "POST", RETRY, body, **{"Idempotency-Key": "k"}).json["id"] for _ in range(2)]
    assert tasks[0] == tasks[1]
    assert ask(roles, "admin", dry=True, errorType="ConnectionError")["count"]["value"] == 0


def test_a_user_retries_nobody_else_s_executions(roles: RoleHarness) -> None:
    """Neither by a filter nor by their names; nor is it said whether there are any.

    A retry needs a filter that a list has: none would mean every failure; ids stand alone.
    """
    run(roles, "ada", "load")
    run(roles, "bob", "load")
    theirs = [
        {"taskId": each["taskId"], "executionId": each["id"]}
        for each in find(roles, "admin", "/v1/executions?owner=bob")["executions"]
    ]
    assert ask(roles, "ada", dry=True, ids=theirs)["count"]["value"] == 0
    assert retry(roles, "ada", ids=theirs)["changed"] == 0
    assert roles.ask("ada", "POST", RETRY, {"filter": {"owner": "bob"}}).status_code == 403
    assert roles.ask("viewer", "POST", RETRY, {"filter": {"owner": "bob"}}).status_code == 403
    assert retry(roles, "ada", handler="load")["changed"] == 1
    assert ask(roles, "admin", dry=True, ids=theirs)["count"]["value"] == 1
    assert retry(roles, "admin", ids=theirs)["changed"] == 1
    for chosen in ({}, {"ids": theirs, "handler": "load"}, {"status": "RUNNING"}):
        assert roles.ask("admin", "POST", RETRY, {"filter": chosen}).status_code == 400, chosen


@pytest.mark.parametrize("verb", ["cancel", "pause"])
def test_what_cannot_be_retried_is_neither_counted_nor_tried(roles: RoleHarness, verb: str) -> None:
    """As a run of a task that somebody has paused or cancelled; the others are retried."""
    run(roles, "ada", "load", 2)
    first, _ = find(roles, "ada", "/v1/tasks")["tasks"]
    schedule = {"schedule": {"rrule": "FREQ=YEARLY", "dtstart": "2030-06-01T00:00:00", "timezone": "UTC"}}
    assert roles.ask("ada", "PATCH", f"/v1/tasks/{first['id']}", schedule).status_code == 200
    assert roles.ask("ada", "POST", f"/v1/tasks/{first['id']}/{verb}").status_code == 200
    records = find(roles, "ada", "/v1/executions")["executions"]
    ids = [{"taskId": each["taskId"], "executionId": each["id"]} for each in records]
    for chosen in ({"handler": "load"}, {"owner": "ada"}, {"error": "gone"}, {"ids": ids}):
        asked = ask(roles, "ada", dry=True, **chosen)
        assert (asked["count"]["value"], len(asked["first"])) == (1, 1), chosen
        assert asked["first"][0]["taskId"] != first["id"]
    counts = retry(roles, "ada", handler="load")
    assert (counts["changed"], counts["skipped"], counts["refused"]) == (1, 1, 0)


def test_a_preview_that_stopped_says_that_there_may_be_more(
    roles: RoleHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retry itself goes on to the end, and its task says what it has come to."""
    monkeypatch.setattr(batch_changes, "MAX_READ", 2)
    run(roles, "ada", "load", 4)
    run(roles, "bob", "load", 3)
    for who, chosen, count, is_cut in (
        ("admin", {"from": "2026-01-01T00:00:00Z"}, 2, True),
        ("admin", {"status": "TIMED_OUT"}, 0, False),
        ("admin", {"errorType": "ConnectionError"}, 2, True),
    ):
        found = ask(roles, who, dry=True, **chosen)
        assert found["count"] == {"value": count, "atLeast": is_cut}, chosen
    assert retry(roles, "admin", errorType="ConnectionError")["changed"] == 7
    (action,) = roles.fetch("admin", f"/v1/tasks?handler={BATCH_CHANGE_HANDLER}")["tasks"]
    assert action["payload"]["outcome"]["changed"] == {"value": 7, "atLeast": False}
    assert action["payload"]["outcome"]["state"] == "DONE"
