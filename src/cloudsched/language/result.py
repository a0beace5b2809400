"""What comes of reading a phrase: a schedule, a question or a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.schedule import Schedule
    from cloudsched.language.nodes import Span

Kind = Literal["schedule", "question", "refusal"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One reading of a phrase that has several.

    Attributes:
        schedule: What it would be.
        description: The schedule in words that `read` understands without a question.
        label: What sets it apart from the others.
    """

    schedule: Schedule
    description: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a phrase is asked back or refused.

    Attributes:
        span: The place in the phrase: of its first character and of the one after the last.
        code: A short name of the reason.
        hint: What to write instead.
    """

    span: Span
    code: str
    hint: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a phrase means.

    Attributes:
        kind: Whether a schedule was understood, a question has to be answered first, or neither.
        schedule: The schedule, for the first of these.
        title: What the schedule is for, where the phrase says that as well.
        assumptions: What was not said and is taken to be so, each a sentence.
        readings: The schedules between which a question asks.
        problems: Why there is a question or a refusal.
    """

    kind: Kind
    schedule: Schedule | None = None
    title: str | None = None
    assumptions: tuple[str, ...] = ()
    readings: tuple[Alternative, ...] = ()
    problems: tuple[Problem, ...] = ()

    def explain(self) -> str:
        """Return the question or the refusal as one message for a person; nothing for a schedule."""
        text = "; ".join(f"{problem.code}: {problem.hint}" for problem in self.problems)
        if self.readings:
            text += ": " + "; or ".join(f"{reading.description!r}" for reading in self.readings)
        return text
