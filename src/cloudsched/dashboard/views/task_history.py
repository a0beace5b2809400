"""The history of a task on its page: who did what, when, and what that changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms.take_back import describe_value, is_so
from cloudsched.dashboard.forms.task_options import name_option, read_before
from cloudsched.dashboard.words import only_if
from cloudsched.domain.documents.authority import ANONYMOUS, say_subject
from cloudsched.domain.explanation.moves import find_move

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_SCHEDULER: Final = "the scheduler"
_ASKED: Final = {say_subject(ANONYMOUS): ANONYMOUS, _SCHEDULER: "scheduler"}
"""The names by which the API finds those whom pages call otherwise."""


def build_history(answer: Json | None, task: Json, visit: Visit) -> list[Json]:
    """Return the rows of the API's answer, the latest first. Empty if the API has no history.

    What the task already has again is not offered to be taken back.
    """
    entries = (answer or {}).get("entries", [])
    return [{**build_entry(each, visit), "hasBack": _has_back(each, task)} for each in entries]


def _has_back(entry: Json, task: Json) -> bool:
    values, _ = read_before(entry.get("fields", []))
    return any(not is_so(task, name, value) for name, value in values.items())


def build_entry(entry: Json, visit: Visit) -> Json:
    """Return the row of one entry, with its schedules in words."""
    fields = entry.get("fields", [])
    reason = entry.get("reason") or ""
    return {
        **entry,
        "what": entry["action"].capitalize().replace("_", " "),
        "said": only_if(reason, f"“{reason}”" if entry.get("by") else reason),
        "who": name_actor(entry.get("by")),
        "changes": [_build_change(each, visit) for each in fields],
    }


def _build_change(field: Json, visit: Visit) -> tuple[str, str, str]:
    """Return a field's name, and what it was before and after, in words. Of a move it says which run was moved."""
    name, before, after = field["field"], field.get("before") or "", field.get("after") or ""
    if name == "schedule":
        move = find_move(before, after)
        if move.is_whole:
            return "Run", *move.write()
    return name_option(name), _describe(name, before, visit), _describe(name, after, visit)


def _describe(name: str, text: str, visit: Visit) -> str:
    """Return a value of the history, which is JSON or a word, as people write it. Empty if it is not known."""
    try:
        return describe_value(name, json.loads(text), visit)
    except ValueError:
        return text


def name_actor(by: Json | None) -> str:
    """Return who did something, as the log names them."""
    if not by:
        return _SCHEDULER
    return say_subject(by.get("subject") or "the app's own code")


def read_actor(name: str) -> str:
    """Return the name by which the API finds who pages call that, the inverse of `name_actor`."""
    return _ASKED.get(name.lower(), name)
