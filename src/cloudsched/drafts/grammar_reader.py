"""Read a text by the grammar of schedules alone: every word belongs to the schedule, the title or a field."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.domain.responses.api_responses import Decision, DraftAnswer, DraftQuestion
from cloudsched.drafts.deliveries import DeliveryPhrase, say_channel, take_delivery
from cloudsched.drafts.listing import list_tasks
from cloudsched.drafts.phrases import (
    Filled,
    asks_reminder,
    complete_payload,
    find_any_order,
    find_category,
    is_reminder,
    may_name_time,
    split_request,
    take_fields,
)
from cloudsched.drafts.request import Proposal, ask_when, to_missing_fields
from cloudsched.drafts.requests import find_list, may_change
from cloudsched.drafts.situation import Choice, Situation, choose_handler, list_named
from cloudsched.drafts.update_reader import ask_if_new, ask_new, read_update, refuse_change, settle_order
from cloudsched.drafts.value_ends import ask_ends, quote_value
from cloudsched.language.messages import say
from cloudsched.language.result import UNREAD, Reading

if TYPE_CHECKING:
    from cloudsched.engine.handlers.registry import Handler


def read_text(situation: Situation) -> Proposal:
    """Return the proposal that the text asks for, as far as the grammar understands it."""
    lines = (" ".join(line.split()) for line in situation.request.text.splitlines())
    text = "\n".join(line for line in lines if line)
    if (listed := find_list(text, lambda: situation.tasks)) is not None:
        return list_tasks(situation, listed)
    update = read_update(situation, text)
    if update is not None:
        return update
    creation = _read_creation(situation, text)
    says_when = creation.schedule is not None and not creation.schedule.is_now
    if not says_when and not creation.questions:
        return refuse_change(situation, text) or creation
    return creation


def _read_creation(situation: Situation, text: str) -> Proposal:
    context = situation.request.context
    choice = choose_handler(situation.handlers, text, context.get("handler"), situation.language)
    filled = Filled({}, " ".join(text.split()))
    if choice.handler is not None:
        filled = take_fields(choice.handler, text, context)
    read = _read_rest(situation, text, choice, filled)

    def reread(quoted: str) -> Proposal:
        return _read_creation(situation, quoted)

    return ask_ends(text, filled.open_values, read, reread, situation.language) or read


def _read_rest(situation: Situation, text: str, choice: Choice, filled: Filled) -> Proposal:
    delivery = take_delivery(filled.rest)
    filled = filled._replace(rest=delivery.rest)
    reading = situation.read(filled.rest or text)
    title = reading.title
    questions: tuple[DraftQuestion, ...] = (choice.question,) if choice.question else ()

    # A reminder whose time the grammar does not understand, or that names none.
    if _needs_words(reading) and is_reminder(text) and not any(character.isdigit() for character in text):
        title, when = split_request(filled.rest)
        if when or may_name_time(title):
            questions = (ask_when(situation.language), *questions)
        else:
            reading = situation.read_without_time()
        read = make_creation(situation, choice, filled, title, reading, questions, delivery)
        return replace(read, is_understood=False)

    # A title that is an order itself, such as "cancel the report", may not be meant as one.
    is_sure = title is None or f'"{title}"' in text or asks_reminder(text)
    if title is not None and not is_sure and (order := find_any_order(title)) is not None:
        if (settled := settle_order(situation, order)) is not None:
            return settled
        if (unsure := ask_if_new(situation, order, title, reading)) and reading.kind == "schedule":
            read = make_creation(situation, choice, filled, title, reading, (*unsure, *questions), delivery)
            return replace(read, is_understood=False)

    if title is not None and not is_sure and not questions and reading.schedule is not None:
        questions = _ask_if_change(situation, text, title, reading)

    if reading.kind == "refusal":
        missing = to_missing_fields(reading)
        return Proposal(decision=Decision.REFUSAL, missing=missing, is_understood=not _needs_words(reading))
    if reading.kind == "question":
        questions = (ask_schedule(situation, reading, title, delivery, filled, choice.handler), *questions)
    return make_creation(situation, choice, filled, title, reading, questions, delivery)


def _ask_if_change(situation: Situation, text: str, title: str, reading: Reading) -> tuple[DraftQuestion, ...]:
    """Return the question whether a task is a new one, if its words may ask something of one that there is.

    They may if they have a verb such as "skip", or a task's title between words of time: "on Wednesday yoga only".
    """
    is_one_time = reading.schedule is not None and reading.schedule.is_one_time
    if may_change(text, title, is_one_time=is_one_time):
        return (ask_new(say("does it change one that you have"), title, reading),)
    touched = list_named(situation.tasks, title) if may_name_time(title) else []
    if touched and title.casefold() not in {each.title.casefold() for each in touched}:
        return (ask_new(say("is it about {title!r}", title=touched[0].title), title, reading),)
    return ()


def make_creation(  # noqa: PLR0917 - what was found in one text
    situation: Situation,
    choice: Choice,
    filled: Filled,
    title: str | None,
    reading: Reading,
    questions: tuple[DraftQuestion, ...],
    delivery: DeliveryPhrase,
) -> Proposal:
    """Return the proposal of a new task."""
    handler = choice.handler
    missing = [choice.missing] if choice.missing else []
    does = ""
    if handler is not None:
        filled = complete_payload(handler, filled, title)
        missing += filled.missing
        does = handler.draft or ""
    shown = title or does or "Task"

    return Proposal(
        decision=Decision.CREATION,
        title=shown[0].upper() + shown[1:],
        purpose=title or "",
        category=find_category(f"{situation.request.text} {does}"),
        channels=delivery.channels,
        handler=handler,
        payload=filled.payload,
        schedule=reading.schedule,
        assumptions=(*reading.assumptions, *filled.assumptions),
        questions=questions,
        missing=tuple(missing),
    )


def _needs_words(reading: Reading) -> bool:
    return any(problem.code in UNREAD for problem in reading.problems)


def ask_schedule(
    situation: Situation,
    reading: Reading,
    title: str | None,
    delivery: DeliveryPhrase,
    filled: Filled,
    handler: Handler | None,
) -> DraftQuestion:
    """Return a question with the possible readings. The text of each answer has only one reading."""
    context = None if handler is None else {"handler": handler.name}
    texts = {name: value for name, value in filled.payload.items() if isinstance(value, str)}
    more = "".join(f" {say_channel(channel)}" for channel in delivery.channels)
    more += "".join(f", {name}: {quote_value(value)}" for name, value in texts.items())

    answers = []
    for each in reading.readings:
        text = each.description
        if title:
            text = f"{title} {each.description}"
            again = situation.read(text)
            if (again.schedule, again.title) != (each.schedule, title):
                text = f'"{title}" {each.description}'
        answers.append(
            DraftAnswer(label=each.label, description=each.description, text=f"{text}{more}", context=context)
        )
    return DraftQuestion(field="schedule", question=reading.problems[0].hint, answers=tuple(answers))
