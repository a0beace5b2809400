"""The options of a task in a form, without its payload: as texts, as the API's JSON, and as fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.forms.fields import Field
from cloudsched.dashboard.words import split_words
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.policy import CatchUpMode, Overlap, Priority
from cloudsched.domain.schedules.schedule import OWNER_ZONE, Schedule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.dashboard.api import Json

OVERLAPS: Final = complete_table(
    Overlap,
    {
        Overlap.SKIP: "skip the new one",
        Overlap.BUFFER: "run the new one afterwards",
        Overlap.ALLOW: "run both",
    },
)
CATCH_UPS: Final = complete_table(
    CatchUpMode,
    {
        CatchUpMode.LATEST: "run the latest of them",
        CatchUpMode.ALL: "run all of them",
        CatchUpMode.NONE: "run none of them",
    },
)
_MOST_DIGITS: Final = 16
_OF_FOLLOWERS: Final = frozenset({"followsOwner", "startZone"})
"""The fields of a schedule with the zone that it follows. Another zone in the form replaces them."""
_LABELS: Final = {
    "title": "Title",
    "schedule": "When: words, cron, an instant, a duration or a rule",
    "timezone": "Time zone",
    "owner": "Owner",
    "description": "Description",
    "labels": "Labels",
    "category": "Category",
    "deliveryChannels": "Deliver results to",
    "priority": "Priority",
    "lockKey": "Lock",
    "overlap": "If the previous run is still open",
    "catchUp": "If runs were missed",
    "retries": "Retries",
    "until": "No run after",
    "maxRuns": "Scheduled runs at most",
    "maxQueriesPerMonth": "Queries a month at most",
    "maxTokensPerMonth": "Tokens a month at most",
}
NAMES: Final = tuple(_LABELS)
MORE: Final = NAMES[3:]
"""The options that a form shows only if they are asked for."""
_MONTHLY: Final = ("maxQueriesPerMonth", "maxTokensPerMonth")
_CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "category": {each: each.capitalize() for each in Category},
    "priority": {each: each.capitalize() for each in Priority},
    "overlap": OVERLAPS,
    "catchUp": CATCH_UPS,
    "deliveryChannels": {each: each.capitalize() for each in DeliveryChannel},
}
_CONTROLS: Final = {
    **dict.fromkeys(_CHOICES, "select"),
    "description": "area",
    "labels": "area",
    "deliveryChannels": "checks",
}
_SUCH_AS: Final = "such as: every weekday at 9 · 0 9 * * 1-5 · PT15M."
_HINTS_OF_NEW: Final = {
    "title": "the handler's name if empty",
    "schedule": f"{_SUCH_AS} If empty, it runs once, now.",
}
"""The hints of a new task's options that differ."""
_HINTS: Final = {
    "schedule": f"{_SUCH_AS} If empty, the schedule stays as it is.",
    "timezone": "such as Europe/Paris, or owner for wherever the task's owner is",
    "labels": "such as team=shop, one a line or with commas between them",
    "lockKey": "tasks with the same lock run one after the other",
    "retries": "how often a failed run is tried again, 0 to 20",
    "deliveryChannels": "if none is ticked, a new task follows the owner's preferences",
    "until": "an instant with its offset, such as 2027-03-24T09:00:00+01:00; empty for no end",
    "maxRuns": "it ends after that many; empty for no limit",
    **dict.fromkeys(_MONTHLY, "once they are used up, it is paused until the next month; empty for no limit"),
}


def write_options(task: Json) -> dict[str, str]:
    """Return a task's options as texts, without its schedule, whose words come from the API."""
    retry = task.get("retry") or {}
    return {
        "title": task["title"],
        "timezone": write_zone(task["schedule"], task.get("timezone", "UTC")),
        "owner": task["owner"],
        "description": task.get("description", ""),
        "labels": "\n".join(task.get("labels", ())),
        "category": task.get("category", "OTHERS"),
        "deliveryChannels": "\n".join(each for each in DeliveryChannel if each in task.get("deliveryChannels", ())),
        "priority": task.get("priority", "NORMAL"),
        "lockKey": task.get("lockKey") or "",
        "overlap": task.get("overlap", "skip"),
        "catchUp": (task.get("catchUp") or {}).get("mode", "latest"),
        "retries": str(retry.get("maxRetries", 3)),
        **{name: str(task.get(name) or "") for name in ("until", "maxRuns", *_MONTHLY)},
    }


def write_zone(schedule: Json, zone: str) -> str:
    """Return the zone of a schedule, as the form names it."""
    if schedule.get("followsOwner"):
        return OWNER_ZONE
    return zone


def read_new(texts: Mapping[str, str], errors: dict[str, str]) -> Json:
    """Return the options of a new task as the API takes them. Empty ones are omitted."""
    content = _read({name: texts[name] for name in MORE if texts.get(name, "").strip()}, errors)
    if texts.get("title", "").strip():
        content["title"] = texts["title"].strip()
    if texts.get("schedule", "").strip():
        content |= read_schedule(texts["schedule"], texts.get("timezone", ""), errors)
    return content


_PARTS: Final = {"catchUp": ("catchUp", "mode"), "retry": ("retries", "maxRetries")}
"""Fields of a task of which the form has only a part, each with the form's field and the part."""
_EMPTY_BEFORE: Final = frozenset({"labels", "deliveryChannels", "lockKey", "until", "maxRuns", *_MONTHLY})
"""Fields whose previous value a history leaves out only if it was empty."""


