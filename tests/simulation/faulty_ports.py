"""The world's ports: the real store and queue model behind calls that fail, lie, repeat themselves or never return."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cloudsched.emulator.model.errors import Refused
from cloudsched.emulator.model.task import HttpTarget
from cloudsched.emulator.model.task import Task as QueuedTask
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from tests.simulation.world import World

    from cloudsched import Execution, Task, TaskQuery
    from cloudsched.domain.documents.execution import Message
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.ports.queue import Envelope
    from cloudsched.engine.ports.store import Folded, Page, Stored, StoredLock, Version

T = TypeVar("T")


class DriftingClock:
    """A clock that is always so much off."""

    def __init__(self, world: World, drift: timedelta) -> None:
        self._world = world
        self._drift = drift

    def now(self) -> datetime:
        """Return what this process takes for the present."""
        return self._world.now + self._drift


class BreakableStore:
    """A `Store` whose every call may fail before or after it took effect, or be the last of its process."""

    def __init__(self, world: World) -> None:
        self._world = world

    def load(self, task_id: str) -> Stored | None:
        return self._call("load", lambda: self._world.inner.load(task_id))

    def commit(
        self,
        task: Task,
        expect: Version | None,
        executions: Sequence[Execution] = (),
        messages: Sequence[Message] = (),
        lock: StoredLock | None = None,
        *,
        entries: Sequence[JournalEntry] = (),
        folded: Sequence[Folded] = (),
    ) -> Version:
        def effect() -> Version:
            before = self._world.inner.load(task.id)
            version = self._world.inner.commit(task, expect, executions, messages, lock, entries=entries, folded=folded)
            self._world.say(
                f"commits {task.id} r{task.revision} {task.status} next={task.next_execution_time} "
                f"runs={[(r.execution_id, r.attempt, bool(r.lease), r.awaits, str(r.due_at)) for r in task.runs]} "
                f"offer={task.offer and (task.offer.lane, task.offer.order)} "
                f"journal={[f'{e.number} {e.kind} {e.status}' for e in entries]} "
                f"records={[(e.id, e.status.value) for e in executions]}"
            )
            old = before.task if before else None
            self._world.rules.committed(old, task, executions, messages)
            self._world.trees.committed(old, task, executions, entries)
            self._world.journals.committed(old, task, executions, entries, folded)
            self._world.pulls.committed(old, task, executions, lock)
            return version

        return self._call("commit", effect, is_commit=True)

    def load_lock(self, key: str) -> StoredLock:
        return self._call("load_lock", lambda: self._world.inner.load_lock(key))

    def commit_lock(self, lock: StoredLock) -> None:
        def effect() -> None:
            self._world.inner.commit_lock(lock)
            waiters = [(one.task_id, one.execution_id, str(one.due_at), str(one.woken_at)) for one in lock.lock.waiters]
            self._world.pulls.lock_changed(lock)
            self._world.say(f"commits lock {lock.lock.key} of {len(lock.lock.holders)}, waiting {waiters}")

        self._call("commit_lock", effect, is_commit=True)

    def journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        return self._call("journal", lambda: self._world.inner.journal(task_id, execution_id))

    def expire(self, now: datetime) -> int:
        return self._call("expire", lambda: self._world.inner.expire(now))

    def purge(self, task_id: str) -> None:
        def effect() -> None:
            before = self._world.inner.load(task_id)
            self._world.inner.purge(task_id)
            if self._world.inner.load(task_id) is None:
                self._world.rules.purged(before.task if before else None)

        self._call("purge", effect)

    def tasks(self, query: TaskQuery, *, limit: int, page_token: str | None = None) -> Page[Task]:
        return self._call("tasks", lambda: self._world.inner.tasks(query, limit=limit, page_token=page_token))

    def due(self, before: datetime, *, limit: int, page_token: str | None = None) -> Page[Task]:
        return self._call("due", lambda: self._world.inner.due(before, limit=limit, page_token=page_token))

    def offered(
        self, lanes: Sequence[str], owner: str | None = None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[Stored]:
        def effect() -> Sequence[Stored]:
            self._world.pulls.asked()
            return self._world.inner.offered(lanes, owner, limit=limit, after=after)

        return self._call("offered", effect)

    def next_wake(self) -> datetime | None:
        return self._world.inner.next_wake()

    def execution(self, task_id: str, execution_id: str) -> Execution | None:
        return self._call("execution", lambda: self._world.inner.execution(task_id, execution_id))

    def executions(self, task_id: str, *, limit: int, page_token: str | None = None) -> Page[Execution]:
        return self._world.inner.executions(task_id, limit=limit, page_token=page_token)

    def inbox(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        return self._world.inner.inbox(owner, limit=limit, page_token=page_token)

    def check(self) -> None:
        self._world.inner.check()

    def close(self) -> None:
        """The world closes its store."""

    def _call(self, name: str, effect: Callable[[], T], *, is_commit: bool = False) -> T:
        world = self._world
        world.hand_over()
        if world.is_faulty():
            world.say(f"{name} does not reach the store")
            raise StoreUnavailable("The store", "it was not reached")
        result = effect()
        world.maybe_die(f"after {name}")
        if world.is_faulty():
            if is_commit and world.random.random() < 0.5:
                world.say("the commit is made twice, and conflicts with itself")
                raise VersionConflict("the task")
            world.say(f"{name}'s answer is lost")
            raise StoreUnavailable("The store", "its answer was lost")
        return result


class BreakableQueue:
    """A `Dispatcher` over the model of Cloud Tasks, with the same troubles."""

    def __init__(self, world: World) -> None:
        self._world = world

    def create(self, envelope: Envelope) -> None:
        world = self._world
        world.hand_over()
        if world.is_faulty():
            world.say("create does not reach the queue")
            raise QueueUnavailable("The queue", "it was not reached")
        world.rules.dispatched(envelope)
        target = HttpTarget("http://executor", headers={"X-Cloudsched-Token": envelope.token}, body=envelope.body)
        for _ in range(2 if world.is_faulty() else 1):
            try:
                world.model.add(QueuedTask(envelope.name, target, max(envelope.at, world.now), world.now), world.now)
                world.say(f"creates a dispatch for {envelope.at}: {envelope.body.decode()}")
            except Refused:
                world.say(f"finds that dispatch there already: {envelope.body.decode()}")
        world.maybe_die("after create")
        if world.is_faulty():
            world.say("create's answer is lost")
            raise QueueUnavailable("The queue", "its answer was lost")

    def close(self) -> None:
        """The model needs no closing."""
