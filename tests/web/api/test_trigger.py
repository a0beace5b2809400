"""Triggers through the API: with another payload, safe to repeat, only checked, and by whom."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import MINUTE, ApiWorld

from cloudsched import App, Context, Schedule, Settings
from cloudsched.testing import START

YEARLY = Schedule(rrule="FREQ=YEARLY", dtstart="2030-01-01T00:30:00")
SEEN: list[Any] = []


@pytest.fixture
def app() -> App:
    app = App(Settings())
    SEEN.clear()

    @app.handler("work", access="users")
    def work(ctx: Context, payload: dict[str, int]) -> str:
        SEEN.append(payload)
        return ctx.execution_id

    @app.handler("private")
    def private(payload: dict[str, int]) -> None:
        SEEN.append(payload)

    @app.handler("flow", access="users")
    def flow(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        return ctx.call("work", {"n": 1}, pull="gpu").result()

    return app


def create(world: ApiWorld, task_id: str = "t1", handler: str = "work", **fields: Any) -> str:
    given = {"id": task_id, "owner": "ada", "payload": {"n": 1}, "schedule": YEARLY, **fields}
    return world.sim.app.create(handler=handler, **given).id


def test_the_run_is_named_with_its_payload(world: ApiWorld) -> None:
    """The answer, the list and the record have it; the lists across tasks do not."""
    task = create(world)
    answer = world.ask("ada", f"/v1/tasks/{task}/trigger", {"payload": {"n": 7}})
    shown = answer.json
    execution = shown["triggered"]["executionId"]
    assert (shown["payload"], shown["triggered"]["payload"]) == ({"n": 1}, {"n": 7})
    world.sim.advance(MINUTE)
    assert SEEN == [{"n": 7}]
    record = world.ask("ada", f"/v1/tasks/{task}/executions/{execution}", method="GET").json
    assert (record["content"], record["payload"]) == (execution, {"n": 7})
    listed = world.ask("ada", "/v1/executions", method="GET").json["executions"]
    assert [each["id"] for each in listed] == [execution]
    assert not any("payload" in each for each in listed)


def test_a_dry_run_starts_nothing(world: ApiWorld) -> None:
    """It shows what would run, or refuses as the trigger itself would; nothing is written or sent."""
    task = create(world)
    before = world.sim.counts.copy()
    path = f"/v1/tasks/{task}/trigger?validateOnly=true"
    answer = world.ask("ada", path, {"payload": {"n": 7}}, headers={"Idempotency-Key": "k"})
    assert answer.json["triggered"] == {"payload": {"n": 7}}
    refused = world.ask("ada", path, {"payload": {"n": "x"}})
    assert (refused.status_code, refused.json["field"]) == (400, "payload.n")
    spent = world.sim.counts.since(before)
    assert (spent.commits, spent.writes, spent.dispatches) == (0, 0, 0)
    world.sim.advance(MINUTE)
    assert SEEN == []


def test_who_may_not_edit_the_payload_may_not_give_one(world: ApiWorld) -> None:
    """Of a server's handler, of a call that code made, and of somebody else's task."""
    private, flow = create(world, handler="private"), create(world, "t2", "flow", payload={})
    assert world.ask("ada", f"/v1/tasks/{private}/trigger", {"payload": {"n": 2}}).status_code in {400, 403}
    world.sim.app.trigger(flow)
    world.sim.advance(MINUTE)
    (child,) = world.ask("ada", f"/v1/tasks/{flow}/tree", method="GET").json["children"]
    call = child["task"]["id"]
    assert world.ask("ada", f"/v1/tasks/{call}/trigger", {"payload": {"n": 2}}).status_code == 403
    theirs = create(world, "t3", owner="bob")
    assert world.ask("ada", f"/v1/tasks/{theirs}/trigger", {"payload": {"n": 2}}).status_code == 404
    assert world.ask("gpu-1", f"/v1/tasks/{theirs}/trigger", {"payload": {"n": 2}}).status_code in {403, 404}
    assert SEEN == []
    assert world.ask("root", f"/v1/tasks/{private}/trigger", {"payload": {"n": 2}}).status_code == 200
    world.sim.advance(MINUTE)
    assert SEEN == [{"n": 2}]
    assert world.sim.now > START
