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
from cloudsched.web.api import request_bodies as said
from cloudsched.web.api.openapi_docstrings import docstrings_of
from cloudsched.web.api.responses import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue
    from pydantic_core import core_schema

Json = dict[str, Any]

_TEMPLATE = "#/components/schemas/{model}"
_SENT: tuple[type[BaseModel], ...] = (
    *(said.NewTask, said.EventPayload, said.Retry, said.Range, said.Preview, said.Batch),
    *(said.WorkWanted, said.Heartbeat, said.Completion, said.Failure, said.Release),
)
_ANSWERED: tuple[type[BaseModel], ...] = (Task, Execution, Message)


class _Schemas(GenerateJsonSchema):
    """Durations as seconds, within their limits; fields with their docstrings."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return a model's schema."""
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        texts = docstrings_of(model)
        for name, field in model.model_fields.items():
            shown = made.get("properties", {}).get(field.alias or name)
            if shown is not None and name in texts and field.description is None:
                shown["description"] = texts[name]
        if model is Pull and self.mode == "validation":
            queue = {"type": "string", "pattern": pattern_of(QueueName)}
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


def pattern_of(annotated: object) -> str:
    """Return the pattern that a constrained string has to fit."""
    found = next(each.pattern for each in get_args(annotated) if isinstance(each, StringConstraints))
    return str(found)


def inlined(model: type[BaseModel]) -> Json:
    """Return the schema of a model of query parameters: a flat one, without None and without references."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Schemas)
    definitions = schema.pop("$defs", {})
    flat = _without_none(schema)
    for name, each in flat.get("properties", {}).items():
        if "$ref" in each:
            target = definitions[each.pop("$ref").rpartition("/")[2]]
            flat["properties"][name] = {**target, **each}
    return flat


def components(handlers: Sequence[str] | None) -> Json:
    """Return all schemas of the document by their names.

    Args:
        handlers: The handlers that there are, if everybody may know; then callers need not prove who they are, and a
            new task must name its owner.
    """
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in _SENT),
        *((model, "serialization") for model in _ANSWERED),
    ]
    names, whole = models_json_schema(wanted, by_alias=True, ref_template=_TEMPLATE, schema_generator=_Schemas)
    schemas: Json = whole["$defs"]
    for model in _ANSWERED:
        name = names[(model, "serialization")]["$ref"].rpartition("/")[2]
        assert name == model.__name__  # noqa: S101 - no model is both sent and answered
    answered = _reachable(schemas, _names(_ANSWERED))
    answered -= _reachable(schemas, _names(_SENT))  # where null stands for the default
    schemas = {name: _answered(each) if name in answered else each for name, each in schemas.items()}
    _show(schemas["Task"])
    schemas["FailedTask"] = _failed(schemas["Task"])
    new = schemas["NewTask"]
    new["required"].remove("handler")  # a task with children or a script has none of its own
    if handlers is not None:
        known, pulled = {"enum": sorted(handlers)}, {"not": {"type": "null"}}  # workers may have handlers of their own
        new["anyOf"] = [{"properties": {"handler": known}}, {"properties": {"pull": pulled}, "required": ["pull"]}]
    else:
        new["required"] = [name for name in new["required"] if name != "owner"]
        new["properties"]["owner"]["description"] = "Whose it is: the caller, if it is left out."
    schemas["TaskPatch"] = _patch(new)
    every = {**schemas, **_made()}
    used = _reachable(every, {"TaskPatch", "FailedTask", *_made(), *_names(_SENT)})
    return {name: _described(each) for name, each in sorted(every.items()) if name in used}


def _names(models: Iterable[type[BaseModel]]) -> set[str]:
    return {model.__name__ for model in models}


def _described(schema: Json) -> Json:
    """Return a schema with the first part of its class's docstring: what follows is for programmers."""
    about = schema.get("description", "")
    return {**schema, "description": about.partition("\n\n")[0]} if about else schema


