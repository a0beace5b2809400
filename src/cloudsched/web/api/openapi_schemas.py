"""The JSON schemas of what goes in and out: pydantic's own, put right where JSON says it in another way.

What pydantic does not know: a duration comes and goes as a number of seconds; what is None is left out of an answer; a
field of an answer that has a default is there all the same.
"""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, StringConstraints
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from cloudsched.domain.documents.execution import Execution, Message
from cloudsched.domain.documents.pull import Pull, QueueName
from cloudsched.domain.documents.task import Task
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.openapi_docstrings import read_field_docstrings
from cloudsched.web.api.responses import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue
    from pydantic_core import core_schema

Json = dict[str, Any]

_TEMPLATE = "#/components/schemas/{model}"
_REQUEST_MODELS: tuple[type[BaseModel], ...] = (
    *(
        bodies.NewTask,
        bodies.SendEventRequest,
        bodies.RetryRequest,
        bodies.BackfillRequest,
        bodies.PreviewRequest,
        bodies.BatchCreateRequest,
    ),
    *(bodies.ClaimRequest, bodies.HeartbeatRequest, bodies.CompleteRequest, bodies.FailRequest, bodies.ReleaseRequest),
)
_RESPONSE_MODELS: tuple[type[BaseModel], ...] = (Task, Execution, Message)


class _Schemas(GenerateJsonSchema):
    """Durations as seconds, within their limits; fields with their docstrings."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return a model's schema."""
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        texts = read_field_docstrings(model)
        for name, field in model.model_fields.items():
            shown = made.get("properties", {}).get(field.alias or name)
            if shown is not None and name in texts and field.description is None:
                shown["description"] = texts[name]
        if model is Pull and self.mode == "validation":
            queue = {"type": "string", "pattern": get_pattern(QueueName)}
            return {"anyOf": [queue, {**made, "description": "The queue, and more."}], "description": Pull.__doc__}
        return made

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        """Return a number's schema; text such as ``PT5M`` is read as well."""
        limits = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
        number: Json = {"type": "number", "description": "Seconds."}
        for name, keyword in limits.items():
            limit = schema.get(name)
            if isinstance(limit, timedelta):
                number[keyword] = limit.total_seconds()
        return number


def ref(name: str) -> Json:
    """Return a reference to a schema of the document."""
    return {"$ref": _TEMPLATE.format(model=name)}


def get_pattern(annotated: object) -> str:
    """Return the pattern that a constrained string has to fit."""
    found = next(each.pattern for each in get_args(annotated) if isinstance(each, StringConstraints))
    return str(found)


