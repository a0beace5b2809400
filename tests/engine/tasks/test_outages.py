"""While a service is down: callers are told at once and truthfully, and nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.blobs import FileBlobs
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.errors import BlobsUnavailable, StoreUnavailable
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.store import VersionedTask

HOURLY = Schedule.every(timedelta(hours=1), start=START + timedelta(hours=1))


def fallback_app() -> App:
    app = App(Settings())
    app.registry.register("tick")(lambda: "tock")
    return app


@pytest.mark.parametrize("fallback", [False, True])
def test_the_sweep_delivers_what_is_due_while_the_queue_is_down(fallback: bool) -> None:  # noqa: FBT001 - a case
    """With the fallback on, hourly runs go on without any queue; without it they wait, and none is lost either way."""
    app = fallback_app()
    with Simulation(app, fallback=fallback) as sim:
        task = app.create(owner="ada", title="Tick", handler="tick", schedule=HOURLY)
        sim.queue.purge()
        sim.queue.is_down = True
        sim.advance(timedelta(hours=5, minutes=30))
        ran = [execution.scheduled_for for execution in sim.executions(task.id) if execution.status == "SUCCEEDED"]
        assert len(ran) == (5 if fallback else 0)
        sim.queue.is_down = False
        sim.advance(timedelta(hours=1))
        records = [execution.scheduled_for.hour for execution in sim.executions(task.id)]
        assert records == [1, 2, 3, 4, 5, 6]


def test_a_deferred_task_far_ahead_does_not_hold_up_one_that_is_due() -> None:
    """What the queue does not take is counted, and the sweep goes on with the next task."""
    app = fallback_app()
    with Simulation(app, fallback=True) as sim:
        sim.queue.is_down = True
        far = app.create(owner="ada", title="Far", handler="tick", schedule=Schedule.once(START + timedelta(days=9)))
        near = app.create(owner="ada", title="Near", handler="tick", schedule=Schedule.once(START + timedelta(hours=1)))
        assert far.deferred
        assert near.deferred
        sim.clock.advance(timedelta(hours=1, minutes=1))
        done = app.sweep()
        assert (done.examined, done.unsent) == (2, 1)
        assert app.get(near.id).status == "COMPLETED"


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_what_cannot_be_stopped_while_the_bucket_is_away_does_not_hold_up_other_tasks(
    monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The sweep counts it and goes on with what comes after it; once the bucket is back it ends that, too."""
    app, away = fallback_app(), [False]
    monkeypatch.setattr(FileBlobs, "put", refusing(FileBlobs.put, away))

    @app.handler("part")
    def part(ctx: Context) -> None:
        for number in range(30):
            ctx.step(f"{number}", lambda: "x" * 12_000)  # more than the record of its end has room for
        ctx.sleep(timedelta(days=9))

    @app.handler("whole")
    def whole(ctx: Context) -> None:
        ctx.call("part").result()

    with Simulation(app) as sim:
        task = app.create(owner="ada", title="Whole", handler="whole", schedule=Schedule.once(START))
        sim.advance(timedelta(minutes=1))
        (below,) = app.tree(task.id).children
        away[0] = True
        with pytest.raises(StoreUnavailable, match="403"):
            getattr(app, verb)(task.id)
        other = app.create(owner="ada", title="Tick", handler="tick", schedule=Schedule.once(sim.now))
        sim.queue.purge()
        sim.clock.advance(timedelta(minutes=1))
        assert app.sweep().failed == 1
        sim.advance(timedelta(minutes=1))
        assert app.get(other.id).status == "COMPLETED"
        assert app.get(below.task.id).status == "ACTIVE"
        away[0] = False
        sim.advance(timedelta(minutes=2))
        assert app.get(below.task.id).status == "CANCELLED"


def refusing(put: Callable[[FileBlobs, str, bytes], None], away: list[bool]) -> Callable[[FileBlobs, str, bytes], None]:
    """Return `put`, refused as by a bucket that may not be written to, while `away` says so."""

    def refused(blobs: FileBlobs, key: str, content: bytes) -> None:
        if away[0]:
            raise BlobsUnavailable("Cloud Storage", "403: Forbidden")
        put(blobs, key, content)

    return refused


@pytest.mark.parametrize("refuses", [1, 9])
def test_a_sweep_ends_when_the_store_is_away_and_not_for_one_task(
    monkeypatch: pytest.MonkeyPatch, refuses: int
) -> None:
    """One task that the store refuses is passed over; a few in a row say that it answers nobody."""
    app, refused, asked = fallback_app(), set[str](), list[str]()
    load = SqliteStore.load

    def loading(store: SqliteStore, task_id: str) -> VersionedTask | None:
        if task_id in refused:
            asked.append(task_id)
            raise StoreUnavailable("The store", "deadline exceeded")
        return load(store, task_id)

    monkeypatch.setattr(SqliteStore, "load", loading)
    usual: dict[str, Any] = {"owner": "ada", "title": "Tick", "handler": "tick", "schedule": Schedule.once(START)}
    with Simulation(app) as sim:
        tasks = [app.create(**usual, retention=timedelta(days=1)) for _ in range(9)]
        sim.queue.deliver_due()
        sim.clock.advance(timedelta(days=2))
        refused.update(task.id for task in tasks[:refuses])
        if refuses == 1:
            done = app.sweep()
            assert (done.failed, done.purged) == (1, 8)
        else:
            with pytest.raises(StoreUnavailable, match="deadline"):
                app.sweep()
            assert len(asked) < len(tasks)
