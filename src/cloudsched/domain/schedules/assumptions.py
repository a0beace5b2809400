"""What the words of a schedule left open, noted for the answer to the call that had them."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


@contextmanager
def note_assumptions() -> Iterator[list[str]]:
    """Collect in the list what is noted in the block, for an answer that shows it."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note(assumptions: Iterable[str]) -> None:
    """Note what a reading has assumed, one sentence each, if a caller collects them."""
    noted = _noted.get()
    if noted is not None:
        noted += assumptions


def forget_assumptions() -> None:
    """Clear the notes: the words were read again for a task whose schedule an earlier reading gave."""
    if noted := _noted.get():
        noted.clear()
