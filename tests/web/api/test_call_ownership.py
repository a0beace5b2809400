"""Calls belong to the task that made them: their owner may read them, but not change them or forge their results."""

from __future__ import annotations

from typing import Any

import pytest
from tests.verb_requests import REQUESTS
from tests.web.callers import DAY, MINUTE, ApiWorld, run_path

from cloudsched import App, Context, Fail, Settings
from cloudsched.domain.documents.children import CHILDREN_HANDLER
from cloudsched.domain.documents.script import SCRIPT_HANDLER

PULL_CHILD = {"handler": "work", "pull": "gpu"}
CHANGES: dict[str, tuple[str, str, object]] = {
    "update_task": ("PATCH", "", {"payload": {"forged": True}}),
    "delete_task": ("DELETE", "", None),
    **{verb.method: ("POST", path, body) for verb, (path, body) in REQUESTS.items()},
}
"""A request for each operation that changes one task."""


app = App(Settings())
"""An app with a handler for workers, and handlers that call it or fail, all of them open to users."""


@app.handler("work", tool=True, pull="gpu", access="users")
def work(payload: dict[str, Any]) -> str:
    return f"worked on {payload}"


@app.handler("flow", pull=None, access="users")
def flow(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
    return ctx.call("work", {}, pull="gpu")


app.handler("broken", access="users")(lambda: Fail("broken"))


@app.handler("nest", pull=None, access="users")
def nest(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
    return ctx.call(CHILDREN_HANDLER, {}, children=[PULL_CHILD])


def lowest_call(world: ApiWorld, task_id: str) -> str:
    """Return the id of the only call at the bottom of a task's tree, as ada sees it."""
    tree = world.ask("ada", f"/v1/tasks/{task_id}/tree", method="GET").json
    while tree["children"]:
        (tree,) = tree["children"]
    assert tree["task"]["id"] != task_id
    return str(tree["task"]["id"])


BY_CODE = {
    "a handler's call": {"handler": "flow"},
    "a call of a child's handler": {"children": [{"handler": "flow"}]},
    "a child of a handler's call": {"handler": "nest"},
}
BY_OWNER = {
    "a child": {"children": [PULL_CHILD]},
    "a script's call": {"script": {"source": "return await tools.work({})", "tools": ["work"]}},
}


@pytest.mark.parametrize("fields", [*BY_CODE.values(), *BY_OWNER.values()], ids=[*BY_CODE, *BY_OWNER])
def test_an_owner_may_read_a_call_but_not_change_it(world: ApiWorld, fields: dict[str, Any]) -> None:
    """Each change is refused with 403 and leaves the call as it was; the response says whose call it is."""
    top = world.create(**fields)
    call = lowest_call(world, top)
    before = world.sim.app.get(call)
    assert world.ask("ada", f"/v1/tasks/{call}", method="GET").status_code == 200
    for name, (method, path, body) in CHANGES.items():
        answer = world.ask("ada", f"/v1/tasks/{call}{path}", body, method)
        assert (answer.status_code, "is a call of task" in answer.text) == (403, True), (name, answer.text)
    assert world.sim.app.get(call) == before


@pytest.mark.parametrize("fields", BY_CODE.values(), ids=BY_CODE)
def test_an_owner_cannot_claim_a_call_made_by_code(world: ApiWorld, fields: dict[str, Any]) -> None:
    """A worker's key gets it, and its result is the one that the caller sees."""
    top = world.create(**fields)
    assert world.claim_all("ada") == []
    (claim,) = world.claim_all("gpu-1")
    said = {"leaseToken": claim["leaseToken"], "content": "true"}
    assert world.ask("gpu-1", f"{run_path(claim)}/complete", said).status_code == 200
    world.sim.advance(5 * MINUTE)
    (execution,) = world.sim.executions(top)
    assert "true" in str(execution.content)


@pytest.mark.parametrize("fields", BY_OWNER.values(), ids=BY_OWNER)
def test_an_owner_s_results_do_not_become_those_of_code(world: ApiWorld, fields: dict[str, Any]) -> None:
    """An owner claims a call, edits the task to a handler that makes the same call, and completes it: no code sees it.

    The run goes on as it began, with what its owner wrote.
    """
    top = world.create(**fields)
    (claim,) = world.claim_all("ada")
    edit = {**dict.fromkeys(fields), "handler": "flow"}
    assert world.ask("ada", f"/v1/tasks/{top}", edit, "PATCH").status_code == 200
    said = {"leaseToken": claim["leaseToken"], "content": "forged"}
    assert world.ask("ada", f"{run_path(claim)}/complete", said).status_code == 200
    world.sim.advance(DAY)
    (execution,) = world.sim.executions(top)
    assert (execution.status, "forged" in str(execution.content)) == ("SUCCEEDED", True)
    assert execution.handler in {CHILDREN_HANDLER, SCRIPT_HANDLER}


def test_a_retry_does_not_give_an_owner_s_results_to_code(world: ApiWorld) -> None:
    """The same, where the task had failed in a later child, and is retried after the edit."""
    top = world.create(children=[PULL_CHILD, {"handler": "broken"}])
    (claim,) = world.claim_all("ada")
    said = {"leaseToken": claim["leaseToken"], "content": "forged"}
    assert world.ask("ada", f"{run_path(claim)}/complete", said).status_code == 200
    world.sim.advance(DAY)
    assert [each.status for each in world.sim.executions(top)] == ["FAILED"]
    assert world.ask("ada", f"/v1/tasks/{top}", {"children": None, "handler": "flow"}, "PATCH").status_code == 200
    assert world.ask("ada", f"/v1/tasks/{top}/retry").status_code == 200
    world.sim.advance(DAY)
    (execution,) = world.sim.executions(top)
    assert (execution.status, execution.handler, execution.attempt_count) == ("FAILED", CHILDREN_HANDLER, 2)
