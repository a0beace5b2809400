"""Read a text by the grammar of schedules alone: every word belongs to the schedule, the title or a field."""

from __future__ import annotations

from dataclasses import replace

from cloudsched.domain.responses.api_responses import Decision, DraftQuestion
from cloudsched.drafts.deliveries import take_delivery
from cloudsched.drafts.listing import list_tasks
from cloudsched.drafts.phrases import (
    REMIND,
    asks_reminder,
    complete_payload,
    find_any_order,
    find_category,
    take_fields,
)
from cloudsched.drafts.request import Proposal, ask_schedule, ask_when, to_missing_fields
from cloudsched.drafts.requests import find_list, may_change, may_name_time
from cloudsched.drafts.situation import Situation, choose_handler, find_meant, list_begun
from cloudsched.drafts.update_reader import IS_NEW, ask_meant, read_update, refuse_change
from cloudsched.drafts.value_ends import ask_ends, quote_value
from cloudsched.language.result import UNREAD, Reading


def read_text(situation: Situation) -> Proposal:
    """Return the proposal that the text asks for, as far as the grammar understands it."""
    lines = (" ".join(line.split()) for line in situation.request.text.splitlines())
    text = "\n".join(line for line in lines if line)
    if (listed := find_list(text, lambda: situation.tasks)) is not None:
        return list_tasks(situation, *listed)
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
    draft = choose_handler(situation, context.get("handler"))
    payload, rest, open_values = take_fields(draft.handler, text, context)
    asked = ask_ends(situation.language, open_values, lambda answers: _read_creation(situation.answered(answers), text))
    if asked is not None:
        return asked
    channels, rest = take_delivery(rest)
    draft = replace(draft, payload=payload, channels=channels)
    reading = situation.read(rest or text)
    title = reading.title
    questions = draft.questions

    # A reminder whose time the grammar does not understand, or that names none.
    is_unread = any(problem.code in UNREAD for problem in reading.problems)
    wanted = REMIND.fullmatch(rest) if is_unread else None
    if wanted is not None and not any(character.isdigit() for character in text):
        title = wanted["title"] or ""
        if wanted["when"] or may_name_time(title):
            questions = (ask_when(situation.language), *questions)
        else:
            reading = situation.read_without_time()
        return make_creation(situation, replace(draft, questions=questions, is_understood=False), title, reading)

    if reading.kind == "refusal":
        missing = to_missing_fields(reading)
        return Proposal(decision=Decision.REFUSAL, missing=missing, is_understood=not is_unread)
    if title is not None and quote_value(title) not in text:
        questions = (*_ask_if_change(situation, text, title, reading), *questions)
    if reading.kind == "question":
        questions = (ask_schedule(reading), *questions)
    return make_creation(situation, replace(draft, questions=questions), title, reading)


def _ask_if_change(situation: Situation, text: str, title: str, reading: Reading) -> tuple[DraftQuestion, ...]:
    """Return the question whether a task is a new one, if its words may ask something of one that there is.

    They may if its title is, or begins with, that of a task, or the other way round, or if they have a verb such as
    "skip". "Remind me" asks for a new task, unless its title is that of another.
    """
    if IS_NEW in situation.request.context:
        return ()
    is_new = asks_reminder(text)
    if touched := list_begun(situation.tasks, title, wholly=is_new):
        return (ask_meant(situation, text, touched, title, title, reading),)
    if is_new:
        return ()
    live = find_meant(situation.tasks, "")
    if live and (order := find_any_order(title)) is not None:
        touched = find_meant(live, order.what)
        if touched:
            return (ask_meant(situation, text, touched, order.what, title, reading),)
    is_one_time = reading.schedule is not None and reading.schedule.is_one_time
    if may_change(text, title, is_one_time=is_one_time):
        return (ask_meant(situation, text, (), title, title, reading),)
    return ()


def make_creation(situation: Situation, draft: Proposal, title: str | None, reading: Reading) -> Proposal:
    """Return a new task with its title and schedule, and with its payload complete."""
    does = "" if draft.handler is None else draft.handler.draft or ""
    shown = title or does or "Task"
    timed = replace(
        draft,
        title=shown[0].upper() + shown[1:],
        purpose=title or "",
        category=find_category(f"{situation.request.text} {does}"),
        schedule=reading.schedule,
        assumptions=reading.assumptions,
    )
    return complete_payload(timed, title, situation.request.context)
