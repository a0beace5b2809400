"""Note actions on a task by hand in its document, in the commit that does them.

The notes cost no operation. Their room is bounded: the oldest ones fall off, of the side that takes the
most room. So nobody can wipe out what others did by doing much. Each has a number, which tells how many
are missing. Payloads, code, free texts and addresses are named when they change, and never copied. Of
other values, only short ones are.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_camel

from cloudsched.domain.documents.json_limits import stored_size
from cloudsched.domain.documents.task import FieldChange, HistoryEntry, Task, TaskSpec
from cloudsched.domain.documents.verbs import EDITS, Action
from cloudsched.domain.transitions.run_records import MAX_HISTORY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.event import Event

MAX_ENTRIES: Final = 50
_MAX_NOTE: Final = 500
"""The most characters of a note that are kept, as many as the page and an answer by a tap take."""
_FIELDS: Final = ("schedule", "paused_until", *TaskSpec.model_fields)
"""The fields that an edit or a pause can change."""
_MAX_VALUE = 200
_MAX_SCHEDULE = 600
"""The longest value that is copied, as JSON, and the longest schedule, without its defaults."""
_MAX_ENTRY_BYTES: Final = 2_000
"""The largest entry. A larger one only names its fields."""
_NAMED_ONLY: Final = frozenset(
    {
        "payload",
        "children",
        "script",
        "source",
        "description",
        "purpose",
        "on_completion",
        "ping",
        "delivery_title",
    }
)
"""The fields whose values are not copied, since they may be private or secrets."""


def with_entry(
    before: Task | None,
    task: Task,
    action: Action,
    by: EventSender | None,
    now: datetime,
    **more: Any,
) -> Task:
    """Return a changed task with an entry for the action, or as it is if nothing has changed.

    `before` is the task before the change, or None if it is new, and `by` who did it, or None for the
    scheduler.
    """
    if task is before:
        return task
    fields: tuple[FieldChange, ...] = ()
    earlier: tuple[HistoryEntry, ...] = ()
    if before is not None:
        earlier = before.history
        if action in {*EDITS, Action.PAUSED} and by is not None:
            fields = tuple(compare_fields(before, task))

    number = earlier[-1].number + 1 if earlier else 1
    entry = HistoryEntry(number=number, at=now, action=action, by=by, fields=fields, **more)
    size = _size(entry)
    if size > _MAX_ENTRY_BYTES:
        named = tuple(FieldChange(field=each.field) for each in fields)
        entry = entry.model_copy(update={"fields": named})
        size = _size(entry)
    kept = [(each, _size(each)) for each in earlier]
    while len(kept) >= MAX_ENTRIES or sum([one for _, one in kept], size) > MAX_HISTORY_BYTES:
        kept.remove(_find_dispensable(kept))
    return task.model_copy(update={"history": (*(each for each, _ in kept), entry)})


def with_answer(before: Task, task: Task, event: Event, now: datetime) -> Task:
    """Return a task that was sent an event, with an entry if that says yes or no to a run. Its note is cut."""
    said = event.payload if isinstance(event.payload, dict) else {}
    if task is before or not isinstance(said.get("approved"), bool):
        return task
    note = said.get("note")
    about = {
        "execution_id": next((each.execution_id for each in task.events if each.token == event.token), None),
        "reason": (note[:_MAX_NOTE] or None) if isinstance(note, str) else None,
    }
    action = Action.APPROVED if said["approved"] else Action.REJECTED
    return with_entry(before, task, action, event.sender, now, **about)


def _find_dispensable(entries: list[tuple[HistoryEntry, int]]) -> tuple[HistoryEntry, int]:
    """Return the oldest of these entries, with their sizes, whose side takes the most room."""
    room = Counter[str]()
    for entry, size in entries:
        room[_find_side(entry)] += size
    largest = max(room, key=room.__getitem__)
    return next(each for each in entries if _find_side(each[0]) == largest)


def _find_side(entry: HistoryEntry) -> str:
    return "" if entry.by is None else entry.by.side


def compare_fields(before: Task, after: Task) -> list[FieldChange]:
    """Return the owner's fields that differ, with their values if these are short and not private."""
    names = [name for name in _FIELDS if getattr(before, name) != getattr(after, name)]
    old = _show_values(before, names)
    new = _show_values(after, names)
    shown = map(to_camel, names)
    return [FieldChange(field=name, before=old.get(name), after=new.get(name)) for name in shown]


def _show_values(task: Task, names: Iterable[str]) -> dict[str, str]:
    values = task.model_dump(mode="json", by_alias=True, exclude_none=True, include={*names} - _NAMED_ONLY)
    if "schedule" in values:
        values["schedule"] = task.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items() if value != []}
    longest = {"schedule": _MAX_SCHEDULE}
    return {name: text for name, text in texts.items() if len(text) <= longest.get(name, _MAX_VALUE)}


def _size(entry: HistoryEntry) -> int:
    return stored_size(entry.model_dump(mode="python", by_alias=True, exclude_none=True))
