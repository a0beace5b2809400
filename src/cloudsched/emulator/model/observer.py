"""What the model reports as it changes: to the journal, to whoever waits for a task, to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.emulator.model.task import Task

Queue_contra = TypeVar("Queue_contra", contravariant=True)
"""A queue. It is a parameter, since `queue.py` imports this module."""


class Log(Protocol[Queue_contra]):
    """Hears of each change of the model, in its order, after it was made."""

    def queue_put(self, queue: Queue_contra) -> None:
        """A queue is new, or its configuration or state is."""

    def queue_gone(self, name: str, at: datetime) -> None:
        """A queue was deleted, and all that was in it."""

    def task_put(self, queue: Queue_contra, task: Task) -> None:
        """A task is new, or waits for another attempt."""

    def task_gone(self, queue: Queue_contra, task: Task, until: datetime) -> None:
        """A task is done, given up or deleted; its name stays taken until then."""


class Logs(Generic[Queue_contra]):
    """Tells several logs; none of them, as a rule."""

    def __init__(self, *logs: Log[Queue_contra]) -> None:
        self._logs = logs

    def queue_put(self, queue: Queue_contra) -> None:
        """See `Log`."""
        for log in self._logs:
            log.queue_put(queue)

    def queue_gone(self, name: str, at: datetime) -> None:
        """See `Log`."""
        for log in self._logs:
            log.queue_gone(name, at)

    def task_put(self, queue: Queue_contra, task: Task) -> None:
        """See `Log`."""
        for log in self._logs:
            log.task_put(queue, task)

    def task_gone(self, queue: Queue_contra, task: Task, until: datetime) -> None:
        """See `Log`."""
        for log in self._logs:
            log.task_gone(queue, task, until)
