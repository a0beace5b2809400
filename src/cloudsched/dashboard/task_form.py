"""Forms made from a handler's schema: of a task, of a run with another payload, and of an answer to an awaited event.

The API checks each before anything is stored. A schedule is read back: its meaning, its assumptions, and its next runs.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from cloudsched.dashboard.forms import Again, Done, describe_problem, list_names, make_fields, place_faults, read_key
from cloudsched.dashboard.payload_schema import ABSENT, Slot, read_schema, read_value, write_texts
from cloudsched.dashboard.task_options import (
    MORE,
    NAMES,
    drop_defaults,
    make_options,
    read_before,
    read_changes,
    read_new,
    write_options,
    write_schedule,
)
from cloudsched.dashboard.task_view import build_upcoming
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.visit import Api, Json, Visit, task_path
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.schedules.schedule import OWNER_ZONE
from cloudsched.errors import CloudschedError, InvalidInput, KeyReused, NotFound, PreconditionFailed

COUNT: Final = 10


def check_schedule(api: Api, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API for the meaning of a schedule. Problems go to `errors`."""
    if "schedule" not in content:
        return None
    body: dict[str, Any] = {name: content[name] for name in ("schedule", "timezone", "owner") if name in content}
    return _ask_schedule(lambda: api.post("/v1/schedules/preview", {**body, "count": COUNT}), errors)


