"""The ports of a history: the real store and queue model behind calls that fail, lose answers, repeat or crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tests.simulation.invariants_explanations import check_explanation
from tests.simulation.invariants_runs import fail

from cloudsched import Execution, Task
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.record import Record
from cloudsched.domain.transitions.commit import Commit, TaskWrite, Version, VersionedTask
from cloudsched.emulator.model.errors import RpcError
from cloudsched.emulator.model.task import CloudTask as QueuedTask
from cloudsched.emulator.model.task import HttpTarget
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.records import VersionedRecord
from cloudsched.engine.storage.pages import Page
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict
from cloudsched.features.budgets.budget import Budget
from cloudsched.features.locks.lock import VersionedLock

if TYPE_CHECKING:
    from tests.simulation.world import World


T = TypeVar("T")

OVERLOAD_CODES = ("ABORTED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED")
"""What the adapters of Google's services take for contention, overload or an outage."""


class DriftingClock:
    """A machine's clock, with an error that is corrected now and then, so that it may go back.

    Args:
        error: By how much it is wrong besides, and stays so.
    """

    def __init__(self, world: World, error: timedelta = timedelta(0)) -> None:
        self._world = world
        self._error = error
        self._drift = self._draw_drift()

    def now(self) -> datetime:
        """Return the time as this process sees it."""
        world = self._world
        if world.fault_profile.drift and world.faults_enabled and world.random.random() < world.fault_profile.steps:
            before, self._drift = self._drift, self._draw_drift()
            world.log(f"its clock is set by {self._drift - before}")
        return world.now + self._drift

    def _draw_drift(self) -> timedelta:
        return self._error + self._world.fault_profile.drift * (2 * self._world.random.random() - 1)


class FaultyPort:
    """A port whose every call may fail before or after it took effect, be made twice, or crash its process."""

    service = "Firestore"
    unavailable: type[StoreUnavailable | QueueUnavailable] = StoreUnavailable
    commits: frozenset[str] = frozenset()
    """The calls that conflict with themselves when they are repeated after they took effect."""
    spared: frozenset[str] = frozenset()
    """What never fails: the store's own parts, and what only the world asks for."""

    def __init__(self, world: World, real: object) -> None:
        self._world, self._real = world, real

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the port has
        method = getattr(self._real, name)
        if name in self.spared:
            return method
        return lambda *arguments, **named: self._call(name, partial(method, *arguments, **named))

    def _call(self, name: str, effect: Callable[[], T]) -> T:
        """Make a call as the adapters do: they repeat what failed for contention or overload.

        A commit that took effect and is repeated conflicts with itself. When the deadline of the call is over, the code
        of the last try is raised, and the caller cannot know whether the call took effect.
        """
        world = self._world
        while True:
            world.yield_control()
            if world.is_faulty():
                code = world.random.choice(OVERLOAD_CODES)
                world.log(f"{name} does not reach {self.service}: {code}")
                if world.is_deadline_over():
                    raise self.unavailable(self.service, f"{code}: before it took effect")
                continue
            result = effect()
            world.maybe_crash(f"after {name}")
            if world.is_faulty():
                code = world.random.choice(OVERLOAD_CODES)
                world.log(f"{name} takes effect, and then fails: {code}")
                if world.is_deadline_over():
                    raise self.unavailable(self.service, f"{code}: after it took effect")
                if name in self.commits:
                    world.yield_control()
                    raise VersionConflict("the task")
                continue
            if world.draw_yield():
                world.yield_control()
            return result


def _describe_commit(task: Task, executions: Sequence[Execution], entries: Sequence[JournalEntry]) -> str:
    """Return the line of a commit in a history that failed."""
    runs = [(run.execution_id, run.attempt, bool(run.lease), run.waiting_for, str(run.due_at)) for run in task.runs]
    return (
        f"commits {task.id} r{task.revision} {task.status} next={task.next_execution_time} runs={runs} "
        f"offer={task.offer and (task.offer.queue_key, task.offer.order)} "
        f"journal={[f'{each.number} {each.kind} {each.status}' for each in entries]} "
        f"records={[(each.id, each.status.value, each.covers) for each in executions]} "
        f"backlog={[(str(each.next_at), str(each.until)) for each in task.backlog]} from={task.plan_from}"
    )


