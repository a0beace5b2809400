"""A sweep that finishes a cancel or a delete leaves alone a task that was recreated in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, SECOND
from tests.features.pull.harness import lock_wait_list

from cloudsched import App, Context, Schedule, Task
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.storage.pages import Page
from cloudsched.features.locks.locks import Locks
from cloudsched.testing import Simulation


@pytest.fixture
def app(app: App) -> App:
    @app.handler("part")
    def part(ctx: Context) -> int:
        ctx.sleep(DAY)
        return 1

    @app.handler("whole")
    def whole(ctx: Context) -> list[int]:
        return ctx.gather(ctx.call("part"), ctx.call("part"))

    return app


def create(app: App, sim: Simulation, **fields: Any) -> Task:
    usual: dict[str, Any] = {
        "id": "job",
        "handler": "whole",
        "schedule": Schedule.once(sim.now),
    }
    return app.create(**(usual | fields))


def interrupt_cancel_or_delete(app: App, verb: str) -> None:
    """Cancel or delete the task, and crash right after the commit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildTasks, "remove" if verb == "delete" else "cancel_descendants", lambda *_: 1 / 0)
        with suppress(ZeroDivisionError):
            getattr(app, verb)("job")


def restart(app: App, sim: Simulation, verb: str) -> None:
    """Create the task again under its id, or give it a new schedule, and run it until its calls have started."""
    sim.clock.advance(SECOND)
    if verb == "delete":
        create(app, sim)
    else:
        app.update("job", schedule=Schedule.once(sim.now))
    sim.queue.deliver_due()
    assert app.get("job").runs[0].suspension


def call_statuses(store: SqliteStore) -> list[str]:
    return [each.status.value for each in store.list_tasks(TaskQuery(parent="job"), limit=9).items]


@pytest.mark.parametrize("verb", ["cancel", "delete"])
@pytest.mark.parametrize("moment", ["list_due", "load", "list_tasks"])
def test_a_recreated_task_keeps_its_new_calls(
    app: App, monkeypatch: pytest.MonkeyPatch, verb: str, moment: str
) -> None:
    """It starts again between any two reads of the sweep: of the due tasks, of the task, of its calls."""
    hooks: list[Callable[[], None]] = []
    port: type[object] = SqliteSweep if moment == "list_due" else SqliteStore
    read = getattr(port, moment)

    def read_after_hook(store: object, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the store's own
        if moment == "list_tasks" and hooks:
            hooks.pop()()
        found = read(store, *arguments, **named)
        is_first = isinstance(found, Page) or arguments == ("job",)
        if hooks and is_first:
            hooks.pop()()
        return found

    monkeypatch.setattr(port, moment, read_after_hook)
    with closing(SqliteStore()) as store, Simulation(app, store=store) as sim:
        create(app, sim)
        sim.advance(SECOND)
        interrupt_cancel_or_delete(app, verb)
        sim.clock.advance(MINUTE)
        hooks.append(lambda: restart(app, sim, verb))
        app.sweep()
        assert not hooks
        assert call_statuses(store)[:2] == ["ACTIVE", "ACTIVE"]
        sim.advance(3 * DAY)
        assert app.get("job").status == "COMPLETED"


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_the_calls_of_the_previous_task_are_cancelled_beside_the_new_ones(app: App, verb: str) -> None:
    """An interrupted cancel is completed, and does not touch the calls of the new task."""
    with closing(SqliteStore()) as store, Simulation(app, store=store) as sim:
        create(app, sim)
        sim.advance(SECOND)
        interrupt_cancel_or_delete(app, verb)
        stored = store.load("job")
        assert stored
        if verb == "delete":
            store.sweep.purge("job")
        restart(app, sim, verb)
        app.container.child_tasks.cancel_descendants(stored.task)
        assert call_statuses(store) == ["ACTIVE", "ACTIVE", "CANCELLED", "CANCELLED"]


def test_a_recreated_task_keeps_its_new_position_at_a_lock(app: App, sim: Simulation) -> None:
    """The position of the previous task is removed only after the new one is waiting."""
    wait_lists: list[list[str]] = []

    @app.handler("hold")
    def hold() -> None:
        old = create(app, sim, lock_key="k")
        interrupt_cancel_or_delete(app, "delete")
        sim.clock.advance(SECOND)
        create(app, sim, lock_key="k")
        sim.queue.deliver_due()
        wait_lists.append(lock_wait_list(sim))
        Locks(app.container.store, app.container.engine.sender).cancel_task(
            old.model_copy(update={"deleted_at": sim.now}), sim.now
        )
        wait_lists.append(lock_wait_list(sim))

    create(app, sim, id="holder", handler="hold", lock_key="k")
    sim.advance(SECOND)
    assert wait_lists == [["job"], ["job"]]
