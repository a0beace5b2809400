"""What the words of a schedule left open, noted for the answer to the call that had them, and what surprises in it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.time_zones import find_named_offset
from cloudsched.domain.schedules.rare_days import tell_missing
from cloudsched.domain.schedules.words import find_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cloudsched.domain.schedules.schedule import Schedule


@dataclass(slots=True)
class Notes:
    """What an answer has to say about the words of its request.

    Attributes:
        assumed: What was assumed, one sentence each.
        language: The language in which the words were read, such as ``de``. English if there were none.
    """

    assumed: list[str] = field(default_factory=list)
    language: str = "en"


notes_of_call: Final = ContextVar[Notes | None]("notes_of_call", default=None)


@contextmanager
def note_assumptions() -> Iterator[Notes]:
    """Collect what is noted in the block, for an answer that shows it."""
    notes = Notes()
    token = notes_of_call.set(notes)
    try:
        yield notes
    finally:
        notes_of_call.reset(token)


def note(assumptions: Iterable[str], language: str = "") -> None:
    """Note what a reading has assumed, one sentence each, if a caller collects them."""
    notes = notes_of_call.get()
    if notes is not None:
        notes.assumed += assumptions
        notes.language = language or notes.language


def forget_assumptions() -> None:
    """Clear the assumptions: the words were read again for a task whose schedule an earlier reading gave."""
    notes = notes_of_call.get()
    if notes is not None:
        notes.assumed.clear()


def list_surprises(schedule: Schedule, locale: str = "en") -> tuple[str, ...]:
    """Return what few expect of a schedule: that its zone's name counts west, and that some months lack its day."""
    zone = schedule.timezone
    ahead = find_named_offset(zone)
    told = () if ahead is None else (find_words(locale).explain_zone(zone, ahead),)
    return (*told, *tell_missing(schedule, locale))
