"""Read what a text changes of one of the owner's tasks; which task is asked if several fit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.documents.draft_responses import Decision, DraftAnswer, DraftQuestion, MissingField
from cloudsched.drafts.changes import (
    Changes,
    change_channels,
    change_field,
    change_payload,
    is_schedule,
    refuse_field,
    to_update,
)
from cloudsched.drafts.payload import take_fields
from cloudsched.drafts.phrases import take_delivery
from cloudsched.drafts.proposal import Proposal, to_missing_fields
from cloudsched.drafts.situation import ask_which, find_meant, is_named
from cloudsched.drafts.wishes import Wish, find_wishes, split_wishes

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.drafts.situation import Situation
    from cloudsched.language.result import Reading

_MOST_TRIED: Final = 20
"""On how many of the tasks that fit a change is tried."""
_CONNECTED: Final = re.compile(r"\b(?:to|and|at|from|until|till|then)\b", re.IGNORECASE)
"""Words in what should be a task's name that may begin another wish: all its words have to be the task's then."""


def read_update(situation: Situation, text: str) -> Proposal | None:
    """Return the change that a text asks for; None if it changes nothing that there is."""
    return _read_both(situation, text) or _read_one(situation, text)


def _read_both(situation: Situation, text: str) -> Proposal | None:
    """Return the changes of "move my report to Tuesday and rename it to Numbers"."""
    if (parts := split_wishes(text)) is None:
        return None
    first = read_update(situation, parts[0])
    if first is None or first.task is None:
        return first
    task = _apply_proposal(first.task, first)
    second = _read_one(replace(situation, load_tasks=lambda: [task]), parts[1])
    if second is None or second.task is None:
        return None
    return replace(
        second,
        task=first.task,
        decision=Decision.REFUSAL if Decision.REFUSAL in {first.decision, second.decision} else Decision.UPDATE,
        schedule=second.schedule or first.schedule,
        changes={**first.changes, **second.changes},
        assumptions=(*first.assumptions, *second.assumptions),
        questions=(
            *(_reword(each, after=f" and {parts[1]}") for each in first.questions),
            *(_reword(each, f"{parts[0]} and ") for each in second.questions),
        ),
        missing=(*first.missing, *second.missing),
    )


def _apply_proposal(task: Task, update: Proposal) -> Task:
    """Return the task that the second half of a text changes."""
    channels = update.changes.get("deliveryChannels", task.delivery_channels)
    return task.model_copy(
        update={
            "schedule": update.schedule or task.schedule,
            "payload": update.changes.get("payload", task.payload),
            "delivery_channels": tuple(DeliveryChannel(each) for each in channels),
        }
    )


def _reword(question: DraftQuestion, before: str = "", after: str = "") -> DraftQuestion:
    """Return a question whose answers say the other half of the text as well."""
    answers = tuple(
        each if each.text is None else each.model_copy(update={"text": f"{before}{each.text}{after}"})
        for each in question.answers
    )
    return question.model_copy(update={"answers": answers})


def _read_one(situation: Situation, text: str) -> Proposal | None:
    for wish in find_wishes(text):
        if not wish.operation and (update := _read_wish(situation, wish)) is not None:
            return update
    if situation.request.context.get("taskId") is not None and situation.tasks:
        delivery = take_delivery(text)
        task, wish = situation.tasks[0], Wish("", delivery.rest, channels=delivery.channels)
        return _apply(situation, task, wish) or _apply(situation, task, Wish("", text))
    return None


def refuse_change(situation: Situation, text: str) -> Proposal | None:
    """Return why a change is none of a draft's; None if the text asks for no such change."""
    for wish in find_wishes(text):
        if not wish.operation and not wish.field:
            continue
        meant = find_meant(situation.tasks, wish.what)
        if not meant:
            continue
        task = meant[0] if len(meant) == 1 else None
        if wish.operation:
            missing = _refuse_operation(wish.operation, task)
        elif task is None:
            continue
        else:
            missing = refuse_field(task, situation.find_handler(task.handler), wish.field)
        return Proposal(decision=Decision.REFUSAL, task=task, missing=(missing,))
    return None


