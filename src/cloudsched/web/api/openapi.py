"""``/openapi.json``: the API as OpenAPI 3.1 (spec.openapis.org/oas/v3.1.1), from the models that validate.

Nothing is written twice: paths come from `OPERATIONS`, parameters and bodies from the models that parse
them, responses from the models that are stored, without the fields that only the scheduler uses.
"""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.event import EventName
from cloudsched.domain.documents.task import Owner, TaskId
from cloudsched.domain.documents.verbs import Verb
from cloudsched.features.fields import QueueName
from cloudsched.web.api.etags import TAGS_PATTERN
from cloudsched.web.api.idempotency_keys import IDEMPOTENCY_HEADER, KEY_PATTERN
from cloudsched.web.api.openapi_schemas import build_components, get_pattern, inline_schema, ref
from cloudsched.web.api.openapi_webhooks import describe_webhooks
from cloudsched.web.api.operation import EVENT_STREAM, TAGS, Operation
from cloudsched.web.api.operations import OPERATIONS

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import WireModel

Json = dict[str, Any]


def build_request_examples() -> dict[str, dict[str, Json]]:
    """Return the examples of each operation with a body, by their names.

    The tasks in them are for workers. The API need not know the handlers of workers, so any app accepts
    the examples.
    """
    tasks = {
        "report": {"summary": "A report every weekday at nine", "value": _load()["tasks"]["report"]},
        "work": {"summary": "Work for a pool of workers", "value": _load()["tasks"]["work"]},
    }
    batch = {"summary": "Several tasks", "value": {"tasks": [each["value"] for each in tasks.values()]}}
    verbs = {each.method: {"example": each.traits.example} for each in Verb if each.traits.example is not None}
    return {**_load()["requests"], **verbs, "create_task": tasks, "batch_create_tasks": {"batch": batch}}


@cache
def _load() -> Json:
    content: Json = json.loads(Path(__file__).with_name("openapi_examples.json").read_text("utf-8"))
    return content


def response_example(schema: str) -> Json:
    """Return the example of a response with this schema."""
    example: Json = _load()["responses"][schema]
    return example


_PROBLEMS: Final = {
    400: "The request is invalid; `field` and `hint` say where, and how to correct it.",
    401: "The caller is not authenticated.",
    403: "The caller may not do this, or the request comes from a web page that may not call the API.",
    404: "It does not exist, or the caller may not see it.",
    409: "The task's status does not permit this, it was changed too often meanwhile, a limit was reached, "
    "or the claim has ended (`lease-lost`).",
    410: "What the link leads to is over.",
    412: "The task or the person is not in the state that `If-Match` names.",
    413: "The body is too large.",
    415: "The body is of another type than JSON.",
    422: "The idempotency key was used with a different request.",
    429: "The owner's quota is exceeded.",
    500: "The server failed; its log says why.",
    501: "A package that it needs for this is not installed: asking again does not help.",
    503: "The store or another service is away: try again after `Retry-After`. Without it the API is not set up.",
}
_RETRY_AFTER: Final = {
    "description": "After how many seconds to try again, if that is known.",
    "schema": {"type": "integer", "minimum": 0},
}
_PROBLEM_HEADERS: Final[dict[int, Json]] = {
    401: {
        "WWW-Authenticate": {"description": "How to authenticate (RFC 9110).", "schema": {"type": "string"}},
    },
    429: {"Retry-After": _RETRY_AFTER},
    503: {"Retry-After": _RETRY_AFTER},
}
_SUCCESSES: Final = {200: "Done.", 201: "Created.", 202: "Accepted.", 204: "Deleted.", 304: "Not modified."}
_FEED_ID: Final = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_PATH: Final = {
    "taskId": ("The task's id.", get_pattern(TaskId), "weekday-report"),
    "deliveryId": ("The delivery's id.", get_pattern(TaskId), "d621347de2ee74ba391431f703f08d7c"),
    "event": ("The event's name.", get_pattern(EventName), "approved"),
    "executionId": ("The execution's id.", r"^[A-Za-z0-9.-]{1,128}$", "20270104T080000Z"),
    "queue": ("The queue's name.", get_pattern(QueueName), "gpu"),
    "owner": ("The owner's id.", get_pattern(Owner), "ada"),
    "messageId": ("The message's id.", r"^[A-Za-z0-9_.-]{1,300}$", "weekday-report.20270104T080000Z"),
    "linkToken": ("What the link in the mail ends with.", r"^[A-Za-z0-9_.-]{1,1000}$", "YWRh.EXAMPLE"),
    "answerToken": ("What the link ends with.", r"^[A-Za-z0-9_.-]{1,2000}$", "YWRh.EXAMPLE"),
    "chat": ("The chat.", r"^(telegram|slack)$", "telegram"),
    "calendarId": ("The calendar's id.", r"^[A-Za-z0-9_-]{1,64}$", "fr-holidays"),
    "scriptName": ("The script's name.", r"^[A-Za-z0-9_-]{1,64}$", "nested-task"),
    "feedId": ("The feed's id.", r"^[0-9a-f]{64}$", _FEED_ID),
    "feedSecret": (
        "The feed's secret.",
        r"^[A-Za-z0-9_-]{43}$",
        "EXAMPLEsecret_of_a_feed-43-letters-and-digits"[:43],
    ),
}


