"""The response to a draft: what would be created or changed, what is still open, and the token that confirms it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from cloudsched.domain.documents.responses import ApiResponse, Occurrence, ReadBack
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput


class Decision(StrEnum):
    """What a text asks for."""

    CREATION = "creation"
    UPDATE = "update"
    REFUSAL = "refusal"


class DraftAnswer(ApiResponse):
    """One answer to a question: the fields of the next request for a draft that differ from this one's."""

    label: str
    """What distinguishes it from the other answers."""
    description: str = ""
    """The schedule, the task or the handler in words."""
    text: str | None = None
    """Send this text instead."""
    context: dict[str, Any] | None = None
    """Add these fields to the context."""


class DraftQuestion(ApiResponse):
    """What has to be answered before there is anything to confirm."""

    field: str
    """The field of the task that is open, or ``taskId`` if several tasks may be meant."""
    question: str
    answers: tuple[DraftAnswer, ...] = ()
    """What may be meant; empty if the answer is free."""


class MissingField(ApiResponse):
    """A field that the text does not give, or not as it may be."""

    field: str
    code: str
    """The reason for programs, such as ``too-soon``, ``too-often``, ``past`` or ``not-understood``."""
    reason: str
    """The reason for people, with what to do."""
    words: str | None = None
    """The words at fault, if it is some of the text's."""


class DraftStep(ApiResponse):
    """What was done to understand the text, for a user interface."""

    at: AwareDatetime
    text: str


class DraftResult(ApiResponse):
    """What a text asks for. Nothing of it is stored."""

    decision: Decision
    task: dict[str, Any] | None = None
    """The task that ``POST /v1/tasks`` creates from it, as far as it is known; None for an update."""
    task_id: str | None = None
    """The task that an update changes."""
    changes: dict[str, Any] | None = None
    """The body for ``PATCH /v1/tasks/{taskId}``."""
    schedule: Schedule | None = None
    description: str = ""
    """The schedule in words."""
    next: Annotated[tuple[Occurrence, ...], Field(max_length=5)] = ()
    """The next occurrences, at most five."""
    read_back: ReadBack | None = None
    """The same of the schedule, as the answers to creations and edits have it."""
    assumptions: tuple[str, ...] = ()
    """What the text leaves open, and how it was decided, one sentence each."""
    questions: tuple[DraftQuestion, ...] = ()
    missing: tuple[MissingField, ...] = ()
    steps: tuple[DraftStep, ...] = ()
    draft_token: str | None = Field(default=None, repr=False)
    """Send it with `task` or `changes`, unchanged, within 15 minutes: then what is stored is what was shown. None while
    something is missing or asked."""

    def require_complete(self) -> dict[str, Any]:
        """Return the body that confirms this draft.

        Raises:
            InvalidInput: It has no token, because something is asked or missing.
        """
        if self.draft_token is None:
            fields = [*(each.field for each in self.questions), *(each.field for each in self.missing)]
            problem = f"is not complete: {', '.join(fields)}" if fields else f"is a {self.decision}"
            raise InvalidInput("draft", problem, "Answer its questions, and draft again.")
        fields_shown = self.task if self.task_id is None else self.changes
        return {**(fields_shown or {}), "draftToken": self.draft_token}