def _check_change(api: Api, task: Json, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API for a task's new schedule, if words may change the present one. See `check_schedule`."""
    when: dict[str, Any] = {name: content[name] for name in ("schedule", "timezone") if name in content}
    if not when:
        return None

    def ask() -> Json:
        checked = api.patch(task_path(task["id"]), when, query={"validateOnly": "true"})
        return preview_saved(api, checked, task)

    return _ask_schedule(ask, errors)


def _ask_schedule(ask: Callable[[], Json], errors: dict[str, str]) -> Json | None:
    try:
        return ask()
    except NotFound:  # an owner whom the caller may not see: the task's own request refuses it
        return None
    except InvalidInput as error:
        told = place_faults(error, ("schedule", "timezone"), {"schedule.timezone": "timezone"})
        for name, said in told.items():
            errors.setdefault(name or "schedule", said)
        return {"readings": list(error.readings)} if error.readings else None


def build_check(preview: Json | None, visit: Visit) -> Json | None:
    """Return the reading of a schedule that is shown before anything is stored. None if there is none.

    Words may have several meanings. Each has its schedule as JSON text, which the form takes.
    """
    if preview is None:
        return None
    zone = (preview.get("schedule") or {}).get("timezone", "UTC")
    due = [parse_instant(each["utc"]) for each in preview.get("occurrences", [])]
    shown = visit.in_zone_of({"timezone": zone})
    return {
        "description": preview.get("description", ""),
        "assumptions": preview.get("assumptions") or (),
        "rows": build_upcoming(due, shown, zone),
        "visit": shown,
        "readings": [
            {**each, "text": json.dumps(each["schedule"], sort_keys=True)} for each in preview.get("readings", ())
        ],
    }


_PAYLOAD: Final = "payload"


def fetch_new(api: Api, visit: Visit) -> Json:
    """Ask the API for its handlers."""
    return _describe_new(api, visit.query.get("handler", ""), {"timezone": visit.zone.key})


def _describe_new(api: Api, handler: str, texts: Mapping[str, str]) -> Json:
    handlers = api.get("/v1/handlers")["handlers"]
    return {"handlers": handlers, "handler": handler, "texts": dict(texts), "key": uuid.uuid4().hex}


def fetch_edit(api: Api, visit: Visit, task_id: str) -> Json:
    """Ask the API for a task, its handler's schema, and the previous values of an edit that is to be taken back."""
    task, etag = api.task(task_id)
    answer = _describe_task(api, task, etag)
    back = visit.query.get("back")
    history = api.find(f"{task_path(task_id)}/history") if back else None
    entry = next((each for each in (history or {}).get("entries", []) if str(each["number"]) == back), None)
    if entry is None:
        return {**answer, "texts": answer["now"]}
    before, left = read_before(entry["fields"])
    when = visit.in_zone_of(task).moment(entry["at"]).text
    said = f"This is what was before the edit of {when}. Nothing is saved yet."
    said += f" Not known here, so left as it is: {', '.join(left)}." if left else ""
    return {**answer, "texts": {**answer["now"], **before}, "takenBack": said}


def _describe_task(api: Api, task: Json, etag: str) -> Json:
    handlers = api.get("/v1/handlers")["handlers"]
    slot = _find_slot(handlers, task["handler"])
    words = api.describe(task["schedule"])
    schedule = _write_words(api, task, words)
    now = {**write_options(task), "schedule": schedule, **write_texts(slot, task.get("payload", {}))}
    return {
        "task": task,
        "etag": etag,
        "handlers": handlers,
        "handler": task["handler"],
        "words": words,
        "now": now,
        "base": json.dumps({name: _digest(text) for name, text in sorted(now.items())}),
    }


_OF_PLACE: Final = frozenset({"dtstart", "startZone", "timezone", "followsOwner"})
"""The parts that words for a schedule need not contain: its beginning, and its zone, which stands beside them."""


def _write_words(api: Api, task: Json, words: str) -> str:
    """Return a text for the present schedule: its own words if they are read as the same, otherwise JSON."""
    schedule, zone = task["schedule"], task.get("timezone", "UTC")
    said = words.removesuffix(f", {zone}")
    if schedule.get("rrule") and not schedule.get("startZone"):
        body = {"schedule": said, "timezone": zone, "owner": task["owner"], "count": 1}
        try:
            read = api.post("/v1/schedules/preview", body).get("schedule", {})
        except CloudschedError:
            read = {}
        if _is_same(read, schedule):
            return said
    return write_schedule(schedule)


def _is_same(one: Json, other: Json) -> bool:
    kept = [
        {name: value for name, value in drop_defaults(each).items() if name not in _OF_PLACE} for each in (one, other)
    ]
    return bool(one) and kept[0] == kept[1]


def preview_saved(api: Api, checked: Json, task: Json | None = None) -> Json:
    """Return the reading of the plan that the API would save, with its calendars, its end and its policies.

    The checked one is the answer to a check, which is the task that would result.
    """
    notes = [str(each) for each in (checked.get("readBack") or {}).get("assumed", ())]
    occurrences = checked.get("upcoming", [])
    if checked["status"] == TaskStatus.PAUSED:
        body = {"schedule": checked["schedule"], "owner": checked["owner"], "count": COUNT}
        occurrences = api.post("/v1/schedules/preview", body).get("occurrences", [])
        notes.append("It is paused, and goes on so once it is resumed.")
    before, after = (
        {each["id"] for each in (one or {}).get("schedule", {}).get("calendars", ())} for one in (task, checked)
    )
    if lost := sorted(before - after):
        notes.append(f"It no longer respects the calendar {' and '.join(lost)}: the new schedule does not name it.")
    words = api.describe(checked["schedule"])
    return {
        "description": words,
        "schedule": {**checked["schedule"], "timezone": checked.get("timezone", "UTC")},
        "occurrences": occurrences,
        "assumptions": notes,
    }


def send_new(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done | Again:
    """Check or create a task. The form's key makes a second request find the task of the first."""
    handler = texts.get("handler", "")
    answer = _describe_new(api, handler, _choose_reading(texts))
    answer["key"] = read_key(texts) or answer["key"]
    errors: dict[str, str] = {}
    content = {"handler": handler, **read_new(answer["texts"], errors)}
    slot = _find_slot(answer["handlers"], handler)
    payload = read_value(slot, answer["texts"], errors)
    if payload is not ABSENT:
        content[_PAYLOAD] = payload
    answer |= {"errors": errors, "preview": check_schedule(api, content, errors)}
    if errors:
        return Again(answer, 400)
    is_check = texts.get("verb") != "create"
    try:
        if is_check:
            checked = api.post("/v1/tasks", content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True, "preview": preview_saved(api, checked)})
        task = api.post("/v1/tasks", content, headers={"Idempotency-Key": answer["key"]})
    except KeyReused:
        problem = "This form has made a task already, with other content. Send it again to make another one."
        return Again({**answer, "key": uuid.uuid4().hex, "error": problem}, 422)
    except CloudschedError as error:
        return _refuse(answer, error, slot, NAMES)
    return Done(f"tasks/{task['id']}", "create")


def send_edit(api: Api, visit: Visit, texts: Mapping[str, str], task_id: str, tries: int = 3) -> Done | Again:
    """Check or edit a task. If somebody has changed it meanwhile, nothing is stored, and both versions are shown.

    Fields that were not touched in this form then show the other person's values.
    """
    task, etag = api.task(task_id)
    answer = _describe_task(api, task, etag)
    answer["texts"] = _choose_reading(texts)
    errors: dict[str, str] = {}
    if conflicts := _find_conflicts(answer["texts"], answer["now"], texts.get("base", "")):
        untouched = {name: theirs for name, mine, theirs in conflicts if mine is None}
        return Again({**answer, "conflicts": conflicts, "texts": {**answer["texts"], **untouched}}, 412)
    slot = _find_slot(answer["handlers"], task["handler"])
    content = read_changes(answer["texts"], task, errors, answer["now"]["schedule"])
    if _payload_of(answer["texts"]) != _payload_of(answer["now"]):
        payload = read_value(slot, answer["texts"], errors)
        content[_PAYLOAD] = _name_emptied(task.get("payload", {}), {} if payload is ABSENT else payload)
    try:
        answer |= {"errors": errors, "preview": _check_change(api, task, content, errors)}
        if errors:
            return Again(answer, 400)
        if texts.get("verb") != "save":
            checked = api.patch(task_path(task_id), content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True, "preview": preview_saved(api, checked, task)})
        if content:
            api.patch(task_path(task_id), content, etag=etag)
    except PreconditionFailed as error:  # changed between these two requests: as if it had been changed before
        return send_edit(api, visit, texts, task_id, tries - 1) if tries else _refuse(answer, error, slot, NAMES)
    except CloudschedError as error:
        return _refuse(answer, error, slot, NAMES)
    return Done(f"tasks/{task_id}", "edit" if content else "same")


