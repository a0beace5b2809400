"""The question before an edit is taken back: what changes from what to what, in words, and one button."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.fields import Again, Submitted, hash_text, refuse
from cloudsched.dashboard.forms.task_options import (
    describe_option,
    drop_defaults,
    name_option,
    read_before,
)
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.times import write_duration
from cloudsched.domain.documents.verbs import Action
from cloudsched.errors import CloudschedError, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_DONE: Final = {Action.MOVED: "move", Action.SKIPPED: "skip"}
"""What is taken back, where it is not an edit."""
_CHANGED = "Somebody has changed the task since you looked. Nothing was done. This is what would change now."


def fetch(api: Api, _visit: Visit, task_id: str, number: int) -> Json:
    """Ask the API for a task, and for the entry of its history that is to be taken back."""
    task, etag = api.task(task_id)
    entries = api.list_items(f"{task_path(task_id)}/history", "entries")
    entry = next((each for each in entries if each["number"] == number), None)
    if entry is None:
        raise NotFound("entry of the history", str(number))
    values, left = read_before(entry["fields"])
    values = {name: value for name, value in values.items() if not is_so(task, name, value)}
    shown = json.dumps([[name, task.get(name), value] for name, value in values.items()], sort_keys=True)
    return {
        "task": task,
        "etag": etag,
        "entry": entry,
        "values": values,
        "left": left,
        "shown": hash_text(shown),
    }


def is_so(task: Json, name: str, value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a task has a previous value already."""
    if name == "schedule":
        return bool(drop_defaults(value) == drop_defaults(task["schedule"]))
    return (task.get(name) or None) == (value or None)


def send(api: Api, visit: Visit, texts: Mapping[str, str], task_id: str, number: int) -> Submitted | Again:
    """Give the task its previous values, if what would change is what was shown."""
    answer = fetch(api, visit, task_id, number)
    if texts.get("shown") != answer["shown"]:
        return Again({**answer, "error": _CHANGED}, 412)
    try:
        if answer["values"]:
            api.patch(task_path(task_id), answer["values"], etag=answer["etag"])
    except PreconditionFailed:
        return Again({**fetch(api, visit, task_id, number), "error": _CHANGED}, 412)
    except CloudschedError as error:
        return refuse(answer, error)
    return Submitted(f"tasks/{task_id}", "taken-back" if answer["values"] else "same")


def build(answer: Json, visit: Visit) -> Json:
    """Return what the question shows."""
    task = answer["task"]
    what = _DONE.get(answer["entry"]["action"], "edit")
    changes = [
        (name_option(name), describe_value(name, task.get(name), visit), describe_value(name, value, visit))
        for name, value in answer["values"].items()
    ]
    return {
        "error": "",
        **answer,
        "what": what,
        "title": f"Take back the {what} of {task['title']}?" if changes else "Nothing to take back",
        "changes": changes,
        "left": ", ".join(map(name_option, answer["left"])),
    }


def describe_value(name: str, value: Any, visit: Visit) -> str:  # noqa: ANN401 - any JSON
    """Return the value of a field of a task as people write it."""
    if name == "schedule" and value:
        return describe_schedule(value, visit.now)
    if name in {"until", "pausedUntil"} and value:
        return visit.moment(value).text
    if name in {"jitter", "expiration"} and value:
        return write_duration(timedelta(seconds=value))
    if name == "catchUp" and value and value.get("window"):
        return f"{describe_option(name, value)}, window: {write_duration(timedelta(seconds=value['window']))}"
    return describe_option(name, value)
