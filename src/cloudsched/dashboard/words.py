"""Parts of sentences: numbers with their nouns, phrases that may be missing, and texts that are cut."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.dashboard.api import Json

SKIPPED: Final = "skipped or cancelled"
"""The word for runs that ended without a result, by a decision."""
SKIPPED_TOGETHER: Final = "Runs that were skipped together are counted when the first of them was due."
"""What a page says beside counts of what was skipped. One record may cover days."""


def read_count(found: int | Mapping[str, Any]) -> Count:
    """Return a number of the API, which may be a bound."""
    return Count(value=found) if isinstance(found, int) else Count.model_validate(found)


def add_counts(found: Iterable[int | Mapping[str, Any]]) -> Count:
    """Return the number of all."""
    return sum(map(read_count, found), Count(value=0))


def write_count(count: int | Mapping[str, Any], one: str, many: str) -> str:
    """Return a number of items, or a `Count` of the API, such as ``at least 10,000 tasks``."""
    return read_count(count).write(one, many)


def fold_deliveries(rows: Iterable[Json]) -> Iterable[list[Json]]:
    """Return deliveries in groups: those to one person unsent for one reason stand where the first does."""
    groups: dict[object, list[Json]] = {}
    for each in rows:
        key = each["owner"], each["channel"], each["status"], each.get("reason", each["id"])
        groups.setdefault(key, []).append(each)
    return groups.values()


def split_words(name: str) -> str:
    """Return the name of a field of the API in words, such as ``queue operation`` for ``queueOperation``."""
    return re.sub("[A-Z]", lambda letter: f" {letter[0].lower()}", name)


def only_if(condition: object, phrase: str) -> str:
    """Return a part of a sentence if a condition holds, or else nothing."""
    if condition:
        return phrase
    return ""


def join_phrases(*phrases: str, separator: str = ", ") -> str:
    """Return phrases as one. Empty ones are omitted."""
    return separator.join(filter(None, phrases))


def shorten(text: str, limit: int = 160) -> str:
    """Return the beginning of a text."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1]}…"


_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Controls other than tabs and line breaks, and what has no width or sets the direction of others."""


def show_unseen(text: str) -> str:
    """Return a text with the characters that nobody sees as their numbers, such as ``⟨U+202E⟩``."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)