class FaultyLocks(FaultyPort):
    """A `LockStore` with faults."""

    commits = frozenset({"commit"})
    spared = frozenset({"list_all"})

    def commit(self, lock: VersionedLock) -> None:
        def effect() -> None:
            self._world.real_store.locks.commit(lock)
            waiters = [
                (one.task_id, one.execution_id, str(one.due_at), str(one.notified_at)) for one in lock.lock.waiters
            ]
            self._world.pulls.on_lock_change(lock)
            self._world.log(f"commits lock {lock.lock.key} of {len(lock.lock.holders)}, waiting {waiters}")

        self._call("commit", effect)


class FaultySweep(FaultyPort):
    """A `SweepStore` with faults, over so many shards."""

    spared = frozenset({"next_wakeup"})

    def __init__(self, world: World, shards: int) -> None:
        super().__init__(world, world.real_store.sweep)
        self._shards = shards

    def list_due(self, before: datetime, *, shard: int | None = None, limit: int, **more: Any) -> Page[Task]:
        def effect() -> Page[Task]:
            size = limit if shard is None else 2  # so that a sweep of a shard has several parts
            page = self._world.real_store.sweep.list_due(before, limit=size, **more)
            if shard is None:
                return page
            return replace(page, items=[each for each in page.items if self._world.shards.is_in(each.id, shard)])

        return self._call("due", effect)

    def count_shards(self) -> int:
        return self._world.shards.count_for(self._shards)

    def expire(self, now: datetime) -> int:
        def effect() -> int:
            count = self._world.real_store.sweep.expire(now)
            for task in list(self._world.committed.values()):
                self._note_removed(task.id, task)
            return count

        return self._call("expire", effect)

    def purge(self, task_id: str) -> None:
        def effect() -> None:
            before = self._world.real_store.load(task_id)
            self._world.real_store.sweep.purge(task_id)
            self._note_removed(task_id, before.task if before else None)

        self._call("purge", effect)

    def remove(self, ended: VersionedTask) -> bool:
        def effect() -> bool:
            is_gone = self._world.real_store.sweep.remove(ended)
            self._note_removed(ended.task.id, ended.task)
            return is_gone

        return self._call("remove", effect)

    def _note_removed(self, task_id: str, before: Task | None) -> None:
        """Tell the invariants of a task's removal, if it is gone: none of its records may be left."""
        if self._world.real_store.load(task_id) is not None:
            return
        assert not self._world.real_store.search.list_executions(task_id, limit=1).items, (
            f"{task_id} is gone without its records"
        )
        self._world.on_write()
        self._world.committed.pop(task_id, None)
        self._world.rules.on_purge(before)
        self._world.backlogs.on_purge(before)


