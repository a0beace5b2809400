"""All queues, as pure code: the operations of clients, and which queue dispatches next.

Like `queue.py`, it takes `now` as an argument and does no I/O. The queues' wake-ups lie in a heap of
their own, so that the cost of one dispatch grows neither with the number of queues nor with that of
tasks.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.model import names
from cloudsched.emulator.model.errors import (
    QUEUE_EXISTS,
    QUEUE_MISSING,
    QUEUE_TOO_RECENT,
    Code,
    RpcError,
    not_found,
)
from cloudsched.emulator.model.faults import Faults
from cloudsched.emulator.model.queue import CloudQueue, DispatchAttempt, QueueConfig
from cloudsched.emulator.model.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cloudsched.emulator.model.task import CloudTask, HttpResult

QUEUE_NAME_RETENTION: Final = timedelta(days=7)
"""The time that a queue's name stays taken after the queue was deleted."""


class BadQueue(ValueError):
    """A queue that is to be created at startup has no valid name. The message says which one."""


@dataclass(slots=True)
class Queues:
    """Every queue of every project and location."""

    auto_create_queues: bool = False
    faults: Faults = field(default_factory=Faults)
    queues: dict[str, CloudQueue] = field(default_factory=dict)
    deleted_at: dict[str, datetime] = field(default_factory=dict)
    _wakeups: list[tuple[datetime, int, CloudQueue]] = field(default_factory=list)
    _pushes: int = 0

    # Queues
    # ------------------------------------------------------------------------------------------------------

    def create_queue(self, name: str, config: QueueConfig, now: datetime) -> CloudQueue:
        """Create a queue."""
        names.check_queue(name)
        if name in self.queues:
            raise RpcError(Code.ALREADY_EXISTS, QUEUE_EXISTS)
        deleted_at = self.deleted_at.get(name)
        if deleted_at is not None and now - deleted_at < QUEUE_NAME_RETENTION:
            raise RpcError(Code.FAILED_PRECONDITION, QUEUE_TOO_RECENT)
        self.deleted_at.pop(name, None)
        queue = self.queues[name] = CloudQueue(
            name,
            config,
            TokenBucket.full(config.rate_limits, now),
            self.faults,
        )
        return queue

    def create_missing(self, declared: Iterable[str], now: datetime) -> None:
        """Create the queues with these full names that do not exist yet."""
        for name in declared:
            if name not in self.queues:
                try:
                    names.check_queue(name)
                except RpcError as error:
                    raise BadQueue(f"The queue {name!r}: {error.message}") from None
                self.create_queue(name, QueueConfig(), now)

    def get_queue(self, name: str) -> CloudQueue:
        """Return a queue."""
        queue = self.queues.get(name)
        if queue is None:
            names.check_queue(name)
            raise not_found(QUEUE_MISSING)
        return queue

    def list_queues(self, location: str) -> list[CloudQueue]:
        """Return the queues of one location, ordered by name."""
        prefix = f"{names.check_location(location)}/queues/"
        return [self.queues[name] for name in sorted(self.queues) if name.startswith(prefix)]

    def update_queue(
        self,
        name: str,
        change: Callable[[QueueConfig | None], QueueConfig],
        now: datetime,
    ) -> CloudQueue:
        """Change a queue's configuration, or create the queue. `change` gets the present one, or None."""
        queue = self.queues.get(name)
        if queue is None:
            return self.create_queue(name, change(None), now)
        queue.set_config(change(queue.config), now)
        self.reschedule(queue)
        return queue

    def delete_queue(self, name: str, now: datetime) -> None:
        """Delete a queue and all its tasks. Its name stays taken for days."""
        names.check_queue(name)
        if name not in self.queues:
            raise not_found()
        queue = self.queues.pop(name)
        queue.purge(now)
        self.deleted_at[name] = now
        queue.scheduled_wake_at = None

    def purge_queue(self, name: str, now: datetime) -> CloudQueue:
        """Delete all tasks of a queue."""
        queue = self.get_queue(name)
        queue.purge(now)
        self.reschedule(queue)
        return queue

    def pause_queue(self, name: str, *, paused: bool) -> CloudQueue:
        """Pause or resume dispatching. A paused queue still accepts tasks."""
        queue = self.get_queue(name)
        queue.paused = paused
        self.reschedule(queue)
        return queue

    # Tasks
    # -------------------------------------------------------------------------------------------------------

    def create_task(self, queue_name: str, task: CloudTask, now: datetime) -> None:
        """Add a task to a queue."""
        queue = self.queues.get(queue_name)
        if queue is None:
            if not self.auto_create_queues:
                names.check_queue(queue_name)
                raise not_found(QUEUE_MISSING)
            queue = self.create_queue(queue_name, QueueConfig(), now)
        queue.add(task, now)
        self.reschedule(queue)

    def find(self, queue_name: str) -> CloudQueue:
        """Return the queue of a task. The error does not say that it is the queue that is missing."""
        queue = self.queues.get(queue_name)
        if queue is None:
            raise not_found()
        return queue

    def set_faults(self, faults: Faults) -> None:
        """Inject these faults from now on. Tasks that are already queued keep their place."""
        self.faults = faults
        for queue in self.queues.values():
            queue.faults = faults

    # Dispatch and results
    # ----------------------------------------------------------------------------------------

    def take_due(self, now: datetime) -> list[DispatchAttempt]:
        """Dispatch everything that is due at this instant, earliest first within each queue."""
        sent: list[DispatchAttempt] = []
        while (at := self.next_wake()) is not None and at <= now:
            _, _, queue = heapq.heappop(self._wakeups)
            queue.scheduled_wake_at = None
            sent.extend(queue.take_due(now))
            self.reschedule(queue)
        return sent

    def next_wake(self) -> datetime | None:
        """Return the next instant at which anything is due, if nothing changes before. None if nothing waits."""
        wakes = self._wakeups
        while wakes:
            at, push, queue = wakes[0]
            if queue.scheduled_wake_at == at and queue.push_number == push:
                return at
            heapq.heappop(wakes)
        return None

    def finish_attempt(self, dispatch: DispatchAttempt, result: HttpResult, now: datetime) -> None:
        """Apply the result of one attempt."""
        queue = dispatch.queue
        queue.finish_attempt(dispatch, result, now)
        self.reschedule(queue)

    def rewind(self, now: datetime) -> None:
        """Adjust the queues after the clock was set back."""
        for queue in self.queues.values():
            queue.bucket.rewind(now)
            self.reschedule(queue)

    def reschedule(self, queue: CloudQueue) -> None:
        """Update the queue's wake-up, after each change of the queue."""
        at = queue.wake_at() if self.queues.get(queue.name) is queue else None
        if at == queue.scheduled_wake_at:
            return
        queue.scheduled_wake_at = at
        if at is not None:
            self._pushes += 1
            queue.push_number = self._pushes
            heapq.heappush(self._wakeups, (at, self._pushes, queue))
