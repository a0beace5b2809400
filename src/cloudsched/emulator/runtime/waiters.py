"""Callers that wait until a task is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.emulator.model.queue import Queue
    from cloudsched.emulator.model.task import Task


class CompletionWaiters:
    """A `QueueObserver` that wakes the callers that wait for a task when it ends."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[None]] = {}

    def on_queue_changed(self, queue: Queue) -> None:
        """See `QueueObserver`; nobody waits for a queue."""

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """See `QueueObserver`; the queue's tasks were reported one by one."""

    def on_task_changed(self, queue: Queue, task: Task) -> None:
        """See `QueueObserver`; nobody waits for the creation of a task."""

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
        """Wait until the task with that full name ends; return False if it did not within `seconds` of real time."""
        future = self._futures.get(name)
        if future is None or future.done():
            future = self._futures[name] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(future)
        except TimeoutError:
            return False
        return True
