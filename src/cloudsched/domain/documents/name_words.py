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


def rank_nearness(text: str, title: str, task_id: str) -> tuple[object, ...]:
    """Return how near a task's names are to a text, the least the nearest: the whole name, whole words, parts.

    Of equally near ones the shorter is nearer, and then they are in the order of their titles, with numbers by their
    values.
    """
    wanted = text.casefold()
    words = wanted.split()
    ranks = (
        (
            name != wanted,
            wanted not in name,
            -_count_ends(wanted, name),
            -sum(_count_ends(word, name) for word in words),
            len(name),
        )
        for name in (title.casefold(), task_id.casefold())
    )
    return (*min(ranks), _split_numbers(title.casefold()))


def _split_numbers(text: str) -> list[str | int]:
    """Return the words and the numbers of a text in turn, for an order in which 10 comes after 9."""
    return [int(each) if at % 2 else each for at, each in enumerate(re.split(r"(\d+)", text))]


def _count_ends(part: str, name: str) -> int:
    """Return how many ends of a part are ends of words, where it fits a name best: 0 to 2."""
    places = re.finditer(f"(?={re.escape(part)})", name)
    ends = ((each.start(), each.start() + len(part)) for each in places)
    return max((sum(_is_end(name, at) for at in pair) for pair in ends), default=0)


def _is_end(name: str, at: int) -> bool:
    return at in {0, len(name)} or not (name[at - 1].isalnum() and name[at].isalnum())
