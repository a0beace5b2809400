"""Search the list of tasks for words, without calls.

What has the words in its names comes first, if an index has any part of these (`SearchStore.list_named`). For all else
a bounded number of tasks is read.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.name_words import NameMatch, fold_names
from cloudsched.domain.documents.task import Trouble, find_open_position
from cloudsched.domain.transitions.needs import find_trouble
from cloudsched.engine.storage.matching_rows import MAX_LOOKED_THROUGH
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page, make_token
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.search import TaskQuery
    from cloudsched.engine.ports.store import Store

_PAGE: Final = 250
_FIELD: Final = "payload."
MAX_WORDS: Final = 10
"""The most words of a search: each is looked for in all the text of each task."""


@dataclass(frozen=True, slots=True)
class TaskSearch:
    """The filters of tasks without an index: a list reads what does not match too, and skips it."""

    words: tuple[str, ...] = ()
    """The words in lower case. Each is in the title, the id, the handler, a label or the payload, in any
    case. ``payload.about=sales`` is the text of a payload's field, and keeps its case. ``category:report`` is
    the category.
    """
    has_calls: bool = True
    """True to list calls, too."""
    has_payloads: bool = True
    """True to look for the words in payloads, too. No index has these."""
    condition: Callable[[Task], object] | None = None
    """Leave out tasks for which this is not so."""

    def matches(self, task: Task) -> bool:
        """Return whether a task matches all that is given."""
        if not self.has_calls and task.parent is not None:
            return False
        if self.condition and not self.condition(task):
            return False
        if not self.words:
            return True
        text = fold_names(task)
        if self.has_payloads:
            text = f"{text}\n{json.dumps(task.payload, ensure_ascii=False).casefold()}"
        return all(_has_word(task, text, word) for word in self.words)

    @property
    def names(self) -> tuple[str, ...]:
        """The words that may be in the names of a task, rather than in one field."""
        return tuple(word for word in self.words if not _is_of_field(word))

    def is_named(self, task: Task) -> bool:
        """Return whether a task has all words in its names, apart from those of a field."""
        text = fold_names(task)
        return all(word in text for word in self.names)


def read_words(text: str) -> tuple[str, ...]:
    """Return the words of a search, once and folded.

    Quotation marks hold several together. Raises InvalidInput.
    """
    words = split_words(text)
    found = tuple(dict.fromkeys(word if word.startswith(_FIELD) else word.casefold() for word in words))
    if len(found) > MAX_WORDS:
        hint = f'Give at most {MAX_WORDS}, or put those that stand together in quotation marks: "monthly report".'
        raise InvalidInput("search", f"has {len(found)} words", hint)
    return found


def split_words(text: str) -> list[str]:
    """Return the words of a text. Quotation marks hold several together."""
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        return text.split()


def search_tasks(
    store: Store, query: TaskQuery, only: TaskSearch, limit: int, page_token: str | None = None
) -> Page[Task]:
    """Return a page of the tasks of a list that match, and how many were passed over.

    First come those with the words in their names, then those with them in their payload. It reads at most
    `MAX_LOOKED_THROUGH` tasks, and of large ones as many as an unfiltered page: it is shorter then, perhaps
    empty, and has a token to go on. Where an index has the names, and payloads are left out, it looks through
    none. Raises InvalidInput.
    """
    if not only.words and only.has_calls and not only.condition:
        return store.list_tasks(query, limit=limit, page_token=page_token)
    if not only.names or store.search.get_name_match() is not NameMatch.FRAGMENTS:
        return _look_through(store, query, only.matches, limit, page_token, is_long=bool(only.words))

    found: list[Task] = []
    begun = page_token
    while begun is None or begun.startswith(_NAMED):
        token = begun and begun.removeprefix(_NAMED)
        page = store.search.list_named(query, only.names, limit=limit - len(found), page_token=token)
        found += filter(only.matches, page.items)
        begun = f"{_NAMED}{page.next_page_token}" if page.next_page_token else _REST
        if not page.next_page_token and not only.has_payloads:
            return Page(found, None, page.unreadable, page.passed_over)
        if len(found) == limit or (page.next_page_token and page.passed_over):
            return Page(found, begun, page.unreadable, page.passed_over)

    if not begun.startswith(_REST):  # of a store without names
        return _look_through(store, query, only.matches, limit, page_token)
    rest = _look_through(
        store,
        query,
        lambda task: only.matches(task) and not only.is_named(task),
        limit - len(found),
        begun.removeprefix(_REST) or None,
    )
    token = rest.next_page_token and f"{_REST}{rest.next_page_token}"
    return Page([*found, *rest.items], token, rest.unreadable, rest.passed_over)


_NAMED: Final = "n."
_REST: Final = "p."
"""What the tokens begin with: of those with the words in their names, and of all others."""


def _look_through(
    store: Store,
    query: TaskQuery,
    is_match: Callable[[Task], bool],
    limit: int,
    page_token: str | None,
    *,
    is_long: bool = True,
) -> Page[Task]:
    """Return a page of the tasks of a list that match: `is_long` if few do."""
    found: list[Task] = []
    token = page_token
    unreadable = 0
    passed_over = 0
    tasks_left = MAX_LOOKED_THROUGH
    bytes_left = MAX_PAGE_BYTES

    while True:
        size = min(tasks_left, max(_PAGE, limit) if is_long else limit + _PAGE)
        page = store.list_tasks(query, limit=size, page_token=token, max_bytes=bytes_left)
        bytes_left -= page.size
        unreadable += page.unreadable
        tasks_left -= max(1, page.read)
        passed_over += page.passed_over
        for number, task in enumerate(page.items):
            if not is_match(task):
                passed_over += 1
                continue
            found.append(task)
            is_last = number == len(page.items) - 1
            if len(found) == limit and not (is_last and page.next_page_token is None):
                return Page(found, _make_token(query, task), unreadable, passed_over)
        token = page.next_page_token
        if token is None or tasks_left <= 0 or bytes_left <= 0:
            return Page(found, token, unreadable, passed_over)


def _make_token(query: TaskQuery, task: Task) -> str:
    at: datetime | None = task.created_at
    found = find_open_position(task) if query.trouble is Trouble.WAITING else find_trouble(task)
    if query.trouble is not None and found is not None:
        at = found[1]
    elif query.is_sorted_by_due_time:
        at = task.next_execution_time
    return make_token(query, at or task.created_at, task.id)


def _is_of_field(word: str) -> bool:
    path, equals, _ = word.partition("=")
    return word.startswith("category:") or (bool(equals) and path.startswith(_FIELD))


def find_category(word: str) -> Category | None:
    """Return the category that a word of a search names. Raises InvalidInput if there is no such category."""
    name, colon, category = word.partition(":")
    if name != "category" or not colon:
        return None
    if category.upper() not in set(Category):
        raise InvalidInput("search", f"has an unknown category: {word}", f"Give one of {', '.join(Category).lower()}.")
    return Category(category.upper())


def _has_word(task: Task, text: str, word: str) -> bool:
    if category := find_category(word):
        return task.category == category
    path, equals, value = word.partition("=")
    if equals and path.startswith(_FIELD):
        return _find(task.payload, path.split(".")[1:]) == value
    return word in text


def _find(payload: Any, names: Iterable[str]) -> str:  # noqa: ANN401 - any JSON
    for name in names:
        payload = payload.get(name) if isinstance(payload, dict) else None
    return str(payload)
