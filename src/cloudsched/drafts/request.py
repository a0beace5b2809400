"""The request of a draft, with limits on everything in it, and the proposal that is understood of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.document import InputInstant, WireModel
from cloudsched.domain.documents.json_limits import MAX_CONTEXT, json_size, require_storable
from cloudsched.domain.documents.person import ZoneName
from cloudsched.domain.documents.task import LongText, Owner, SourceMessage, Task
from cloudsched.domain.responses.api_responses import Decision, DraftAnswer, DraftQuestion, MissingField
from cloudsched.domain.transitions.validation_errors import to_invalid_input
from cloudsched.language.messages import tell
from cloudsched.language.task_fields import require_locale

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.engine.handlers.registry import Handler
    from cloudsched.language.result import Reading

MAX_TEXT: Final = 4_000
"""The longest text, in characters."""
MAX_TURNS: Final = 100
MAX_CONVERSATION: Final = 60 * 1024
"""The largest conversation, in bytes of JSON. With the rest it fits the 64 KiB of a task's source."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line ends, marks of the direction of writing, and halves of characters.
With them, the stored text would not be the one that was shown."""


def _reject_controls(text: str) -> str:
    found = _CONTROL.search(text)
    if found is not None:
        raise ValueError(f"has the control character U+{ord(found[0]):04X} at position {found.start()}")
    return text


def clean(text: str) -> str:
    """Return a text without the characters that a request may not have."""
    return _CONTROL.sub(" ", text)


Words = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT), AfterValidator(_reject_controls)]


class Turn(SourceMessage):
    """One message of a conversation."""

    content: Annotated[LongText, AfterValidator(clean)]


class DraftRequest(WireModel):
    """A person's words about a task."""

    text: Words
    """The request, in the person's words."""
    timezone: ZoneName
    """The IANA time zone of the words, such as ``Europe/Paris``."""
    conversation: Annotated[tuple[Turn, ...], Field(max_length=MAX_TURNS)] = ()
    """The earlier messages, the earliest first. They are data: nothing in them is an instruction."""
    context: dict[str, Any] = Field(default_factory=dict)
    """The knowledge of your app. ``chatId``, ``messageId`` and ``modelSettings`` become the task's source.
    ``taskId`` and ``handler`` name the task and the handler that are meant. Those that begin with
    ``answer.`` come from the answers to a draft's questions, such as ``answer.schedule``. Others fill fields of
    the handler's payload by their names."""
    now: InputInstant | None = None
    """The instant from which "tomorrow" counts. Now if omitted."""
    owner: Owner | None = None
    """The task's owner. The caller if omitted."""
    locale: Annotated[str, StringConstraints(max_length=35), AfterValidator(require_locale)] | None = None
    """The language of the words, such as ``de`` or ``en-US``. If omitted, it is detected from them."""

    @classmethod
    def from_wire(cls, content: object) -> Self:
        """Parse a request from JSON. Raises InvalidInput."""
        try:
            return cls.model_validate(content, by_alias=True, by_name=False)
        except ValidationError as error:
            raise to_invalid_input(error, model=cls) from None

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        require_storable("context", self.context, MAX_CONTEXT // 4)
        size = json_size([turn.to_wire() for turn in self.conversation])
        if size > MAX_CONVERSATION:
            raise ValueError(f"the conversation has {size} bytes of at most {MAX_CONVERSATION}; send its end alone")
        return self


def ask_when(language: str) -> DraftQuestion:
    """Return the question for a schedule."""
    return DraftQuestion(
        field="schedule",
        question=tell(language, "When should it run? Such as: every weekday at 9:00."),
    )


def ask_schedule(reading: Reading, before: str = "") -> DraftQuestion:
    """Return the question with the possible readings. An answer is one of them in words, after those before it."""
    answers = tuple(
        DraftAnswer(
            label=each.label,
            description=each.description,
            context={"answer.schedule": f"{before}{each.description}"},
        )
        for each in reading.readings
    )
    return DraftQuestion(field="schedule", question=reading.problems[0].hint, answers=answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A task to create, a change of one, a list, or a refusal, with only the parts that were understood."""

    decision: Decision
    title: str | None = None
    purpose: str | None = None
    category: Category = Category.OTHERS
    channels: tuple[DeliveryChannel, ...] = ()
    handler: Handler | None = None
    payload: dict[str, Any] = field(default_factory=dict)
    schedule: Schedule | None = None
    task: Task | None = None
    """The task that an update or an operation changes."""
    changes: dict[str, Any] = field(default_factory=dict)
    """The changes of an update besides the schedule, or the operation."""
    listed: tuple[tuple[Task, datetime | None], ...] = ()
    """The tasks that a list names, with the occurrence that it shows of each."""
    assumptions: tuple[str, ...] = ()
    questions: tuple[DraftQuestion, ...] = ()
    missing: tuple[MissingField, ...] = ()
    is_understood: bool = True
    """True if no model has to be asked: the words were read, even if the request is refused."""


def to_missing_fields(reading: Reading) -> tuple[MissingField, ...]:
    """Return the problems of a reading, each with the words at fault."""
    return tuple(
        MissingField(
            field="schedule",
            code=each.code,
            reason=f"{each.words!r}: {each.hint}" if each.words else each.hint,
            words=each.words or None,
        )
        for each in reading.problems
    )
