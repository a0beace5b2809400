"""Tasks that run others, without code."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Context, Execution, Schedule, Settings, Task
from cloudsched.domain.drafts import TaskDraft
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.testing import START, Simulation


@pytest.fixture
def app() -> App:
    """Return an app whose handlers add up, and fail."""
    made = App(Settings())

    @made.handler("add")
    def add(ctx: Context, payload: dict[str, Any]) -> int:
        ctx.sleep(timedelta(minutes=payload.get("minutes", 10)))
        return sum(each or 0 for each in payload.get("given", [])) + int(payload.get("n", 0))

    @made.handler("broken", retry=False)
    def broken() -> None:
        raise ConnectionError("no")

    return made


def add(n: int, **more: Any) -> dict[str, Any]:
    return {"handler": "add", "payload": {"n": n}, **more}


BROKEN = {"handler": "broken"}


def run(app: App, children: list[dict[str, Any]], **fields: Any) -> tuple[Task, Execution, list[str]]:
    """Run a task with these children; return it, its record, and how its children ended."""
    wire = {"title": "All", "owner": "ada", "children": children, **fields}
    with Simulation(app) as sim:
        task = app.create(TaskDraft.from_wire({"schedule": {"at": START.isoformat()}, **wire}))
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
        return app.get(task.id), execution, [each.task.status for each in app.tree(task.id).children]


def test_children_run_in_their_order_and_pass_their_results_along_on_request(app: App) -> None:
    task, execution, ended = run(app, [add(1), add(2, resultsAs="given"), add(10, resultsAs="given"), add(5)])
    assert (task.status, ended) == ("COMPLETED", ["COMPLETED"] * 4)
    assert execution.content == {"results": [1, 3, 14, 5], "failed": [], "skipped": []}
    assert execution.finished_at == START + timedelta(minutes=40)


def test_parallel_children_run_side_by_side(app: App) -> None:
    children = [{**add(n), "payload": {"n": n, "minutes": 10 - n}} for n in range(5)]
    _, execution, _ = run(app, children, parallel=True)
    assert execution.content["results"] == [0, 1, 2, 3, 4]
    assert execution.finished_at == START + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("policy", "status", "content", "ended"),
    [
        ("fail", "FAILED", None, ["COMPLETED", "FAILED"]),
        ("skip", "COMPLETED", {"results": [1, None], "skipped": [2]}, ["COMPLETED", "FAILED"]),
        ("continue", "COMPLETED", {"results": [1, None, 4], "skipped": []}, ["COMPLETED", "FAILED", "COMPLETED"]),
    ],
)
def test_a_failed_child_fails_skips_or_continues(
    app: App, policy: str, status: str, content: dict[str, Any] | None, ended: list[str]
) -> None:
    children = [add(1), BROKEN, add(3, resultsAs="given")]
    task, execution, found = run(app, children, onChildFailure=policy)
    assert (task.status, found) == (status, ended)
    if content is None:
        assert execution.error
        assert execution.error.type == "CallFailed"
    else:
        (failed,) = execution.content.pop("failed")
        assert execution.content == content
        assert failed["child"] == 1
        assert "ConnectionError: no" in failed["error"]


def test_a_failed_parallel_child_lets_the_others_finish(app: App) -> None:
    task, _, ended = run(app, [BROKEN, add(1), add(2)], parallel=True)
    assert (task.status, ended) == ("FAILED", ["FAILED", "COMPLETED", "COMPLETED"])


def test_cancelling_the_task_cancels_the_child_that_runs(app: App) -> None:
    with Simulation(app) as sim:
        draft = {"title": "All", "owner": "ada", "children": [add(1), add(2)], "schedule": {"at": START.isoformat()}}
        task = app.create(TaskDraft.from_wire(draft))
        sim.advance(timedelta(minutes=5))
        app.cancel(task.id)
        sim.run_until_idle()
        assert [each.task.status for each in app.tree(task.id).children] == ["CANCELLED"]


def test_a_recurring_task_runs_its_children_each_time(app: App) -> None:
    with Simulation(app) as sim:
        daily = Schedule.every(timedelta(days=1), start=START + timedelta(hours=1))
        task = app.create(owner="ada", title="All", children=[add(1)], schedule=daily)
        sim.advance(timedelta(days=3))
        assert [e.content["results"] for e in sim.executions(task.id)] == [[1]] * 3


def test_children_can_be_edited(app: App) -> None:
    with Simulation(app) as sim:
        task = app.create(owner="ada", title="All", children=[add(1)], schedule=Schedule.once(START))
        assert app.patch(task.id, {"children": [add(7)], "parallel": True}).children[0].payload == {"n": 7}
        sim.run_until_idle()
        assert sim.executions(task.id)[0].content["results"] == [7]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"children": [{"handler": "no-such"}]}, "children.0.handler"),
        ({"children": [add(1), {"handler": "broken", "payload": {"x": 1}}]}, "children.1.payload.x"),
        ({"children": [{"payload": {}}]}, "children.0.handler"),
        ({"children": [add(1)] * 101}, "children"),
        ({"children": [add(1, resultsAs="given")], "parallel": True}, "children.0.resultsAs"),
        ({"children": [add(1)], "handler": "add"}, "children"),
        ({"children": []}, "handler"),
        ({}, "handler"),
    ],
)
def test_what_is_wrong_is_named_when_the_task_is_created(app: App, fields: dict[str, Any], field: str) -> None:
    with Simulation(app), pytest.raises(InvalidInput) as caught:
        app.create(TaskDraft.from_wire({"title": "All", "owner": "ada", **fields}))
    assert caught.value.field == field


def test_a_handlers_name_does_not_begin_like_the_built_in_ones(app: App) -> None:
    with pytest.raises(Misconfigured, match=r"cloudsched\."):
        app.handler("cloudsched.children")(lambda: None)
