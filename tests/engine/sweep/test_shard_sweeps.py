"""Each shard is swept by dispatches of its own, part by part; none is lost, and none is swept without end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.engine.harness import MINUTE

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.wakeups import SWEEP_PREFIX
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.sweep import choose_shard
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.engine.storage.pages import Page
from cloudsched.engine.sweep import shard_sweeps, sweeper
from cloudsched.engine.sweep.shard_sweeps import SweepPart
from cloudsched.errors import InvalidInput, QueueUnavailable, StoreUnavailable, Unauthenticated

NOW = datetime(2027, 1, 1, 9, 0, 20, tzinfo=UTC)
SHARDS = 4
TASKS = 60


class SeveralShards(SqliteSweep):
    """Several shards, whose pages are small."""

    def count_shards(self) -> int:
        return SHARDS

    def list_due(self, before: datetime, *, shard: int | None = None, **page: Any) -> Page[Task]:
        found = super().list_due(before, **{**page, "limit": 5})
        return replace(found, items=[each for each in found.items if choose_shard(each.id, SHARDS) == shard])


def make_store() -> SqliteStore:
    store = SqliteStore()
    store.sweep = SeveralShards(store.database, KnownTasks(), lambda _: None)
    return store


@dataclass
class NamedQueue:
    """A queue that refuses what it is told to, keeps what it has, and knows every name that it ever had."""

    messages: list[QueueMessage] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    is_down: bool = False

    def create(self, message: QueueMessage) -> None:
        if self.is_down:
            raise QueueUnavailable("The queue", "it is down")
        if message.name not in self.names:
            self.names.add(message.name)
            self.messages.append(message)

    def take(self, prefix: bytes) -> list[QueueMessage]:
        taken = [each for each in self.messages if each.body.startswith(prefix)]
        self.messages = [each for each in self.messages if each not in taken]
        return taken

    def close(self) -> None:
        """Keep everything."""


SWEEP, TASK = SWEEP_PREFIX, b'{"taskId"'


@pytest.fixture
def queue() -> NamedQueue:
    return NamedQueue()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def app(queue: NamedQueue, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """An app with overdue tasks, whose queue has lost everything."""
    monkeypatch.setattr(shard_sweeps, "PART_SIZE", 3)
    app = App(Settings(secret="x" * 40, executor_url="http://x"), store=make_store(), dispatcher=queue, clock=clock)

    @app.handler("work")
    def work(ctx: Context) -> None:
        del ctx

    for number in range(TASKS):
        app.create(id=f"t{number}", handler="work", schedule=Schedule.once(NOW))
    queue.messages.clear()
    clock.advance(5 * MINUTE)
    yield app
    app.close()


def deliver_sweeps(app: App, queue: NamedQueue) -> int:
    """Deliver the parts of sweeps, until there are none; return how many there were."""
    count = 0
    while parts := queue.take(SWEEP):
        for each in parts:
            count += 1
            assert app.deliver(each.body, each.token).action in {"swept", "dropped"}
    return count


def test_one_call_of_the_job_has_every_shard_swept_to_its_end(app: App, queue: NamedQueue) -> None:
    """Every task's dispatch is sent again, exactly once, from parts of a few tasks; the job itself reads no tasks."""
    assert app.sweep().examined == 0
    assert len(queue.messages) == SHARDS
    assert deliver_sweeps(app, queue) >= TASKS // 5
    assert Counter(each.name.partition("-")[2] for each in queue.messages) == {f"t{n}": 1 for n in range(TASKS)}


def test_what_the_queue_delivers_twice_does_no_harm(app: App, queue: NamedQueue) -> None:
    """A part that is delivered again, at any time, sends what has the same names."""
    app.sweep()
    while parts := queue.take(SWEEP):
        for each in (*parts, *parts):
            app.deliver(each.body, each.token)
    assert Counter(each.name.partition("-")[2] for each in queue.messages) == {f"t{n}": 1 for n in range(TASKS)}


