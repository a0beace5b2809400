"""One queue, as pure code: state + event + now -> state + dispatches.

Nothing here reads a clock, draws a random number or does I/O. Waiting tasks lie in a heap ordered by
their next attempt, so that the cost of a dispatch does not depend on how many wait. A heap entry is valid
while its ticket equals its task's. A task that is removed or rescheduled leaves a stale entry behind,
which is dropped when it reaches the top of the heap, or together with all others once more than half of
the entries are stale.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.model.errors import ENTITY_EXISTS, TASK_REMOVED, Code, RpcError, not_found
from cloudsched.emulator.model.faults import Faults
from cloudsched.emulator.model.task import (
    RETENTION,
    AttemptStatus,
    CloudTask,
    HttpResult,
    HttpTarget,
    RateLimits,
    RetryConfig,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.emulator.model.token_bucket import TokenBucket

_MAX_DOUBLINGS: Final = 60
"""2**60 of the shortest backoff (a microsecond) is 36,000 years: past any maximum."""


def backoff(config: RetryConfig, retry: int) -> timedelta:
    """Return how long to wait before retry number `retry`, counted from 1.

    Doubles `max_doublings` times, then grows linearly by the last doubled step, and never exceeds
    `max_backoff`.
    """
    if config.min_backoff <= timedelta(0):
        return timedelta(0)
    doublings = config.max_doublings
    doubled = 1 << min(retry - 1, doublings, _MAX_DOUBLINGS)
    factor = doubled * max(1, retry - doublings)
    if factor >= config.max_backoff / config.min_backoff:
        return config.max_backoff
    return factor * config.min_backoff


def is_exhausted(config: RetryConfig, attempts: int, first_dispatch_at: datetime, now: datetime) -> bool:
    """Return whether no further attempt follows.

    Both limits must be reached: the number of attempts and, if one is set, the duration since the first
    attempt. No limit on either means that the task is retried for as long as the service keeps it.
    """
    unlimited_attempts = config.max_attempts < 0
    unlimited_duration = config.max_retry_duration <= timedelta(0)
    if unlimited_attempts and unlimited_duration:
        return False
    attempts_spent = unlimited_attempts or attempts >= config.max_attempts
    duration_spent = unlimited_duration or now - first_dispatch_at >= config.max_retry_duration
    return attempts_spent and duration_spent


def next_attempt_at(
    config: RetryConfig, attempts: int, first_dispatch_at: datetime, result: HttpResult, now: datetime
) -> datetime | None:
    """Return when the attempt after `attempts` failed ones is due, or None if there is none.

    The target's `Retry-After` can only make the wait longer.
    """
    if is_exhausted(config, attempts, first_dispatch_at, now):
        return None
    wait = backoff(config, attempts)
    if result.retry_after is not None:
        wait = max(wait, result.retry_after)
    return now + wait


NAME_RETENTION: Final = timedelta(hours=24)
"""The default time that a task's name stays taken after the task is gone."""
_NO_FAULTS: Final = Faults()
_MAX_STALE: Final = 64
"""The number of stale entries that are kept whatever the size of the heap."""


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """The settings of a queue."""

    rate_limits: RateLimits = field(default_factory=RateLimits)
    retry_config: RetryConfig = field(default_factory=RetryConfig)
    stackdriver_logging_config: float | None = None
    """The ratio of operations to log, which is only shown again."""
    name_retention: timedelta = NAME_RETENTION
    """The time that a task's name stays taken after the task is gone. Clients cannot change it."""


@dataclass(frozen=True, slots=True, eq=False)
class DispatchAttempt:
    """One attempt to send: everything that the sender needs, fixed at the instant of dispatch."""

    queue: CloudQueue
    task: CloudTask
    target: HttpTarget
    attempt: int
    schedule_at: datetime
    dispatch_at: datetime
    deadline: timedelta
    retry_count: int
    execution_count: int
    previous_status: int | None

    @property
    def deadline_at(self) -> datetime:
        """The instant at which the sender stops waiting for a response."""
        return self.dispatch_at + self.deadline


