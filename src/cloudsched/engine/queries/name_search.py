"""Find what a text names: tasks, their owners, handlers and labels, and a task or an execution by its whole id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.queries.task_search import MAX_WORDS, TaskSearch, search_tasks, split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

_PAGE: Final = 50
_PAGES: Final = 4
"""The number of pages that are read for tasks that are no calls."""


@dataclass(frozen=True, slots=True)
class NamedThings:
    """What a text names."""

    tasks: Sequence[Task]
    """The newest come first. Calls are left out: they have the names of the tasks that made them."""
    owners: Sequence[str]
    handlers: Sequence[str]
    labels: Sequence[str]
    is_complete: bool
    """True if every task was looked at. There may be more than are returned."""


def find_named(store: Store, text: str, owner: str | None, handlers: Iterable[str], limit: int) -> NamedThings:
    """Return what has all words of a text in its name. `handlers` are those that are known beside those of tasks.

    Tasks and their owners are those of one owner, if there is one. Where no index has names, the newest 1,000 tasks
    are looked at.
    """
    words = tuple(word.casefold() for word in split_words(text))[:MAX_WORDS]
    if not words:
        return NamedThings((), (), (), (), is_complete=True)
    query = TaskQuery(owner=owner)
    only = TaskSearch(words, has_calls=False)
    tasks: list[Task] = []
    token = None
    is_complete = True
    for _ in range(_PAGES):
        page = store.search.list_named(query, words, limit=_PAGE, page_token=token)
        if page is None:
            looked = search_tasks(store, query, only, limit)
            tasks = [task for task in looked.items if only.is_named(task)]
            is_complete = looked.next_page_token is None
            break
        tasks += [task for task in page.items if task.parent is None]
        token = page.next_page_token
        if token is None or len(tasks) >= limit:
            break
    else:
        is_complete = False

    owners: Sequence[str] = [owner] if owner is not None and _has(owner, words) else []
    if owner is None:
        owners = _find_owners(store, text.strip(), words, limit)
    of_tasks = (task.handler for task in tasks)
    labels = {label for task in tasks for label in task.labels if _has(label, words)}
    return NamedThings(
        tasks=tasks[:limit],
        owners=owners,
        handlers=sorted({name for name in (*handlers, *of_tasks) if _has(name, words)})[:limit],
        labels=sorted(labels)[:limit],
        is_complete=is_complete,
    )


def _find_owners(store: Store, text: str, words: Sequence[str], limit: int) -> Sequence[str]:
    """Return the owners of tasks with all words in their names. Where no index has them, the one of this name."""
    found = store.search.list_owners(words[0], limit=limit * _PAGES)
    if found is None:
        return [text] if store.list_tasks(TaskQuery(owner=text), limit=1).items else []
    return [name for name in found if _has(name, words)][:limit]


def _has(name: str, words: Sequence[str]) -> bool:
    folded = name.casefold()
    return all(word in folded for word in words)
