"""A user's tasks name only handlers that are for users, at the priorities and in the queues that the app allows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import RoleHarness

from cloudsched import App, Context, Settings
from cloudsched.testing import Simulation

SCRIPT = "return await tools.{}({{}})"


app = App(Settings())
"""Handlers for users and for servers alone, as tools, and with a queue."""
app.handler("open", access="users", tool=True)(lambda: "open")
app.handler("closed", tool=True)(lambda: "closed")
app.handler("slow", access="users", tool=True, user_max_priority="LOW")(lambda: "slow")
app.handler("render", access="users", pull="render", user_queues=["gpu"])(lambda: "rendered")


@app.handler("strict", access="users")
def strict(ctx: Context) -> list[Any]:
    return [ctx.wait_for("approved", by=("admin",)), ctx.wait_for("approved")]


def task(**fields: Any) -> dict[str, Any]:
    """Return the body of a creation for ada, due at once."""
    return {"title": "Mine", "owner": "ada", "schedule": {"at": "2027-01-01T09:01:00Z"}, **fields}


REFUSED = {
    "a handler for servers": ({"handler": "closed"}, "handler"),
    "no handler at all": ({"handler": "nothing"}, "handler"),
    "a worker's handler that the app does not know": ({"handler": "nothing", "pull": "render"}, "handler"),
    "a child": ({"children": [{"handler": "open"}, {"handler": "closed"}]}, "children.1.handler"),
    "a worker's child": ({"children": [{"handler": "nothing", "pull": "q"}]}, "children.0.handler"),
    "a tool": ({"script": {"source": "return 1", "tools": ["open", "closed"]}}, "script.tools.1"),
    "the operator's priority": ({"handler": "open", "priority": "CRITICAL"}, "priority"),
    "more than the handler's priority": ({"handler": "slow", "priority": "NORMAL"}, "priority"),
    "a child's priority": ({"children": [{"handler": "open", "priority": "CRITICAL"}]}, "children.0.priority"),
    "a child that inherits it": ({"children": [{"handler": "slow"}]}, "children.0.priority"),
    "a script's priority": ({"script": {"source": "return 1"}, "priority": "CRITICAL"}, "priority"),
    "another queue": ({"handler": "open", "pull": "gpu"}, "pull"),
    "a queue of others": ({"handler": "render", "pull": "other"}, "pull"),
    "a child's queue": ({"children": [{"handler": "open", "pull": "gpu"}]}, "children.0.pull"),
}
"""What a user may not ask for, and the field that the problem names."""


@pytest.mark.parametrize(("fields", "field"), REFUSED.values(), ids=REFUSED)
def test_a_user_is_refused_on_create_batch_and_edit(roles: RoleHarness, fields: dict[str, Any], field: str) -> None:
    """All forms of the request are refused alike; a server may send them, as long as the handler exists."""
    created = roles.create_task("ada", task(**fields))
    batch = roles.ask("ada", "POST", "/v1/tasks/batchCreate", {"tasks": [task(**fields)]}).json["results"][0]
    edited_task = roles.create_task("ada", task(id="mine", handler="open"))
    task_id = edited_task.json["id"]
    replaced = roles.create_task("ada", task(id="mine", **fields))
    cleared = {} if "handler" in fields else {"handler": None}
    patched = roles.ask("ada", "PATCH", f"/v1/tasks/{task_id}", {**cleared, **fields})
    problems = [batch["problem"], *(answer.json for answer in (created, replaced, patched))]
    assert [(each["status"], each["field"]) for each in problems] == [(400, field)] * len(problems)
    assert roles.fetch("ada", f"/v1/tasks/{task_id}")["handler"] == "open"
    if fields.get("handler") != "nothing" or "pull" in fields:
        assert roles.create_task("admin", task(**fields)).status_code == 201


def test_a_user_cannot_take_work_from_its_workers(roles: RoleHarness) -> None:
    """A user cannot move a workers' handler to the executor; null in an edit restores the default."""
    refused = roles.create_task("ada", task(handler="render", pull=None))
    assert (refused.status_code, refused.json["field"]) == (400, "pull")
    created = roles.create_task("ada", task(handler="render", pull="gpu")).json
    edited = roles.ask("ada", "PATCH", f"/v1/tasks/{created['id']}", {"pull": None})
    assert edited.json["pull"] == {"queue": "render"}


