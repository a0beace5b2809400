"""The result of reading a phrase: a schedule, a question or a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.nodes import Span

Kind = Literal["schedule", "question", "refusal"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One possible meaning of an ambiguous phrase.

    Attributes:
        schedule: The schedule of this reading.
        description: The schedule in words that `read` understands without a question.
        label: What distinguishes it from the other readings.
    """

    schedule: Schedule
    description: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a phrase needs an answer or is refused.

    Attributes:
        span: The part of the phrase at fault: start and end offset in characters, end excluded.
        code: The reason, such as ``no-such-date``.
        hint: What to write instead; for a question, the question itself.
    """

    span: Span
    code: str
    hint: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a phrase means.

    Attributes:
        kind: ``schedule``, ``question`` (answer it first) or ``refusal``.
        schedule: The schedule, if `kind` is ``schedule``; else None.
        title: The title in the phrase, if there is one.
        assumptions: What the phrase left open and how it was decided, one sentence each.
        readings: The possible meanings that a question offers.
        problems: The reasons for a question or a refusal.
    """

    kind: Kind
    schedule: Schedule | None = None
    title: str | None = None
    assumptions: tuple[str, ...] = ()
    readings: tuple[Alternative, ...] = ()
    problems: tuple[Problem, ...] = ()

    def explain(self) -> str:
        """Return a question or a refusal as one message to show to the user; an empty text for a schedule."""
        text = "; ".join(f"{problem.code}: {problem.hint}" for problem in self.problems)
        if self.readings:
            text += ": " + "; or ".join(f"{reading.description!r}" for reading in self.readings)
        return text