@dataclass(slots=True, eq=False)
class CloudQueue:
    """One queue and its tasks."""

    name: str
    config: QueueConfig
    bucket: TokenBucket
    faults: Faults = _NO_FAULTS
    paused: bool = False
    purged_at: datetime | None = None
    tasks: dict[str, CloudTask] = field(default_factory=dict)
    running_attempts: int = 0
    """Attempts in progress, including those of tasks that are gone."""
    scheduled_wake_at: datetime | None = None
    """The wake-up that `Queues` holds for this queue. `push_number` identifies its heap entry."""
    push_number: int = 0
    _heap: list[tuple[datetime, int, CloudTask]] = field(default_factory=list)
    _stale_entries: int = 0
    _tickets: int = 0
    _numbers: int = 0
    _reserved_names: dict[str, datetime] = field(default_factory=dict)
    _reservations_by_expiry: deque[tuple[datetime, str]] = field(default_factory=deque)

    # Requests of clients
    # -----------------------------------------------------------------------------------------

    def add(self, task: CloudTask, now: datetime) -> None:
        """Add a new task."""
        if task.id in self.tasks or self.is_name_reserved(task.id, now):
            raise RpcError(Code.ALREADY_EXISTS, ENTITY_EXISTS)
        self._numbers += 1
        task.number = self._numbers
        self.tasks[task.id] = task
        self._enqueue(task)

    def get(self, task_id: str, now: datetime) -> CloudTask:
        """Return the task."""
        task = self.tasks.get(task_id)
        if task is not None and now >= self._expires_at(task):
            self._delete(task, now)
            task = None
        if task is None:
            raise not_found(TASK_REMOVED) if self.is_name_reserved(task_id, now) else not_found()
        return task

    def remove(self, task_id: str, now: datetime) -> None:
        """Delete a task, even while it runs. A response that arrives later changes nothing."""
        task = self._get_quietly(task_id, now)
        self._delete(task, now)

    def _get_quietly(self, task_id: str, now: datetime) -> CloudTask:
        """Return the task. An error does not say whether there was one recently."""
        try:
            return self.get(task_id, now)
        except RpcError:
            raise not_found() from None

    def purge(self, now: datetime) -> None:
        """Delete all tasks."""
        self.purged_at = now
        for task in list(self.tasks.values()):
            self._delete(task, now)

    def iter_tasks(self, after: int, now: datetime) -> Iterator[CloudTask]:
        """Iterate over the tasks with a number above `after`, in order of creation."""
        return (task for task in self.tasks.values() if task.number > after and now < self._expires_at(task))

    def run_now(self, task_id: str, now: datetime) -> DispatchAttempt:
        """Dispatch a task at once, regardless of the queue's state and rate."""
        task = self._get_quietly(task_id, now)
        task.schedule_at = now
        return self._send(task, now)

    def set_config(self, config: QueueConfig, now: datetime) -> None:
        """Replace the configuration."""
        self.config = config
        self.bucket.set_limits(config.rate_limits, now)

    # Dispatch
    # ----------------------------------------------------------------------------------------------------

    def take_due(self, now: datetime) -> Iterator[DispatchAttempt]:
        """Dispatch what is due, earliest first, as far as pause, concurrency and rate allow."""
        while not self.paused and self.running_attempts < self.config.rate_limits.max_concurrent_dispatches:
            first = self._peek()
            if first is None or first[0] > now:
                return
            task = first[2]
            if now >= self._expires_at(task):
                self._delete(task, now)
                continue
            if not self.bucket.take(now):
                return
            yield self._send(task, now)

    def wake_at(self) -> datetime | None:
        """Return the earliest instant at which `take_due` yields anything, if nothing changes before."""
        if self.paused or self.running_attempts >= self.config.rate_limits.max_concurrent_dispatches:
            return None
        first = self._peek()
        return None if first is None else max(first[0], self.bucket.ready_at())

    # Results
    # -----------------------------------------------------------------------------------------------------

    def finish_attempt(self, dispatch: DispatchAttempt, result: HttpResult, now: datetime) -> None:
        """Apply the result of one attempt: the task succeeds, waits for its next attempt, or is exhausted."""
        self.running_attempts -= 1
        self.bucket.on_response(result, now)
        task = dispatch.task
        task.running_attempts -= 1
        if self.tasks.get(task.id) is not task:
            return

        task.response_count += result.status is not None
        task.execution_count += result.status is not None and result.status < 500  # noqa: PLR2004 - 5xx is HTTP's
        task.previous_status = result.reported_status
        task.last_attempt = AttemptStatus(dispatch.schedule_at, dispatch.dispatch_at, now, result)
        if result.ok:
            self._delete(task, now)
            return
        if task.ticket:  # already rescheduled: by RunTask's dispatch or by a duplicate
            return

        retry = task.retry_config or self.config.retry_config
        at = next_attempt_at(retry, task.dispatch_count, task.first_dispatch_at or now, result, now)
        if at is None or at >= self._expires_at(task):
            self._delete(task, now)
        elif task.running_attempts == 0:
            task.schedule_at = at
            self._enqueue(task)

    def is_name_reserved(self, task_id: str, now: datetime) -> bool:
        """Return whether a task of that name is gone and its name still taken."""
        order = self._reservations_by_expiry
        while order and order[0][0] <= now:
            until, name = order.popleft()
            if self._reserved_names.get(name) == until:
                del self._reserved_names[name]
        return self._reserved_names.get(task_id, now) > now

    def duplicate(self, dispatch: DispatchAttempt) -> DispatchAttempt:
        """Return a duplicate of a dispatch. Its result must be reported as well."""
        self.running_attempts += 1
        dispatch.task.running_attempts += 1
        return replace(dispatch)

    # Heap and state
    # ----------------------------------------------------------------------------------------------

    def _expires_at(self, task: CloudTask) -> datetime:
        return task.created_at + RETENTION

    def _enqueue(self, task: CloudTask) -> None:
        self._tickets += 1
        task.ticket = self._tickets
        delay = self.faults.delay(task.id, task.dispatch_count + 1)
        task.delayed_until = task.schedule_at + delay if delay else None
        heapq.heappush(self._heap, (task.delayed_until or task.schedule_at, task.ticket, task))

    def _dequeue(self, task: CloudTask) -> None:
        if not task.ticket:
            return
        task.ticket = 0
        self._stale_entries += 1
        if self._stale_entries > max(_MAX_STALE, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[2].ticket == entry[1]]
            heapq.heapify(self._heap)
            self._stale_entries = 0

    def _peek(self) -> tuple[datetime, int, CloudTask] | None:
        heap = self._heap
        while heap:
            first = heap[0]
            if first[2].ticket == first[1]:
                return first
            heapq.heappop(heap)
            self._stale_entries -= 1
        return None

    def _send(self, task: CloudTask, now: datetime) -> DispatchAttempt:
        self._dequeue(task)
        dispatch = DispatchAttempt(
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

    def _delete(self, task: CloudTask, now: datetime) -> None:
        del self.tasks[task.id]
        self._dequeue(task)
        until = now + self.config.name_retention
        self._reserved_names[task.id] = until
        self._reservations_by_expiry.append((until, task.id))
