"""Tasks that run other tasks as children, without code."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field
from tests.cases import try_each
from tests.engine.harness import MINUTE, run_to_end

from cloudsched import App, Context, Execution, Schedule, Task
from cloudsched.domain.documents.json_limits import MAX_CONTENT
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.testing import START, Simulation

RESULTS: dict[str, Any] = {
    "whole": 1,
    "name": "Ada",
    "long": "é" * 100_000,
    "longest": "x" * (MAX_CONTENT - 2),
    "numbers": {"all": [1] * 70_000},
    "deep": json.loads("[" * 15 + "1" + "]" * 15),
}
"""What handlers of these names return."""


def return_always(result: object) -> Callable[[], object]:
    return lambda: result


class Given(BaseModel):
    """The payload of one of them."""

    given: list[int]


@pytest.fixture
def app(app: App) -> App:
    """Return an app whose handlers add up, and fail."""

    @app.handler("add")
    def add(ctx: Context, payload: dict[str, Any]) -> int:
        ctx.sleep(timedelta(minutes=payload.get("minutes", 10)))
        return sum(each or 0 for each in payload.get("given", [])) + int(payload.get("n", 0))

    @app.handler("broken", retry=False, tell_errors=True)
    def broken() -> None:
        raise ConnectionError("no")

    @app.handler("sum")
    def total(given: Given) -> int:
        return sum(given.given)

    for name, result in RESULTS.items():
        app.handler(name)(return_always(result))

    return app


def add(n: int, **more: Any) -> dict[str, Any]:
    return {"handler": "add", "payload": {"n": n}, **more}


BROKEN = {"handler": "broken"}


def run(
    app: App, children: list[dict[str, Any]], *, replay: bool = False, **fields: Any
) -> tuple[Task, Execution, list[str]]:
    """Run a task with these children; return it, its record, and how its children ended."""
    wire = {"title": "All", "children": children, **fields}
    with Simulation(app, replay=replay) as sim:
        task = app.create(TaskDraft.from_wire({"schedule": {"at": START.isoformat()}, **wire}))
        execution = run_to_end(sim, task)
        return app.get(task.id), execution, [each.task.status for each in app.tree(task.id).children]


def test_children_run_in_their_order_and_pass_their_results_along_on_request(app: App) -> None:
    task, execution, ended = run(app, [add(1), add(2, resultsAs="given"), add(10, resultsAs="given"), add(5)])
    assert (task.status, ended) == ("COMPLETED", ["COMPLETED"] * 4)
    assert execution.content == {"results": [1, 3, 14, 5], "failed": [], "skipped": []}
    assert execution.finished_at == START + 40 * MINUTE


def test_parallel_children_run_side_by_side(app: App) -> None:
    children = [{**add(n), "payload": {"n": n, "minutes": 10 - n}} for n in range(5)]
    _, execution, _ = run(app, children, parallel=True)
    assert execution.content["results"] == [0, 1, 2, 3, 4]
    assert execution.finished_at == START + 10 * MINUTE


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


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize(
    ("policy", "fate"),
    [("fail", ["FAILED"]), ("skip", ["COMPLETED"]), ("continue", ["COMPLETED", "COMPLETED"])],
)
@pytest.mark.parametrize(
    ("before", "given"),
    [(["whole", "name"], ("sum", "payload.given.1")), (["long"], ("add", "bytes")), (["deep"], ("add", "deep"))],
)
def test_a_child_that_cannot_accept_the_earlier_results_has_failed(
    app: App, before: list[str], given: tuple[str, str], policy: str, fate: list[str], *, replay: bool
) -> None:
    """No child task is created; the failure policy of the parent applies at once."""
    name, why = given
    children = [*({"handler": each} for each in before), {"handler": name, "resultsAs": "given"}, add(5)]
    task, execution, ended = run(app, children, replay=replay, onChildFailure=policy)
    assert (task.status, len(execution.attempts)) == (fate[0], 1)
    assert ended == ["COMPLETED"] * len(before) + fate[1:]
    if policy == "fail":
        assert execution.error
        assert execution.error.type == "CallFailed"
        text = execution.error.message
    else:
        (failed,) = execution.content["failed"]
        assert failed["child"] == len(before)
        text = failed["error"]
    assert text.startswith(f"The call of {name!r} is REFUSED: Invalid")
    assert why in text


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize(
    ("names", "left_out"),
    [
        (["long", "long", "name"], []),
        (["long", "long", "long", "name"], [2]),
        (["deep", "long", "longest", "name"], [0, 2]),
        (["longest"] * 20, [*range(20)]),
        (["numbers", "name", "numbers", "deep"], [2, 3]),
    ],
)
def test_results_that_do_not_fit_into_one_record_are_omitted_and_listed(
    sim: Simulation, app: App, names: list[str], left_out: list[int], *, parallel: bool
) -> None:
    """The task succeeds; each step of its execution names the child, whose own execution has the full result."""
    children = [{"handler": name} for name in names]
    draft = {"title": "All", "children": children, "parallel": parallel}
    task = app.create(TaskDraft.from_wire({**draft, "schedule": {"at": START.isoformat()}}))
    listed = run_to_end(sim, task)
    execution = app.execution(task.id, listed.id)
    given = [sim.executions(step.child or "")[0].content for step in execution.steps]
    assert execution.status == "SUCCEEDED"
    assert execution.content.get("omittedChildren", []) == left_out
    whole = [RESULTS[name] for name in names]
    kept = [None if number in left_out else result for number, result in enumerate(whole)]
    assert execution.content["results"] == kept
    assert given == whole


def test_a_failed_parallel_child_lets_the_others_finish(app: App) -> None:
    task, _, ended = run(app, [BROKEN, add(1), add(2)], parallel=True)
    assert (task.status, ended) == ("FAILED", ["FAILED", "COMPLETED", "COMPLETED"])


@pytest.mark.parametrize(("children", "field"), [([], "children"), (None, "handler")])
@pytest.mark.usefixtures("sim")
def test_children_cannot_be_removed_without_another_handler(app: App, children: object, field: str) -> None:
    task = app.create(title="All", children=[add(1)], schedule=Schedule.once(START))
    with pytest.raises(InvalidInput) as caught:
        app.patch(task.id, {"children": children})
    assert caught.value.field == field
    assert app.patch(task.id, {"children": None, "handler": "add"}).children == ()


@try_each(
    "fields, field",
    [
        ({"children": [{"handler": "no-such"}]}, "children.0.handler"),
        ({"children": [add(1), {"handler": "broken", "payload": {"x": 1}}]}, "children.1.payload.x"),
        ({"children": [add(1)] * 101}, "children"),
        ({"children": [add(1, resultsAs="given")], "parallel": True}, "children.0.resultsAs"),
        ({"children": [add(1)], "handler": "add"}, "children"),
        ({"children": [], "handler": "cloudsched.children"}, "children"),
        ({"children": [add(1), {"handler": "sum", "resultsAs": "givn"}]}, "children.1.resultsAs"),
        ({"children": [add(1), {"handler": "whole", "resultsAs": "given"}]}, "children.1.resultsAs"),
        ({}, "handler"),
    ],
)
@pytest.mark.usefixtures("sim")
def test_the_invalid_field_is_named_at_creation(app: App, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        app.create(TaskDraft.from_wire({"title": "All", **fields}))
    assert caught.value.field == field


class Named(BaseModel):
    """Its fields have other names in JSON."""

    given: list[int] = Field(default=[], alias="asGiven")
    either: list[int] = Field(default=[], validation_alias=AliasChoices("one", AliasPath("two", 0)))


def test_results_are_accepted_only_in_fields_that_the_payload_keeps(app: App) -> None:
    """A field that the payload's model would ignore is refused, by the names that it has in JSON."""

    @app.handler("take")
    def take(payload: Named) -> None:
        """Do nothing."""

    names = ("asGiven", "one", "two", "given", "either", "other")
    handler = app.container.registry.get("take")
    assert [name for name in names if handler.accepts_field(name)] == ["asGiven", "one", "two"]


def test_the_prefix_of_built_in_handlers_is_reserved(app: App) -> None:
    with pytest.raises(Misconfigured, match=r"cloudsched\."):
        app.handler("cloudsched.children")(lambda: None)
