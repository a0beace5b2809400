"""What was understood of a text, before it is checked: by the grammar, or by a language model and the grammar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.draft_responses import DraftQuestion, MissingField

if TYPE_CHECKING:
    from cloudsched.domain.documents.channel import DeliveryChannel
    from cloudsched.domain.documents.draft_responses import Decision
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.engine.handlers.handler import Handler
    from cloudsched.language.result import Reading

_SAID: Final = {"not-understood": "This is not understood: ", "no-update": "This change is not understood: "}
"""What is wrong, where the hint of the grammar only says what to write instead."""

ASK_WHEN: Final = DraftQuestion(field="schedule", question="When should it run? Such as: every weekday at 9:00.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A task to create, a change of one, or a refusal; only what was understood of it."""

    decision: Decision
    title: str | None = None
    purpose: str | None = None
    description: str | None = None
    category: Category = Category.OTHERS
    channels: tuple[DeliveryChannel, ...] = ()
    handler: Handler | None = None
    payload: dict[str, Any] = field(default_factory=dict)
    schedule: Schedule | None = None
    task: Task | None = None
    """The task that an update changes."""
    changes: dict[str, Any] = field(default_factory=dict)
    """What an update changes besides the schedule."""
    assumptions: tuple[str, ...] = ()
    questions: tuple[DraftQuestion, ...] = ()
    missing: tuple[MissingField, ...] = ()
    is_understood: bool = True
    """Whether a model needs not be asked: the words were read, even if what they say is refused."""


def to_missing_fields(reading: Reading) -> tuple[MissingField, ...]:
    """Return the problems of a reading."""
    return tuple(
        MissingField(field="schedule", code=each.code, reason=f"{_SAID.get(each.code, '')}{each.hint}")
        for each in reading.problems
    )
