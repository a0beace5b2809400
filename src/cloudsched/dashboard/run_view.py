"""What a task's handler is given in a form of its fields: a payload for one run, or the answer that one waits for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from cloudsched.dashboard.forms import Again, Done, Field, describe_problem, list_names, make_fields, place_faults
from cloudsched.dashboard.payload_schema import ABSENT, Slot, read_schema, read_value, write_texts
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, task_path, zone_choices
from cloudsched.errors import CloudschedError, InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class RunPage:
    """The view model."""

    title: str
    task_id: str
    task_title: str
    handler: str
    event: str
    """The event that is answered; empty if this is a run."""
    payload: tuple[Field, ...]
    key: str
    error: str
    is_checked: bool
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit, task_id: str, event: str = "") -> Json:
    """Ask the API for the task and its payload, or for what an event of its handler carries."""
    task, _ = api.task(task_id)
    if task.get("children"):
        raise NotFound("payload of the task", task_id)
    handlers = api.get("/v1/handlers")["handlers"]
    handler: Json = next((each for each in handlers if each["name"] == task["handler"]), {})
    schema = handler.get("eventSchemas", {}).get(event) if event else handler.get("payloadSchema")
    if event and schema is None:
        raise NotFound("form of the event", event)
    answer = {"task": task, "event": event, "schema": schema, "key": uuid.uuid4().hex}
    answer["execution"] = visit.query.get("executionId")
    return {**answer, "texts": write_texts(read_schema(schema), {} if event else task.get("payload", {}))}


def send(api: Api, visit: Visit, texts: Mapping[str, str], task_id: str, event: str = "") -> Done | Again:
    """Check or start the run, or send the answer; the form's key makes a second sending find the first one's."""
    answer = fetch(api, visit, task_id, event)
    key = texts.get("key", "")
    answer |= {"texts": dict(texts), "key": key if key.isascii() and key.isalnum() else answer["key"]}
    errors: dict[str, str] = {}
    payload = read_value(_find_slot(answer), texts, errors)
    if errors:
        return Again({**answer, "errors": errors}, 400)
    content: Json = {"payload": {} if payload is ABSENT else payload}
    headers = {"Idempotency-Key": answer["key"]}
    try:
        if event:
            only = {"executionId": answer["execution"]} if answer["execution"] else {}
            api.post(f"{task_path(task_id)}/events/{quote(event, safe='')}", {**content, **only}, headers=headers)
            return Done(f"tasks/{task_id}", "send")
        path = f"{task_path(task_id)}/trigger"
        if texts.get("verb") != "run":
            api.post(path, content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True})
        api.post(path, content, headers=headers)
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
    task, event = answer["task"], answer["event"]
    return RunPage(
        title=f"Answer {event} of {task['title']}" if event else f"Run {task['title']} once",
        task_id=task["id"],
        task_title=task["title"],
        handler=task["handler"],
        event=event,
        payload=make_fields(_find_slot(answer), answer["texts"], answer.get("errors", {})),
        key=answer["key"],
        error=answer.get("error", ""),
        is_checked=answer.get("isChecked", False),
        zones=zone_choices(visit.in_zone_of(task)),
    )


def _find_slot(answer: Json) -> Slot:
    return read_schema(answer["schema"])
