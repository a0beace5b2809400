"""Find the closest phrase that is understood, to explain why another is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.language.result import Reading

_MOST_CUT: Final = 3
"""How many words may be left out; with more, what remains says too little of what was meant."""
_UNREAD: Final = frozenset({"not-understood", "half-known", "no-update"})


def find_closest(text: str, refused: Reading, read: Callable[[str], Reading]) -> tuple[str, str] | None:
    """Return a phrase without the words that were not understood, and its schedule in words; None if that has none."""
    reading = refused
    for _ in range(_MOST_CUT):
        problem = reading.problems[0]
        begin, end = problem.span
        if problem.code not in _UNREAD or begin >= end:
            return None
        text = " ".join((text[:begin] + text[end:]).split())
        if not text:
            return None
        reading = read(text)
        if reading.schedule is not None:
            return text, reading.schedule.describe()
        if reading.kind != "refusal":
            return None
    return None
