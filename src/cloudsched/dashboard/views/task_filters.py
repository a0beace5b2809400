"""The filters of the list of tasks, which are in the address or in the words that are searched for."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.filters import write_filter
from cloudsched.domain.documents.category import Category

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.dashboard.visit import Visit

TASK_FILTERS: Final = ("status", "handler", "owner", "label", "dueFrom", "dueUntil")
TROUBLE: Final = "trouble"
"""A filter that stands alone, or beside an owner: the reason why tasks need attention."""
CATEGORY: Final = "category"
"""A filter that no index has. The API takes it among the words of a search."""
CATEGORIES: Final = {each: each.capitalize() for each in Category}


def read_task_filters(visit: Visit) -> tuple[dict[str, str], list[str]]:
    """Return the filters and the words to search for. ``owner:ada`` in the search is a filter, too."""
    filters = {name: visit.query[name] for name in TASK_FILTERS if visit.query.get(name)}
    words = []
    for word in _split(visit.query.get("q", "")):
        name, _, value = word.partition(":")
        if value and name in TASK_FILTERS:
            filters[name] = value
        else:
            words.append(word)
    if visit.query.get(CATEGORY):
        words.append(f"{CATEGORY}:{visit.query[CATEGORY]}")
    return filters, words


def list_free_words(words: Sequence[str]) -> list[str]:
    """Return the words that are searched for in texts: a category is a field."""
    return [word for word in words if not word.startswith(f"{CATEGORY}:")]


def read_trouble(visit: Visit) -> str:
    """Return the cause for which tasks need attention, if the address asks for those."""
    return visit.query.get(TROUBLE, "").upper()


def list_tokens(visit: Visit) -> list[tuple[str, str]]:
    """Return each filter and word with the address that is without it."""
    filters, words = read_task_filters(visit)
    tokens = [(write_filter(name, value, visit), _drop(visit, name)) for name, value in filters.items()]
    for word in words:
        name = CATEGORY if word.startswith(f"{CATEGORY}:") else ""
        shown = write_filter(CATEGORY, word.partition(":")[2], visit) if name else word
        tokens.append((shown, _drop(visit, name)))
    if trouble := read_trouble(visit):
        others = visit.with_query(**{TROUBLE: None, "troubleUntil": None, "page": None})
        tokens.append((write_filter(TROUBLE, trouble, visit), others))
    return tokens


def _drop(visit: Visit, name: str) -> str:
    """Return the address without a filter, wherever it was given. An empty name stands for the words of the search."""
    kept = [word for word in _split(visit.query.get("q", "")) if _name_filter(word) != name]
    changes: dict[str, str | None] = {"q": " ".join(kept), "page": None}
    if name:
        changes[name] = None
    return visit.with_query(**changes)


def _name_filter(word: str) -> str:
    """Return the filter that a word of the search names. Empty if it is only a word."""
    name, colon, _ = word.partition(":")
    if colon and name in (*TASK_FILTERS, CATEGORY):
        return name
    return ""


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        return text.split()
