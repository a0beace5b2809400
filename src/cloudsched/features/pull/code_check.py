"""Compares the queues that stored tasks are in with those that the code names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.engine.code_check.compare import Difference, Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.registry import Handler


class QueueCheck:
    """Compares the queues of tasks with those of their handlers."""

    def compare(self, task: Task, handler: Handler) -> Iterator[Difference]:
        """Yield the difference between a task's queue and those that the code lets it be in."""
        is_in = None if task.pull is None else task.pull.queue
        if handler.pull is not None and is_in not in {handler.pull.queue, *handler.user_queues}:
            problem = "they are run by the executor" if is_in is None else f"they are in queue {is_in!r}"
            yield Difference(
                Mismatch.QUEUE,
                handler.name,
                f"{problem}, and the code's in queue {handler.pull.queue!r}",
            )