def _refuse(answer: Json, error: CloudschedError, slot: Slot, options: tuple[str, ...] = ()) -> Again:
    """Show a refusal at its field, of the payload or one of the options, or above all of them."""
    status, what, then = describe_problem(error)
    errors = dict(answer.get("errors", {}))
    if isinstance(error, InvalidInput):
        names = [*options, *list_names(make_fields(slot, answer["texts"], {}))]
        known = {"retry": "retries", "retry.maxRetries": "retries"}
        told = place_faults(error, names, known)
        rest = told.pop("", "")
        if told:
            return Again({**answer, "errors": {**errors, **told}, "error": rest}, status)
    return Again({**answer, "error": f"{what} {then}".strip()}, status)


def build(answer: Json, visit: Visit) -> Json:
    """Return what the form of a task shows."""
    texts, errors = answer["texts"], answer.get("errors", {})
    task: Json | None = answer.get("task")
    is_new = task is None
    zones = [texts.get("timezone"), visit.own_zone, visit.zone.key, "UTC", OWNER_ZONE]
    suggested = tuple(dict.fromkeys(filter(None, zones)))
    names = tuple(name for name in NAMES if name not in MORE)
    more = tuple(name for name in MORE if name != "owner" or (is_new and visit.role == "admin"))
    return {
        **dict.fromkeys(("error", "key", "base", "words", "takenBack"), ""),
        **dict.fromkeys(("task", "conflicts", "isChecked")),
        **answer,
        "title": "New task" if task is None else f"Edit {task['title']}",
        "payload": make_fields(_find_slot(answer["handlers"], answer["handler"]), texts, errors),
        "options": make_options(names, texts, errors, suggested, is_new=is_new),
        "more": make_options(more, texts, errors, suggested, is_new=is_new),
        "isMoreOpen": any(name in errors or (is_new and texts.get(name)) for name in more),
        "check": build_check(answer.get("preview"), visit),
    }


def _find_slot(handlers: list[Json], name: str) -> Slot:
    schema: dict[str, Any] | None = next((each.get("payloadSchema") for each in handlers if each["name"] == name), None)
    return read_schema(schema)


def _choose_reading(texts: Mapping[str, str]) -> dict[str, str]:
    return {**texts, "schedule": texts["choose"]} if texts.get("choose") else dict(texts)


def _name_emptied(before: Any, after: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a form's payload with null for the fields that were emptied in it."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    return {**dict.fromkeys(before), **{name: _name_emptied(before.get(name), value) for name, value in after.items()}}


def _payload_of(texts: Mapping[str, str]) -> dict[str, str]:
    return {
        name: text.replace("\r\n", "\n")
        for name, text in texts.items()
        if (name == _PAYLOAD or name.startswith((f"{_PAYLOAD}.", f"{_PAYLOAD}:"))) and text
    }


def _find_conflicts(texts: Mapping[str, str], now: Mapping[str, str], base: str) -> list[tuple[str, str | None, str]]:
    """Return the fields that have changed since the form was opened: name, mine, theirs.

    Mine is None if the field was not touched in the form.
    """
    try:
        opened = json.loads(base)
    except ValueError:
        opened = None
    if not isinstance(opened, dict):
        return []
    found = []
    for name in dict.fromkeys([*now, *opened]):
        theirs, before = now.get(name, ""), opened.get(name, _digest(""))
        if _digest(theirs) != before:
            mine = texts.get(name)
            found.append((name, None if mine is None or _digest(mine) == before else mine, theirs))
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def fetch_run(api: Api, visit: Visit, task_id: str, event: str = "") -> Json:
    """Ask the API for the task and its payload, or for the payload's schema of an event of its handler."""
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


def send_run(api: Api, visit: Visit, texts: Mapping[str, str], task_id: str, event: str = "") -> Done | Again:
    """Check or start the run, or send the answer. The form's key makes a second request find the first one's."""
    answer = fetch_run(api, visit, task_id, event)
    answer |= {"texts": dict(texts), "key": read_key(texts) or answer["key"]}
    errors: dict[str, str] = {}
    slot = read_schema(answer["schema"])
    payload = read_value(slot, texts, errors)
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
        return _refuse(answer, error, slot)
    return Done(f"tasks/{task_id}", "trigger")


def build_run(answer: Json, _visit: Visit) -> Json:
    """Return what the form of a handler's input shows: a payload for one run, or an event's."""
    task, event = answer["task"], answer["event"]
    return {
        "error": "",
        "isChecked": False,
        **answer,
        "title": f"Answer {event} of {task['title']}" if event else f"Run {task['title']} once",
        "payload": make_fields(read_schema(answer["schema"]), answer["texts"], answer.get("errors", {})),
    }
