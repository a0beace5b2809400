"""Read the change in a text, and which of the owner's tasks it changes. If several fit, ask."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.responses.api_responses import Decision, DraftAnswer, DraftQuestion, MissingField
from cloudsched.drafts.deliveries import read_requests, take_delivery
from cloudsched.drafts.draft_tokens import OPERATION
from cloudsched.drafts.phrases import (
    asks_reminder,
    check_fields,
    find_any_order,
    find_category,
    find_field,
    list_payload_fields,
    split_fields,
    take_fields,
)
from cloudsched.drafts.request import Proposal, ask_schedule, ask_when, to_missing_fields
from cloudsched.drafts.requests import MAKE, OPERATIONS, Intent, TaskRequest, find_edits, find_requests, split_requests
from cloudsched.drafts.situation import Situation, ask_which, list_begun
from cloudsched.drafts.value_ends import ask_ends, quote_value
from cloudsched.language.messages import tell
from cloudsched.language.result import UNREAD, Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.responses.api_responses import DraftOperation
    from cloudsched.drafts.situation import Lead
    from cloudsched.engine.handlers.registry import Handler

_WHEN: Final = {Intent.CHANGE, Intent.MOVE, Intent.RESTATE}
"""What changes when a task runs. If it is not understood, that is asked."""
_HOW: Final = {Intent.ADD: "add", Intent.DROP: "drop"}
"""What happens to the ways of delivery that a request names."""
_NEEDED: Final = {"pause": TaskStatus.ACTIVE, "trigger": TaskStatus.ACTIVE, "resume": TaskStatus.PAUSED}
"""The status of the tasks that an operation can change, where it depends on that."""


def change(name: str, value: object, missing: tuple[MissingField, ...] = ()) -> Proposal:
    """Return the change of one field of a task, by its name in a merge patch."""
    return Proposal(decision=Decision.UPDATE, changes={name: value}, missing=missing)


def _refuse(field: str, code: str, reason: str, decision: Decision = Decision.REFUSAL) -> Proposal:
    return Proposal(decision=decision, missing=(MissingField(field=field, code=code, reason=reason),))


def change_field(task: Task, handler: Handler | None, name: str, value: str) -> Proposal | None:
    """Return the change of one field, by the name that people use. None if the task has none of that name."""
    known = _name_field(name)
    if known in {"title", "description", "purpose"}:
        return change(known, value)
    if known == "category":
        category = find_category(value)
        if category is Category.OTHERS:
            reason = f"{value!r} is none of {', '.join(each.value for each in Category)}."
            return _refuse(known, "invalid", reason, Decision.UPDATE)
        return change(known, category.value)
    if known == "delivery":
        channels, _ = take_delivery(f"per {value}")
        if not channels:
            reason = f"{value!r} is no way of delivery. Say e-mail, push, inbox or webhook."
            return _refuse("deliveryChannels", "invalid", reason, Decision.UPDATE)
        return change_channels(task, channels, "set")
    own = find_field(handler, name)
    return None if own is None else change_payload(task, handler, {own: value})


_FIELDS: Final = {1: "title", 2: "description", 3: "purpose", 4: "category", 5: "delivery", 6: "schedule"}
"""The fields of a task, by the values of the class "field" of `Language.requests`."""


def _name_field(called: str) -> str | None:
    """Return the field of a task by the name that people use, in any language. None if it is none of those."""
    for c in read_requests(called):
        if (field := c.take("field")) is not None and c.ended:
            return _FIELDS[field.value]
    return None


def change_channels(task: Task, named: Sequence[DeliveryChannel], how: str, language: str = "en") -> Proposal:
    """Return the change of the ways of delivery: the given ones are set, added or dropped."""
    before = task.delivery_channels
    ways = {"set": [*named], "add": [*before, *named], "drop": [each for each in before if each not in named]}
    after = dict.fromkeys(ways[how])
    changed = change("deliveryChannels", [each.value for each in after])
    note = tell(language, "Its results are no longer sent anywhere; they stay in its history.")
    return changed if after or not before else replace(changed, assumptions=(note,))


def change_payload(task: Task, handler: Handler | None, fields: Mapping[str, Any]) -> Proposal:
    """Return the change of some fields of the payload. It has the whole payload, since an edit replaces it."""
    if handler is None:
        return to_update(task, ())
    payload, missing = check_fields(handler, {**task.payload, **fields}, fields)
    return change("payload", payload, missing)


def to_update(task: Task, parts: Iterable[Proposal]) -> Proposal:
    """Return the proposal of an update that has all these changes of a task."""
    every, before = list(parts), task.to_wire()
    return Proposal(
        decision=max((part.decision for part in every), key=Decision.REFUSAL.__eq__, default=Decision.UPDATE),
        task=task,
        schedule=next((part.schedule for part in reversed(every) if part.schedule is not None), None),
        changes={name: value for part in every for name, value in part.changes.items() if before.get(name) != value},
        questions=tuple(each for part in every for each in part.questions),
        missing=tuple(each for part in every for each in part.missing),
        assumptions=tuple(each for part in every for each in part.assumptions),
    )


def refuse_field(task: Task, handler: Handler | None, name: str) -> MissingField:
    """Return the reason why a draft cannot change a field."""
    own = list_payload_fields(handler)
    payload = f", and of its payload {', '.join(own)}" if own else ""
    reason = (
        f"A draft changes the schedule, title, description, purpose, category and delivery of {task.title!r}{payload}, "
        f"and not its {name!r}. PATCH /v1/tasks/{task.id} changes every field."
    )
    return MissingField(field=name, code="no-such-field", reason=reason)


IS_NEW: Final = "answer.text"
"""The field of a request's context that says that its text asks for a new task."""
_COMPARED: Final = 50
"""The number of the next occurrences that are compared."""
_MOST_TRIED: Final = 20
"""The number of fitting tasks on which a change is tried."""


