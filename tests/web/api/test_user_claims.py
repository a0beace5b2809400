"""A user's key works only on what that user could have asked for; what servers rely on is for workers and admins."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import VERBS, ApiWorld, run_path

from cloudsched import App, Execution, Settings, Task
from cloudsched.features.pull.presence import WorkerPresence

FINAL = {"error": {"type": "E", "message": "forged"}, "isFinal": True}


@pytest.fixture
def told() -> list[str]:
    """The executions of which the server's hook was told."""
    return []


@pytest.fixture
def app(told: list[str]) -> App:
    """Handlers for workers: one for servers, with a hook, and one that users may name."""
    app = App(Settings())

    def hook(_: Task, execution: Execution) -> None:
        told.append(execution.id)

    app.handler("check_credit", on_failure=hook)(lambda: "poor")

    @app.handler("paint", access="users", pull="gpu", user_queues=["press"])
    def paint(payload: dict[str, Any]) -> str:
        return f"{payload}"

    return app


SERVERS: dict[str, dict[str, Any]] = {
    "a handler for servers": {"handler": "check_credit", "pull": "gpu"},
    "a handler that users may name": {},
    "one that only workers know": {"handler": "anything", "pull": "gpu"},
    "a child of a server's task": {"handler": None, "children": [{"handler": "paint", "pull": "gpu"}]},
    "a lock of an operator": {"lockKey": "press", "handler": "paint"},
    "a queue that users may not name": {"pull": "bank"},
}


@pytest.mark.parametrize("fields", SERVERS.values(), ids=SERVERS)
def test_a_user_is_not_offered_what_a_server_asked_for(world: ApiWorld, fields: dict[str, Any]) -> None:
    """Although they own the task; a worker gets it."""
    world.create("root", **{"handler": "paint", **fields})
    queue = fields.get("pull", "gpu")
    assert world.ask("ada", f"/v1/queues/{queue}/claim", {"limit": 9}).json.get("claims", []) == []
    assert len(world.claim_all("gpu-1", queue)) == 1


def test_a_user_listens_only_where_something_of_theirs_may_wait(world: ApiWorld) -> None:
    """Each queue that they named was a note of a worker, or 16. The answer says which queues there are for them."""
    for queue in ("bank", "nowhere"):
        refused = world.ask("ada", f"/v1/queues/{queue}/claim", {"worker": "box"})
        assert (refused.status_code, "gpu" in refused.json["detail"]) == (403, True)
        assert world.ask("gpu-1", f"/v1/queues/{queue}/claim", {"limit": 1}).status_code == 200
    notes = world.sim.app.container.store.records.list_all(WorkerPresence, limit=9)
    assert {each.claimed_by for each in notes} == {"key:gpu-1"}


OWN: dict[str, dict[str, Any]] = {
    "a task": {},
    "in a queue that users may name": {"pull": "press"},
    "a child": {"handler": None, "children": [{"handler": "paint", "pull": "gpu"}]},
    "with a lock of their own": {"lockKey": "press"},
}


@pytest.mark.parametrize("fields", OWN.values(), ids=OWN)
@pytest.mark.parametrize("verb", VERBS)
def test_a_user_works_on_what_they_asked_for(world: ApiWorld, fields: dict[str, Any], verb: str) -> None:
    """They claim it and may report on it in each way."""
    world.create("ada", **{"handler": "paint", **fields})
    (claim,) = world.claim_all("ada", fields.get("pull", "gpu"))
    assert world.report("ada", verb, run_path(claim), claim["leaseToken"]).status_code == 200


def test_a_server_s_edit_takes_a_user_s_task_out_of_their_reach(world: ApiWorld) -> None:
    """What runs from then on is the server's: a user's key is not offered it."""
    task = world.create("ada", handler="paint")
    edit = {"handler": "check_credit", "pull": "gpu"}
    assert world.ask("root", f"/v1/tasks/{task}", edit, "PATCH").status_code == 200
    assert world.claim_all("ada") == []
    assert len(world.claim_all("gpu-1")) == 1


def test_a_claim_from_before_a_server_s_edit_goes_on_with_what_it_began_with(world: ApiWorld, told: list[str]) -> None:
    """Its report is the user's own work's: no hook of the server's handler is told, and the record names theirs."""
    task = world.create("ada", handler="paint", retry={"maxRetries": 0})
    (claim,) = world.claim_all("ada")
    edit = {"handler": "check_credit", "pull": "bank"}
    assert world.ask("root", f"/v1/tasks/{task}", edit, "PATCH").status_code == 200
    said = {"leaseToken": claim["leaseToken"]}
    assert world.ask("ada", f"{run_path(claim)}/heartbeat", said).status_code == 200
    assert world.ask("ada", f"{run_path(claim)}/fail", {**said, **FINAL}).status_code == 200
    (execution,) = world.sim.executions(task)
    assert (execution.status, execution.handler, told) == ("FAILED", "paint", [])


def test_a_run_that_a_server_began_stays_the_servers_after_a_user_s_edit(world: ApiWorld) -> None:
    """A user may edit the task; what a worker has begun of it they do not get."""
    task = world.create("root", handler="paint")
    (claim,) = world.claim_all("gpu-1")
    progress = {"leaseToken": claim["leaseToken"], "progress": [{"text": "half"}]}
    assert world.ask("gpu-1", f"{run_path(claim)}/release", progress).status_code == 200
    assert world.ask("ada", f"/v1/tasks/{task}", {"payload": {"n": 1}}, "PATCH").status_code == 200
    assert world.claim_all("ada") == []
    (again,) = world.claim_all("gpu-1")
    assert again["task"]["payload"] == {}


@pytest.mark.parametrize("verb", VERBS)
def test_a_user_s_claim_of_a_server_s_run_counts_no_more(world: ApiWorld, verb: str, told: list[str]) -> None:
    """One from before a deployment that closed the handler to users: nothing renews, ends or releases it."""
    world.create("ada", handler="paint", retry={"maxRetries": 0})
    (claim,) = world.claim_all("ada")
    handlers = world.sim.app.container.registry.registrations.handlers
    handlers["paint"] = handlers["check_credit"]
    assert world.report("ada", verb, run_path(claim), claim["leaseToken"]).status_code == 409
    assert told == []


@pytest.mark.parametrize("handler", ["check_credit", "paint"])
def test_servers_work_does_not_keep_a_user_from_their_own(
    world: ApiWorld, handler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much of it waits ahead, it is not among the offers that a user's claim examines, and costs no read."""
    monkeypatch.setattr("cloudsched.features.pull.work_queue.MAX_SCANNED", 2)
    for _ in range(4):
        world.create("root", handler=handler, pull="gpu")
    mine = world.create("ada", handler="paint")
    before = world.sim.counts.reads
    (claim,) = world.claim_all("ada")
    assert claim["task"]["id"] == mine
    assert world.sim.counts.reads - before <= 10, "five offers, a task, a lock's place, and the worker's note"
