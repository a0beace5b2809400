"""The port for counting an owner's tasks, which quotas limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.ports.task_query import TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
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
        return min(up_to, sum(sum(1 for _ in self._list(query, up_to)) for query in queries))

    def count_created_since(self, owner: str, since: datetime, up_to: int) -> int:
        """Return how many of the owner's tasks were created after an instant."""
        return sum(task.created_at > since for task in self._list(TaskQuery(owner=owner), up_to))

    def _list(self, query: TaskQuery, up_to: int) -> Iterator[Task]:
        token: str | None = None
        while up_to > 0:
            page = self._store.list_tasks(query, limit=up_to, page_token=token)
            yield from page.items
            up_to, token = up_to - len(page.items), page.next_page_token
            if token is None:
                return
