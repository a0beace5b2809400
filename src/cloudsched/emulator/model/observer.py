"""What the model reports as it changes: to the journal, to whoever waits for a task, to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.emulator.model.task import Task

Queue_contra = TypeVar("Queue_contra", contravariant=True)
"""A queue. It is a parameter, since `queue.py` imports this module."""


class QueueObserver(Protocol[Queue_contra]):
    """Hears of each change of the model, in its order, after it was made."""

    def on_queue_changed(self, queue: Queue_contra) -> None:
        """A queue is new, or its configuration or state is."""

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """A queue was deleted, and all that was in it."""

    def on_task_changed(self, queue: Queue_contra, task: Task) -> None:
        """A task is new, or waits for another attempt."""

    def on_task_removed(self, queue: Queue_contra, task: Task, until: datetime) -> None:
        """A task is done, given up or deleted; its name stays taken until then."""


class CompositeObserver(Generic[Queue_contra]):
    """Tells several logs; none of them, as a rule."""

    def __init__(self, *observers: QueueObserver[Queue_contra]) -> None:
        self._observers = observers

    def on_queue_changed(self, queue: Queue_contra) -> None:
        """See `QueueObserver`."""
        for log in self._observers:
            log.on_queue_changed(queue)

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """See `QueueObserver`."""
        for log in self._observers:
            log.on_queue_deleted(name, at)

    def on_task_changed(self, queue: Queue_contra, task: Task) -> None:
        """See `QueueObserver`."""
        for log in self._observers:
            log.on_task_changed(queue, task)

    def on_task_removed(self, queue: Queue_contra, task: Task, until: datetime) -> None:
        """See `QueueObserver`."""
        for log in self._observers:
            log.on_task_removed(queue, task, until)
