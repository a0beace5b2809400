"""Find what a text names: tasks, their owners, handlers and labels, and a task or an execution by its whole id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.name_words import NameMatch, rank_nearness
from cloudsched.domain.documents.person import Person
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.queries.task_search import MAX_WORDS, TaskSearch, search_tasks, split_words
from cloudsched.engine.storage.matching_rows import MAX_LOOKED_THROUGH

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
    """The nearest name comes first. Calls are left out: they have the names of the tasks that made them."""
    owners: Sequence[str]
    handlers: Sequence[str]
    labels: Sequence[str]
    is_complete: bool
    """True if every task, and everybody's profile, was looked at. There may be more than are returned."""
    match: NameMatch
    """How the tasks were found."""


def find_named(store: Store, text: str, owner: str | None, handlers: Iterable[str], limit: int) -> NamedThings:
    """Return what has all words of a text in its name. `handlers` are those that are known beside those of tasks.

    Tasks and their owners are those of one owner, if there is one. Where no index has names, the newest 1,000 tasks
    are looked at, and of the profiles of people the first 1,000. By fragments, a task with the whole text as its name
    is found however many have it as a part, and the nearest are chosen from the newest 200 of these.
    """
    match = store.search.get_name_match()
    words = tuple(word.casefold() for word in split_words(text))[:MAX_WORDS]
    if not words:
        return NamedThings((), (), (), (), is_complete=True, match=match)
    tasks, is_complete = _find_tasks(store, TaskQuery(owner=owner), text, words, limit)
    owners = {owner} if owner is not None and _has(owner, words) else set()
    if owner is None:
        found = store.search.list_owners(split_words(text)[0], limit=limit * _PAGES)
        people, are_all = _find_people(store, words)
        is_complete &= are_all
        owners = {name for name in (*found, *(task.owner for task in tasks)) if _has(name, words)} | people
    of_tasks = (task.handler for task in tasks)
    labels = {label for task in tasks for label in task.labels if _has(label, words)}
    return NamedThings(
        tasks=sorted(tasks, key=lambda task: rank_nearness(text.strip(), task.title, task.id))[:limit],
        owners=sorted(owners)[:limit],
        handlers=sorted({name for name in (*handlers, *of_tasks) if _has(name, words)})[:limit],
        labels=sorted(labels)[:limit],
        is_complete=is_complete,
        match=match,
    )


def _find_tasks(
    store: Store, query: TaskQuery, text: str, words: tuple[str, ...], limit: int
) -> tuple[list[Task], bool]:
    """Return the first tasks with all words in their names, and whether all were looked at."""
    only = TaskSearch(words, has_calls=False)
    match = store.search.get_name_match()
    if match is NameMatch.NEWEST:
        looked = search_tasks(store, query, only, limit)
        return [task for task in looked.items if only.is_named(task)], looked.next_page_token is None
    found: dict[str, Task] = {}
    if match is NameMatch.FRAGMENTS:
        limit = _PAGE * _PAGES
        ended = store.search.list_named(query, (f"{text.strip().casefold()}\n",), limit=_PAGE)  # of `fold_names`
        found = {task.id: task for task in ended.items if task.parent is None}
    token = None
    for _ in range(_PAGES):
        page = store.search.list_named(query, words, limit=_PAGE, page_token=token)
        found |= {task.id: task for task in page.items if task.parent is None}
        token = page.next_page_token
        if token is None or len(found) >= limit:
            return [*found.values()], True
    return [*found.values()], False


def _find_people(store: Store, words: Sequence[str]) -> tuple[set[str], bool]:
    """Return who has all words in their name or their address of e-mail, and whether all profiles were looked at."""
    people = store.records.list_all(Person, limit=MAX_LOOKED_THROUGH)
    found = {each.owner for each in people if _has(f"{each.name} {each.email.address if each.email else ''}", words)}
    return found, len(people) < MAX_LOOKED_THROUGH


def _has(name: str, words: Sequence[str]) -> bool:
    folded = name.casefold()
    return all(word in folded for word in words)
