"""A run of a task with another payload: for that run alone, the task stays as it is."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms import Again, Done, Field, describe_problem, list_names, make_fields, place_faults
from cloudsched.dashboard.payload_schema import ABSENT, Slot, read_schema, read_value, write_texts
from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices
from cloudsched.errors import CloudschedError, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json


@dataclass(frozen=True, slots=True)
class RunPage:
    """The view model."""

    title: str
    task_id: str
    task_title: str
    handler: str
    payload: tuple[Field, ...]
    key: str
    error: str
    is_checked: bool
    zones: list[ZoneChoice]


def fetch(api: Api, _visit: Visit, task_id: str) -> Json:
    """Ask the API for the task and its payload."""
    task, _ = api.task(task_id)
    if task.get("children"):
        raise NotFound("payload of the task", task_id)
    answer = {"task": task, "handlers": api.get("/v1/handlers")["handlers"], "key": uuid.uuid4().hex}
    return {**answer, "texts": write_texts(_find_slot(answer), task.get("payload", {}))}


def send(api: Api, visit: Visit, texts: Mapping[str, str], task_id: str) -> Done | Again:
    """Check or start the run; the form's key makes a second sending find the first one's."""
    answer = fetch(api, visit, task_id)
    key = texts.get("key", "")
    answer |= {"texts": dict(texts), "key": key if key.isascii() and key.isalnum() else answer["key"]}
    errors: dict[str, str] = {}
    payload = read_value(_find_slot(answer), texts, errors)
    if errors:
        return Again({**answer, "errors": errors}, 400)
    path = f"{task_path(task_id)}/trigger"
    content = {"payload": {} if payload is ABSENT else payload}
    try:
        if texts.get("verb") != "run":
            api.post(path, content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True})
        api.post(path, content, headers={"Idempotency-Key": answer["key"]})
    except CloudschedError as error:
        return _refuse(answer, error)
    return Done(f"tasks/{task_id}", "trigger")


def _refuse(answer: Json, error: CloudschedError) -> Again:
    status, what, then = describe_problem(error)
    if isinstance(error, InvalidInput):
        names = list_names(make_fields(_find_slot(answer), answer["texts"], {}))
        told = place_faults(error, names)
        rest = told.pop("", "")
        if told:
            return Again({**answer, "errors": told, "error": rest}, status)
    return Again({**answer, "error": f"{what} {then}".strip()}, status)


def build(answer: Json, visit: Visit) -> RunPage:
    """Return the view model of the API's answers and the form's texts."""
    task = answer["task"]
    return RunPage(
        title=f"Run {task['title']} once",
        task_id=task["id"],
        task_title=task["title"],
        handler=task["handler"],
        payload=make_fields(_find_slot(answer), answer["texts"], answer.get("errors", {})),
        key=answer["key"],
        error=answer.get("error", ""),
        is_checked=answer.get("isChecked", False),
        zones=zone_choices(visit.in_zone_of(task)),
    )


def _find_slot(answer: Json) -> Slot:
    name = answer["task"]["handler"]
    return read_schema(next((each.get("payloadSchema") for each in answer["handlers"] if each["name"] == name), None))