@lru_cache(maxsize=8)
def render_document(root: str) -> tuple[bytes, str]:
    """Return the document of an API that is mounted under a path, as text, and its ETag without quotes."""
    text = json.dumps(build_document(root), ensure_ascii=False, separators=(",", ":")).encode()
    return text, hashlib.sha256(text).hexdigest()[:20]


@lru_cache(maxsize=1)
def build_document(root: str = "") -> Json:
    """Return the document of an API that is mounted under a path. It is empty without a mount."""
    bodies = dict.fromkeys(each.body_schema for each in OPERATIONS if each.body_schema is not None)
    schemas = build_components(bodies)
    examples = build_request_examples()
    paths: Json = {}
    for operation in OPERATIONS:
        described = _describe_operation(operation, examples.get(operation.name, {}))
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cloudsched",
            "version": version("cloudsched"),
            "summary": "Durable scheduled tasks.",
            "description": "JSON in camelCase. Durations are seconds, instants RFC 3339, errors RFC 9457 problems.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": root or "/", "description": "The server that this document comes from."}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": paths,
        "webhooks": describe_webhooks(),
        "components": {"schemas": schemas, "securitySchemes": _security_schemes()},
    }


_KEY: Final = (
    "A server's key. With the role `admin` or `delegate` it acts for a user whom `X-On-Behalf-Of` names, "
    "percent-encoded, with exactly the authority of that user."
)


def _security_schemes() -> Json:
    about = "A Firebase user's ID token, or a Google OIDC token of a service account."
    return {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": about},
        "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": _KEY},
    }


def _describe_operation(operation: Operation, examples: Json) -> Json:
    described: Json = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": [
            *_path_parameters(operation),
            *_query_parameters(operation.parameters),
            *_header_parameters(operation),
        ],
        "responses": _responses(operation),
        "security": [] if operation.right is None else [{"token": []}, {"key": []}],
    }

    if operation.is_patch:
        patch = "TaskPatch" if operation.body_schema is None else operation.body_schema.__name__
        content = {"application/merge-patch+json": {"schema": ref(patch), "examples": examples}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.body_schema is not None:
        content = {"application/json": {"schema": ref(operation.body_schema.__name__), "examples": examples}}
        described["requestBody"] = {"required": not operation.body_is_optional, "content": content}
    return described


def _path_parameters(operation: Operation) -> list[Json]:
    names = [part.partition("}")[0] for part in operation.path.split("{")[1:]]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH[name][0],
            "schema": {"type": "string", "pattern": _PATH[name][1]},
            "example": _PATH[name][2],
        }
        for name in names
    ]


