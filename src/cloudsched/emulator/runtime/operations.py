"""The control operations, for Python and for HTTP. They run in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.emulator.model import names
from cloudsched.emulator.model.errors import RpcError
from cloudsched.emulator.runtime.history import Attempt, Explanation, History, explain

if TYPE_CHECKING:
    from cloudsched.emulator.model.queue import Queue
    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.model.task import Task
    from cloudsched.emulator.runtime.clock import MovableClock
    from cloudsched.emulator.runtime.dispatcher import Dispatcher
    from cloudsched.emulator.write_ahead_log import WriteAheadLog


class CompletionWaiters:
    """A `QueueObserver` that wakes the callers that wait for a task when it ends."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[None]] = {}

    def on_queue_changed(self, queue: Queue) -> None:
        """See `QueueObserver`. Nobody waits for a queue."""

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """See `QueueObserver`. The queue's tasks were reported one by one."""

    def on_task_changed(self, queue: Queue, task: Task) -> None:
        """See `QueueObserver`. Nobody waits for the creation of a task."""

    def on_task_removed(self, queue: Queue, task: Task, until: datetime) -> None:  # noqa: ARG002 - the observer's signature
        """See `QueueObserver`."""
        future = self._futures.pop(f"{queue.name}/tasks/{task.id}", None) if self._futures else None
        if future is not None and not future.done():
            future.set_result(None)

    def release_all(self) -> None:
        """Wake all callers: everything was deleted."""
        for future in self._futures.values():
            if not future.done():
                future.set_result(None)
        self._futures.clear()

    async def wait(self, name: str, seconds: float) -> bool:
        """Wait until the task with that full name ends. Return False if it did not within `seconds` of real time."""
        future = self._futures.get(name)
        if future is None or future.done():
            future = self._futures[name] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(future)
        except TimeoutError:
            return False
        return True


class UnknownTask(LookupError):
    """There is no such task, and was none recently."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no task {name!r}, and there was none recently.")


class StillWaiting(TimeoutError):
    """The task was not done in time.

    Attributes:
        explanation: The reason why the task waits, and the time of its next dispatch.
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        super().__init__(f"{explanation.name} is not done. {explanation.text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorParts:
    """The parts of a running emulator."""

    queues: Queues
    clock: MovableClock
    dispatcher: Dispatcher
    """Sends the tasks and advances the clock."""
    history: History
    """The attempts."""
    waiters: CompletionWaiters
    """Callers that wait for tasks."""
    declared: Sequence[str]
    """The queues to create again after a reset."""
    wal: WriteAheadLog | None
    """The write-ahead log, if the queues are persistent."""


class ControlOperations:
    """The operations of the control API."""

    def __init__(self, parts: EmulatorParts) -> None:
        self.parts = parts

    def list_waiting(self, queue: str = "") -> list[Explanation]:
        """Explain every unfinished task of all queues, or of the one with that full name."""
        now = self.parts.clock.now()
        return [
            explain(one, task, now)
            for one in self.parts.queues.queues.values()
            if queue in {"", one.name}
            for task in one.iter_tasks(0, now)
        ]

    def explain(self, name: str) -> Explanation | None:
        """Explain why a task waits. Return None if it is done.

        Raises:
            UnknownTask: if there is no such task, and was none recently.
        """
        now = self.parts.clock.now()
        try:
            queue_name, task_id = names.split_task(name)
            queue = self.parts.queues.get_queue(queue_name)
        except RpcError:
            raise UnknownTask(name) from None
        try:
            return explain(queue, queue.get(task_id, now), now)
        except RpcError:
            if queue.is_name_reserved(task_id, now):
                return None
            raise UnknownTask(name) from None

    async def wait(self, name: str, seconds: float) -> list[Attempt]:
        """Wait until a task succeeds, is exhausted or is deleted. Return its attempts.

        Raises:
            StillWaiting: if that takes longer than `seconds` of real time.
            UnknownTask: if there is no such task, and was none recently.
        """
        if self.explain(name) is not None and not await self.parts.waiters.wait(name, seconds):
            explanation = self.explain(name)
            if explanation is not None:
                raise StillWaiting(explanation)
        return self.parts.history.attempts(task=name)

    async def reset(self) -> None:
        """Delete all tasks, queues, names and attempts, and create the declared queues again. The clock stays."""
        await self.parts.dispatcher.abandon()
        self.parts.queues.clear()
        if self.parts.wal is not None:
            self.parts.wal.append_reset()
        self.parts.history.clear()
        self.parts.waiters.release_all()
        self.parts.dispatcher.delivered = 0
        self.parts.queues.create_missing(self.parts.declared, self.parts.clock.now())
        if self.parts.wal is not None and (synced := self.parts.wal.wait_for_sync()) is not None:
            await synced
