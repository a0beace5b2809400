"""One queue, pure: state + event + now -> state + what to send.

Nothing here reads a clock, draws a random number or does I/O. Waiting tasks lie in a heap by the instant of their
next attempt, so that the cost of one dispatch does not depend on how many wait. An entry of the heap is live while its
ticket is its task's; a task that was removed or put elsewhere leaves a dead entry behind, which is dropped when it
comes up, or all at once when the dead outnumber the living.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.emulator.model.errors import ENTITY_EXISTS, TASK_REMOVED, Code, RpcError, not_found
from cloudsched.emulator.model.faults import Faults
from cloudsched.emulator.model.observer import CompositeObserver, QueueObserver
from cloudsched.emulator.model.retry import next_attempt_at
from cloudsched.emulator.model.task import (
    Answer,
    AppEngineRouting,
    AttemptStatus,
    RateLimits,
    RetryConfig,
    Target,
    Task,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.emulator.model.token_bucket import TokenBucket

NAME_RETENTION: Final = timedelta(hours=24)
"""How long a task's name stays taken after the task is gone."""
_NO_FAULTS: Final = Faults()
_NO_OBSERVER: Final[CompositeObserver[Any]] = CompositeObserver()


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """What a queue's owner sets."""

    rate_limits: RateLimits = field(default_factory=RateLimits)
    retry_config: RetryConfig = field(default_factory=RetryConfig)
    app_engine_routing: AppEngineRouting | None = None
    http_target: Any = None
    """The queue's HTTP override, kept as it came; `override.py` applies it."""
    logging_ratio: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """One attempt to be sent: everything that the sender needs, fixed at the instant of sending."""

    queue: Queue
    task: Task
    target: Target
    attempt: int
    schedule_at: datetime
    dispatch_at: datetime
    deadline: timedelta
    retry_count: int
    execution_count: int
    previous_status: int | None

    @property
    def deadline_at(self) -> datetime:
        """When the sender stops to wait for an answer."""
        return self.dispatch_at + self.deadline