def read_before(fields: Iterable[Json]) -> tuple[dict[str, Any], list[str]]:
    """Return an edit's previous values by field, and the fields that cannot be taken back."""
    values: dict[str, Any] = {}
    left = []
    for each in fields:
        name = each["field"]
        before = each.get("before")
        if before is not None and name in {*NAMES, *_PARTS}:
            values[name] = json.loads(before)
        elif name in _EMPTY_BEFORE and each.get("after"):
            values[name] = None
        else:
            left.append(name)
    return values, left


def name_option(name: str) -> str:
    """Return the name of a field of a task, as the form has it."""
    field, _ = _PARTS.get(name, (name, ""))
    label = _LABELS.get(field) or split_words(field).capitalize()
    return label.partition(":")[0]


def describe_option(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the value of a field of a task in words, a choice as the form words it, and an object as its parts."""
    field, part = _PARTS.get(name, (name, ""))
    if isinstance(value, dict) and part in value:
        value = value[part]
    if isinstance(value, dict):
        return ", ".join(f"{split_words(key)}: {describe_option('', each)}" for key, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(describe_option(name, each) for each in value) or "none"
    if value in {None, ""}:
        return "none"
    return _CHOICES.get(field, {}).get(str(value), str(value))


def drop_defaults(schedule: Json) -> Json:
    """Return a schedule without its defaults. One that only a newer API knows stays as it is."""
    try:
        return Schedule.model_validate(schedule).model_dump(mode="json", by_alias=True, exclude_defaults=True)
    except (InvalidSchedule, ValueError):
        return schedule


def write_schedule(schedule: Json) -> str:
    """Return a schedule as text: an instant, a local time, or else JSON without its zone."""
    plain = drop_defaults(schedule)
    kept = {name: value for name, value in plain.items() if name not in {"timezone", *_OF_FOLLOWERS}}
    if len(kept) == 1 and {*kept} <= {"at", "local"}:
        return str(next(iter(kept.values())))
    return json.dumps(kept, ensure_ascii=False)


def read_changes(texts: Mapping[str, str], task: Json, errors: dict[str, str], schedule: str = "") -> Json:
    """Return the merge patch that gives a task the options of the form. It has only the differences.

    The form shows the present schedule as `schedule`.
    """
    texts = {"deliveryChannels": "", **texts}  # a box that is not ticked is not sent
    now = write_options(task)
    changed: dict[str, str] = {
        name: texts[name].strip()
        for name in ("title", *MORE)
        if name in texts and _normal(texts[name]) != _normal(now[name])
    }
    content = _read(changed, errors)
    zone = texts.get("timezone", now["timezone"]).strip()
    if texts.get("schedule", "").strip() and _normal(texts["schedule"]) != _normal(schedule):
        content |= read_schedule(texts["schedule"], zone, errors)
    elif zone != now["timezone"]:
        content["timezone"] = zone
    return content


def read_schedule(text: str, zone: str, errors: dict[str, str]) -> Json:
    """Return a schedule as the API takes it: text with its zone beside it, or an object with its own."""
    text = text.strip()
    named = {"timezone": zone.strip()} if zone.strip() else {}
    if not text.startswith("{"):
        return {"schedule": text, **named}
    try:
        schedule = json.loads(text)
    except (ValueError, RecursionError) as error:
        errors["schedule"] = f"is not JSON: {error}"
        return {}
    return {"schedule": {**named, **schedule}}


def _read(texts: Mapping[str, str], errors: dict[str, str]) -> Json:
    content: Json = {}
    for name, text in texts.items():
        match name:
            case "labels":
                content[name] = [each.strip() for each in text.replace(",", "\n").splitlines() if each.strip()]
            case "deliveryChannels":
                content[name] = text.split()
            case "catchUp":
                content[name] = {"mode": text}
            case "lockKey" | "until":
                content[name] = text or None
            case "maxRuns" | "maxQueriesPerMonth" | "maxTokensPerMonth":
                content[name] = _read_number(name, text, errors)
            case "retries" if text.isascii() and text.isdigit() and len(text) < 4:  # noqa: PLR2004 - more is no number
                content["retry"] = {"maxRetries": int(text)}
            case "retries":
                errors[name] = f"{text!r} is no whole number"
            case _:
                content[name] = text
    return content


def _read_number(name: str, text: str, errors: dict[str, str]) -> int | None:
    """Return a whole number, or None for an empty text."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS:
        return int(text)
    errors[name] = f"{text!r} is no whole number"
    return None


def _normal(text: str) -> str:
    return "\n".join(text.split("\r\n")).strip()


def make_options(
    names: tuple[str, ...], texts: Mapping[str, str], errors: Mapping[str, str], zones: tuple[str, ...], *, is_new: bool
) -> tuple[Field, ...]:
    """Return the fields of options."""
    fields = []

    for name in names:
        text = texts.get(name, "")
        fields.append(
            Field(
                name,
                _LABELS[name],
                _CONTROLS.get(name, "input"),
                text,
                hint=_write_hint(name, is_new=is_new),
                error=errors.get(name, ""),
                rows=2,
                is_code=name == "schedule",
                options=_list_options(name, text, is_new=is_new),
                suggestions=zones if name == "timezone" else (),
            )
        )
    return tuple(fields)


def _list_options(name: str, text: str, *, is_new: bool) -> tuple[tuple[str, str], ...]:
    """Return the choices of an option, also an unknown one. A new task may leave them all, for what is usual."""
    choices = dict(_CHOICES.get(name, {}))
    if _CONTROLS.get(name) == "select":
        choices = {**({"": "default"} if is_new else {}), **choices}
        if text:
            choices.setdefault(text, text)
    return tuple(choices.items())


def _write_hint(name: str, *, is_new: bool) -> str:
    return (is_new and _HINTS_OF_NEW.get(name)) or _HINTS.get(name, "")
