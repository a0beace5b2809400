"""A sweep does not search again where nothing can be any more, and finds what appears there all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from cloudsched import App, Context, Schedule, Settings, Task
from cloudsched.engine.ports.pages import Page
from cloudsched.engine.tasks.sweeper import COMMIT_MARGIN, FULL_SWEEP_INTERVAL, GRACE
from cloudsched.testing import Simulation

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("work", expected_duration=HOUR)
    def work(ctx: Context) -> None:
        ctx.heartbeat()

    return app


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    with Simulation(app) as simulation:
        yield simulation


@pytest.fixture
def sweep_starts(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> list[datetime | None]:
    """Where each sweep began."""
    starts: list[datetime | None] = []
    ask: Callable[..., Page[Task]] = sim.app.container.store.list_due_tasks

    def record(*args: Any, **named: Any) -> Page[Task]:
        starts.append(named.get("since"))
        return ask(*args, **named)

    monkeypatch.setattr(sim.app.container.store, "list_due_tasks", record)
    return starts


def test_a_sweep_begins_a_margin_before_the_first_task_that_the_last_one_found(
    sim: Simulation, sweep_starts: list[datetime | None]
) -> None:
    """Firestore has to skip every index entry that was deleted since about an hour before."""
    began = sim.now
    sim.app.container.sweeper.sweep()
    sim.clock.move_to(began + 3 * MINUTE)
    sim.app.container.sweeper.sweep()
    assert sweep_starts == [None, began - GRACE - COMMIT_MARGIN]


@pytest.mark.parametrize("change", ["an interval later", "after the clock was set back"])
def test_a_full_sweep_follows_now_and_then(
    sim: Simulation, sweep_starts: list[datetime | None], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Whatever put a task behind the front, it is found within `FULL_SWEEP_INTERVAL`."""
    sim.app.container.sweeper.sweep()
    at = sim.now + (FULL_SWEEP_INTERVAL if change == "an interval later" else -MINUTE)
    monkeypatch.setattr(sim.clock, "now", lambda: at)
    sim.app.container.sweeper.sweep()
    assert sweep_starts == [None, None]


def test_what_is_overdue_when_it_is_committed_is_found_by_the_next_sweep(
    sim: Simulation, sweep_starts: list[datetime | None]
) -> None:
    """An overdue task that is edited stands at its edit, where no sweep has been, and not at its past instant."""
    task = sim.app.create(owner="ada", title="T", handler="work", schedule=Schedule.once(sim.now + MINUTE))
    sim.clock.move_to(sim.now + 8 * MINUTE)
    sim.app.container.sweeper.sweep()
    edited = sim.app.update(task.id, title="Edited")
    sim.queue.purge()
    assert edited.wake_at == sim.now
    sim.clock.move_to(sim.now + MINUTE)
    assert sim.app.container.sweeper.sweep().dispatched == 1
    assert sweep_starts[-1] is not None
