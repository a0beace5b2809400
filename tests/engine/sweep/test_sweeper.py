"""Where the sweep begins, the order in which it works, and what it checks again before it removes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, SECOND

from cloudsched import App, Context, Schedule, Task
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.commit import VersionedTask
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.storage.pages import Page
from cloudsched.engine.sweep.sweeper import COMMIT_MARGIN, FULL_SWEEP_INTERVAL, GRACE, PAGE_SIZE
from cloudsched.engine.usage.ledger import UsageLedger
from cloudsched.errors import Contended
from cloudsched.testing import Simulation


@pytest.fixture
def app(app: App) -> App:
    app.handler("work", retry=False)(lambda: "done")

    @app.handler("whole")
    def whole(ctx: Context) -> object:
        return ctx.call("work").result()

    return app


def make(app: App, sim: Simulation, task_id: str, after: timedelta = timedelta(0), **more: Any) -> None:
    usual: dict[str, Any] = {
        "handler": "work",
        "schedule": Schedule.once(sim.now + after),
    }
    app.create(id=task_id, **(usual | more))


def test_lost_dispatches_are_sent_again_by_priority(app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage the most urgent tasks are dispatched first, whichever came due first."""
    for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL):
        make(app, sim, priority.lower(), priority=priority)
        sim.clock.advance(SECOND)
    sim.queue.purge()
    sim.clock.advance(MINUTE)
    sent: list[Priority] = []
    create = sim.queue.create

    def note_and_create(message: QueueMessage) -> None:
        sent.append(message.priority)
        create(message)

    monkeypatch.setattr(sim.queue, "create", note_and_create)
    assert app.sweep().dispatched == 4
    assert sent == [Priority.CRITICAL, Priority.HIGH, Priority.NORMAL, Priority.LOW]


def test_a_task_stays_marked_until_its_dispatch_exists(app: App, sim: Simulation) -> None:
    """While the queue is down, a sweep leaves the mark: the task is due in days, and nothing else would find it."""
    sim.queue.is_down = True
    make(app, sim, "far", 9 * DAY)
    sim.clock.advance(MINUTE)
    assert (app.sweep().unsent, app.get("far").deferred) == (1, True)
    sim.queue.is_down = False
    sim.clock.advance(MINUTE)
    app.sweep()
    assert not app.get("far").deferred
    assert len(sim.pending()) == 1


def test_a_task_is_not_removed_that_ended_anew_while_the_sweep_read(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention starts at the last end: a task that has run again is kept for the full time again."""
    make(app, sim, "it", retention=DAY)
    sim.queue.deliver_due()
    sim.clock.advance(DAY + MINUTE)
    list_due = SqliteSweep.list_due

    def list_and_run_again(store: SqliteSweep, *arguments: Any, **named: Any) -> object:
        page = list_due(store, *arguments, **named)
        if page.items:
            app.update("it", schedule=Schedule.once(sim.now))
            sim.queue.deliver_due()
        return page

    monkeypatch.setattr(SqliteSweep, "list_due", list_and_run_again)
    assert app.sweep().purged == 0
    monkeypatch.undo()
    assert app.get("it").has_ended
    sim.advance(DAY + 2 * MINUTE)
    assert app.container.store.load("it") is None


@pytest.fixture
def sweep_starts(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> list[datetime | None]:
    starts: list[datetime | None] = []
    ask: Callable[..., Page[Task]] = sim.app.container.store.sweep.list_due

    def record(*args: Any, **named: Any) -> Page[Task]:
        if not named.get("is_removal"):
            starts.append(named.get("since"))
        return ask(*args, **named)

    monkeypatch.setattr(sim.app.container.store.sweep, "list_due", record)
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
    task = sim.app.create(handler="work", schedule=Schedule.once(sim.now + MINUTE))
    sim.clock.move_to(sim.now + 8 * MINUTE)
    sim.app.container.sweeper.sweep()
    edited = sim.app.update(task.id, title="Edited")
    sim.queue.purge()
    assert edited.wake_at == sim.now
    sim.clock.move_to(sim.now + MINUTE)
    assert sim.app.container.sweeper.sweep().dispatched == 1
    assert sweep_starts[-1] is not None


def test_lost_work_comes_before_whatever_waits_to_be_removed(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many have ended, and however long ago: what was lost is dispatched before the first of them goes."""
    for number in range(2 * PAGE_SIZE + 1):
        make(app, sim, f"ended-{number}", retention=DAY)
    sim.advance(MINUTE)
    make(app, sim, "lost", 2 * DAY)
    sim.queue.purge()
    sim.clock.advance(2 * DAY + MINUTE)
    order: list[str] = []
    create, remove = sim.queue.create, SqliteSweep.remove

    def note_and_create(message: QueueMessage) -> None:
        order.append("dispatched")
        create(message)

    def note_and_remove(store: SqliteSweep, ended: VersionedTask) -> bool:
        order.append("removed")
        return remove(store, ended)

    monkeypatch.setattr(sim.queue, "create", note_and_create)
    monkeypatch.setattr(SqliteSweep, "remove", note_and_remove)
    before = sim.counts.copy()
    page = app.container.store.sweep.list_due(sim.now, limit=PAGE_SIZE)
    assert [task.id for task in page.items] == ["lost"]
    assert sim.counts.since(before).reads == 1, "those that wait for their removal are not even read"
    assert app.sweep().purged == 2 * PAGE_SIZE + 1
    assert order == ["dispatched", *["removed"] * (2 * PAGE_SIZE + 1)]


@pytest.mark.parametrize("kept", [DAY, 40 * DAY])
def test_an_owner_whose_use_cannot_be_noted_holds_nobody_else_up(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch, kept: timedelta
) -> None:
    """Neither other owners' tasks nor the sweep; once it can be noted again, these go, too."""
    for owner in ("ada", "bob"):
        daily = Schedule.every(DAY, start=sim.now + MINUTE)
        make(app, sim, f"of-{owner}", owner=owner, schedule=daily, max_runs=2, retention=kept)
    sim.advance(2 * DAY)
    note = UsageLedger.note

    def note_or_fail(ledger: UsageLedger, tasks: Iterable[Task]) -> None:
        own = list(tasks)
        if any(each.owner == "ada" for each in own):
            raise Contended("the sheet", 50)
        note(ledger, own)

    monkeypatch.setattr(UsageLedger, "note", note_or_fail)
    sim.clock.advance(kept + DAY)
    found = app.sweep()
    assert (found.purged, found.failed) == (1, 1)
    assert app.container.store.load("of-bob") is None
    assert app.container.store.load("of-ada") is not None
    monkeypatch.undo()
    sim.clock.advance(11 * MINUTE)
    assert app.sweep().purged == 1
    assert app.container.store.load("of-ada") is None
