"""Forms made from a handler's schema: of a task, of a run with another payload, and of an answer to an awaited event.

The API checks each before anything is stored. A schedule is read back: its meaning, its assumptions, and its next runs.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from cloudsched.dashboard.forms import Again, Done, Field, describe_problem, list_names, make_fields, place_faults
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
from cloudsched.dashboard.task_view import DueRow, build_upcoming, number_entries
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, task_path, zone_choices
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.schedules.schedule import OWNER_ZONE
from cloudsched.errors import CloudschedError, InvalidInput, KeyReused, NotFound, PreconditionFailed

COUNT: Final = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """One meaning of words that have several."""

    label: str
    description: str
    schedule: str
    """The schedule as JSON text, which the form takes."""


@dataclass(frozen=True, slots=True)
class ScheduleCheck:
    """The reading of a schedule that is shown before anything is stored."""

    description: str
    assumptions: tuple[str, ...]
    rows: list[DueRow]
    zone: str
    readings: list[Reading]


def check_schedule(api: Api, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API for the meaning of a schedule. Problems go to `errors`.

    Args:
        api: The API.
        content: A task whose ``schedule`` is text with its ``timezone`` beside it, or JSON.
        errors: The problems, by field.
    """
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


def build_check(preview: Json | None, visit: Visit) -> ScheduleCheck | None:
    """Return the reading in the API's answer. None if there is none."""
    if preview is None:
        return None
    occurrences = preview.get("occurrences", [])
    zone = (preview.get("schedule") or {}).get("timezone", "UTC")
    readings = [
        Reading(
            str(each.get("label", "")), str(each.get("description", "")), json.dumps(each["schedule"], sort_keys=True)
        )
        for each in preview.get("readings", [])
    ]
    due = [parse_instant(each["utc"]) for each in occurrences]
    shown = visit.in_zone_of({"timezone": zone})
    assumptions = tuple(map(str, preview.get("assumptions") or ()))
    return ScheduleCheck(
        str(preview.get("description", "")), assumptions, build_upcoming(due, shown, zone), shown.zone.key, readings
    )


_PAYLOAD: Final = "payload"
_LONGEST_KEY: Final = 64


@dataclass(frozen=True, slots=True)
class HandlerChoice:
    """A handler that a new task may name."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that somebody else has changed since the form was opened."""

    label: str
    yours: str
    theirs: str
    is_yours_kept: bool
    """True if it was touched in this form, too, so that saving replaces the other value."""


@dataclass(frozen=True, slots=True)
class TaskFormPage:
    """The view model."""

    title: str
    task_id: str
    handler: str
    handlers: list[HandlerChoice]
    payload: tuple[Field, ...]
    options: tuple[Field, ...]
    more: tuple[Field, ...]
    is_more_open: bool
    schedule_now: str
    taken_back: str
    """The edit that the form takes back, if it does."""
    key: str
    base: str
    error: str
    conflicts: list[Conflict]
    check: ScheduleCheck | None
    is_checked: bool
    """True if the API has found no problem."""
    zones: list[ZoneChoice]


def fetch_new(api: Api, visit: Visit) -> Json:
    """Ask the API for its handlers."""
    return _describe_new(api, visit, visit.query.get("handler", ""), {"timezone": visit.zone.key})


def _describe_new(api: Api, _visit: Visit, handler: str, texts: Mapping[str, str]) -> Json:
    handlers = api.get("/v1/handlers")["handlers"]
    return {"handlers": handlers, "handler": handler, "texts": dict(texts), "key": uuid.uuid4().hex}


def fetch_edit(api: Api, visit: Visit, task_id: str) -> Json:
    """Ask the API for a task, its handler's schema, and the previous values of an edit that is to be taken back."""
    task, etag = api.task(task_id)
    answer = _describe_task(api, task, etag)
    back = visit.query.get("back")
    history = api.find(f"{task_path(task_id)}/history") if back else None
    entry = next((each for number, each in number_entries(history) if str(number) == back), None)
    if entry is None:
        return {**answer, "texts": answer["now"]}
    before, left = read_before(entry["fields"])
    when = visit.in_zone_of(task).sure(entry["at"]).text
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

    Args:
        api: The API.
        checked: The answer of a check, which is the task that would result.
        task: The present task. None for a new one.
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


