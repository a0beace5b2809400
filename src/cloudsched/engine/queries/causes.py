"""Find what keeps many tasks from running at once: a paused queue, a handler that is not registered, a used-up budget.

The sentences are those of explanations. What is found is kept for some seconds, however many people look.

* Each priority's queue is asked for its state, and a paused one costs a read, for who paused it. It concerns only
  owners with active tasks of its priorities: up to 100 of theirs are read.
* The names of handlers are read once in some minutes, one document for each. Of one that is not registered here, its
  newest active task is read, and its tasks are counted, a read for each 1,000.
* Features find their own (`Feature.causes`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import NeedCause, TaskStatus
from cloudsched.domain.explanation.findings import say_unknown_handler
from cloudsched.domain.responses.overview_responses import Need, NeedAct
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.queries.needs import FoundNeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.queries.conditions import Conditions

    FindCauses = Callable[[str | None], Iterable[Need]]
    """Returns what a feature finds, of all owners or of one."""

KEPT: Final = timedelta(seconds=10)
"""The time for which the causes are kept."""
HANDLERS_KEPT: Final = timedelta(minutes=5)
"""The time for which the names of handlers are kept that are not registered here."""
MAX_HANDLERS: Final = 1_000
MAX_COUNT: Final = 10_000
_MAX_OWNERS: Final = 1_000


class Causes:
    """Finds the causes that many tasks have in common."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        monotonic: Callable[[], float],
        registry: Registry,
        conditions: Conditions,
        features: Sequence[FindCauses],
    ) -> None:
        """Take what looks at queues, and the functions of features."""
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._registry = registry
        self._conditions = conditions
        self._features = features
        self._kept: dict[str | None, tuple[datetime, float, Sequence[FoundNeed]]] = {}
        self._unknown: tuple[datetime, Sequence[str]] | None = None
        """When the names of handlers were read, and those that are not registered here."""
        self._lock = make_lock()

    def find(self, owner: str | None) -> Sequence[FoundNeed]:
        """Return the causes that concern the tasks of all owners, or of one, the most far-reaching first."""
        with self._lock:
            now = self._clock.now()
            kept = self._kept.get(owner)
            is_new = kept is not None and kept[0] <= now < kept[0] + KEPT
            if kept is None or not is_new or self._monotonic() - kept[1] >= KEPT.total_seconds():  # a clock may stand
                if len(self._kept) >= _MAX_OWNERS:
                    self._kept.clear()
                kept = now, self._monotonic(), tuple(self._find(owner, now))
                self._kept[owner] = kept
            return kept[2]

    def forget(self) -> None:
        """Forget what was found. The next request looks anew."""
        with self._lock:
            self._kept.clear()
            self._unknown = None

    def _find(self, owner: str | None, now: datetime) -> Iterator[FoundNeed]:
        for queue in self._conditions.find_paused_queues(now):
            if owner is not None:
                page = self._store.list_tasks(TaskQuery(owner, TaskStatus.ACTIVE), limit=100)
                if not page.next_page_token and {*queue.priorities}.isdisjoint(each.priority for each in page.items):
                    continue
            shown = queue.found if owner is None else queue.shown_to_users
            need = Need(
                cause=NeedCause.QUEUE_PAUSED,
                sentence=shown.sentence,
                since=shown.at,
                subject=queue.name if owner is None else None,
                path="queues",
                act=NeedAct(label="Resume", path="queues"),
            )
            yield FoundNeed(need, priorities=frozenset(queue.priorities))
        for handler in self._list_unknown(now):
            count = self._store.search.count_tasks(TaskQuery(owner, TaskStatus.ACTIVE, handler), MAX_COUNT)
            if count:
                query = {"handler": handler, "status": TaskStatus.ACTIVE.value, "calls": "true"}
                yield FoundNeed(
                    Need(
                        cause=NeedCause.UNKNOWN_HANDLER,
                        sentence=say_unknown_handler(handler, count.write("task", "tasks")).sentence,
                        count=count,
                        subject=handler,
                        path="tasks",
                        query=query if owner is None else {**query, "owner": owner},
                    )
                )
        for find in self._features:
            yield from map(FoundNeed, find(owner))

    def _list_unknown(self, now: datetime) -> Sequence[str]:
        known = self._unknown
        if known is None or not known[0] <= now < known[0] + HANDLERS_KEPT:
            names = self._store.search.list_handlers(limit=MAX_HANDLERS)
            missing = [each for each in names if self._registry.find(each) is None]
            known = self._unknown = now, [each for each in missing if self._runs_here(each)]
        return known[1]

    def _runs_here(self, handler: str) -> bool:
        """Return whether the newest active task of a handler is not left to workers, who know it themselves."""
        page = self._store.list_tasks(TaskQuery(None, TaskStatus.ACTIVE, handler), limit=1)
        return any(task.workers is None for task in page.items)
