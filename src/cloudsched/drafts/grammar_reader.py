"""Read a text by the grammar of schedules alone: every word belongs to the schedule, the title or a field."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.draft_responses import Decision, DraftAnswer, DraftQuestion, MissingField
from cloudsched.domain.recurrence.parse import is_notation
from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.drafts.handlers import choose_handler
from cloudsched.drafts.payload import Filled, complete_payload, take_fields
from cloudsched.drafts.phrases import find_category, is_reminder, strip_request, take_delivery
from cloudsched.drafts.proposal import Proposal
from cloudsched.drafts.references import ask_which, find_meant, find_wishes
from cloudsched.errors import InvalidSchedule
from cloudsched.language.read import read
from cloudsched.language.result import Problem, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, time

    from cloudsched.domain.documents.task import Task
    from cloudsched.drafts.handlers import Choice
    from cloudsched.drafts.phrases import Delivery
    from cloudsched.drafts.references import Wish
    from cloudsched.drafts.request import DraftRequest
    from cloudsched.engine.handlers.handler import Handler

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Situation:
    """In what situation a text is read.

    Attributes:
        request: What was said.
        now: The instant from which its words count.
        handlers: The handlers that may be proposed.
        load_tasks: Returns the owner's tasks that may be meant; only texts that may change one pay for it.
        default_time: The time of day of words without one.
        default_calendar: The calendar that "holidays" means.
    """

    request: DraftRequest
    now: datetime
    handlers: Sequence[Handler]
    load_tasks: Callable[[], Sequence[Task]]
    default_time: time
    default_calendar: str | None = None

    @property
    def tasks(self) -> Sequence[Task]:
        """The owner's tasks that may be meant; the one that the context names, if it does."""
        return self.load_tasks()

    def read(self, text: str, current: Schedule | None = None) -> Reading:
        """Return what words of the grammar mean, or a notation such as cron; a date alone is words, and has no time."""
        if current is None and is_notation(text) and not _DATE.fullmatch(text.strip()):
            try:
                return Reading("schedule", Schedule.parse(text, timezone=self.request.timezone, now=self.now))
            except InvalidSchedule as error:
                return Reading("refusal", problems=(Problem((0, len(text)), "invalid", str(error)),))
        return read(
            text,
            now=self.now,
            timezone=self.request.timezone,
            current=current,
            default_time=(self.default_time.hour, self.default_time.minute),
            default_calendar=self.default_calendar,
        )


def read_text(situation: Situation) -> Proposal:
    """Return what the text asks for, as far as the grammar understands it."""
    text = " ".join(situation.request.text.split())
    wishes = list(find_wishes(text))
    for wish in wishes:
        if not wish.operation and (update := _read_wish(situation, wish)) is not None:
            return update
    if situation.request.context.get("taskId") is not None and situation.tasks:
        reading = situation.read(text, situation.tasks[0].schedule)
        if reading.kind != "refusal":
            return _to_update(situation.tasks[0], reading)
    creation = _read_creation(situation, text)
    if creation.schedule is None and not creation.questions:
        operation = next((each for wish in wishes if (each := _refuse_operation(situation, wish)) is not None), None)
        return operation or creation
    return creation


def _read_wish(situation: Situation, wish: Wish) -> Proposal | None:
    meant = find_meant(situation.tasks, wish.what)
    if not meant:
        return None
    reading = None if wish.changes else situation.read(wish.phrase, meant[0].schedule)
    if reading is not None and reading.kind == "refusal" and _is_unread(reading):
        return None
    if len(meant) > 1:
        return Proposal(decision=Decision.UPDATE, questions=(ask_which(meant),))
    if reading is None:
        return Proposal(decision=Decision.UPDATE, task=meant[0], changes=dict(wish.changes))
    return _to_update(meant[0], reading)


def _is_unread(reading: Reading) -> bool:
    return all(problem.code in {"no-update", "not-understood"} for problem in reading.problems)


def _to_update(task: Task, reading: Reading) -> Proposal:
    if reading.kind == "refusal":
        return Proposal(decision=Decision.REFUSAL, task=task, missing=to_missing_fields(reading))
    if reading.kind == "question":
        question = DraftQuestion(
            field="schedule",
            question=reading.problems[0].hint,
            answers=tuple(
                DraftAnswer(
                    label=each.label,
                    description=each.description,
                    text=f"make it {each.description}",
                    context={"taskId": task.id},
                )
                for each in reading.readings
            ),
        )
        return Proposal(decision=Decision.UPDATE, task=task, questions=(question,))
    return Proposal(decision=Decision.UPDATE, task=task, schedule=reading.schedule, assumptions=reading.assumptions)


