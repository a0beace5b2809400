"""While a service is down, callers get an error at once, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, Simulate
from tests.instants import spread

from cloudsched import App, Context, Schedule
from cloudsched.adapters.blobs import FileBlobs
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.errors import BlobsUnavailable, StoreUnavailable
from cloudsched.testing import START, Simulation

HOURLY = Schedule.every(HOUR, start=START + HOUR)


@pytest.fixture
def app(app: App) -> App:
    app.container.registry.register("tick")(lambda: "tock")
    return app


@pytest.mark.parametrize("fallback", [False, True])
def test_the_sweep_delivers_due_runs_while_the_queue_is_down(app: App, simulate: Simulate, *, fallback: bool) -> None:
    """With the fallback, hourly runs continue without a queue; without it they wait; either way none is lost."""
    sim = simulate(fallback=fallback)
    task = app.create(handler="tick", schedule=HOURLY)
    sim.queue.purge()
    sim.queue.is_down = True
    sim.advance(timedelta(hours=5, minutes=30))
    ran = [execution.scheduled_for for execution in sim.executions(task.id) if execution.status == "SUCCEEDED"]
    assert len(ran) == (5 if fallback else 0)
    sim.queue.is_down = False
    sim.advance(HOUR)
    records = [each.scheduled_for.hour for each in spread(sim.executions(task.id), HOURLY)]
    assert records == [1, 2, 3, 4, 5, 6]


def test_a_deferred_task_far_ahead_does_not_hold_up_one_that_is_due(simulate: Simulate, app: App) -> None:
    """The sweep counts a dispatch that the queue does not accept, and continues with the next task."""
    sim = simulate(fallback=True)
    sim.queue.is_down = True
    far = app.create(handler="tick", schedule=Schedule.once(START + 9 * DAY))
    near = app.create(handler="tick", schedule=Schedule.once(START + HOUR))
    assert far.deferred
    assert near.deferred
    sim.clock.advance(timedelta(hours=1, minutes=1))
    done = app.sweep()
    assert (done.examined, done.unsent) == (2, 1)
    assert app.get(near.id).status == "COMPLETED"


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_a_cancel_that_needs_an_unavailable_bucket_does_not_delay_other_tasks(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The sweep counts the task as failed and continues; it finishes the cancellation once the bucket is back."""
    away = [False]
    monkeypatch.setattr(FileBlobs, "put", refuse_while_away(FileBlobs.put, away))

    @app.handler("part")
    def part(ctx: Context) -> None:
        for number in range(30):
            ctx.step(f"{number}", lambda: "x" * 12_000)  # more than fits into the final record
        ctx.sleep(9 * DAY)

    @app.handler("whole")
    def whole(ctx: Context) -> None:
        ctx.call("part").result()

    task = app.create(handler="whole", schedule=Schedule.once(START))
    sim.advance(MINUTE)
    (below,) = app.tree(task.id).children
    away[0] = True
    with pytest.raises(StoreUnavailable, match="403"):
        getattr(app, verb)(task.id)
    other = app.create(handler="tick", schedule=Schedule.once(sim.now))
    sim.queue.purge()
    sim.clock.advance(MINUTE)
    assert app.sweep().failed == 1
    sim.advance(MINUTE)
    assert app.get(other.id).status == "COMPLETED"
    assert app.get(below.task.id).status == "ACTIVE"
    away[0] = False
    sim.advance(2 * MINUTE)
    assert app.get(below.task.id).status == "CANCELLED"


def refuse_while_away(
    put: Callable[[FileBlobs, str, bytes], None], away: list[bool]
) -> Callable[[FileBlobs, str, bytes], None]:
    """Return a `put` that is refused, as by a bucket without write permission, while `away` holds True."""

    def put_or_refuse(blobs: FileBlobs, key: str, content: bytes) -> None:
        if away[0]:
            raise BlobsUnavailable("Cloud Storage", "403: Forbidden")
        put(blobs, key, content)

    return put_or_refuse


@pytest.mark.parametrize("refuses", [1, 9])
def test_a_sweep_ends_if_the_store_is_down_but_not_for_a_single_task(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch, refuses: int
) -> None:
    """A single task that cannot be written is skipped; after several in a row the sweep takes the store to be down."""
    refused, asked = set[str](), list[str]()
    write = SqliteStore.commit

    def commit_or_fail(store: SqliteStore, commit: Commit) -> VersionedTask:
        if commit.task.id in refused:
            asked.append(commit.task.id)
            raise StoreUnavailable("The store", "deadline exceeded")
        return write(store, commit)

    monkeypatch.setattr(SqliteStore, "commit", commit_or_fail)
    usual: dict[str, Any] = {"handler": "tick", "schedule": Schedule.once(START)}
    tasks = [app.create(**usual, retention=DAY) for _ in range(9)]
    sim.queue.deliver_due()
    sim.clock.advance(2 * DAY)
    refused.update(task.id for task in tasks[:refuses])
    if refuses == 1:
        done = app.sweep()
        assert (done.failed, done.purged) == (1, 8)
    else:
        with pytest.raises(StoreUnavailable, match="deadline"):
            app.sweep()
        assert len(asked) < len(tasks)


class Crash(ControlFlow):
    """The process has ended: its lease stays."""


def test_the_sweep_says_how_long_the_oldest_work_has_been_due(simulate: Simulate, app: App) -> None:
    """What waits for a lock that another holds is no fault of the executor's; a lost attempt and a lost start are."""
    sim = simulate()

    @app.handler("hold", expected_duration=HOUR)
    def hold() -> None:
        raise Crash

    app.create(handler="hold", lock_key="door", schedule=Schedule.once(START))
    [holding] = sim.pending()
    app.create(handler="tick", lock_key="door", schedule=Schedule.once(START))
    with pytest.raises(Crash):
        sim.redeliver(holding)
    sim.clock.advance(30 * MINUTE)
    assert app.sweep().overdue_seconds == 0
    app.create(handler="tick", schedule=Schedule.once(sim.now + 9 * HOUR))
    app.create(handler="tick", schedule=Schedule.once(sim.now + MINUTE))
    sim.queue.purge()
    sim.clock.advance(6 * MINUTE)
    assert app.sweep().overdue_seconds == 300
    sim.clock.advance(20 * HOUR)
    assert app.sweep().overdue_seconds == 20 * 3600 + 300