def send_new(api: Api, visit: Visit, texts: Mapping[str, str]) -> Done | Again:
    """Check or create a task. The form's key makes a second request find the task of the first."""
    handler = texts.get("handler", "")
    answer = _describe_new(api, visit, handler, _choose_reading(texts))
    key = texts.get("key", "")
    if key.isascii() and key.isalnum() and len(key) <= _LONGEST_KEY:
        answer["key"] = key
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
    return Done(f"tasks/{task['id']}", "create", _list_assumed(task))


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
    content = _read_edit(answer, slot, errors)
    saved: Json = {}
    try:
        answer |= {"errors": errors, "preview": _check_change(api, answer["task"], content, errors)}
        if errors:
            return Again(answer, 400)
        if texts.get("verb") != "save":
            checked = api.patch(task_path(task_id), content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True, "preview": preview_saved(api, checked, answer["task"])})
        if content:
            saved = api.patch(task_path(task_id), content, etag=etag)
    except PreconditionFailed as error:  # changed between these two requests: as if it had been changed before
        return send_edit(api, visit, texts, task_id, tries - 1) if tries else _refuse(answer, error, slot, NAMES)
    except CloudschedError as error:
        return _refuse(answer, error, slot, NAMES)
    return Done(f"tasks/{task_id}", "edit" if content else "same", _list_assumed(saved))


def _list_assumed(task: Json) -> tuple[str, ...]:
    """Return the API's assumptions about the schedule that was just saved."""
    return tuple(map(str, (task.get("readBack") or {}).get("assumed", ())))


def _read_edit(answer: Json, slot: Slot, errors: dict[str, str]) -> Json:
    texts = answer["texts"]
    content = read_changes(texts, answer["task"], errors, answer["now"]["schedule"])
    if _payload_of(texts) != _payload_of(answer["now"]):
        payload = read_value(slot, texts, errors)
        content[_PAYLOAD] = {} if payload is ABSENT else payload
    return content


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


def build(answer: Json, visit: Visit) -> TaskFormPage:
    """Return the view model of the API's answers and the form's texts."""
    texts, errors = answer["texts"], answer.get("errors", {})
    task: Json | None = answer.get("task")
    handler = answer["handler"]
    zones = tuple(dict.fromkeys([texts.get("timezone") or visit.zone.key, visit.zone.key, "UTC", OWNER_ZONE]))
    names = tuple(name for name in NAMES if name not in MORE)
    more = tuple(name for name in MORE if name != "owner" or _may_choose_owner(visit, task))
    is_new = task is None
    chosen = visit if task is None else visit.in_zone_of(task)
    return TaskFormPage(
        title="New task" if task is None else f"Edit {task['title']}",
        task_id="" if task is None else task["id"],
        handler=handler,
        handlers=[HandlerChoice(each["name"], each.get("description") or "") for each in answer["handlers"]],
        payload=make_fields(_find_slot(answer["handlers"], handler), texts, errors),
        options=make_options(names, texts, errors, zones, is_new=is_new),
        more=make_options(more, texts, errors, zones, is_new=is_new),
        is_more_open=any(name in errors or (is_new and texts.get(name)) for name in more),
        schedule_now=answer.get("words", ""),
        taken_back=answer.get("takenBack", ""),
        key=answer.get("key", ""),
        base=answer.get("base", ""),
        error=answer.get("error", ""),
        conflicts=[
            Conflict(name, theirs if mine is None else mine, theirs, is_yours_kept=mine is not None)
            for name, mine, theirs in answer.get("conflicts", ())
        ],
        check=build_check(answer.get("preview"), visit),
        is_checked=answer.get("isChecked", False),
        zones=zone_choices(chosen),
    )


def _find_slot(handlers: list[Json], name: str) -> Slot:
    schema: dict[str, Any] | None = next((each.get("payloadSchema") for each in handlers if each["name"] == name), None)
    return read_schema(schema)


def _may_choose_owner(visit: Visit, task: Json | None) -> bool:
    return visit.role == "admin" and task is None


def _choose_reading(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the form's texts, with the chosen meaning as the schedule."""
    return {**texts, "schedule": texts["choose"]} if texts.get("choose") else dict(texts)


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
            mine = texts.get(name, "") if name in texts else None
            found.append((name, None if mine is None or _digest(mine) == before else mine, theirs))
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RunPage:
    """The view model of a form for a handler's input: a payload for one run, or an event's."""

    title: str
    task_id: str
    task_title: str
    handler: str
    event: str
    """The event that is answered. Empty if this is a run."""
    payload: tuple[Field, ...]
    key: str
    error: str
    is_checked: bool
    zones: list[ZoneChoice]


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
    key = texts.get("key", "")
    answer |= {"texts": dict(texts), "key": key if key.isascii() and key.isalnum() else answer["key"]}
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


def build_run(answer: Json, visit: Visit) -> RunPage:
    """Return the view model of the API's answers and the form's texts."""
    task, event = answer["task"], answer["event"]
    return RunPage(
        title=f"Answer {event} of {task['title']}" if event else f"Run {task['title']} once",
        task_id=task["id"],
        task_title=task["title"],
        handler=task["handler"],
        event=event,
        payload=make_fields(read_schema(answer["schema"]), answer["texts"], answer.get("errors", {})),
        key=answer["key"],
        error=answer.get("error", ""),
        is_checked=answer.get("isChecked", False),
        zones=zone_choices(visit.in_zone_of(task)),
    )
