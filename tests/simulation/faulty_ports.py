"""The ports of a history: the real store and queue model behind calls that fail, lose answers, repeat or crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tests.simulation.invariants_explanations import check_explanation
from tests.simulation.invariants_runs import fail

from cloudsched import Execution, Task, TaskQuery
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.pull import OfferEntry
from cloudsched.domain.documents.record import Record
from cloudsched.domain.transitions.commit import Commit, TaskWrite, Version, VersionedTask
from cloudsched.emulator.model.errors import RpcError
from cloudsched.emulator.model.task import HttpTarget
from cloudsched.emulator.model.task import Task as QueuedTask
from cloudsched.engine.ports.inbox import InboxStore
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.records import RecordStore, VersionedRecord
from cloudsched.engine.ports.search import SearchStore
from cloudsched.engine.ports.sweep import SweepStore
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict
from cloudsched.features.budgets.budget import Budget
from cloudsched.features.locks.lock import Lock, VersionedLock, Waiter
from cloudsched.features.locks.lock_store import LockStore

if TYPE_CHECKING:
    from tests.simulation.world import World


T = TypeVar("T")
R = TypeVar("R", bound="Record")

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


class _FaultyCalls:
    def __init__(self, world: World) -> None:
        self._world = world

    def _call(self, name: str, effect: Callable[[], T], *, is_commit: bool = False) -> T:
        """Make a call as the Firestore adapter does: it repeats what failed for contention or overload.

        A commit that took effect and is repeated conflicts with itself. When the deadline of the call is over, the code
        of the last try is raised, and the caller cannot know whether the call took effect.
        """
        world = self._world
        while True:
            world.yield_control()
            if world.is_faulty():
                code = world.random.choice(OVERLOAD_CODES)
                world.log(f"{name} does not reach the store: {code}")
                if world.is_deadline_over():
                    raise StoreUnavailable("Firestore", f"{code}: before it took effect")
                continue
            result = effect()
            world.maybe_crash(f"after {name}")
            if world.is_faulty():
                code = world.random.choice(OVERLOAD_CODES)
                world.log(f"{name} takes effect, and then fails: {code}")
                if world.is_deadline_over():
                    raise StoreUnavailable("Firestore", f"{code}: after it took effect")
                if is_commit:
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


class FaultyLocks(_FaultyCalls):
    """A `LockStore` with the same faults."""

    def load(self, key: str) -> VersionedLock:
        found: VersionedLock = self._call("load_lock", lambda: self._world.real_store.locks.load(key))
        return found

    def commit(self, lock: VersionedLock) -> None:
        def effect() -> None:
            self._world.real_store.locks.commit(lock)
            waiters = [
                (one.task_id, one.execution_id, str(one.due_at), str(one.notified_at)) for one in lock.lock.waiters
            ]
            self._world.pulls.on_lock_change(lock)
            self._world.log(f"commits lock {lock.lock.key} of {len(lock.lock.holders)}, waiting {waiters}")

        self._call("commit_lock", effect, is_commit=True)

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> Sequence[Waiter]:
        return self._call(
            "list_waiters",
            lambda: self._world.real_store.locks.list_waiters(
                key, limit=limit, task_ids=task_ids, worker_group=worker_group
            ),
        )

    def list_all(self, *, limit: int, begin: str = "", end: str | None = None, after: str = "") -> Sequence[Lock]:
        found: Sequence[Lock] = self._world.real_store.locks.list_all(limit=limit, begin=begin, end=end, after=after)
        return found


class FaultySweep(_FaultyCalls):
    """A `SweepStore` with the same faults, over so many shards."""

    def __init__(self, world: World, shards: int) -> None:
        super().__init__(world)
        self._shards = shards

    def list_due(
        self,
        before: datetime,
        *,
        since: datetime | None = None,
        shard: int | None = None,
        is_removal: bool = False,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        def effect() -> Page[Task]:
            size = limit if shard is None else 2  # so that a sweep of a shard has several parts
            page = self._world.real_store.sweep.list_due(
                before, since=since, is_removal=is_removal, limit=size, page_token=page_token
            )
            if shard is None:
                return page
            return replace(page, items=[each for each in page.items if self._world.shards.is_in(each.id, shard)])

        return self._call("due", effect)

    def count_shards(self) -> int:
        return self._world.shards.count_for(self._shards)

    def next_wakeup(self) -> datetime | None:
        return self._world.real_store.sweep.next_wakeup()

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


class FaultyStore(_FaultyCalls):
    """A `Store` whose every call may fail before or after it took effect, or crash its process."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.shards = 0
        """How many shards its process knows of; 0 for one of a version without them."""
        self._known: dict[str, VersionedTask] = {}

    @property
    def records(self) -> RecordStore:
        real = self._world.real_store.records
        profile = self._world.fault_profile
        is_faulty = profile.has_calendars or profile.has_channels or profile.has_budgets or profile.has_journeys
        return FaultyRecords(real, self._call, self._world) if is_faulty else real

    @property
    def inbox(self) -> InboxStore:
        return self._world.real_store.inbox

    @property
    def search(self) -> SearchStore:
        return self._world.real_store.search

    @property
    def locks(self) -> LockStore:
        return FaultyLocks(self._world)

    @property
    def sweep(self) -> SweepStore:
        return FaultySweep(self._world, self.shards)

    def make_id(self, at: datetime) -> str | None:
        return self._world.real_store.make_id(at)

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

        committed = self._call("commit", effect, is_commit=True)
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

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        return self._call("load_journal", lambda: self._world.real_store.load_journal(task_id, execution_id))

    def list_tasks(
        self, query: TaskQuery, *, limit: int, page_token: str | None = None, max_bytes: int = MAX_PAGE_BYTES
    ) -> Page[Task]:
        read = partial(
            self._world.real_store.list_tasks, query, limit=limit, page_token=page_token, max_bytes=max_bytes
        )
        return self._call("list_tasks", read)

    def list_offers(
        self, queue_keys: Sequence[str], owner: str | None = None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[OfferEntry]:
        def effect() -> Sequence[OfferEntry]:
            self._world.pulls.on_claim_request()
            return self._world.real_store.list_offers(queue_keys, owner, limit=limit, after=after)

        return self._call("list_offers", effect)

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        return self._call("load_many", lambda: self._world.real_store.load_many(task_ids))

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        return self._call("load_execution", lambda: self._world.real_store.load_execution(task_id, execution_id))

    def check(self) -> None:
        self._world.real_store.check()

    def close(self) -> None:
        """Do nothing: the world closes its store."""


class FaultyRecords:
    """A `RecordStore` with the same faults."""

    def __init__(self, real: RecordStore, call: Callable[..., Any], world: World) -> None:
        self._real, self._call, self._world = real, call, world

    def load(self, kind: type[R], record_id: str) -> VersionedRecord[R] | None:
        def effect() -> VersionedRecord[R] | None:
            stored = self._real.load(kind, record_id)
            if stored is not None and isinstance(stored.record, Budget):
                self._world.budgets.on_read(stored.record)
            return stored

        found: VersionedRecord[R] | None = self._call("load a record", effect)
        return found

    def write(self, record: Record, expected_version: Version | None) -> Version:
        def effect() -> Version:
            version = self._real.write(record, expected_version)
            if isinstance(record, Person):
                self._world.channels.on_person(record)
            return version

        version: Version = self._call(f"write {record.id}", effect, is_commit=True)
        return version

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        self._call("delete a record", lambda: self._real.delete(kind, record_id, expected_version), is_commit=True)

    def list_all(self, kind: type[R], *, limit: int, after: str = "") -> Sequence[R]:
        found: Sequence[R] = self._call("list all records", lambda: self._real.list_all(kind, limit=limit, after=after))
        return found

    def list(self, kind: type[R], owner: str, *, limit: int, after: str = "") -> Sequence[R]:
        found: Sequence[R] = self._call("list records", lambda: self._real.list(kind, owner, limit=limit, after=after))
        return found


class FaultyQueue:
    """A `Dispatcher` over the model of Cloud Tasks, with the same faults."""

    def __init__(self, world: World) -> None:
        self._world = world

    def create(self, message: QueueMessage) -> None:
        world = self._world
        target = HttpTarget("http://executor", headers={"X-Cloudsched-Token": message.token}, body=message.body)
        world.rules.on_dispatch(message)
        while True:
            world.yield_control()
            if world.is_faulty():
                code = world.random.choice(OVERLOAD_CODES)
                world.log(f"create does not reach the queue: {code}")
                if world.is_deadline_over():
                    raise QueueUnavailable("The queue", f"{code}: before it took effect")
                continue
            try:
                world.model.add(QueuedTask(message.name, target, max(message.at, world.now), world.now), world.now)
                world.log(f"creates a dispatch for {message.at}: {message.body.decode()}")
            except RpcError:
                world.log(f"finds that dispatch there already: {message.body.decode()}")
            world.maybe_crash("after create")
            if world.is_faulty():
                code = world.random.choice(OVERLOAD_CODES)
                world.log(f"create takes effect, and then fails: {code}")
                if world.is_deadline_over():
                    raise QueueUnavailable("The queue", f"{code}: after it took effect")
                continue
            if world.draw_yield():
                world.yield_control()
            return

    def close(self) -> None:
        """Do nothing: the model has nothing to close."""