def read_update(situation: Situation, text: str) -> Proposal | None:
    """Return the change that a text asks for. None if it changes no existing task.

    It may ask for several: "move my report to Tuesday and rename it to Numbers".
    """
    parts = split_requests(text)
    first = read_update(situation, parts[0]) if parts else None
    if parts is None or first is None:
        return _read_one(situation, text)
    if first.task is None:
        return first
    task = first.task.model_copy(update={"schedule": first.schedule or first.task.schedule})
    if first.decision is Decision.UPDATE:
        task = task.model_validate({**task.to_wire(), **first.changes})
    second = _read_one(replace(situation, load_tasks=lambda: [task]), parts[1])
    if second is None or second.task is None:
        return _read_one(situation, text)
    if Decision.OPERATION in {first.decision, second.decision} or first.questions or second.questions:
        reason = tell(situation.language, "It asks for several things. Say one, then the other.")
        return _refuse("text", "several", reason)
    return to_update(first.task, (first, second))


def _read_one(situation: Situation, text: str) -> Proposal | None:
    for request in find_edits(text, situation.tasks):
        if (update := _try(situation, request)) is not None:
            return update
    if (update := _read_request(situation, text)) is not None:
        return update
    if situation.request.context.get("taskId") is not None:
        channels, rest = take_delivery(text)
        return _try(situation, TaskRequest(Intent.CHANGE, situation.tasks, said=rest, channels=channels))
    return None


