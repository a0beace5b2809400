"""The words of a task's names, and how a store finds tasks by them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.task import Task

_WORD: Final = re.compile(r"[^\W_]+")
MAX_BEGINNING: Final = 12
"""The longest beginning of a word that is stored, in characters. What follows it is compared after reading."""
MAX_BEGINNINGS: Final = 300
"""The most beginnings that are stored of one task. Those of its title and its id come first."""


class NameMatch(StrEnum):
    """How a store finds tasks by their names."""

    FRAGMENTS = "FRAGMENTS"
    """By any part of a name, among all tasks."""
    BEGINNINGS = "BEGINNINGS"
    """By the beginnings of words, among all tasks that were stored since there is an index of them."""
    NEWEST = "NEWEST"
    """By any part of a name, among the newest tasks: there is no index."""


def fold_names(task: Task) -> str:
    """Return the texts by whose fragments a task is found, in one case: title, id, handler, owner and labels."""
    return "\n".join((task.title, task.id, task.handler, task.owner, *task.labels)).casefold()


def split_name(text: str) -> list[str]:
    """Return the words of a name in one case: what stands between spaces, hyphens, dots and the like."""
    return _WORD.findall(text.casefold())


def list_beginnings(task: Task) -> list[str]:
    """Return the beginnings of the words of a task's names, each once."""
    found: dict[str, None] = {}
    for word in split_name(fold_names(task)):
        found |= dict.fromkeys(word[:end] for end in range(1, min(len(word), MAX_BEGINNING) + 1))
    return [*found][:MAX_BEGINNINGS]


def has_beginnings(task: Task, words: Sequence[str]) -> bool:
    """Return whether each of these words begins one of a task's names."""
    known = split_name(fold_names(task))
    return all(any(each.startswith(word) for each in known) for word in words)
