"""Count the tasks that match a filter, and start the task that changes them; `batch_change_run` is what that does."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.batch_change import BATCH_CHANGE_HANDLER, BatchAction, BatchChange, has_failed
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.domain.transitions.edits import NO_LEAD
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.engine.ports.pages import MAX_PAGE_BYTES
from cloudsched.engine.ports.task_query import TaskQuery
from cloudsched.engine.tasks.batch_change_run import to_queries
from cloudsched.errors import QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

MAX_COUNT: Final = 10_000
"""Up to how many tasks are counted: a billed read for each 1,000."""
MAX_READ: Final = 1_000
"""After how many tasks reading them stops, to count those whose last execution failed or that no index has."""
MAX_OPEN: Final = 5
"""How many batch changes of a user may be open at a time."""
_PAGE_SIZE: Final = 100
_DURATION: Final = timedelta(minutes=10)
_RETENTION: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class MatchingTasks:
    """How many tasks a change concerns."""

    count: int
    is_at_least: bool = False
    """Whether there may be more: counting stopped at a bound."""


class BatchChanges:
    """Counts what a batch change concerns, and starts it."""

    def __init__(self, store: Store, clock: Clock, scheduler: Callable[[], Scheduler]) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler

    def count(self, change: BatchChange) -> MatchingTasks:
        """Return how many tasks a change concerns now.

        An index counts up to `MAX_COUNT`. Where no index has all filters, and for tasks to retry, at most `MAX_READ`
        are read. Tasks that the caller may not change are counted as well: whether they may is decided when they are
        changed.

        Raises:
            InvalidInput: No list has this combination of filters.
        """
        if change.filter.ids is not None:
            now = self._clock.now()
            found = self._store.load_many(change.filter.ids)
            count = sum(each.task.deleted_at is None and change.concerns(each.task, now) for each in found)
            return MatchingTasks(count)
        queries = to_queries(change)
        if change.action is not BatchAction.RETRY_FAILED and not any(query.looked_for for query in queries):
            count = sum(self._store.search.count_tasks(query, MAX_COUNT) for query in queries)
            return MatchingTasks(min(MAX_COUNT, count), is_at_least=count >= MAX_COUNT)
        return self._read_some(change, queries)

    def start(self, change: BatchChange, owner: str, key: str | None, caller: EventSender) -> Task:
        """Create the task that carries out a change with an owner's rights; with the same key, return the same task.

        The histories of the tasks that it changes name the `caller`.

        Raises:
            InvalidInput: No list has this combination of filters.
            KeyReused: The key was used for another change.
            QuotaExceeded: The user has too many open ones.
        """
        to_queries(change)
        name = secrets.token_hex(16) if key is None else _hash([owner, key])[:32]
        if owner != SYSTEM_OWNER and self._store.load(f"batch-{name}") is None:
            mine = TaskQuery(owner=owner, status=TaskStatus.ACTIVE, handler=BATCH_CHANGE_HANDLER)
            if self._store.search.count_tasks(mine, MAX_OPEN) >= MAX_OPEN:
                raise QuotaExceeded("open batch changes", MAX_OPEN, "Wait until one of them has ended.")
        draft = TaskDraft(
            id=f"batch-{name}",
            owner=owner,
            title=f"Batch change: {change.action}",
            handler=BATCH_CHANGE_HANDLER,
            payload=change.to_wire(),
            expected_duration=_DURATION,
            retry=RetryPolicy(max_retries=20),
            retention=_RETENTION,
        )
        by = replace(OWN_CODE, sender=caller)
        return self._scheduler().create(draft, _hash(change.to_wire()), lead=NO_LEAD, by=by)[0]

    def _read_some(self, change: BatchChange, queries: Sequence[TaskQuery]) -> MatchingTasks:
        """Count the tasks that a change concerns by reading some of those that its filters find."""
        count, budget, size = 0, MAX_READ, 0
        for query in queries:
            token: str | None = None
            while True:
                if budget <= 0 or size >= MAX_PAGE_BYTES:
                    return MatchingTasks(count, is_at_least=True)
                page = self._store.list_tasks(
                    query, limit=min(_PAGE_SIZE, budget), page_token=token, max_bytes=MAX_PAGE_BYTES
                )
                count += sum(change.action is not BatchAction.RETRY_FAILED or has_failed(task) for task in page.items)
                budget, size = budget - page.read, size + page.size
                token = page.next_page_token
                if token is None:
                    break
        return MatchingTasks(count)


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