def _read_request(situation: Situation, text: str) -> Proposal | None:
    """Return what a text asks of a stored task. None if it asks for nothing, or has words that nothing explains."""
    channels, rest = take_delivery(text)
    asked, fields = split_fields(situation.handlers, rest)
    if asks_reminder(text):
        return None
    refused: Proposal | None = None
    end = len(" ".join(asked.split()))
    for found in find_requests(asked, situation.tasks, sends=bool(channels)):
        request = found._replace(said=rest, end=end, channels=channels)
        operation = OPERATIONS.get(found.intent)
        tried = (_try(situation, request, lead) for lead in request.leads)
        meant = [each for each in tried if each is not None and not _is_none(situation.now, each, request.intent)]
        # The likeliest that is understood, or the first refusal.
        update = min(meant, key=lambda each: each.decision is Decision.REFUSAL, default=None)
        if request.intent is Intent.RESTATE and _may_be_new(situation, asked, request, update):
            continue
        if update is not None and update.decision is not Decision.REFUSAL:
            if request.intent is Intent.RESTATE:
                note = "It changes a task that you have. If it is a new one, put its title in quotes."
                update = replace(update, assumptions=(*update.assumptions, tell(situation.language, note)))
            return update
        if operation is not None and request.is_whole and not channels and not fields:
            return operate(situation, operation, request.tasks)
        if operation is not None or update is None:
            update = _refuse_intent(situation, request.intent, request.tasks) if request.is_about_tasks else None
        refused = refused or update
    return refused


def _may_be_new(situation: Situation, text: str, request: TaskRequest, update: Proposal | None) -> bool:
    """Return whether a text that has a task and a time alone may ask for another task.

    "Yoga every Tuesday" beside a task of that title does not; "Yoga tomorrow at 9:00" may be one run more, and
    what is no change of that task is a new one: "schedule yoga every Tuesday".
    """
    reading = situation.read(text)
    if (reading.title is None and update is not None) or situation.request.context.get("taskId") is not None:
        return False
    is_other = update is None or not list_begun(request.tasks, reading.title or "", wholly=True)
    schedules = [reading.schedule, *(each.schedule for each in reading.readings)]
    return any(each is not None and (is_other or each.is_one_time) for each in schedules)


def _is_none(now: datetime, update: Proposal, intent: Intent) -> bool:
    """Return whether a change cannot be meant.

    "Tomorrow's at 11" is one of them, and ends none. "Pause it at 5" is no run of it.
    """
    task, schedule = update.task, update.schedule
    if task is None or schedule is None:
        return False
    before, after = (each.anchor(now).upcoming(now, _COMPARED) for each in (task.schedule, schedule))
    return (intent in OPERATIONS and before == after) or (schedule.is_single_time and not task.schedule.is_single_time)


def _try(situation: Situation, request: TaskRequest, lead: Lead = ()) -> Proposal | None:
    """Return the change of the task that it fits, or the question which of several is meant."""
    tried = ((task, _apply(situation, task, request, lead)) for task in request.tasks[:_MOST_TRIED])
    fitting = [(task, update) for task, update in tried if update is not None]
    if len(fitting) > 1:
        return Proposal(
            decision=Decision.UPDATE, questions=(ask_which([task for task, _ in fitting], situation.language),)
        )
    return fitting[0][1] if fitting else None


def operate(situation: Situation, operation: DraftOperation, tasks: Sequence[Task]) -> Proposal:
    """Return the proposal of an operation on a task, or the question which of several is meant.

    Those that it can change come first: only paused tasks are resumed, and only active ones paused or triggered.
    """
    able = [task for task in tasks if task.status is _NEEDED.get(operation, task.status)] or tasks
    if len(able) > 1:
        return Proposal(decision=Decision.OPERATION, questions=(ask_which(able, situation.language),))
    return Proposal(decision=Decision.OPERATION, task=able[0], changes={OPERATION: operation})


def refuse_change(situation: Situation, text: str) -> Proposal | None:
    """Return the reason why a draft cannot make a change. None if the text asks for no such change."""
    for request in find_edits(text, situation.tasks):
        if request.is_about_tasks and len(request.tasks) == 1:
            [task] = request.tasks
            missing = refuse_field(task, situation.find_handler(task.handler), request.field)
            return Proposal(decision=Decision.REFUSAL, task=task, missing=(missing,))
    order = find_any_order(text)
    if order is None or not order.is_task:
        return None
    return _refuse_intent(situation, Intent[order.verb.upper()], ())


