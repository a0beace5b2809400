"""The form of a handler's input: the payload of one run by hand, or the answer to an event that a run waits for."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.forms.fields import (
    PAYLOAD,
    Again,
    Submitted,
    make_payload,
    read_key,
    read_payload,
    refuse,
    write_payload,
)
from cloudsched.errors import CloudschedError, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit


def fetch(api: Api, visit: Visit, task_id: str, event: str = "") -> Json:
    """Ask the API for the task and its payload, or for the payload's schema of an event of its handler."""
    task, _ = api.task(task_id)
    if task.get("children"):
        raise NotFound("payload of the task", task_id)
    handler = api.find_handler(task["handler"])
    answer: Json = {
        "task": task,
        "event": event,
        "schema": handler.get("payloadSchema"),
        "key": uuid.uuid4().hex,
        "executionId": visit.query.get("executionId"),
        "record": None,
    }
    payload = task.get("payload", {})
    if event:
        answer["schema"] = handler.get("eventSchemas", {}).get(event)
        payload = {}
        if answer["executionId"]:
            answer["record"] = api.find(execution_path(task_id, answer["executionId"]))
    return {**answer, "texts": {PAYLOAD: write_payload(payload)}}


def send(api: Api, visit: Visit, texts: Mapping[str, str], task_id: str, event: str = "") -> Submitted | Again:
    """Check or start the run, or send the answer. The form's key makes a second request find the first one's."""
    answer = fetch(api, visit, task_id, event)
    answer |= {"texts": dict(texts), "key": read_key(texts) or answer["key"]}
    errors: dict[str, str] = {}
    content: Json = {"payload": read_payload(texts, errors)}
    if errors:
        return Again({**answer, "errors": errors}, 400)

    headers = {"Idempotency-Key": answer["key"]}
    try:
        if event:
            if answer["executionId"]:
                content["executionId"] = answer["executionId"]
            api.post(f"{task_path(task_id)}/events/{quote(event, safe='')}", content, headers=headers)
            return Submitted(f"tasks/{task_id}", "send")
        path = f"{task_path(task_id)}/trigger"
        if texts.get("verb") != "run":
            api.post(path, content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True})
        api.post(path, content, headers=headers)
    except CloudschedError as error:
        return refuse(answer, error)
    return Submitted(f"tasks/{task_id}", "trigger")


def build(answer: Json, visit: Visit) -> Json:
    """Return what the form shows."""
    task = answer["task"]
    title = f"Run {task['title']} once"
    if answer["event"]:
        title = f"Answer {answer['event']}: {task['title']}"
        if record := answer["record"]:
            title += f", run of {visit.moment(record['scheduledFor']).text}"
    return {
        "error": "",
        "isChecked": False,
        **answer,
        "title": title,
        "payload": make_payload(answer["schema"], answer["texts"], answer.get("errors", {})),
    }
