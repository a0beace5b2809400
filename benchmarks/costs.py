"""Count on Google's Firestore emulator what a task costs: what is sent is what Google bills.

    python -m benchmarks.costs

The product runs on a moved clock; only its Firestore is real. Each document that a read asks for or a query returns is
a read, and a query without results is one. Each document in a commit is a write or a deletion. What a TTL policy would
remove is counted as the documents whose `expireAt` has passed: the emulator has no such policies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from benchmarks.local_services import run_firestore
from rich.console import Console
from rich.table import Table
from tests.harness import new_project

from cloudsched import App, Context, Settings
from cloudsched.adapters.firestore import rpc
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google.channel import open_channel
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.testing import START, Simulation

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


@dataclass(slots=True)
class Operations:
    """What was sent, as Google bills it."""

    reads: int = 0
    writes: int = 0
    deletes: int = 0
    commits: int = 0
    dispatches: int = 0
    """Tasks created in Cloud Tasks: two operations each, and a request."""
    expired: int = 0
    """Documents that a TTL policy deletes."""


class CountingChannel:
    """A channel to Firestore whose calls are counted."""

    def __init__(self, channel: Any, counter: Counter) -> None:  # noqa: ANN401 - grpcio ships no types
        self._channel = channel
        self._counter = counter

    def unary_unary(self, method: str, **codec: Any) -> Callable[..., Any]:  # noqa: D102 - gRPC's own
        call = self._channel.unary_unary(method, **codec)

        def counted(request: Any, **options: Any) -> Any:  # noqa: ANN401 - protobuf messages
            answer, found = call(request, **options), self._counter.operations
            if method.endswith("/Commit"):
                found.commits += 1
                found.deletes += sum(bool(each.delete) for each in request.writes)
                found.writes += sum(not each.delete for each in request.writes)
            return answer

        return counted

    def unary_stream(self, method: str, **codec: Any) -> Callable[..., Any]:  # noqa: D102 - gRPC's own
        call, name = self._channel.unary_stream(method, **codec), method.rpartition("/")[2]

        def counted(request: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401 - protobuf messages
            answers, found = list(call(request, **options)), self._counter.operations
            if name == "BatchGetDocuments":
                found.reads += len(request.documents)
            elif name == "RunQuery":
                found.reads += max(1, sum(each.HasField("document") for each in answers))
            else:  # a count, of which each 1,000 index entries are a read
                (field,) = answers[0].result.aggregate_fields.values()
                found.reads += max(1, math.ceil(field.integer_value / 1_000))
            return iter(answers)

        return counted

    def close(self) -> None:  # noqa: D102 - gRPC's own
        self._channel.close()


class Counter:
    """Counts what a block of code sends."""

    def __init__(self, sim: Simulation | None = None) -> None:
        self.operations = Operations()
        self.sim = sim

    @contextmanager
    def count(self) -> Iterator[Operations]:
        """Yield the operations that are counted within the block."""
        assert self.sim is not None
        self.operations, before = Operations(), self.sim.counts.copy()
        yield self.operations
        self.operations.dispatches = self.sim.counts.since(before).dispatches
        self.operations = Operations()


def make_app() -> App:
    """Return an app with a handler that does nothing, and one that calls it."""
    app = App(Settings())

    @app.handler("tick")
    def tick() -> None: ...

    @app.handler("call")
    def call(ctx: Context) -> None:
        ctx.call("tick")

    return app


def measure(address: str) -> dict[str, Operations]:
    """Return what each part of a task's life costs."""
    counter = Counter()
    with patch.object(rpc, "open_channel", lambda *found: CountingChannel(open_channel(*found), counter)):
        store = FirestoreStore(project=new_project(), emulator=address, deadline=MINUTE)
    app = make_app()
    with Simulation(app, store=store, retention=400 * DAY) as sim:
        counter.sim = sim
        try:
            return dict(_measure(app, sim, counter, store))
        finally:
            store.close()


