"""The port for counting an owner's tasks, which quotas limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.ports.task_query import TaskQuery

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.ports.store import Store

UNFINISHED_STATUSES = (TaskStatus.ACTIVE, TaskStatus.PAUSED)
"""The statuses of tasks that have not ended."""


class TaskCounter(Protocol):
    """Counts an owner's tasks.

    * Everything that was committed before a count starts is counted.
    * Counting stops at `up_to`, to limit its cost.
    """

    def count_unfinished(self, owner: str, up_to: int) -> int:
        """Return how many of the owner's tasks have not ended."""
        ...

    def count_created_since(self, owner: str, since: datetime, up_to: int) -> int:
        """Return how many of the owner's tasks were created after an instant."""
        ...


class ListingTaskCounter:
    """Counts by listing tasks, for a store that cannot count: one read for each task."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def count_unfinished(self, owner: str, up_to: int) -> int:
        """Return how many of the owner's tasks have not ended."""
        queries = (TaskQuery(owner=owner, status=status) for status in UNFINISHED_STATUSES)
        return min(up_to, sum(len(self._store.list_tasks(query, limit=up_to).items) for query in queries))

    def count_created_since(self, owner: str, since: datetime, up_to: int) -> int:
        """Return how many of the owner's tasks were created after an instant."""
        newest = self._store.list_tasks(TaskQuery(owner=owner), limit=up_to).items
        return sum(task.created_at > since for task in newest)