def inline_schema(model: type[BaseModel]) -> Json:
    """Return the schema of a model of query parameters: a flat one, without None and without references."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Schemas)
    definitions = schema.pop("$defs", {})
    flat = _without_none(schema)
    for name, each in flat.get("properties", {}).items():
        if "$ref" in each:
            target = definitions[each.pop("$ref").rpartition("/")[2]]
            flat["properties"][name] = {**target, **each}
    return flat


def build_components(handlers: Sequence[str] | None) -> Json:
    """Return all schemas of the document by their names.

    Args:
        handlers: The handlers that there are, if everybody may know; then callers need not prove who they are, and a
            new task must name its owner.
    """
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in _REQUEST_MODELS),
        *((model, "serialization") for model in _RESPONSE_MODELS),
    ]
    names, whole = models_json_schema(wanted, by_alias=True, ref_template=_TEMPLATE, schema_generator=_Schemas)
    schemas: Json = whole["$defs"]
    for model in _RESPONSE_MODELS:
        name = names[(model, "serialization")]["$ref"].rpartition("/")[2]
        assert name == model.__name__  # noqa: S101 - no model is both sent and answered
    answered = _find_reachable(schemas, _model_names(_RESPONSE_MODELS))
    answered -= _find_reachable(schemas, _model_names(_REQUEST_MODELS))  # where null stands for the default
    schemas = {name: _to_response_schema(each) if name in answered else each for name, each in schemas.items()}
    _publish_task_schema(schemas["Task"])
    schemas["FailedTask"] = _failed_task_schema(schemas["Task"])
    new = schemas["NewTask"]
    new["required"].remove("handler")  # a task with children or a script has none of its own
    if handlers is not None:
        known, pulled = {"enum": sorted(handlers)}, {"not": {"type": "null"}}  # workers may have handlers of their own
        new["anyOf"] = [{"properties": {"handler": known}}, {"properties": {"pull": pulled}, "required": ["pull"]}]
    else:
        new["required"] = [name for name in new["required"] if name != "owner"]
        new["properties"]["owner"]["description"] = "Whose it is: the caller, if it is left out."
    for name in ("NewTask", "PreviewRequest"):
        _allow_schedule_text(schemas[name])
    schemas["TaskPatch"] = _patch_schema(new)
    every = {**schemas, **_handwritten_schemas()}
    used = _find_reachable(every, {"TaskPatch", "FailedTask", *_handwritten_schemas(), *_model_names(_REQUEST_MODELS)})
    return {name: _with_short_description(each) for name, each in sorted(every.items()) if name in used}


def _allow_schedule_text(schema: Json) -> None:
    """Let a schedule be text, and its zone stand beside it; see `language.task_fields`."""
    about = "A notation (RRULE, cron, an instant, a duration from now) or plain words, such as: every weekday at 9."
    given = schema["properties"]["schedule"]
    words: Json = {"type": "string", "description": about, "examples": ["every weekday at 9"]}
    schema["properties"]["schedule"] = {"anyOf": [words, given]}
    zone = {"type": "string", "description": "The IANA zone of a schedule that is text. UTC if it is left out."}
    schema["properties"]["timezone"] = {**zone, "examples": ["Europe/Paris"]}


def _model_names(models: Iterable[type[BaseModel]]) -> set[str]:
    return {model.__name__ for model in models}


def _with_short_description(schema: Json) -> Json:
    """Return a schema with the first part of its class's docstring: what follows is for programmers."""
    about = schema.get("description", "")
    return {**schema, "description": about.partition("\n\n")[0]} if about else schema


def _handwritten_schemas() -> Json:
    """Return the schemas that are no model's."""
    text, token = {"type": "string"}, {"nextPageToken": {"type": "string", "description": "Continues the list."}}
    occurrence = _object_schema({"utc": _instant_schema(), "local": _instant_schema()}, "utc", "local")
    return {
        "TaskPage": _object_schema({"tasks": _array_schema(ref("Task")), **token}, "tasks"),
        "ExecutionPage": _object_schema({"executions": _array_schema(ref("Execution")), **token}, "executions"),
        "Tree": _tree_schema(),
        "Claims": _object_schema({"claims": _array_schema(ref("Claim"))}, "claims"),
        "Claim": _claim_schema(),
        "HeartbeatResult": _heartbeat_schema(),
        "MessagePage": _object_schema({"messages": _array_schema(ref("Message")), **token}, "messages"),
        "Occurrence": occurrence,
        "Occurrences": _object_schema({"occurrences": _array_schema(ref("Occurrence"))}, "occurrences"),
        "SchedulePreview": _object_schema(
            {
                "description": text,
                "schedule": {"type": "object"},
                "occurrences": _array_schema(ref("Occurrence")),
                "assumptions": {**_array_schema(text), "description": "What words left open, and how it was taken."},
                "title": {"type": "string", "description": "What the words say that the schedule is for."},
            },
            "description",
            "schedule",
            "occurrences",
        ),
        "BatchResults": _object_schema({"results": _array_schema(ref("BatchResult"))}, "results"),
        "BatchResult": _object_schema(
            {"status": {"type": "integer"}, "task": ref("Task"), "problem": ref("Problem")}, "status"
        ),
        "Health": _object_schema(
            {"status": text, "circuits": {"type": "object", "additionalProperties": text}}, "status", "circuits"
        ),
        "Problem": _object_schema(
            {
                "type": {"type": "string", "format": "uri"},
                "title": text,
                "status": {"type": "integer"},
                "detail": text,
                "field": {"type": "string", "description": "The path of the field that is wrong."},
                "hint": {"type": "string", "description": "What to do about it."},
                "readings": {
                    **_array_schema({"type": "object"}),
                    "description": "The meanings of a schedule in words, to choose from: schedule, description, label.",
                },
            },
            "type",
            "title",
            "status",
            "detail",
        ),
    }


