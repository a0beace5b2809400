"""The JSON schemas of requests and responses: pydantic's own, corrected where the JSON on the wire differs.

Pydantic does not know that durations are numbers of seconds, that responses omit fields that are None,
and that they contain all other fields, including those with a default.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import sys
from datetime import timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel, StringConstraints, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema

from cloudsched.config.settings import LogLevel
from cloudsched.domain.documents.delivery_channels import SENDER_NAMES
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.explanation.findings import Explanation
from cloudsched.domain.recurrence.rrule import WEEKDAYS
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses import overview_responses
from cloudsched.domain.responses.api_responses import Execution, Person, Task
from cloudsched.domain.responses.count import Count
from cloudsched.domain.responses.webhooks import WEBHOOKS
from cloudsched.domain.transitions.task_draft import PAYLOAD_MERGE
from cloudsched.web.api.responses import OMITTED_FOR_WORKERS
from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from types import ModuleType

    from pydantic_core import core_schema

Json = dict[str, Any]

_CLOSED_SETS: Final = {
    ("Task", "allowedVerbs"): "Verb",
    ("Execution", "allowedVerbs"): "Verb",
    ("CallerInfo", "role"): "Role",
    ("ClaimLogs", "level"): "LogLevel",
    ("DeliveryReport", "channel"): "SentChannel",
    ("Feed", "categories"): "Category",
    ("NewFeedAddress", "categories"): "Category",
    ("CalendarSummary", "weekdays"): "Weekday",
    ("CalendarDetails", "weekdays"): "Weekday",
    ("Health", "status"): "HealthStatus",
}
"""The fields of responses whose text is of a closed set, each with the set's schema."""
_MEMBERS: Final[dict[str, tuple[Iterable[str], str]]] = {
    "Verb": (Verb, "What a caller can do with a task or an execution."),
    "Role": (Role, "The role of a caller."),
    "LogLevel": (get_args(LogLevel), "How much a line of a log matters."),
    "SentChannel": (SENDER_NAMES, "A channel that is sent to, or the callback when an execution has ended."),
    "Weekday": (WEEKDAYS, "A day of the week, as RFC 5545 names it."),
    "HealthStatus": (("ok", "ready"), "Whether a process lives, or can serve."),
}
"""The sets that no model of a response names."""

REFERENCE_TEMPLATE = "#/components/schemas/{model}"


def ref(name: str) -> Json:
    """Return a reference to a schema of the document."""
    return {"$ref": REFERENCE_TEMPLATE.format(model=name)}