@dataclass(slots=True, eq=False)
class Queue:
    """One queue and its tasks."""

    name: str
    config: QueueConfig
    bucket: TokenBucket
    faults: Faults = _NO_FAULTS
    observer: QueueObserver[Queue] = _NO_OBSERVER
    paused: bool = False
    purged_at: datetime | None = None
    tasks: dict[str, Task] = field(default_factory=dict)
    running_attempts: int = 0
    """Attempts that were sent and not yet answered, of tasks that may be gone since."""
    scheduled_wake_at: datetime | None = None
    """The wake-up that the board holds for this queue, and in `push_number` which of its entries that is."""
    push_number: int = 0
    _heap: list[tuple[datetime, int, Task]] = field(default_factory=list)
    _stale_entries: int = 0
    _tickets: int = 0
    _numbers: int = 0
    _reserved_names: dict[str, datetime] = field(default_factory=dict)
    _reservations_by_expiry: deque[tuple[datetime, str]] = field(default_factory=deque)

    # What the clients do ---------------------------------------------------------------------------------------

    def add(self, task: Task, now: datetime) -> None:
        """Take a new task.

        Raises:
            Refused: ALREADY_EXISTS if its name is taken, by a task or by one that is gone since less than a day.
        """
        if self.is_name_taken(task.id, now):
            raise RpcError(Code.ALREADY_EXISTS, ENTITY_EXISTS)
        self._numbers += 1
        task.number = self._numbers
        self.tasks[task.id] = task
        self._enqueue(task)
        self.observer.on_task_changed(self, task)

    def get(self, task_id: str, now: datetime) -> Task:
        """Return the task.

        Raises:
            Refused: NOT_FOUND if there is none; the text tells whether there was one lately.
        """
        task = self.tasks.get(task_id)
        if task is not None and now >= task.expires_at:
            self._delete(task, now)
            task = None
        if task is None:
            raise not_found(TASK_REMOVED) if self.is_name_reserved(task_id, now) else not_found()
        return task

    def remove(self, task_id: str, now: datetime) -> None:
        """Delete a task, also while it runs; an answer that comes later changes nothing.

        Raises:
            Refused: NOT_FOUND if there is none.
        """
        try:
            task = self.get(task_id, now)
        except RpcError:
            raise not_found() from None
        self._delete(task, now)

    def purge(self, now: datetime) -> None:
        """Delete all tasks."""
        self.purged_at = now
        for task in list(self.tasks.values()):
            self._delete(task, now)

    def iter_tasks(self, after: int, now: datetime) -> Iterator[Task]:
        """The tasks that were created after that number, in the order of their creation."""
        return (task for task in self.tasks.values() if task.number > after and now < task.expires_at)

    def run_now(self, task_id: str, now: datetime) -> Dispatch:
        """Send a task at once, whatever the queue's state and rate.

        Raises:
            Refused: NOT_FOUND if there is none.
        """
        try:
            task = self.get(task_id, now)
        except RpcError:
            raise not_found() from None
        task.schedule_at = now
        return self._send(task, now)

    def set_config(self, config: QueueConfig, now: datetime) -> None:
        """Go on with another configuration."""
        self.config = config
        self.bucket.set_limits(config.rate_limits, now)

    # What time does --------------------------------------------------------------------------------------------

    def take_due(self, now: datetime) -> Iterator[Dispatch]:
        """Send, earliest first, what is due and allowed by the pause, the concurrency and the rate."""
        while not self.paused and self.running_attempts < self.config.rate_limits.max_concurrent_dispatches:
            first = self._peek()
            if first is None or first[0] > now:
                return
            task = first[2]
            if now >= task.expires_at:
                self._delete(task, now)
                continue
            if not self.bucket.take(now):
                return
            yield self._send(task, now)

    def wake_at(self) -> datetime | None:
        """The earliest instant at which `take_due` has something, if nothing else happens before."""
        if self.paused or self.running_attempts >= self.config.rate_limits.max_concurrent_dispatches:
            return None
        first = self._peek()
        return None if first is None else max(first[0], self.bucket.ready_at())

    # What the target does --------------------------------------------------------------------------------------

    def finish_attempt(self, dispatch: Dispatch, result: Answer, now: datetime) -> bool:
        """Settle one attempt: the task is done, waits for its next attempt, or is given up.

        Returns:
            Whether the task ended by it.
        """
        self.running_attempts -= 1
        self.bucket.on_response(result, now)
        task = dispatch.task
        task.running_attempts -= 1
        if self.tasks.get(task.id) is not task:
            return False
        task.response_count += result.status is not None
        task.execution_count += result.status is not None and result.status < 500  # noqa: PLR2004 - 5xx is HTTP's
        task.previous_status = result.reported_status
        task.last_attempt = AttemptStatus(dispatch.schedule_at, dispatch.dispatch_at, now, result)
        if result.ok:
            self._delete(task, now)
            return True
        if task.ticket:  # it was run by hand while it waited on, or its other attempt has put it back already
            return False
        retry = task.retry_config or self.config.retry_config
        at = next_attempt_at(retry, task.dispatch_count, task.first_dispatch_at or now, result, now)
        if at is None or at >= task.expires_at:
            self._delete(task, now)
            return True
        if task.running_attempts == 0:
            task.schedule_at = at
            self._enqueue(task)
        self.observer.on_task_changed(self, task)
        return False

    def is_name_taken(self, task_id: str, now: datetime) -> bool:
        """Whether a name is taken, by a task or by one that is gone since less than a day."""
        return task_id in self.tasks or self.is_name_reserved(task_id, now)

    def is_name_reserved(self, task_id: str, now: datetime) -> bool:
        """Whether a task of that name is gone, but its name still taken."""
        order = self._reservations_by_expiry
        while order and order[0][0] <= now:
            until, gone = order.popleft()
            if self._reserved_names.get(gone) == until:
                del self._reserved_names[gone]
        return task_id in self._reserved_names

    def iter_reserved_names(self) -> Iterator[tuple[str, datetime]]:
        """The names of tasks that are gone, in the order in which they become free."""
        return (
            (task_id, until)
            for until, task_id in self._reservations_by_expiry
            if self._reserved_names.get(task_id) == until
        )

    def restore(self, task: Task) -> None:
        """Put a task as it was: a new one, or one that has changed since."""
        known = self.tasks.get(task.id)
        if known is not None:
            self._dequeue(known)
        self._numbers += 1
        task.number = known.number if known is not None else self._numbers
        self.tasks[task.id] = task
        self._enqueue(task)

    def drop(self, task_id: str) -> None:
        """Take a task away, if it is there, without a trace."""
        task = self.tasks.pop(task_id, None)
        if task is not None:
            self._dequeue(task)

    def reserve_name(self, task_id: str, until: datetime) -> None:
        """Keep a name taken until then; to be called in the order of those instants."""
        self._reserved_names[task_id] = until
        self._reservations_by_expiry.append((until, task_id))

    def duplicate(self, dispatch: Dispatch) -> Dispatch:
        """The same attempt once more: a duplicate delivery, which must be answered as well."""
        self.running_attempts += 1
        dispatch.task.running_attempts += 1
        return replace(dispatch)

    # Inside ----------------------------------------------------------------------------------------------------

    def _enqueue(self, task: Task) -> None:
        self._tickets += 1
        task.ticket = self._tickets
        delay = self.faults.delay(task.id, task.dispatch_count + 1)
        task.delayed_until = task.schedule_at + delay if delay else None
        heapq.heappush(self._heap, (task.delayed_until or task.schedule_at, task.ticket, task))

    def _dequeue(self, task: Task) -> None:
        if task.ticket:
            task.ticket = 0
            self._stale_entries += 1
            if self._stale_entries > 64 and self._stale_entries > len(self._heap) // 2:  # noqa: PLR2004 - small heaps need no care
                self._heap = [entry for entry in self._heap if entry[2].ticket == entry[1]]
                heapq.heapify(self._heap)
                self._stale_entries = 0

    def _peek(self) -> tuple[datetime, int, Task] | None:
        waiting = self._heap
        while waiting:
            first = waiting[0]
            if first[2].ticket == first[1]:
                return first
            heapq.heappop(waiting)
            self._stale_entries -= 1
        return None

    def _send(self, task: Task, now: datetime) -> Dispatch:
        self._dequeue(task)
        dispatch = Dispatch(
            queue=self,
            task=task,
            target=task.target,
            attempt=task.dispatch_count + 1,
            schedule_at=task.schedule_at,
            dispatch_at=now,
            deadline=task.dispatch_deadline,
            retry_count=task.dispatch_count,
            execution_count=task.execution_count,
            previous_status=task.previous_status,
        )
        task.dispatch_count += 1
        task.running_attempts += 1
        self.running_attempts += 1
        task.first_dispatch_at = task.first_dispatch_at or now
        task.last_attempt = AttemptStatus(dispatch.schedule_at, now)
        return dispatch

    def _delete(self, task: Task, now: datetime) -> None:
        del self.tasks[task.id]
        self._dequeue(task)
        until = now + NAME_RETENTION
        self.reserve_name(task.id, until)
        self.observer.on_task_removed(self, task, until)