def _query_parameters(model: type[WireModel]) -> list[Json]:
    schema = inline_schema(model)
    parameters = []
    for name, each in schema.get("properties", {}).items():
        described = copy.deepcopy(each)
        about = described.pop("description", "")
        examples = described.pop("examples", ())
        more: Json = {}
        if examples:
            more["example"] = examples[0]
        if name in schema.get("required", ()):
            more["required"] = True
        parameters.append({"name": name, "in": "query", "description": about, "schema": described, **more})
    return parameters


def _header_parameters(operation: Operation) -> list[Json]:
    parameters: list[Json] = []
    if operation.accepts_idempotency_key:
        about = (
            "Makes the request safe to repeat: the same key with the same request does nothing more. Any text of up "
            "to 255 characters: percent-encode in UTF-8 what is not ASCII, and `%` itself."
        )
        parameters.append(_header(IDEMPOTENCY_HEADER, about, KEY_PATTERN))
    if operation.is_conditional:
        about = "The ETag of the state that the caller has seen; if it has changed since, nothing happens."
        parameters.append(_header("If-Match", about, TAGS_PATTERN))
    if 304 in operation.success_statuses:  # noqa: PLR2004 - Not Modified
        about = "The ETag of the state that the caller already has."
        parameters.append(_header("If-None-Match", about, TAGS_PATTERN))
    return parameters


def _header(name: str, about: str, pattern: str) -> Json:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "header", "description": about, "schema": schema}


def _responses(operation: Operation) -> Json:
    responses: Json = {}
    for status in operation.success_statuses:
        responses[str(status)] = {"description": _SUCCESSES[status], **_response_headers(operation, status)}
        if status in {200, 201, 202} and operation.response_schema:
            is_started = status == 202 and operation.success_statuses == (200, 202)  # noqa: PLR2004
            schema = "Task" if is_started else operation.response_schema
            responses[str(status)]["content"] = _content(schema)

    problems = {400, 403, 500, 503, *operation.error_statuses}
    if operation.right is not None:
        problems.add(401)
    if operation.body_schema is not None or operation.is_patch:
        problems |= {413, 415}

    content = {"application/problem+json": {"schema": ref("Problem")}}
    for status in sorted(problems):
        described = responses[str(status)] = {"description": _PROBLEMS[status]}
        if status in _PROBLEM_HEADERS:
            described["headers"] = _PROBLEM_HEADERS[status]
        described["content"] = content
        if status in operation.error_statuses and operation.response_schema == "text/html":  # for people, too
            described["content"] = _content("text/html")
    return responses


def _response_headers(operation: Operation, status: int) -> Json:
    if operation.response_schema not in {"Task", "ReportedTask", "FailedTask", "Person", "SavedPerson"}:
        return {}
    if status not in {200, 201, 304}:
        return {}
    headers = {"ETag": {"description": "Identifies the state.", "schema": {"type": "string"}}}
    if operation.name == "create_task":
        headers["Location"] = {"description": "The task's path.", "schema": {"type": "string"}}
    return {"headers": headers}


_WITH_CSV: Final = frozenset({"TaskPage", "ExecutionPage", "OccurrencePage", "AuditPage", "UsagePage", "DeliveryPage"})


def _content(schema: str) -> Json:
    if schema in {"text/html", "text/calendar"}:
        return {schema: {"schema": {"type": "string"}}}
    if schema in {"OpenApi", "JsonObject"}:
        return {"application/json": {"schema": {"type": "object"}}}
    shown: Json = {"application/json": {"schema": ref(schema), "example": response_example(schema)}}
    if schema == "DraftResult":
        shown[EVENT_STREAM] = {"schema": {"type": "string"}}
    if schema in _WITH_CSV:
        shown["text/csv"] = {"schema": {"type": "string"}}
    return shown
