"""What an update changes of a task besides its schedule: its fields, ways of delivery and payload.

Each function returns the fields of a merge patch, only those that differ from the task's. What no draft changes is
refused, with what does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.draft_responses import Decision, MissingField
from cloudsched.drafts.payload import check_fields, find_field, list_payload_fields
from cloudsched.drafts.phrases import find_category, take_delivery
from cloudsched.drafts.proposal import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.domain.documents.channel import DeliveryChannel
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.handler import Handler

_TEXTS: Final = {
    "title": "title", "name": "title", "description": "description", "details": "description", "purpose": "purpose"
}  # fmt: skip
_KINDS: Final = {"category", "kind", "type"}
_WAYS: Final = {"delivery", "channel", "channels", "delivery channel", "delivery channels", "way of delivery"}
_TIMES: Final = {"time", "times", "day", "days", "date", "hour", "schedule", "time zone", "timezone", "zone"}


class Changes(NamedTuple):
    """The fields of a merge patch, and what is wrong with them."""

    fields: dict[str, Any]
    missing: tuple[MissingField, ...] = ()
    assumptions: tuple[str, ...] = ()


def is_schedule(field: str) -> bool:
    """Return whether people call the schedule, or a part of it, so."""
    return " ".join(field.lower().split()) in _TIMES


def change_field(task: Task, handler: Handler | None, name: str, value: str) -> Changes | None:
    """Return the change of one field, as people call it; None if the task has none of that name."""
    known = " ".join(name.lower().split())
    if known in _TEXTS:
        field = _TEXTS[known]
        return Changes({} if getattr(task, field) == value else {field: value})
    if known in _KINDS:
        return _change_category(task, value)
    if known in _WAYS:
        channels = take_delivery(f"it by {value}").channels
        return change_channels(task, channels, "set") if channels else Changes({}, (_no_way(value),))
    own = None if handler is None else find_field(handler, name)
    return None if own is None else change_payload(task, handler, {own: value})


def change_channels(task: Task, channels: Iterable[DeliveryChannel], how: str) -> Changes:
    """Return the change of the ways of delivery: these ones set, added or dropped."""
    before, named = task.delivery_channels, tuple(channels)
    after = {
        "set": named,
        "add": (*before, *(each for each in named if each not in before)),
        "drop": tuple(each for each in before if each not in named),
    }[how]
    if set(after) == set(before):
        return Changes({})
    nowhere = () if after else ("Its results are no longer sent anywhere; they stay in its history.",)
    return Changes({"deliveryChannels": [each.value for each in after]}, assumptions=nowhere)


def change_payload(task: Task, handler: Handler | None, fields: Mapping[str, Any]) -> Changes:
    """Return the change of some fields of the payload; the whole payload is in it, since an edit replaces it."""
    if handler is None or not fields:
        return Changes({})
    filled = check_fields(handler, {**task.payload, **fields}, fields)
    return Changes({} if filled.payload == task.payload else {"payload": filled.payload}, filled.missing)


def to_update(task: Task, parts: Iterable[Changes]) -> Proposal:
    """Return the proposal of an update that has all these changes."""
    every = list(parts)
    return Proposal(
        decision=Decision.UPDATE,
        task=task,
        changes={name: value for part in every for name, value in part.fields.items()},
        missing=tuple(each for part in every for each in part.missing),
        assumptions=tuple(each for part in every for each in part.assumptions),
    )


def refuse_field(task: Task, handler: Handler | None, name: str) -> MissingField:
    """Return why a field cannot be changed by a draft."""
    own = [] if handler is None else list(list_payload_fields(handler))
    payload = f", and of its payload {', '.join(own)}" if own else ""
    reason = (
        f"A draft changes the schedule, title, description, purpose, category and delivery of {task.title!r}{payload}, "
        f"and not its {name!r}. PATCH /v1/tasks/{task.id} changes every field."
    )
    return MissingField(field=name, code="no-such-field", reason=reason)


def _change_category(task: Task, value: str) -> Changes:
    category = next((each for each in Category if each.value == value.strip().upper()), None)
    if category is None and (category := find_category(value)) is Category.OTHERS:
        reason = f"{value!r} is none of {', '.join(each.value for each in Category)}."
        return Changes({}, (MissingField(field="category", code="invalid", reason=reason),))
    return Changes({} if task.category == category else {"category": category.value})


def _no_way(value: str) -> MissingField:
    reason = f"{value!r} is no way of delivery. Say e-mail, push, inbox or webhook."
    return MissingField(field="deliveryChannels", code="invalid", reason=reason)