def _refuse_intent(situation: Situation, intent: Intent, tasks: Sequence[Task]) -> Proposal:
    """Return the refusal of a change that is not understood. It is a question if it says which task, and that it moves.

    An operation is done at once and to the whole task, so a time beside it, such as an end of a pause, is not dropped.
    """
    task = tasks[0] if len(tasks) == 1 else None
    language = situation.language
    operation = OPERATIONS.get(intent)
    if operation is not None and not tasks:
        reason = tell(language, f"This seems to {operation} a task, and none of them is named. Say its title.")
        return _refuse("taskId", "no-task", reason)
    if operation is not None:
        question = tell(
            language,
            f"The draft can only {operation} the whole task, as soon as you confirm it, and not until or at another "
            "time. Is that meant?",
        )
        answers = tuple(
            each.model_copy(update={"label": f"{operation} {each.label!r}", "text": f"{operation} it"})
            for each in ask_which(tasks, language).answers
        )
        asked = (DraftQuestion(field="text", question=question, answers=answers),)
        return Proposal(decision=Decision.OPERATION, questions=asked)
    if task is not None and intent in _WHEN:
        asked = (ask_when(language),)
        return Proposal(decision=Decision.UPDATE, task=task, questions=asked, is_understood=False)
    reason = tell(
        language,
        "This seems to change a task, and how is not understood. Say it like this: move my report to Monday at 9:00. "
        "If it is a new task, put its title in quotes.",
    )
    return replace(_refuse("text", "not-understood", reason), task=task, is_understood=False)


def ask_meant(
    situation: Situation, text: str, tasks: Sequence[Task], called: str, title: str, reading: Reading
) -> DraftQuestion:
    """Return the question whether a task is a new one, or changes one of some tasks, which are `called` so.

    Each answer says how.
    """
    when = "" if reading.schedule is None else reading.schedule.describe(reading.language)
    description = f"{quote_value(title)} {when}".rstrip()
    new = DraftAnswer(label=tell(reading.language, "a new task"), description=description, context={IS_NEW: "new"})
    words = re.split(re.escape(called), text, maxsplit=1, flags=re.IGNORECASE)
    if asks_reminder(text):
        words = ["", f" {when}"]
    which = ask_which(tasks, situation.language).answers
    changes = (each.model_copy(update={"text": each.label.join(words)}) for each in which)
    question = tell(reading.language, "Is this a new task, or is it about one that you have?")
    return DraftQuestion(field="text", question=question, answers=(new, *changes))


def _apply(situation: Situation, task: Task, request: TaskRequest, lead: Lead) -> Proposal | None:
    """Return the change of a task by a request. None if it names no possible change."""
    handler = situation.find_handler(task.handler)
    payload, rest, open_values = take_fields(handler, request.said, situation.request.context)
    asked = ask_ends(
        situation.language, open_values, lambda answers: _apply(situation.answered(answers), task, request, lead)
    )
    if asked is not None:
        return asked
    words = f"{request.words}{rest[request.end :]}"
    parts = list[Proposal]()
    if request.field:
        if (changed := change_field(task, handler, request.field, request.value)) is not None:
            parts.append(changed)
        elif _name_field(request.field) == "schedule":
            words, lead = request.value, (MAKE,)
        else:
            return None
    if request.channels:
        how = _HOW.get(request.intent, "set") if request.sends else "set"
        parts.append(change_channels(task, request.channels, how, situation.language))
    if payload:
        parts.append(change_payload(task, handler, payload))
        lead = lead if words else ()
    if words or lead:
        reading = situation.read(words, task.schedule, request.language, lead)
        if reading.kind == "refusal" and {each.code for each in reading.problems} <= {"no-update", *UNREAD}:
            return None
        parts.insert(0, read_change(reading))
    return to_update(task, parts) if parts else None


def read_change(reading: Reading) -> Proposal:
    """Return the change of a schedule that was read."""
    if reading.kind == "refusal":
        return Proposal(decision=Decision.REFUSAL, missing=to_missing_fields(reading))
    make = tell(reading.language, "make it {schedule}", schedule="")
    asked = (ask_schedule(reading, make),) if reading.kind == "question" else ()
    return Proposal(
        decision=Decision.UPDATE, schedule=reading.schedule, questions=asked, assumptions=reading.assumptions
    )