def find_field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of a model's fields, including inherited ones, by the fields' names.

    Pydantic can read them (``use_attribute_docstrings``), but only when it creates a class. That would take a
    quarter of the time that our own modules add to a cold start.
    """
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls.__module__.startswith("cloudsched."):
            found |= _read_descriptions(cls.__module__).get(cls.__qualname__, {})
    return found


@cache
def _read_descriptions(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of fields in a module's source, by the classes' names. Empty without a source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}
    return {node.name: _read_class(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _read_class(node: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairwise(node.body):
        match pair:
            case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text)))):
                found[name] = inspect.cleandoc(text)
    return found


def _list_responses(module: ModuleType) -> list[type[BaseModel]]:
    """Return the responses that a module defines."""
    kinds = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return [each for each in kinds if issubclass(each, responses.ApiResponse)]


_RESPONSE_MODELS: tuple[type[BaseModel], ...] = (
    Task,
    Execution,
    Message,
    Person,
    Explanation,
    Count,
    responses.TaskPage[Task],
    responses.ExecutionPage,
    responses.MessagePage,
    responses.ExportPage,
    responses.Tree[Task],
    responses.Claim[Task],
    responses.ClaimList[Task],
    responses.RenewedLease,
    responses.BatchResult[Task],
    responses.BatchResults[Task],
    responses.OccurrenceList,
    responses.SchedulePreview,
    responses.TaskHistory,
    responses.ExecutionLogs,
    *_list_responses(overview_responses),
    responses.Feed,
    responses.NewFeedAddress,
    responses.FeedList,
    responses.WebhookSecret,
    responses.CalendarSummary,
    responses.CalendarDetails,
    responses.CalendarList,
    responses.ScriptSummary,
    responses.ScriptDetails,
    responses.ScriptList,
    responses.DeliveryPage,
    responses.DeliveryList,
    responses.DeliveryReport,
    responses.DraftResult,
    responses.CallerInfo,
    responses.Health,
    responses.Problem,
    responses.ScheduleReading,
    *WEBHOOKS.values(),
)

_SECONDS = "In seconds."
_LIMITS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
_DURATION = TypeAdapter(timedelta)


class _Schemas(GenerateJsonSchema):
    """Generates schemas with durations, their limits and their defaults in seconds, and with fields' docstrings."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        made.pop("title", None)  # the component's name is enough, and variants of a model would share a title
        model: type[BaseModel] = schema["cls"]
        texts = find_field_descriptions(model)

        for name, field in model.model_fields.items():
            shown = made.get("properties", {}).get(field.alias or name)
            _correct_limits(shown)
            if shown is not None and name in texts and field.description is None:
                unit = f" {_SECONDS}" if _is_duration(shown) else ""  # the description says so until it is replaced
                shown["description"] = texts[name] + unit

        if issubclass(model, responses.ApiResponse):
            made["additionalProperties"] = False  # the client keeps what only a newer API sends
        short_form = getattr(model, "short_form", None)
        if short_form is not None and self.mode == "validation":
            short = {"type": "string", "pattern": get_pattern(short_form)}
            return {"anyOf": [short, {**made, "description": "The queue, and more."}], "description": model.__doc__}
        return made

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        made = super().enum_schema(schema)
        made.pop("title", None)
        return made

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's signature
        """Return False: a title made from a field's name says nothing more than the name."""
        return False

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,  # noqa: FBT001 - pydantic's signature
    ) -> bool:
        """Return whether a field is always present. In a response, fields with a default are."""
        return self.mode == "serialization" or super().field_is_required(field, total)

    def encode_default(self, dft: object) -> object:
        return dft.total_seconds() if isinstance(dft, timedelta) else super().encode_default(dft)

    def union_schema(self, schema: core_schema.UnionSchema) -> JsonSchemaValue:
        """Return a union's schema. A duration, which is an integer or a float, becomes a number."""
        union = super().union_schema(schema)
        is_number = union.get("anyOf") == [{"type": "integer"}, {"type": "number"}]
        return {"type": "number", "description": _SECONDS} if is_number else union

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        """Return the schema of a number of seconds. Text such as ``PT5M`` is accepted, too, but not documented."""
        number: Json = {"type": "number", "description": _SECONDS}
        for name, keyword in _LIMITS.items():
            limit = schema.get(name)
            if isinstance(limit, timedelta):
                number[keyword] = limit.total_seconds()
        return number


def _correct_limits(schema: Json | None) -> None:
    """Correct how pydantic writes limits that follow a validator: ``"ge": "PT0S"`` is ``"minimum": 0``."""
    if schema is None:
        return
    for kind in (schema, *schema.get("anyOf", ())):
        for name, keyword in _LIMITS.items():
            if name not in kind:
                continue
            limit = kind.pop(name)
            if isinstance(limit, str):
                limit = _DURATION.validate_python(limit).total_seconds()
            kind[keyword] = limit


def _is_duration(schema: Json) -> bool:
    kinds = [schema, *schema.get("anyOf", ())]
    return any(kind.get("description") == _SECONDS for kind in kinds)


def get_pattern(annotated: object) -> str:
    """Return the pattern that a constrained string must match."""
    pattern = next(each.pattern for each in get_args(annotated) if isinstance(each, StringConstraints))
    return str(pattern)