class FaultyStore(FaultyPort):
    """A `Store` with faults, which tells the invariants what is committed."""

    commits = frozenset({"commit"})
    spared = frozenset({"inbox", "search", "make_id", "check"})

    def __init__(self, world: World) -> None:
        super().__init__(world, world.real_store)
        self.shards = 0
        """How many shards its process knows of; 0 for one of a version without them."""
        self._known: dict[str, VersionedTask] = {}

    @property
    def records(self) -> Any:  # noqa: ANN401 - a `RecordStore`
        profile = self._world.fault_profile
        is_faulty = profile.has_calendars or profile.has_channels or profile.has_budgets or profile.has_journeys
        real = self._world.real_store.records
        return FaultyRecords(self._world, real) if is_faulty else real

    @property
    def locks(self) -> FaultyLocks:
        return FaultyLocks(self._world, self._world.real_store.locks)

    @property
    def sweep(self) -> FaultySweep:
        return FaultySweep(self._world, self.shards)

    def load(self, task_id: str) -> VersionedTask | None:
        def effect() -> VersionedTask | None:
            stored = self._world.real_store.load(task_id)
            self._world.trees.on_load(task_id)
            return stored and replace(stored, read_at=self._world.now)

        found = self._call("load", effect)
        if found is not None:
            self._known[task_id] = replace(found, read_at=None)
        return found

    def recall(self, task_id: str) -> VersionedTask | None:
        return self._known.get(task_id)

    def commit(self, commit: Commit) -> VersionedTask:
        def effect() -> VersionedTask:
            old = self._world.committed.get(commit.task.id)
            before = {each.task.id: self._world.committed.get(each.task.id) for each in (commit, *commit.others)}
            committed = self._world.real_store.commit(commit)
            for each in (commit, *commit.others):
                if (each.base and each.base.task) != before[each.task.id]:
                    fail(f"the base of {each.task.id} is not what is stored")
            self._check(commit, old)
            return committed

        committed = self._call("commit", effect)
        self._known[commit.task.id] = committed
        return committed

    def _check(self, commit: Commit, old: Task | None) -> None:
        world, task, executions, entries = self._world, commit.task, commit.executions, commit.entries
        world.on_write()
        world.on_commit(task, entries)
        world.documents.on_commit(commit)
        for each in (commit, *commit.others):
            world.shards.on_commit(each.task.id, self.shards)
        for other in commit.others:
            self._on_other_task(other)
        world.log(partial(_describe_commit, task, executions, entries))
        world.channels.on_commit(task, executions, commit.others, commit.messages)
        world.follow_ups.on_commit(task, executions, [each for each in commit.others if not each.task.delivery])
        world.rules.on_commit(old, task, executions, commit.messages)
        if task.delivery is None:
            world.trees.on_commit(old, task, executions, entries)
        world.journals.on_commit(old, task, executions, entries, commit.archived)
        world.pulls.on_commit(old, task, executions, cast("VersionedLock | None", commit.linked))
        world.backlogs.on_commit(old, task, executions)
        world.calendars.on_commit(old, task, executions)
        world.journeys.on_commit(old, task, executions)
        world.budgets.on_commit(old, task, executions)
        world.failures.on_commit(old, task, executions, commit.messages)
        check_explanation(task, world.now)

    def _on_other_task(self, other: TaskWrite) -> None:
        """Apply the invariants to a task that is written in another one's commit."""
        old = None if other.base is None else other.base.task
        self._world.on_commit(other.task, ())
        self._world.log(f"with {other.task.id} r{other.task.revision} {'created' if old is None else 'edited'}")
        with self._world.rules.as_request("create"):
            self._world.rules.on_commit(old, other.task, other.executions, ())
        if other.task.delivery is None:
            self._world.trees.on_commit(old, other.task, other.executions, ())
        self._world.journals.on_commit(old, other.task, other.executions, (), ())
        self._world.pulls.on_commit(old, other.task, other.executions, None)

    def list_offers(self, queue_keys: Sequence[str], owner: str | None = None, **more: Any) -> Sequence[Any]:
        def effect() -> Sequence[Any]:
            self._world.pulls.on_claim_request()
            return self._world.real_store.list_offers(queue_keys, owner, **more)

        return self._call("list_offers", effect)

    def close(self) -> None:
        """Do nothing: the world closes its store."""


class FaultyRecords(FaultyPort):
    """A `RecordStore` with faults."""

    commits = frozenset({"write", "delete"})

    def load(self, kind: type[Record], record_id: str) -> VersionedRecord[Record] | None:
        def effect() -> VersionedRecord[Record] | None:
            stored = self._world.real_store.records.load(kind, record_id)
            if stored is not None and isinstance(stored.record, Budget):
                self._world.budgets.on_read(stored.record)
            return stored

        return self._call("load", effect)

    def write(self, record: Record, expected_version: Version | None) -> Version:
        def effect() -> Version:
            version = self._world.real_store.records.write(record, expected_version)
            if isinstance(record, Person):
                self._world.channels.on_person(record)
            return version

        return self._call("write", effect)


class FaultyQueue(FaultyPort):
    """A `Dispatcher` over the model of Cloud Tasks, with faults."""

    service = "The queue"
    unavailable = QueueUnavailable

    def __init__(self, world: World) -> None:
        super().__init__(world, None)

    def create(self, message: QueueMessage) -> None:
        world = self._world
        target = HttpTarget("http://executor", headers={"X-Cloudsched-Token": message.token}, body=message.body)
        world.rules.on_dispatch(message)

        def effect() -> None:
            try:
                world.model.add(QueuedTask(message.name, target, max(message.at, world.now), world.now), world.now)
                world.log(f"creates a dispatch for {message.at}: {message.body.decode()}")
            except RpcError:
                world.log(f"finds that dispatch there already: {message.body.decode()}")

        self._call("create", effect)

    def close(self) -> None:
        """Do nothing: the model has nothing to close."""