def _measure(app: App, sim: Simulation, counter: Counter, store: FirestoreStore) -> Iterator[tuple[str, Operations]]:
    asked = app.create(title="The first one asks whether anybody has a budget", handler="tick", schedule=START + DAY)
    app.cancel(asked.id)
    with counter.count() as found:
        once = app.create(title="Once", handler="tick", schedule=START + MINUTE)
    yield "create", found
    thrice = Schedule(rrule="FREQ=MINUTELY;COUNT=3", dtstart="2027-01-01T00:10:00")
    recurring = app.create(title="Three times", handler="tick", schedule=thrice, retention=40 * DAY)
    far = app.create(title="Far", handler="tick", schedule=START + 75 * DAY)
    parent = app.create(title="Calls", handler="call", schedule=START + HOUR)
    due = START + 2 * HOUR
    deleted = app.create(title="Deleted", handler="tick", schedule=due)
    locked = app.create(title="Locked", handler="tick", schedule=due, lock_key="door")
    with counter.count() as found:
        _deliver(sim, START + MINUTE)
    yield "run once", found
    with counter.count() as found:
        _deliver(sim, START + 10 * MINUTE)
    yield "run and plan the next", found
    for at in (START + 11 * MINUTE, START + 12 * MINUTE, START + HOUR, START + HOUR + MINUTE, due):
        _deliver(sim, at)
    (call,) = store.list_tasks(TaskQuery(parent=parent.id), limit=2).items
    assert all(app.get(each).has_ended for each in (once.id, recurring.id, parent.id, call.id, locked.id))
    app.container.many_tasks.summation.sum_up(None)
    with counter.count() as idle:
        app.sweep()
    yield "sweep that finds nothing, one in ten minutes", idle
    for name, task_id, at in (
        ("hop", far.id, START + 30 * DAY),
        ("remove a recurring task with 3 records", recurring.id, START + 41 * DAY),
        ("remove a call", call.id, START + 401 * DAY),
        ("remove a task that is kept for less than a month", "brief", START + 405 * DAY),
    ):
        if task_id == "brief":
            sim.clock.move_to(at - 3 * DAY)
            app.create(id="brief", title="Kept for two days", handler="tick", retention=2 * DAY)
            sim.queue.deliver_due()
        _deliver(sim, at - MINUTE)  # what else is due
        sim.clock.move_to(at)
        with counter.count() as found:
            sim.queue.deliver_due() if name == "hop" else app.sweep()
        if name == "hop":
            app.cancel(task_id)
        else:
            assert store.load(task_id) is None
            found = Operations(
                **{each.name: getattr(found, each.name) - getattr(idle, each.name) for each in fields(found)}
            )
            found.reads += 1  # the list returned it, where it would be a read to find nothing
        yield name, found
    with counter.count() as found:
        app.delete(deleted.id)
    assert store.load(deleted.id) is None
    yield "delete a task with a record by hand", found
    ended = {"one-time task": once.id, "task that has made calls": parent.id, "task with a lock key": locked.id}
    for name, task_id in ended.items():
        yield f"remove a {name}", Operations(expired=_count_expiring(store, task_id))


def _deliver(sim: Simulation, at: datetime) -> None:
    sim.clock.move_to(at)
    sim.queue.deliver_due()


def _count_expiring(store: FirestoreStore, task_id: str) -> int:
    """Return how many documents of a task a TTL policy deletes: it and its records, or it would leave some behind."""
    stored = store.load(task_id)
    assert stored is not None
    at = stored.task.expire_at
    records = store.search.list_executions(task_id, limit=100).items
    assert at is not None
    assert all(each.expire_at == at for each in records)
    return 1 + len(records)


def main() -> None:
    """Print the table."""
    with run_firestore() as address:
        rows = measure(address)
    table = Table(title="Counted on the Firestore emulator")
    names = [each.name for each in fields(Operations)]
    for heading in ("what", *names):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, counts in rows.items():
        values = (getattr(counts, name) for name in names)
        table.add_row(what, *(str(each) if each else "" for each in values))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