def _refuse_operation(operation: str, task: Task | None) -> MissingField:
    path = f"/v1/tasks/{'{taskId}' if task is None else task.id}"
    how = f"DELETE {path}" if operation == "delete" else f"POST {path}/{operation}"
    which = "one of several" if task is None else repr(task.title)
    reason = f"A draft creates or changes a task. To {operation} {which}, use {how}."
    return MissingField(field="status", code="other-operation", reason=reason)


def _read_wish(situation: Situation, wish: Wish) -> Proposal | None:
    is_exact = wish.is_exact or _CONNECTED.search(wish.what) is not None
    meant = [task for task in find_meant(situation.tasks, wish.what) if not is_exact or is_named(task, wish.what)]
    if not meant or (wish.channels and not wish.phrase and _says_when(situation, wish.what)):
        return None
    fitting = [(task, update) for task in meant[:_MOST_TRIED] if (update := _apply(situation, task, wish)) is not None]
    if len(fitting) > 1:
        return Proposal(decision=Decision.UPDATE, questions=(ask_which([task for task, _ in fitting]),))
    return fitting[0][1] if fitting else None


def _says_when(situation: Situation, words: str) -> bool:
    """Return whether words that should name a task name a time: "e-mail me the report every Monday" is a new task."""
    return situation.read(words).kind != "refusal"


def _apply(situation: Situation, task: Task, wish: Wish) -> Proposal | None:
    """Return what a wish changes of a task; None if it says nothing that the task could be changed to."""
    handler, phrase, reading = situation.find_handler(task.handler), wish.phrase, None
    parts, said = list[Changes](), "".join(f" by {channel.value.lower()}" for channel in wish.channels)
    if wish.field:
        if (changed := change_field(task, handler, wish.field, wish.value)) is not None:
            parts.append(changed)
        elif is_schedule(wish.field):
            phrase = f"make it {wish.value}"
        else:
            return None
    if wish.channels:
        parts.append(change_channels(task, wish.channels, wish.delivery))
    if phrase and handler is not None:
        filled = take_fields(handler, phrase, {})
        if filled.payload:
            parts.append(change_payload(task, handler, filled.payload))
            said += "".join(f', {name}: "{value}"' for name, value in filled.payload.items())
            phrase = "" if filled.rest in {"move it", "make it", "postpone it"} else filled.rest
    if phrase:
        reading = situation.read(phrase, task.schedule)
        if reading.kind == "refusal" and _is_unread(reading):
            return None
    return _to_proposal(task, reading, parts, said) if parts or reading is not None else None


def _is_unread(reading: Reading) -> bool:
    return all(problem.code in {"no-update", "not-understood"} for problem in reading.problems)


def _to_proposal(task: Task, reading: Reading | None, parts: list[Changes], said: str) -> Proposal:
    """Return the proposal of a change; `said` is what was said besides the schedule."""
    update = to_update(task, parts)
    if reading is None:
        return update
    if reading.kind == "refusal":
        return replace(update, decision=Decision.REFUSAL, missing=(*to_missing_fields(reading), *update.missing))
    if reading.kind == "question":
        return replace(update, questions=(_ask_schedule(task, reading, said),))
    return replace(update, schedule=reading.schedule, assumptions=(*reading.assumptions, *update.assumptions))


def _ask_schedule(task: Task, reading: Reading, said: str) -> DraftQuestion:
    answers = tuple(
        DraftAnswer(
            label=each.label,
            description=each.description,
            text=f"make it {each.description}{said}",
            context={"taskId": task.id},
        )
        for each in reading.readings
    )
    return DraftQuestion(field="schedule", question=reading.problems[0].hint, answers=answers)
