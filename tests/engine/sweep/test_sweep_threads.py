"""A sweep of a store with one shard repairs several tasks at a time, too: most of a repair is waiting for the queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from tests.engine.harness import DAY

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.sweep.sweeper import SHARD_THREADS

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
TASKS = 3 * SHARD_THREADS


@dataclass
class Queue:
    """A queue that keeps the names that it accepts, and does what a test says before that."""

    before: Callable[[], object] = lambda: None
    names: set[str] = field(default_factory=set)

    def create(self, message: QueueMessage) -> None:
        self.before()
        self.names.add(message.name)

    def close(self) -> None:
        """Keep everything."""


@pytest.fixture
def store() -> SqliteStore:
    """Return a store of overdue tasks, whose dispatches are lost."""
    store = SqliteStore()
    app = make_app(store, Queue(), ManualClock(LONG_AGO))
    for number in range(TASKS):
        due = Schedule.once(LONG_AGO + DAY)
        app.create(handler="note", payload={}, schedule=due, id=f"t{number}")
    return store


def make_app(store: SqliteStore, queue: Queue, clock: ManualClock | None = None) -> App:
    """Return an app; without a clock of the test its clock is this machine's, as in production."""
    app = App(Settings(secret="x" * 40, executor_url="http://x"), store=store, dispatcher=queue, clock=clock)
    app.handler("note")(lambda: None)
    return app


def test_lost_dispatches_are_created_side_by_side(store: SqliteStore) -> None:
    """So many calls wait for the queue at once, each for the others: one after the other, none would ever return."""
    together = threading.Barrier(SHARD_THREADS)
    queue = Queue(lambda: together.wait(timeout=60))
    with closing(make_app(store, queue)) as app:
        swept = app.sweep()
    assert (swept.examined, swept.dispatched, len(queue.names)) == (TASKS, TASKS, TASKS)
