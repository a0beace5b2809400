"""Find what needs attention, as finished rows: a sentence, a number, the list that it counts, and an act.

Tasks have a row for each handler, the rarest first, so that many of one do not hide the only one of another. If there
are more handlers than `MOST`, a row for all of them follows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.run_counts import LATE, GroupCount, is_late
from cloudsched.domain.documents.task import NeedCause, Trouble
from cloudsched.domain.explanation.need_words import NEED_WORDS
from cloudsched.domain.responses.count import Count
from cloudsched.domain.responses.overview_responses import Need, NeedAct
from cloudsched.domain.transitions.needs import CAUSES_BY_TROUBLE, NEVER, find_answer_time
from cloudsched.engine.ports.search import MAX_GROUPED, TaskQuery
from cloudsched.errors import UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

MOST: Final = 10
"""The most handlers of a cause that have a row each."""
_BY_HANDLER: Final = frozenset({NeedCause.FAILED, NeedCause.WAITING, NeedCause.OVERDUE, NeedCause.PAUSED})
_WITH_ERROR: Final = frozenset({NeedCause.FAILED, NeedCause.PAUSED, NeedCause.DELIVERY})
_LONGEST: Final = 200
"""The most characters of a detail."""
_TITLE: Final = 60
"""The most characters of a title in a sentence, so that what is wrong stands in its first lines."""
_ORDER: Final = list(NeedCause)


@dataclass(frozen=True, slots=True)
class FoundNeed:
    """A row, with what decides who may do its act, and whether another row explains it."""

    need: Need
    task: Task | None = None
    """The first of the tasks."""
    record: Execution | None = None
    """Its last run."""
    priorities: frozenset[Priority] = frozenset()
    """Those of the late tasks, or of the tasks that a paused queue carries."""


class NeedFinder:
    """Finds the tasks that need attention: a count for each cause, a read for up to 200 of its tasks, and two a row."""

    def __init__(self, store: Store, most: int) -> None:
        """Take the greatest count."""
        self._store = store
        self._most = most

    def find(
        self, owner: str | None, unstarted: Sequence[tuple[datetime, Task]], now: datetime, *, is_cut: bool
    ) -> Iterator[FoundNeed]:
        """Yield the rows of the tasks of all owners or of one.

        Those that are late are among what should have started and has not. If more is due than was read, there may be
        more of them.
        """
        late = [each for each in unstarted if is_late(each[0], now)]
        filters = _filter(owner, Trouble.OVERDUE, now - LATE)
        for need in self._write_found(NeedCause.OVERDUE, late, filters, is_cut=is_cut):
            handler = need.need.subject
            those = (task.priority for _, task in late if handler in {None, task.handler})
            yield replace(need, priorities=frozenset(those))

        page = self._store.list_tasks(TaskQuery(owner, trouble=Trouble.WAITING), limit=MAX_GROUPED)
        asking = [(until, task) for task in page.items if (until := find_answer_time(task, now))]
        filters = _filter(owner, Trouble.WAITING)
        yield from self._write_found(NeedCause.WAITING, asking, filters, is_cut=page.next_page_token is not None)

        for trouble, cause in CAUSES_BY_TROUBLE.items():
            query = TaskQuery(owner, trouble=trouble)
            if count := self._store.search.count_tasks(query, self._most):
                groups = self._store.search.group_tasks(query)
                yield from self._write_rows(cause, count, groups, _filter(owner, trouble))

    def _write_found(
        self, cause: NeedCause, found: Sequence[tuple[datetime, Task]], filters: dict[str, str], *, is_cut: bool
    ) -> Iterator[FoundNeed]:
        groups: dict[str, list[tuple[datetime, str]]] = {}
        for at, task in found:
            groups.setdefault(task.handler, []).append((at, task.id))
        counts = [GroupCount(name, len(members), *min(members)) for name, members in groups.items()]
        counts.sort(key=lambda each: (each.count, each.name))
        return self._write_rows(cause, Count(value=len(found), at_least=is_cut), counts, filters)

    def _write_rows(
        self, cause: NeedCause, count: Count, groups: Sequence[GroupCount], filters: dict[str, str]
    ) -> Iterator[FoundNeed]:
        """Yield a row for each of the handlers, if the cause has one, and one for all if there are more.

        If the groups are not all, their numbers are the least that they are. Of what is late, the earliest were read.
        """
        is_cut = count.at_least or sum(each.count for each in groups) < count.value
        has_first = not is_cut or cause is NeedCause.OVERDUE
        shown = groups[:MOST] if cause in _BY_HANDLER else ()
        first = min(groups, key=lambda each: each.first, default=None)
        ids = [each.first_id for each in (*shown, first) if each is not None]
        tasks = {each.task.id: each.task for each in self._store.load_many(ids)}
        for each in shown:
            number = Count(value=each.count, at_least=is_cut)
            task = tasks.get(each.first_id)
            yield self._write(cause, number, each.first if has_first else None, task, {**filters, "handler": each.name})
        if (count or count.at_least) and (is_cut or len(shown) < max(len(groups), 1)):
            task = tasks.get(first.first_id) if first else None
            yield self._write(cause, count, first.first if first and has_first else None, task, filters)

    def _write(
        self, cause: NeedCause, count: Count, at: datetime | None, task: Task | None, filters: dict[str, str]
    ) -> FoundNeed:
        words = NEED_WORDS[cause]
        record = self._load_last(task) if task and cause in _WITH_ERROR else None
        detail = record.error.brief if record and record.error else ""
        handler = filters.get("handler")
        path, query = "tasks", filters
        if task and count == Count(value=1):
            failures = task.consecutive_failures if cause is NeedCause.FAILED else 1
            sentence = (
                f"{_cut(task.title, _TITLE)} {words.one}{f', {failures:,} times in a row' if failures > 1 else ''}."
            )
            path, query = f"tasks/{task.id}", {}
        else:
            sentence = _count(cause, count, f" of {handler}" if handler else "")
            detail = ": ".join(filter(None, (task.title if task else "", detail)))
        is_wait = cause is NeedCause.WAITING
        need = Need(
            cause=cause,
            sentence=sentence,
            detail=_cut(detail, _LONGEST),
            count=count,
            since=None if cause in {NeedCause.WAITING, NeedCause.PAUSED} else at,
            until=at if is_wait and at != NEVER else None,
            subject=handler,
            path=path,
            query=query,
            act=_make_act(cause, path, query, record),
        )
        return FoundNeed(need, task, record)

    def _load_last(self, task: Task) -> Execution | None:
        if task.last_execution_id is not None:
            with suppress(UnreadableDocument):  # its own answer says why
                return self._store.load_execution(task.id, task.last_execution_id)
        return None


def join_needs(causes: Iterable[FoundNeed], tasks: Sequence[FoundNeed]) -> list[FoundNeed]:
    """Return all rows, the most urgent first, without those of tasks which a common cause explains whole.

    A paused queue has the number of the late tasks that it explains.
    """
    common = [*causes]
    explained = {(each.need.cause, each.need.subject): each.need.count.value for each in common if each.need.count}
    held = sum(count for (cause, _), count in explained.items() if cause is NeedCause.BUDGET_USED_UP)
    paused = {priority for each in common for priority in each.priorities}

    def is_explained(found: FoundNeed) -> bool:
        need = found.need
        count = need.count.value if need.count else 0
        if need.cause in {NeedCause.FAILED, NeedCause.PAUSED}:
            return count <= explained.get((NeedCause.UNKNOWN_HANDLER, need.subject), 0)
        if need.cause is NeedCause.HELD:
            return count <= held
        return bool(found.priorities) and found.priorities <= paused

    rows = [each for each in tasks if not is_explained(each)]
    late = [each for each in tasks if each.priorities and each.priorities <= paused]
    rows += (_add_late(each, late) for each in common)
    return sorted(rows, key=lambda each: _ORDER.index(each.need.cause))


def _add_late(paused: FoundNeed, late: Sequence[FoundNeed]) -> FoundNeed:
    found = [each for each in late if each.priorities & paused.priorities]
    found = [each for each in found if each.need.subject is None] or found  # the row of all handlers
    count = sum((each.need.count for each in found if each.need.count), Count(value=0))
    if not count:
        return paused
    return replace(paused, need=paused.need.model_copy(update={"detail": _count(NeedCause.OVERDUE, count)}))


def _count(cause: NeedCause, count: Count, whose: str = "") -> str:
    """Return the sentence of a number of tasks."""
    words = NEED_WORDS[cause]
    return f"{count.write('task', 'tasks').capitalize()}{whose} {words.one if count.value == 1 else words.many}."


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _filter(owner: str | None, trouble: str, until: datetime | None = None) -> dict[str, str]:
    """Return the filters of the list of a cause's tasks, calls included."""
    filters = {"trouble": str(trouble), "calls": "true"}
    if until is not None:
        filters["troubleUntil"] = until.isoformat()
    if owner is not None:
        filters["owner"] = owner
    return filters


def _make_act(cause: NeedCause, path: str, query: dict[str, str], record: Execution | None) -> NeedAct | None:
    """Return what resolves a cause of one task, or of those of a list."""
    is_one = not query
    if cause is NeedCause.WAITING:
        return NeedAct(label="Decide", path="decisions")
    if cause is NeedCause.PAUSED and is_one:
        return NeedAct(label="Resume", path=path)
    if cause is NeedCause.FAILED and record is not None:
        if is_one:
            return NeedAct(label="Retry", path=f"{path}/executions/{record.id}")
        others = {name: value for name, value in query.items() if name in {"handler", "owner"}}
        return NeedAct(label="Retry", path="bulk", query={"action": "RETRY_FAILED", **others}) if others else None
    return None
