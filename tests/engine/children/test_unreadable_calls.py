"""A call whose document cannot be read: the cancel or the delete above it is not done before it has met that call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.harness import MINUTE, create, register_work_handler

from cloudsched import App, Context, Task
from cloudsched.domain.transitions.commit import Commit
from cloudsched.testing import Simulation


@pytest.fixture
def calls(app: App) -> Callable[[], tuple[Task, Task]]:
    """Return a function that returns the two open calls of the task ``root``."""

    @app.handler("leaf")
    def leaf(ctx: Context) -> None:
        ctx.wait_for("never")

    register_work_handler(app, lambda ctx: ctx.gather(*[ctx.call("leaf") for _ in range(2)]))

    def find() -> tuple[Task, Task]:
        first, second = app.tree("root").children
        return first.task, second.task

    return find


def damage(app: App, task_id: str) -> Callable[[], None]:
    """Make a stored task unreadable; return a function that restores it."""
    stored = app.container.store.load(task_id)
    assert stored
    newer = stored.task.model_copy(update={"schema_version": 7})
    damaged = app.container.store.commit(Commit(newer, stored))
    return lambda: (app.container.store.commit(Commit(stored.task, damaged)), None)[1]


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_the_sweep_returns_to_a_call_that_could_not_be_read(
    app: App, calls: Callable[[], tuple[Task, Task]], verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The other calls are cancelled, each sweep tells about this one, and cancels it once it is restored."""
    with Simulation(app) as sim:
        create(app, id="root")
        sim.advance(MINUTE)
        readable, unreadable = calls()
        restore = damage(app, unreadable.id)
        getattr(app, verb)("root")
        assert app.get(readable.id).status == "CANCELLED"
        for _ in range(3):
            caplog.clear()
            sim.clock.advance(MINUTE)
            app.sweep()
            told = [each for each in caplog.records if getattr(each, "action", None) == "calls_not_cancelled"]
            assert told
            assert told[0].__dict__["taskId"] == "root"
        restore()
        sim.advance(2 * MINUTE)
        assert app.get(unreadable.id).status == "CANCELLED"
        caplog.clear()
        sim.advance(10 * MINUTE)
        assert not [each for each in caplog.records if getattr(each, "action", None) == "calls_not_cancelled"]
        stored = app.container.store.load("root")
        assert stored is None if verb == "delete" else stored is not None and not stored.task.deferred
