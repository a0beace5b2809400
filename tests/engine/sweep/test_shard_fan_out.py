"""The job has the sweeps of all shards begin side by side; none is lost where that dies half way or is refused."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from tests.engine.harness import MINUTE

from cloudsched import App, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.engine.sweep import shard_sweeps
from cloudsched.engine.sweep.shard_sweeps import FAN_OUT_THREADS, SweepPart
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.errors import QueueUnavailable

NOW = datetime(2027, 1, 1, 9, 0, 20, tzinfo=UTC)
SHARDS = 3 * FAN_OUT_THREADS


class ManyShards(SqliteSweep):
    """Many shards, which are all empty."""

    def count_shards(self) -> int:
        return SHARDS


@dataclass
class ListeningQueue:
    """A queue that keeps what it accepts, and does what a test says before that."""

    before: Callable[[int], None] = lambda _: None
    """Gets a shard."""
    messages: dict[str, QueueMessage] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def create(self, message: QueueMessage) -> None:
        shard = SweepPart.from_body(message.body).shard
        self.asked.append(shard)
        self.before(shard)
        self.messages.setdefault(message.name, message)

    def close(self) -> None:
        """Keep everything."""


def make_app(queue: ListeningQueue, clock: ManualClock | None = None) -> App:
    """Return an app; without a clock of the test its clock is this machine's, as in production."""
    settings = Settings(secret="x" * 40, executor_url="http://x")
    store = SqliteStore()
    store.sweep = ManyShards(store.database, KnownTasks(), lambda _: None)
    return App(settings, store=store, dispatcher=queue, clock=clock)


def list_shards(messages: Iterable[QueueMessage]) -> list[int]:
    return sorted(SweepPart.from_body(each.body).shard for each in messages)


def test_the_shards_dispatches_are_created_side_by_side() -> None:
    """So many calls wait for the queue at once, each for the others: one after the other, none would ever return."""
    together = threading.Barrier(FAN_OUT_THREADS)

    def wait(_: int) -> None:
        together.wait(timeout=60)

    queue = ListeningQueue(wait)
    with closing(make_app(queue)) as app:
        app.sweep()
    assert list_shards(queue.messages.values()) == [*range(SHARDS)]


@pytest.mark.parametrize("dies_after", [0, 1, SHARDS // 2, SHARDS - 1])
def test_a_job_that_dies_half_way_has_lost_nothing(dies_after: int) -> None:
    """The next call sends what is missing, none twice: in that minute the rest, in the next one all of them."""

    class Died(BaseException):
        pass

    def die(_: int) -> None:
        if len(queue.asked) > dies_after:
            raise Died

    clock = ManualClock(NOW)
    queue = ListeningQueue(die)
    with closing(make_app(queue, clock)) as app:
        with pytest.raises(Died):
            app.sweep()
        assert len(queue.messages) == dies_after
        queue.before = lambda _: None
        app.sweep()
        assert list_shards(queue.messages.values()) == [*range(SHARDS)]
        queue.messages.clear()
        clock.advance(MINUTE)
        app.sweep()
        assert list_shards(queue.messages.values()) == [*range(SHARDS)]


def test_no_shard_is_always_the_last_one() -> None:
    """Jobs that always die after a few shards reach all of them, in time: each begins with another one."""

    class Died(BaseException):
        pass

    def die(_: int) -> None:
        if len(queue.asked) % 10 == 0:
            raise Died

    clock, queue = ManualClock(NOW), ListeningQueue(die)
    with closing(make_app(queue, clock)) as app:
        for _ in range(60):
            with suppress(Died):
                app.sweep()
            clock.advance(MINUTE)
    assert {*queue.asked} == {*range(SHARDS)}


def test_a_queue_that_is_down_is_not_waited_for_once_for_each_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each refusal may take seconds: after some of them the job sweeps what is left by itself, each shard once."""

    def refuse(_: int) -> None:
        raise QueueUnavailable("The queue", "it is down")

    swept: list[int | None] = []
    queue = ListeningQueue(refuse)
    with closing(make_app(queue)) as app:
        monkeypatch.setattr(shard_sweeps.ShardSweeps, "_get_sweeper", lambda _, shard: _Noted(shard, swept))
        app.sweep()
    assert len(queue.asked) <= shard_sweeps.MAX_REFUSED + FAN_OUT_THREADS
    assert Counter(swept) == dict.fromkeys(range(SHARDS), 1)


@dataclass
class _Noted:
    shard: int | None
    swept: list[int | None]

    def sweep(self) -> Sweep:
        self.swept.append(self.shard)
        return Sweep()
