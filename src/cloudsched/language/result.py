"""The result of reading a phrase: a schedule, a question or a refusal, with the remedy."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, TypeVar

from cloudsched.errors import InvalidSchedule, Portable, SearchLimitReached

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.nodes import Span

HINTS = {
    "empty": "say when it should run, for example: every weekday at 9:00",
    "too-long": "shorten it to at most 500 characters",
    "no-time": "add a day or a time, for example: every weekday at 9:00, or: tomorrow at 14:00",
    "not-understood": "use other words; if the unknown words belong to a title, put the title in quotes",
    "no-new-task": "this changes or cancels a task, and makes none; change that task, or put a title in quotes",
    "no-task": "this is a question and no task; say what to do and when",
    "half-known": "when that is cannot be known here; give the time of day, the day or the date",
    "incomplete": "something is missing here; write it in full, for example: every 2 weeks on Monday",
    "no-such-time": "there is no such time; use a time between 00:00 and 23:59",
    "no-such-date": "there is no such date; check the day and the month",
    "past": "this is in the past; choose a time that is still to come",
    "never": "this would never run; check its days, limits and exceptions",
    "no-interval": "an interval is 1 or more, for example: every 5 minutes",
    "too-short": "the shortest interval is a second, for example: every second",
    "contradiction": "parts of this contradict each other; keep only one of them",
    "no-recurrence": "say how often it repeats, for example: every Monday until June",
    "holidays": 'name a calendar, such as: except on days of "holidays"; or list the dates: except December 25',
    "inexpressible": "this cannot be written as a recurrence rule; list the days or the dates instead",
    "too-vague": "this is too vague; give a day and a time",
    "completion": "a schedule cannot follow the end of the previous run; use an interval, such as: every 3 hours",
    "too-many": "this needs more rules than one schedule may have; split it into several schedules",
    "too-open": "this can be read in too many ways; say it in fewer parts, or make several schedules of it",
    "no-update": "say what to change, such as: make it 10 instead, not on Fridays, also Saturdays, skip the next one",
}

UNREAD: Final = frozenset(
    {"not-understood", "other-language", "half-known", "empty", "too-long", "no-new-task", "no-task"}
)
"""The problems of words that are not read at all. Words with other problems were understood, and are refused."""


class Refused(Portable, Exception):
    """The phrase cannot become a schedule.

    Attributes:
        code: The reason, a key of `HINTS`.
        span: The part of the phrase at fault. None for the whole phrase.
        hint: The text to write instead.
    """

    def __init__(self, code: str, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.span = span
        self.hint = hint or HINTS[code]


T = TypeVar("T")


@contextmanager
def refuse_impossible() -> Iterator[None]:
    """Refuse a phrase whose schedule is invalid, with the reason, or that counts beyond the calendar."""
    try:
        yield
    except SearchLimitReached:
        raise
    except InvalidSchedule as error:
        raise Refused("never", hint=str(error)) from None
    except (OverflowError, ValueError):  # the first or the last year of dates
        raise Refused("never") from None


class Option(NamedTuple, Generic[T]):
    """One answer to a question: its label, and the value it stands for."""

    name: str
    value: T


class Unclear(Portable, Exception):
    """The phrase is ambiguous: a decision it leaves open, and the possible answers."""

    def __init__(self, code: str, span: Span, options: Sequence[Option[Any]]) -> None:
        super().__init__(code)
        self.code = code
        self.span = span
        self.options = options


Kind = Literal["schedule", "question", "refusal"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One possible meaning of an ambiguous phrase.

    Attributes:
        schedule: The schedule of this reading.
        label: A short text that distinguishes it from the other readings.
        description: The schedule in words that `read` understands without a question.
    """

    schedule: Schedule
    label: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a phrase needs an answer or is refused.

    Attributes:
        span: The part of the phrase at fault: start and end offset in characters, end excluded.
        code: The reason, such as ``no-such-date``.
        hint: The text to write instead. For a question, the question itself.
        words: The words at fault. Empty if they are the whole phrase.
    """

    span: Span
    code: str
    hint: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of a phrase.

    Attributes:
        kind: ``schedule``, ``question`` (answer it first) or ``refusal``.
        schedule: The schedule, if `kind` is ``schedule``, or else None.
        title: The title in the phrase, if there is one.
        assumptions: The details that the phrase left open with their decisions, one sentence each.
        readings: The possible meanings that a question offers.
        problems: The reasons for a question or a refusal.
        language: The language in which the phrase was read, such as ``de``. All these texts are in it.
    """

    kind: Kind
    schedule: Schedule | None = None
    title: str | None = None
    assumptions: tuple[str, ...] = ()
    readings: tuple[Alternative, ...] = ()
    problems: tuple[Problem, ...] = ()
    language: str = "en"
