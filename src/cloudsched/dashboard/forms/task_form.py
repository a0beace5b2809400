"""The form of a new task, and of a change of one, made from its handler's schema.

The API checks each before anything is stored. A schedule is read back: its meaning, its assumptions, and its next runs.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.fields import (
    PAYLOAD,
    Again,
    Submitted,
    hash_text,
    make_payload,
    place_faults,
    read_key,
    read_payload,
    refuse,
    write_payload,
)
from cloudsched.dashboard.forms.task_options import (
    MORE,
    NAMES,
    make_options,
    read_changes,
    read_new,
    write_options,
    write_schedule,
    write_zone,
)
from cloudsched.dashboard.schedule_words import build_upcoming, describe_schedule
from cloudsched.dashboard.times import find_zone, parse_instant
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.schedules.schedule import OWNER_ZONE
from cloudsched.errors import CloudschedError, InvalidInput, KeyReused, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_COUNT: Final = 10
"""The number of occurrences that are shown."""


def check_schedule(api: Api, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API for the meaning of a schedule. Problems go to `errors`."""
    if "schedule" not in content:
        return None
    body: Json = {name: content[name] for name in ("schedule", "timezone", "owner") if name in content}
    return _ask(lambda: api.post("/v1/schedules/preview", {**body, "count": _COUNT}), errors)


def check_change(api: Api, task: Json, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API for a task's new schedule, if words may change the present one. See `check_schedule`."""
    when: Json = {name: content[name] for name in ("schedule", "timezone") if name in content}
    if not when:
        return None

    def ask() -> Json:
        checked = api.patch(task_path(task["id"]), when, query={"validateOnly": "true"})
        return preview_saved(api, checked, task)

    return _ask(ask, errors)


def _ask(ask: Callable[[], Json], errors: dict[str, str]) -> Json | None:
    try:
        return ask()
    except NotFound:  # an owner whom the caller may not see: the task's own request refuses it
        return None
    except InvalidInput as error:
        told = place_faults(error, ("schedule", "timezone"))
        readings = error.readings
        if readings and "timezone" in told:  # they are not in the zone that is meant
            told.pop("schedule", None)
            readings = ()
        for name, said in told.items():
            errors.setdefault(name or "schedule", said)
        if not readings:
            return None
        return {"readings": list(readings)}


def build_check(preview: Json | None, visit: Visit) -> Json | None:
    """Return the reading of a schedule that is shown before anything is stored. None if there is none.

    Words may have several meanings. The description of each has no other one, so the form takes it as words.
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
        "readings": preview.get("readings", ()),
    }


def write_words(api: Api, task: Json, now: datetime) -> str:
    """Return a text for the present schedule: the words of its page if they are read as the same, otherwise JSON."""
    schedule = task["schedule"]
    zone = task.get("timezone", "UTC")
    said = describe_schedule(schedule, now).removesuffix(f", {zone}")
    try:
        meant, read = (
            api.post("/v1/schedules/preview", {**each, "owner": task["owner"], "count": _COUNT})
            for each in ({"schedule": schedule}, {"schedule": said, "timezone": zone})
        )
    except CloudschedError:  # words that leave something out, or name a time that is over
        return write_schedule(schedule)
    is_same = _list_calendars(task) == _list_calendars(read) and meant["occurrences"] == read["occurrences"]
    return said if is_same and meant["occurrences"] else write_schedule(schedule)


def preview_saved(api: Api, checked: Json, task: Json | None = None) -> Json:
    """Return the reading of the plan that the API would save, with its calendars, its end and its policies.

    The checked one is the answer to a check, which is the task that would result.
    """
    told = checked.get("readBack") or {}
    notes = [str(each) for each in told.get("assumed", ())]
    due = checked.get("upcoming", ())
    is_paused = checked["status"] == TaskStatus.PAUSED
    if is_paused or not told.get("description"):
        body = {"schedule": checked["schedule"], "owner": checked["owner"], "count": _COUNT}
        told = api.post("/v1/schedules/preview", body)
    if is_paused:
        due = told["occurrences"]
        notes.append("It is paused. This applies once it is resumed.")
    if lost := sorted(_list_calendars(task or {}) - _list_calendars(checked)):
        notes.append(f"It no longer follows the calendar {' and '.join(lost)}: the new schedule does not name it.")
    return {
        "description": told["description"],
        "schedule": {**checked["schedule"], "timezone": checked.get("timezone", "UTC")},
        "occurrences": due,
        "assumptions": notes,
    }


def _list_calendars(task: Json) -> set[str]:
    return {each["id"] for each in task.get("schedule", {}).get("calendars", ())}


_TRIES: Final = 3
"""How often an edit begins again, because somebody has changed the task between two of its requests."""


def fetch_new(api: Api, visit: Visit) -> Json:
    """Ask the API for its handlers."""
    return _describe_new(api, visit.query.get("handler", ""), {"timezone": visit.zone.key})


def _describe_new(api: Api, handler: str, texts: Mapping[str, str]) -> Json:
    handlers = api.get("/v1/handlers")["handlers"]
    return {"handlers": handlers, "handler": handler, "texts": dict(texts), "key": uuid.uuid4().hex}


def send_new(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Submitted | Again:
    """Check or create a task. The form's key makes a second request find the task of the first."""
    handler = texts.get("handler", "")
    answer = _describe_new(api, handler, _choose_reading(texts))
    answer["key"] = read_key(texts) or answer["key"]
    errors: dict[str, str] = {}
    content = {"handler": handler, **read_new(answer["texts"], errors), PAYLOAD: read_payload(answer["texts"], errors)}
    answer |= {"errors": errors, "preview": check_schedule(api, content, errors)}
    if errors:
        return Again(answer, 400)

    try:
        if texts.get("verb") != "create":
            checked = api.post("/v1/tasks", content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True, "preview": preview_saved(api, checked)})
        task = api.post("/v1/tasks", content, headers={"Idempotency-Key": answer["key"]})
    except KeyReused:
        problem = "This form has already created a task with other content. Send it again to create another one."
        return Again({**answer, "key": uuid.uuid4().hex, "error": problem}, 422)
    except CloudschedError as error:
        return refuse(answer, error, NAMES)
    return Submitted(f"tasks/{task['id']}", "create")


