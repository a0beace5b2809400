"""The tree of a task and its calls, including a tree that is too large to be returned whole."""

from __future__ import annotations

import pytest
from tests.engine.harness import DAY, HOUR, Simulate, create, register_work_handler

from cloudsched import App, Context, Schedule, Task
from cloudsched.domain.documents.json_limits import json_size
from cloudsched.engine.child_tasks import CallTree
from cloudsched.testing import START, Simulation
from cloudsched.web.api.responses import task_to_json

LIMITS = "cloudsched.engine.child_tasks"


@pytest.fixture
def sim(simulate: Simulate, app: App) -> Simulation:
    """Two days of a task that calls two branches a day, each of which calls two leaves."""
    app.handler("leaf")(lambda: None)

    @app.handler("branch")
    def branch(ctx: Context) -> None:
        ctx.gather(*[ctx.call("leaf") for _ in range(2)])

    register_work_handler(app, lambda ctx: ctx.gather(*[ctx.call("branch") for _ in range(2)]))
    opened = simulate()
    create(app, id="root", schedule=Schedule(rrule="FREQ=DAILY;COUNT=2", dtstart=START.replace(tzinfo=None)))
    opened.advance(DAY + HOUR)
    return opened


def tree_shape(tree: CallTree) -> tuple[list[tuple[str, int, int]], int]:
    """Return the branches (of which day, how many leaves, how many left out), and how many branches are left out."""
    branches = [(occurrence_day(each.task), len(each.children), each.omitted_children) for each in tree.children]
    return branches, tree.omitted_children


def occurrence_day(call: Task) -> str:
    assert call.parent
    return call.parent.execution_id[6:8]


@pytest.mark.usefixtures("sim")
@pytest.mark.parametrize(
    ("most", "branches", "left_out"),
    [
        (12, [("01", 2, 0), ("01", 2, 0), ("02", 2, 0), ("02", 2, 0)], 0),
        (7, [("01", 0, 2), ("01", 0, 2), ("02", 1, 1), ("02", 2, 0)], 0),
        (4, [("01", 0, 2), ("01", 0, 2), ("02", 0, 2), ("02", 0, 2)], 0),
        (3, [("01", 0, 2), ("02", 0, 2), ("02", 0, 2)], 1),
        (1, [("02", 0, 2)], 3),
    ],
)
def test_a_tree_is_cut_from_its_oldest_leaves_on(
    app: App, monkeypatch: pytest.MonkeyPatch, most: int, branches: object, left_out: int
) -> None:
    """Upper levels come first, then the newest calls; each node says how many of its calls are left out."""
    monkeypatch.setattr(f"{LIMITS}.MAX_TREE", most)
    assert tree_shape(app.tree("root")) == (branches, left_out)


def test_a_tree_of_large_calls_is_cut(app: App, simulate: Simulate) -> None:
    """However large the calls' payloads are, the answer fits into a response; what is left out is counted."""

    @app.handler("leaf")
    def leaf(payload: dict[str, str]) -> None:
        """Do nothing."""

    register_work_handler(app, lambda ctx: ctx.gather(*[ctx.call("leaf", {"a": "a" * 90_000}) for _ in range(60)]))
    sim = simulate()
    create(app, id="root")
    sim.run_until_idle()
    tree = app.tree("root")
    assert sum(json_size(task_to_json(each.task)) for each in tree.children) < 5_000_000
    assert 10 < len(tree.children) < 60
    assert len(tree.children) + tree.omitted_children == 60


def test_a_tree_of_one_execution(app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of other executions are neither shown nor counted."""
    ids = [each.id for each in sim.executions("root")]
    for each in ids:
        assert tree_shape(app.tree("root", each)) == ([(each[6:8], 2, 0)] * 2, 0)
    assert tree_shape(app.tree("root", "20200101T000000Z")) == ([], 0)
    monkeypatch.setattr(f"{LIMITS}.MAX_TREE", 1)
    assert tree_shape(app.tree("root", ids[0])) == ([(ids[0][6:8], 0, 2)], 1)


@pytest.mark.usefixtures("sim")
def test_the_number_of_calls_read_is_limited(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node whose calls were not read still says that it has calls."""
    monkeypatch.setattr(f"{LIMITS}.MAX_TREE", 2)
    monkeypatch.setattr(f"{LIMITS}.MAX_READ", 3)
    assert tree_shape(app.tree("root")) == ([("02", 0, 1), ("02", 0, 1)], 1)