def _refuse_operation(situation: Situation, wish: Wish) -> Proposal | None:
    meant = find_meant(situation.tasks, wish.what) if wish.operation else []
    if len(meant) != 1:
        return None
    path = f"/v1/tasks/{meant[0].id}"
    how = f"DELETE {path}" if wish.operation == "delete" else f"POST {path}/{wish.operation}"
    reason = f"A draft creates or changes a task. To {wish.operation} {meant[0].title!r}, use {how}."
    missing = MissingField(field="status", code="other-operation", reason=reason)
    return Proposal(decision=Decision.REFUSAL, task=meant[0], missing=(missing,))


def _read_creation(situation: Situation, text: str) -> Proposal:
    context = situation.request.context
    delivery = take_delivery(text)
    choice = choose_handler(situation.handlers, text, context.get("handler"))
    filled = Filled({}, delivery.rest)
    if choice.handler is not None:
        filled = take_fields(choice.handler, delivery.rest, context)
    reading = situation.read(filled.rest or text)
    title = reading.title
    questions = tuple(each for each in (choice.question,) if each)
    if _may_say_when_later(text, reading):
        when = DraftQuestion(field="schedule", question="When should it run? Such as: every weekday at 9:00.")
        title = strip_request(filled.rest)
        asked = make_creation(situation, choice, filled, title, reading, (when, *questions), delivery)
        return replace(asked, is_understood=False)
    if reading.kind == "refusal":
        missing = to_missing_fields(reading)
        return Proposal(decision=Decision.REFUSAL, missing=missing, is_understood=not _needs_words(reading))
    if reading.kind == "question":
        questions = (ask_schedule(situation, reading, title, delivery, filled), *questions)
    return make_creation(situation, choice, filled, title, reading, questions, delivery)


def make_creation(  # noqa: PLR0917 - what was found in one text
    situation: Situation,
    choice: Choice,
    filled: Filled,
    title: str | None,
    reading: Reading,
    questions: tuple[DraftQuestion, ...],
    delivery: Delivery,
) -> Proposal:
    """Return the proposal of a new task."""
    handler, missing = choice.handler, [each for each in (choice.missing,) if each]
    if handler is not None:
        filled = complete_payload(handler, filled, title)
        missing += filled.missing
    shown = title or (handler.draft if handler is not None else None) or "Task"
    return Proposal(
        decision=Decision.CREATION,
        title=shown[0].upper() + shown[1:],
        purpose=title or "",
        category=find_category(f"{situation.request.text} {'' if handler is None else handler.draft}"),
        channels=delivery.channels,
        handler=handler,
        payload=filled.payload,
        schedule=reading.schedule,
        assumptions=(*reading.assumptions, *filled.assumptions),
        questions=questions,
        missing=tuple(missing),
    )


def _may_say_when_later(text: str, reading: Reading) -> bool:
    """Whether a text asks for a reminder and says nothing of when."""
    return _needs_words(reading) and is_reminder(text) and not any(character.isdigit() for character in text)


def _needs_words(reading: Reading) -> bool:
    return any(problem.code in {"not-understood", "empty", "too-long"} for problem in reading.problems)


def to_missing_fields(reading: Reading) -> tuple[MissingField, ...]:
    """Return the problems of a reading."""
    return tuple(MissingField(field="schedule", code=each.code, reason=each.hint) for each in reading.problems)


def ask_schedule(
    situation: Situation, reading: Reading, title: str | None, delivery: Delivery, filled: Filled
) -> DraftQuestion:
    """Return the question which of the readings is meant; each answer is a text that has only one."""
    more = "".join(f', {name}: "{value}"' for name, value in filled.payload.items() if isinstance(value, str))
    by = "".join(f" by {channel.value.lower()}" for channel in delivery.channels)
    answers = []
    for each in reading.readings:
        text = f"{title} {each.description}" if title else each.description
        if title and not _means(situation.read(text), each.schedule, title):
            text = f'"{title}" {each.description}'
        answers.append(DraftAnswer(label=each.label, description=each.description, text=f"{text}{by}{more}"))
    return DraftQuestion(field="schedule", question=reading.problems[0].hint, answers=tuple(answers))


def _means(reading: Reading, schedule: Schedule, title: str) -> bool:
    return reading.schedule == schedule and reading.title == title