def fetch_edit(api: Api, visit: Visit, task_id: str) -> Json:
    """Ask the API for a task, and its handler's schema."""
    task, _ = api.task(task_id)
    answer = _describe_task(api, visit, task)
    return {**answer, "texts": answer["now"]}


def _describe_task(api: Api, visit: Visit, task: Json) -> Json:
    now = {
        **write_options(task),
        "schedule": write_words(api, task, visit.now),
        PAYLOAD: write_payload(task.get(PAYLOAD)),
    }
    base = json.dumps({name: hash_text(text) for name, text in sorted(now.items())})
    handlers = api.get("/v1/handlers")["handlers"]
    return {"task": task, "handlers": handlers, "handler": task["handler"], "now": now, "base": base}


def send_edit(  # noqa: PLR0911 - one end for each of what may be wrong
    api: Api, visit: Visit, texts: Mapping[str, str], task_id: str, tries: int = _TRIES
) -> Submitted | Again:
    """Check or edit a task. If somebody has changed it meanwhile, nothing is stored, and both versions are shown.

    Fields that were not touched in this form then show the other person's values.
    """
    task, etag = api.task(task_id)
    answer = _describe_task(api, visit, task)
    answer["texts"] = _choose_reading(texts)
    if conflicts := _find_conflicts(answer["texts"], answer["now"], texts.get("base", "")):
        untouched = {name: theirs for name, mine, theirs in conflicts if mine is None}
        return Again({**answer, "conflicts": conflicts, "texts": {**answer["texts"], **untouched}}, 412)

    errors: dict[str, str] = {}
    content = read_changes(answer["texts"], task, errors, answer["now"]["schedule"])
    before, after = task.get(PAYLOAD, {}), read_payload(answer["texts"], errors)
    if after != before:
        content[PAYLOAD] = _name_emptied(before, after)
    try:
        answer |= {"errors": errors, "preview": check_change(api, task, content, errors)}
        if errors:
            return Again(answer, 400)
        if texts.get("verb") != "save":
            checked = api.patch(task_path(task_id), content, query={"validateOnly": "true"})
            return Again({**answer, "isChecked": True, "preview": preview_saved(api, checked, task)})
        if content:
            api.patch(task_path(task_id), content, etag=etag)
    except PreconditionFailed as error:  # changed between these two requests: as if it had been changed before
        if not tries:
            return refuse(answer, error, NAMES)
        return send_edit(api, visit, texts, task_id, tries - 1)
    except CloudschedError as error:
        return refuse(answer, error, NAMES)
    return Submitted(f"tasks/{task_id}", "edit" if content else "same")


def _name_emptied(before: Any, after: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a form's payload with null for the fields that were emptied in it."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    return {**dict.fromkeys(before), **{name: _name_emptied(before.get(name), value) for name, value in after.items()}}


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
        theirs = now.get(name, "")
        before = opened.get(name, hash_text(""))
        mine = texts.get(name)
        if mine is not None and hash_text(mine) == before:
            mine = None
        if hash_text(theirs) != before:
            found.append((name, mine, theirs))
    return found


def _choose_reading(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts with the chosen one of several meanings of the schedule's words. Its last part is its zone."""
    chosen = texts.get("choose")
    if not chosen:
        return dict(texts)
    words, _, zone = chosen.rpartition(", ")
    if find_zone(zone) is None:
        return {**texts, "schedule": chosen}
    return {**texts, "schedule": words, "timezone": zone}


def _follow_zone(answer: Json) -> dict[str, str]:
    """Return the zone in which the schedule was read if the form names another one: words may name their own."""
    schedule = (answer.get("preview") or {}).get("schedule") or {}
    if not answer["texts"].get("timezone") or not schedule.get("timezone"):
        return {}
    return {"timezone": write_zone(schedule, schedule["timezone"])}


def build(answer: Json, visit: Visit) -> Json:
    """Return what the form of a task shows."""
    texts = {**answer["texts"], **_follow_zone(answer)}
    errors = answer.get("errors", {})
    task: Json | None = answer.get("task")
    is_new = task is None
    schemas = {each["name"]: each.get("payloadSchema") for each in answer["handlers"]}
    zones = [texts.get("timezone"), visit.own_zone, visit.zone.key, "UTC", OWNER_ZONE]
    suggested = tuple(dict.fromkeys(filter(None, zones)))
    names = tuple(name for name in NAMES if name not in MORE)
    more = tuple(name for name in MORE if name != "owner" or (is_new and visit.role == "admin"))

    return {
        **dict.fromkeys(("error", "key", "base"), ""),
        **dict.fromkeys(("task", "conflicts", "isChecked")),
        **answer,
        "title": "New task" if task is None else f"Edit {task['title']}",
        "words": "" if task is None else describe_schedule(task["schedule"], visit.now),
        "payload": make_payload(schemas.get(answer["handler"]), texts, errors),
        "options": make_options(names, texts, errors, suggested, is_new=is_new),
        "more": make_options(more, texts, errors, suggested, is_new=is_new),
        "isMoreOpen": any(name in errors or (is_new and texts.get(name)) for name in more),
        "check": build_check(answer.get("preview"), visit),
    }