def _made() -> Json:
    """Return the schemas that are no model's."""
    text, token = {"type": "string"}, {"nextPageToken": {"type": "string", "description": "Continues the list."}}
    occurrence = _object({"utc": _instant(), "local": _instant()}, "utc", "local")
    return {
        "TaskPage": _object({"tasks": _list_of(ref("Task")), **token}, "tasks"),
        "ExecutionPage": _object({"executions": _list_of(ref("Execution")), **token}, "executions"),
        "Tree": _tree(),
        "Claims": _object({"claims": _list_of(ref("Claim"))}, "claims"),
        "Claim": _claim(),
        "Beat": _beat(),
        "MessagePage": _object({"messages": _list_of(ref("Message")), **token}, "messages"),
        "Occurrence": occurrence,
        "Occurrences": _object({"occurrences": _list_of(ref("Occurrence"))}, "occurrences"),
        "SchedulePreview": _object(
            {"description": text, "schedule": {"type": "object"}, "occurrences": _list_of(ref("Occurrence"))},
            "description",
            "schedule",
            "occurrences",
        ),
        "BatchResults": _object({"results": _list_of(ref("BatchResult"))}, "results"),
        "BatchResult": _object(
            {"status": {"type": "integer"}, "task": ref("Task"), "problem": ref("Problem")}, "status"
        ),
        "Health": _object(
            {"status": text, "circuits": {"type": "object", "additionalProperties": text}}, "status", "circuits"
        ),
        "Problem": _object(
            {
                "type": {"type": "string", "format": "uri"},
                "title": text,
                "status": {"type": "integer"},
                "detail": text,
                "field": {"type": "string", "description": "The path of the field that is wrong."},
                "hint": {"type": "string", "description": "What to do about it."},
            },
            "type",
            "title",
            "status",
            "detail",
        ),
    }


def _claim() -> Json:
    properties = {
        "task": ref("Task"),
        "executionId": {"type": "string"},
        "scheduledFor": _instant(),
        "attempt": {"type": "integer", "description": "Counted from 1."},
        "startedAt": {**_instant(), "description": "When this attempt began."},
        "progress": {**_list_of(ref("ProgressStep")), "description": "What earlier attempts have said."},
        "leaseToken": {"type": "string", "description": "What proves that the run is yours. It is told only here."},
        "leaseUntil": {**_instant(), "description": "Send heartbeats before, or it may be another's."},
    }
    return _object(properties, *properties)


def _beat() -> Json:
    """Return the schema of a heartbeat's answer."""
    properties = {
        "leaseUntil": {**_instant(), "description": "When the lease ends now."},
        "renewedAt": {**_instant(), "description": "When it was renewed: now, by the clock that leases go by."},
        "isCancelled": {"type": "boolean", "description": "Whether the task does not want it any more."},
    }
    return _object(properties, *properties)


def _tree() -> Json:
    about = "How many calls of this task are left out: its newest are shown, and of a tree what is nearest to its root."
    left_out = {"type": "integer", "minimum": 0, "description": about}
    properties = {"task": ref("Task"), "children": _list_of(ref("Tree")), "leftOut": left_out}
    return _object(properties, *properties)


def _object(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def _instant() -> Json:
    return {"type": "string", "format": "date-time"}


def _show(task: Json) -> None:
    """Make a stored task's schema that of a task as callers see it."""
    for name in INTERNAL:
        task["properties"].pop(name, None)
    about = "A dispatch could not be sent yet; the sweep does it."
    waits = {**_instant(), "description": "Since when it waits for a worker, if it does."}
    task["properties"]["offeredAt"] = waits
    task["properties"]["isRunning"] = {"type": "boolean", "description": "Whether a handler is at work on it."}
    task["properties"]["dispatchDeferred"] = {"type": "boolean", "description": about}
    task["required"] = sorted({*task["required"], "isRunning"} - INTERNAL)


def _failed(task: Json) -> Json:
    """Return the schema of a task one of whose attempts has failed, as its worker is told."""
    about = "The record, if it has failed for good and no `on_failure` was called for it here: call yours."
    return {**task, "properties": {**task["properties"], "failedExecution": {**ref("Execution"), "description": about}}}


def _patch(new: Json) -> Json:
    """Return the schema of a merge patch: any of the fields, where null stands for the default."""
    properties = {
        name: {"anyOf": [each, {"type": "null"}]} if name not in {"title", "handler"} else each
        for name, each in new["properties"].items()
        if name not in {"id", "owner"}
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _answered(schema: Json) -> Json:
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


def _reachable(schemas: Json, names: set[str]) -> set[str]:
    found: set[str] = set()
    rest = list(names)
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest.extend(_references(schemas[name]))
    return found


def _references(schema: object) -> set[str]:
    match schema:
        case {"$ref": str(target)}:
            return {target.rpartition("/")[2]}
        case dict():
            return set().union(*map(_references, schema.values())) if schema else set()
        case list():
            return set().union(*map(_references, schema)) if schema else set()
    return set()