def test_a_user_cannot_tell_a_server_handler_from_none(roles: RoleHarness) -> None:
    """The problem is the same but for the name, and lists only what users may name."""
    answers = [roles.create_task("ada", task(handler=name)) for name in ("closed", "absent")]
    texts = [answer.text.replace(name, "NAME") for answer, name in zip(answers, ("closed", "absent"), strict=True)]
    assert texts[0] == texts[1]
    assert "open, render, slow, strict" in texts[0]


def run_script(roles: RoleHarness, task_id: str) -> tuple[str, Any]:
    """Let everything run; return the status and the content or the error of the task's execution."""
    roles.sim.run_until_idle()
    (execution,) = roles.sim.executions(task_id)
    return execution.status, execution.content if execution.error is None else execution.error.message


CLOSED: dict[str, Any] = {"script": {"source": SCRIPT.format("closed")}}


@pytest.mark.parametrize(
    ("creator", "first", "editor", "edit", "status"),
    [
        ("ada", CLOSED, None, {}, "FAILED"),
        ("admin", CLOSED, None, {}, "SUCCEEDED"),
        ("ada", CLOSED, "admin", {"title": "Corrected"}, "FAILED"),
        ("admin", {"script": {"source": SCRIPT.format("open")}}, "ada", CLOSED, "FAILED"),
    ],
    ids=["a user's", "a server's", "a user's, whose title an admin edits", "a server's, which a user replaces"],
)
def test_a_script_calls_what_its_last_author_may_name(
    roles: RoleHarness, creator: str, first: dict[str, Any], editor: str | None, edit: dict[str, Any], status: str
) -> None:
    """Without a list of tools, a user's script may call what users may name, and a server's script every tool."""
    task_id = roles.create_task(creator, task(**first)).json["id"]
    if editor is not None:
        assert roles.ask(editor, "PATCH", f"/v1/tasks/{task_id}", edit).status_code == 200
    assert run_script(roles, task_id)[0] == status


def test_a_users_script_calls_tools_at_priorities_for_users(roles: RoleHarness) -> None:
    """A tool whose users get LOW is called at LOW by a user's script, even if the script has a higher priority."""
    body = task(script={"source": SCRIPT.format("slow")}, priority="HIGH")
    created = {who: roles.create_task(who, body).json["id"] for who in ("ada", "admin")}
    for who, expected in (("ada", "LOW"), ("admin", "HIGH")):
        assert run_script(roles, created[who]) == ("SUCCEEDED", "slow")
        (call,) = roles.fetch(who, f"/v1/tasks/{created[who]}/tree")["children"]
        assert call["task"]["priority"] == expected


def test_an_open_api_allows_every_handler(sim: Simulation) -> None:
    """On the local stack, where callers need no credential, every caller is an admin."""
    answer = RoleHarness(sim, {}).ask(None, "POST", "/v1/tasks", task(handler="closed", priority="CRITICAL"))
    assert answer.status_code == 201


# ── Whose events count ───────────────────────────────────────────────────────────────────────────────────────────────


def test_an_owner_s_event_does_not_count_as_an_admin_s(roles: RoleHarness) -> None:
    """An early event of the owner's stays for a wait that takes it; the admin's later one is taken first."""
    task_id = roles.task("ada", handler="strict", payload={}, schedule={"at": "2027-01-01T09:01:00Z"})
    for who in ("ada", "admin"):
        path = f"/v1/tasks/{task_id}/events/approved"
        assert roles.ask(who, "POST", path, {"payload": who, "early": True}).status_code == 200
        roles.sim.run_until_idle()
    (execution,) = roles.sim.executions(task_id)
    assert execution.content == ["admin", "ada"]