def inline_schema(model: type[BaseModel]) -> Json:
    """Return the schema of a model of query parameters: flat, without null and without references."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Schemas)
    definitions = schema.pop("$defs", {})
    flat = _without_none(schema)
    for name, each in flat.get("properties", {}).items():
        if "$ref" in each:
            target = definitions[each.pop("$ref").rpartition("/")[2]]
            flat["properties"][name] = {**target, **each}
    return flat


def build_components(requests: Collection[type[BaseModel]]) -> Json:
    """Return all schemas of the document by their names, for the models of all bodies."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in requests),
        *((model, "serialization") for model in _RESPONSE_MODELS),
    ]
    names, definitions = models_json_schema(
        models, by_alias=True, ref_template=REFERENCE_TEMPLATE, schema_generator=_Schemas
    )
    schemas: Json = {_component_name(name): _rename_references(each) for name, each in definitions["$defs"].items()}
    for model in _RESPONSE_MODELS:
        name = _component_name(names[(model, "serialization")]["$ref"].rpartition("/")[2])
        assert name == model.__name__  # noqa: S101 - no model is both a request and a response

    in_responses = _find_reachable(schemas, _model_names(_RESPONSE_MODELS))
    in_responses -= _find_reachable(schemas, _model_names(requests))  # where null stands for the default
    schemas = {
        name: _to_response_schema(each) if name in in_responses else _to_request_schema(each)
        for name, each in schemas.items()
    }
    schemas |= _name_closed_sets(schemas)

    schemas["BatchCreateRequest"]["properties"]["tasks"]["items"] = ref("NewTask")
    schemas["CompleteRequest"]["properties"]["then"]["items"] = ref("NewTask")
    schemas["Problem"]["properties"]["readings"]["items"] = ref("ScheduleReading")
    schemas["ReportedTask"] = _reported_task_schema(schemas["Task"])
    schemas["FailedTask"] = _failed_task_schema(schemas["ReportedTask"])
    schemas["SavedPerson"] = _saved_person_schema(schemas["Person"])

    new = schemas["NewTask"]
    new["required"] = []  # a task with children or a script has no handler of its own
    title = new["properties"]["title"]  # whose default depends on the handler
    title["description"] = title.get("description", "").partition(_DEFAULT)[0]
    new["properties"]["owner"]["description"] = "The task's owner; the caller if it is omitted, or `system`."
    for name in ("NewTask", "PreviewRequest"):
        _allow_schedule_text(schemas[name])
    schemas["TaskPatch"] = _patch_schema(new)

    roots = {"TaskPatch", "ReportedTask", "FailedTask", "SavedPerson"}
    roots |= _model_names(requests) | _model_names(_RESPONSE_MODELS)
    used = _find_reachable(schemas, roots)
    return {name: _with_short_description(each) for name, each in sorted(schemas.items()) if name in used}


def _component_name(name: str) -> str:
    """Return the name of a component.

    Pydantic's ``Name-Output`` is ``Name``, ``Name-Input`` is ``NameInput``, and ``Tree_Task_`` is ``Tree``.
    """
    return name.removesuffix("-Output").removesuffix("_Task_").replace("-Input", "Input")