def test_a_part_that_fails_is_continued_by_its_redelivery(
    app: App, queue: NamedQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails in the middle of a part, and the queue just before the next one is sent."""
    app.sweep()
    *others, one = queue.take(SWEEP)
    queue.messages += others
    with monkeypatch.context() as patch:
        patch.setattr(SeveralShards, "list_due", lambda *_, **__: fail())
        with pytest.raises(StoreUnavailable):
            app.deliver(one.body, one.token)
    queue.is_down = True
    with pytest.raises(QueueUnavailable):
        app.deliver(one.body, one.token)
    queue.is_down = False
    app.deliver(one.body, one.token)
    deliver_sweeps(app, queue)
    assert {each.name.partition("-")[2] for each in queue.messages} == {f"t{n}" for n in range(TASKS)}


def fail() -> None:
    raise StoreUnavailable("The store", "for a test")


def test_while_a_sweep_of_a_shard_is_under_way_no_other_begins(app: App, queue: NamedQueue, clock: ManualClock) -> None:
    """Later calls of the job leave the shard alone; if its sweep was lost, one begins anew after ten minutes."""
    app.sweep()
    assert {app.deliver(each.body, each.token).action for each in queue.take(SWEEP)} == {"swept"}
    queue.messages.clear()  # the next parts are lost
    for minutes, is_swept in ((1, False), (8, False), (2, True)):
        clock.advance(timedelta(minutes=minutes))
        app.sweep()
        actions = {app.deliver(each.body, each.token).action for each in queue.take(SWEEP)}
        assert actions == ({"swept"} if is_swept else {"dropped"})


def test_a_sweep_that_has_ended_lets_the_next_one_begin(app: App, queue: NamedQueue, clock: ManualClock) -> None:
    """A minute later everything is looked at again."""
    app.sweep()
    deliver_sweeps(app, queue)
    clock.advance(MINUTE)
    app.sweep()
    assert {app.deliver(each.body, each.token).action for each in queue.take(SWEEP)} == {"swept"}


def test_without_a_queue_the_job_sweeps_itself(app: App, queue: NamedQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fallback, or a queue that comes back, that is what repairs tasks."""
    create = NamedQueue.create

    def refuse_sweeps(self: NamedQueue, message: QueueMessage) -> None:
        if message.body.startswith(SWEEP):
            raise QueueUnavailable("The queue", "for a test")
        create(self, message)

    monkeypatch.setattr(NamedQueue, "create", refuse_sweeps)
    assert app.sweep().dispatched == TASKS
    assert {each.name.partition("-")[2] for each in queue.messages} == {f"t{n}" for n in range(TASKS)}


def test_only_a_holder_of_the_secret_can_have_a_shard_swept(app: App) -> None:
    """A made-up token reads nothing, and a signed body that is none is refused for good."""
    body = SweepPart(0, NOW).body
    with pytest.raises(Unauthenticated):
        app.deliver(body, "made up")
    for wrong in (
        b'{"sweep":1}',
        b'{"sweep":{"shard":"x"}}',
        b'{"sweep":',
    ):
        with pytest.raises(InvalidInput):
            app.deliver(wrong, app.container.shard_sweeps._keys.sign(wrong))  # noqa: SLF001 - to sign what nobody signs


def test_a_sweep_with_threads_does_the_same(app: App, queue: NamedQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks at a time: each is repaired once, failures are counted, and an outage ends the sweep."""
    make = app.container._make_sweeper  # noqa: SLF001 - as the container makes one for a system clock
    parts = [make(shard) for shard in range(SHARDS)]
    for each in parts:
        each._threads = 4  # noqa: SLF001 - likewise
    assert sum(each.sweep().dispatched for each in parts) == TASKS
    assert Counter(each.name.partition("-")[2] for each in queue.messages) == {f"t{n}": 1 for n in range(TASKS)}
    monkeypatch.setattr(sweeper.Sweeper, "_repair", lambda *_: fail())
    with pytest.raises(StoreUnavailable):
        parts[0].sweep()
