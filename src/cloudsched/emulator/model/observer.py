"""Observers of the model's changes: the write-ahead log and the waiters for tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.emulator.model.task import Task

Queue_contra = TypeVar("Queue_contra", contravariant=True)
"""A queue. It is a parameter, since `queue.py` imports this module."""


class QueueObserver(Protocol[Queue_contra]):
    """Is called after each change of the model, in order."""

    def on_queue_changed(self, queue: Queue_contra) -> None:
        """Take note that a queue was created, or its configuration or state changed."""

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """Take note that a queue was deleted together with its tasks."""

    def on_task_changed(self, queue: Queue_contra, task: Task) -> None:
        """Take note that a task was created, or waits for another attempt."""

    def on_task_removed(self, queue: Queue_contra, task: Task, until: datetime) -> None:
        """Take note that a task succeeded, was exhausted or was deleted; its name stays taken until that instant."""


class CompositeObserver(Generic[Queue_contra]):
    """Passes each change on to several observers; by default to none."""

    def __init__(self, *observers: QueueObserver[Queue_contra]) -> None:
        self._observers = observers

    def on_queue_changed(self, queue: Queue_contra) -> None:
        """See `QueueObserver`."""
        for observer in self._observers:
            observer.on_queue_changed(queue)

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """See `QueueObserver`."""
        for observer in self._observers:
            observer.on_queue_deleted(name, at)

    def on_task_changed(self, queue: Queue_contra, task: Task) -> None:
        """See `QueueObserver`."""
        for observer in self._observers:
            observer.on_task_changed(queue, task)

    def on_task_removed(self, queue: Queue_contra, task: Task, until: datetime) -> None:
        """See `QueueObserver`."""
        for observer in self._observers:
            observer.on_task_removed(queue, task, until)