def _rename_references(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    match schema:
        case {"$ref": str(target), **rest}:
            return {"$ref": _component_name(target), **rest}
        case dict():
            return {key: _rename_references(value) for key, value in schema.items()}
        case list():
            return [_rename_references(each) for each in schema]
    return schema


def _allow_schedule_text(schema: Json) -> None:
    """Allow a schedule as text, with its time zone in a field beside it. See `language.task_fields`."""
    properties = schema["properties"]
    about = "A notation (RRULE, cron, an instant, a duration from now), or words such as: every weekday at 9."
    words = _text_schema(about, "every weekday at 9")
    properties["schedule"] = {"anyOf": [words, properties["schedule"]]}
    about = "The IANA zone of a schedule that is text. UTC if it is omitted."
    properties["timezone"] = _text_schema(about, "Europe/Paris")
    about = "The language of a schedule in words. If it is omitted, the words tell it."
    properties["locale"] = _text_schema(about, "en-US", "de")


def _text_schema(about: str, *examples: str) -> Json:
    return {"type": "string", "description": about, "examples": [*examples]}


def _model_names(models: Iterable[type[BaseModel]]) -> set[str]:
    return {model.__name__ for model in models}


def _with_short_description(schema: Json) -> Json:
    """Return a schema with only the first paragraph of its class's docstring. The rest is for programmers."""
    about = schema.get("description", "")
    if not about:
        return schema
    return {**schema, "description": about.partition("\n\n")[0]}


def _reported_task_schema(task: Json) -> Json:
    """Return the schema of a task in the response to a worker's report. A worker sees less than its owner."""
    required = [name for name in task["required"] if name not in OMITTED_FOR_WORKERS]
    about = "A task whose worker has reported. Workers that may not read tasks get less of it."
    return {**task, "description": about, "required": required}


def _failed_task_schema(task: Json) -> Json:
    """Return the schema of a task with a failed attempt, as its worker sees it."""
    about = "The record, if the run has failed for good and the API has no `on_failure` for its handler: call yours."
    failed = {**ref("Execution"), "description": about}
    return {**task, "properties": {**task["properties"], "failedExecution": failed}}


def _saved_person_schema(person: Json) -> Json:
    """Return the schema of the answer to a change of a person. Only it shows the secret of a new webhook."""
    about = "The secret that signs messages to the new webhook. Keep it: it is shown only here."
    secret = {"type": "string", "description": about}
    return {**person, "properties": {**person["properties"], "webhookSecret": secret}}


def _patch_schema(new: Json) -> Json:
    """Return the schema of a merge patch of any fields."""
    properties: Json = {}
    for name, each in new["properties"].items():
        if name in {"id", "owner"}:
            continue
        schema = dict(each)
        if name not in {"title", "handler"} and {"type": "null"} not in schema.get("anyOf", ()):
            nullable: Json = {"anyOf": [schema, {"type": "null"}]}
            if "description" in schema:
                nullable["description"] = schema.pop("description")
            schema = nullable
        properties[name] = schema
    merged = "The fields of the payload to change; all others stay. `null` resets one."
    properties[PAYLOAD_MERGE] = {"type": "object", "additionalProperties": True, "description": merged}
    operation = "Only of a draft's changes, with their `draftToken`: what to do with the task, instead of an edit."
    properties["operation"] = {
        "type": "string",
        "enum": list(get_args(responses.DraftOperation)),
        "description": operation,
    }
    about = "The fields to change; `null` restores a field's default."
    return {"type": "object", "description": about, "properties": properties, "additionalProperties": False}


_DEFAULT: Final = "Default: "


def _to_request_schema(schema: Json) -> Json:
    """Return a schema for requests, with its defaults in words.

    Client generators take ``default`` for a promise that the field is there, and then require it of callers.
    """
    shown = copy.deepcopy(schema)
    for each in shown.get("properties", {}).values():
        default = each.pop("default", None)
        if default not in (None, "", [], {}):
            about = each.get("description", "")
            each["description"] = f"{about} {_DEFAULT}``{json.dumps(default, ensure_ascii=False)}``.".strip()
    if "anyOf" in shown:
        shown["anyOf"] = [_to_request_schema(each) for each in shown["anyOf"]]
    return shown


def _name_closed_sets(schemas: Json) -> Json:
    """Return the closed sets that responses have as text, and name them where they occur.

    The models have them as text, so that a client can read the members that only a newer API has.
    """
    for (schema, field), name in _CLOSED_SETS.items():
        each = schemas[schema]["properties"][field]
        place = each["items"] if each.get("type") == "array" else each
        assert place.pop("type") == "string", f"{schema}.{field} has a type of its own"  # noqa: S101
        place.update(ref(name))
    return {
        name: {"type": "string", "enum": [str(each) for each in members], "description": about}
        for name, (members, about) in _MEMBERS.items()
    }


def _to_response_schema(schema: Json) -> Json:
    """Return a schema for responses: fields that are None are omitted, and there are no defaults."""
    may_be_none = {
        name
        for name, each in schema.get("properties", {}).items()
        if {"type": "null"} in each.get("anyOf", ()) or set(each) <= {"title", "default", "description"}
    }
    shown = _without_none(schema)
    for each in shown.get("properties", {}).values():
        each.pop("default", None)
    if "required" in shown:
        shown["required"] = [name for name in shown["required"] if name not in may_be_none]
    return shown


def _without_none(schema: Json) -> Json:
    """Return an object's schema whose properties are never null: they are omitted instead."""
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
    reachable: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in reachable:
            reachable.add(name)
            pending.extend(_find_references(schemas[name]))
    return reachable


def _find_references(schema: object) -> set[str]:
    match schema:
        case {"$ref": str(target)}:
            return {target.rpartition("/")[2]}
        case dict():
            return set[str]().union(*map(_find_references, schema.values()))
        case list():
            return set[str]().union(*map(_find_references, schema))
    return set()
