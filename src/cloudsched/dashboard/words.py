"""Parts of sentences: numbers with their nouns, phrases that may be missing, and texts that are cut."""

from __future__ import annotations


def write_count(count: int, one: str, many: str, *, is_at_least: object = False) -> str:
    """Return a number of items, such as ``at least 10,000 tasks``."""
    noun = one if count == 1 else many
    return f"{only_if(is_at_least, 'at least ')}{count:,} {noun}"


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