def _claim_schema() -> Json:
    properties = {
        "task": ref("Task"),
        "executionId": {"type": "string"},
        "scheduledFor": _instant_schema(),
        "attempt": {"type": "integer", "description": "Counted from 1."},
        "startedAt": {**_instant_schema(), "description": "When this attempt began."},
        "progress": {**_array_schema(ref("ProgressNote")), "description": "What earlier attempts have said."},
        "leaseToken": {"type": "string", "description": "What proves that the run is yours. It is told only here."},
        "leaseUntil": {**_instant_schema(), "description": "Send heartbeats before, or it may be another's."},
    }
    return _object_schema(properties, *properties)


def _heartbeat_schema() -> Json:
    """Return the schema of a heartbeat's answer."""
    properties = {
        "leaseUntil": {**_instant_schema(), "description": "When the lease ends now."},
        "renewedAt": {**_instant_schema(), "description": "When it was renewed: now, by the clock that leases go by."},
        "isCancelled": {"type": "boolean", "description": "Whether the task does not want it any more."},
    }
    return _object_schema(properties, *properties)


def _tree_schema() -> Json:
    about = "How many calls of this task are left out: its newest are shown, and of a tree what is nearest to its root."
    left_out = {"type": "integer", "minimum": 0, "description": about}
    properties = {"task": ref("Task"), "children": _array_schema(ref("Tree")), "omittedChildren": left_out}
    return _object_schema(properties, *properties)


def _object_schema(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _array_schema(items: Json) -> Json:
    return {"type": "array", "items": items}


def _instant_schema() -> Json:
    return {"type": "string", "format": "date-time"}


def _publish_task_schema(task: Json) -> None:
    """Make a stored task's schema that of a task as callers see it."""
    for name in INTERNAL:
        task["properties"].pop(name, None)
    about = "A dispatch could not be sent yet; the sweep does it."
    waits = {**_instant_schema(), "description": "Since when it waits for a worker, if it does."}
    task["properties"]["offeredAt"] = waits
    task["properties"]["isRunning"] = {"type": "boolean", "description": "Whether a handler is at work on it."}
    task["properties"]["dispatchDeferred"] = {"type": "boolean", "description": about}
    task["required"] = sorted({*task["required"], "isRunning"} - INTERNAL)


def _failed_task_schema(task: Json) -> Json:
    """Return the schema of a task one of whose attempts has failed, as its worker is told."""
    about = "The record, if it has failed for good and no `on_failure` was called for it here: call yours."
    return {**task, "properties": {**task["properties"], "failedExecution": {**ref("Execution"), "description": about}}}


def _patch_schema(new: Json) -> Json:
    """Return the schema of a merge patch: any of the fields, where null stands for the default."""
    properties = {
        name: {"anyOf": [each, {"type": "null"}]} if name not in {"title", "handler"} else each
        for name, each in new["properties"].items()
        if name not in {"id", "owner"}
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _to_response_schema(schema: Json) -> Json:
    """Return the schema of something answered, where None is left out."""
    may_be_none = {
        name
        for name, each in schema.get("properties", {}).items()
        if {"type": "null"} in each.get("anyOf", ()) or each == {} or set(each) <= {"title", "default", "description"}
    }
    shown = _without_none(schema)
    if "required" in shown:
        shown["required"] = [name for name in shown["required"] if name not in may_be_none]
    return shown


def _without_none(schema: Json) -> Json:
    """Return an object's schema whose properties are not null: they are left out instead."""
    shown = copy.deepcopy(schema)
    for name, each in shown.get("properties", {}).items():
        kinds = [kind for kind in each.get("anyOf", ()) if kind != {"type": "null"}]
        if len(kinds) == 1:
            rest = {key: value for key, value in each.items() if key not in {"anyOf", "default"}}
            shown["properties"][name] = {**kinds[0], **rest}
        elif kinds:
            each["anyOf"] = kinds
    return shown


def _find_reachable(schemas: Json, names: set[str]) -> set[str]:
    found: set[str] = set()
    rest = list(names)
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest.extend(_find_references(schemas[name]))
    return found


def _find_references(schema: object) -> set[str]:
    match schema:
        case {"$ref": str(target)}:
            return {target.rpartition("/")[2]}
        case dict():
            return set().union(*map(_find_references, schema.values())) if schema else set()
        case list():
            return set().union(*map(_find_references, schema)) if schema else set()
    return set()
