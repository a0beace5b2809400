"""A cancel that comes while a handler makes calls."""

from __future__ import annotations

import pytest

from cloudsched import App, Context, Schedule, Task
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.testing import Simulation


def test_a_cancel_is_not_complete_if_a_handler_could_call_while_its_calls_were_listed(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler may have made a call after the list was read, ended, and died before it cancelled that itself."""
    cancel_descendants, store = ChildTasks.cancel_descendants, app.container.store

    def end_meanwhile(children: ChildTasks, task: Task) -> bool:
        are_all_cancelled = cancel_descendants(children, task)
        stored = store.load(task.id)
        assert stored is not None
        store.commit(Commit(with_changes(stored.task, sim.now, runs=()), stored))
        return are_all_cancelled

    app.handler("child")(lambda: None)

    @app.handler("parent")
    def parent(ctx: Context) -> None:
        def cancel() -> None:
            with monkeypatch.context() as patch:
                patch.setattr(ChildTasks, "cancel_descendants", end_meanwhile)
                app.cancel("t")

        ctx.call("child")
        ctx.step("cancel", cancel)

    app.create(id="t", owner="ada", title="T", handler="parent", schedule=Schedule.once(sim.now))
    sim.queue.deliver_due()
    stored = store.load("t")
    assert stored is not None
    assert stored.task.deferred, "the sweep looks for calls again"
