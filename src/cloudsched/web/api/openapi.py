"""``/openapi.json``: the API as OpenAPI 3.1 (spec.openapis.org/oas/v3.1.1), made from the models that validate.

Nothing is written twice: paths come from `OPERATIONS`, parameters and bodies from the models that read them, answers
from the models that are stored, without what is kept for the scheduler alone.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.pull import QueueName
from cloudsched.domain.documents.task import EventName, Owner, TaskId
from cloudsched.web.api.etags import TAGS_PATTERN
from cloudsched.web.api.idempotency import IDEMPOTENCY_HEADER, KEY_PATTERN
from cloudsched.web.api.openapi_schemas import build_components, get_pattern, inline_schema, ref
from cloudsched.web.api.operations import OPERATIONS, Operation

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import WireModel

Json = dict[str, Any]

_PROBLEMS: Final = {
    400: "Something in the request is wrong; `field` and `hint` say what, and how to mend it.",
    401: "The caller has not proved who they are.",
    403: "The caller is known, and may not do this; or the request comes from a page that may not call the API.",
    404: "There is none, or it is not the caller's to see.",
    409: "The task's status does not permit this, others changed the task again and again meanwhile, or the claim "
    "has ended (`lease-lost`).",
    412: "The task is not in the state that `If-Match` names.",
    413: "The body is too large.",
    422: "The idempotency key came before, with another request.",
    429: "The owner has as much as one owner may have.",
    500: "The server failed; its log says why.",
    503: "The store or another service did not answer, or the API is not set up. Try again later.",
}
_TITLES: Final = {200: "Done.", 201: "Created.", 204: "Removed.", 304: "Not changed since."}
_PATH: Final = {
    "taskId": ("The task's id.", get_pattern(TaskId)),
    "event": ("The event's name.", get_pattern(EventName)),
    "executionId": ("The execution's id.", r"^[A-Za-z0-9.-]{1,128}$"),
    "queue": ("The queue's name.", get_pattern(QueueName)),
    "owner": ("Whose inbox it is.", get_pattern(Owner)),
}


@lru_cache(maxsize=4)
def build_document(handlers: tuple[str, ...] | None) -> Json:
    """Return the document.

    Args:
        handlers: The handlers that there are, where callers need not prove who they are; None where they must.
    """
    is_open = handlers is not None
    schemas = build_components(handlers)
    paths: Json = {}
    for operation in OPERATIONS:
        described = _operation(operation, is_open=is_open)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    security = {} if is_open else {"securitySchemes": _security_schemes()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cloudsched",
            "version": version("cloudsched"),
            "summary": "Durable scheduled tasks.",
            "description": "JSON in camelCase. Durations are seconds, instants RFC 3339, errors RFC 9457 problems.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas, **security},
    }


def _security_schemes() -> Json:
    about = "A Firebase user's ID token, or a Google OIDC token of a service account."
    return {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": about},
        "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "A server's key."},
    }


def _operation(operation: Operation, *, is_open: bool) -> Json:
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            *_path_parameters(operation),
            *_query_parameters(operation.query),
            *_header_parameters(operation),
        ],
        "responses": _responses(operation, is_open=is_open),
    }
    if operation.is_patch:
        content = {"application/merge-patch+json": {"schema": ref("TaskPatch")}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.body is not None:
        content = {"application/json": {"schema": ref(operation.body.__name__)}}
        described["requestBody"] = {"required": not operation.body_is_optional, "content": content}
    if operation.right is not None and not is_open:
        described["security"] = [{"token": []}, {"key": []}]
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
        }
        for name in names
    ]


def _query_parameters(model: type[WireModel]) -> list[Json]:
    schema = inline_schema(model)
    parameters = []
    for name, each in schema.get("properties", {}).items():
        described = copy.deepcopy(each)
        about = described.pop("description", "")
        parameters.append({"name": name, "in": "query", "description": about, "schema": described})
    return parameters


def _header_parameters(operation: Operation) -> list[Json]:
    found: list[Json] = []
    if operation.accepts_idempotency_key:
        about = "Makes it safe to ask again: the same key with the same request creates nothing new."
        schema = {"type": "string", "pattern": KEY_PATTERN}
        found.append({"name": IDEMPOTENCY_HEADER, "in": "header", "description": about, "schema": schema})
    if operation.is_conditional:
        about = "The ETag of the state that the caller has seen; in any other, nothing is changed."
        found.append({"name": "If-Match", "in": "header", "description": about, "schema": _tag_schema()})
    if 304 in operation.success_statuses:  # noqa: PLR2004 - Not Modified
        about = "The ETag of what the caller has already."
        found.append({"name": "If-None-Match", "in": "header", "description": about, "schema": _tag_schema()})
    return found


def _tag_schema() -> Json:
    return {"type": "string", "pattern": TAGS_PATTERN}


def _responses(operation: Operation, *, is_open: bool) -> Json:
    responses: Json = {}
    for status in operation.success_statuses:
        responses[str(status)] = {"description": _TITLES[status], **_response_headers(operation, status)}
        if status in {200, 201} and operation.response_schema:
            responses[str(status)]["content"] = _content(operation.response_schema)
            responses[str(status)].update(_links(operation))
    refusals = {400, 403, 500, 503, *operation.error_statuses}
    if operation.right is not None and not is_open:
        refusals.add(401)
    if operation.body is not None or operation.is_patch:
        refusals.add(413)
    content = {"application/problem+json": {"schema": ref("Problem")}}
    for status in sorted(refusals):
        responses[str(status)] = {"description": _PROBLEMS[status], "content": content}
    return responses


def _response_headers(operation: Operation, status: int) -> Json:
    if operation.response_schema not in {"Task", "FailedTask"}:
        return {}
    headers = {"ETag": {"description": "The task's state.", "schema": {"type": "string"}}}
    if operation.name == "create_task":
        headers["Location"] = {"description": "The task's path.", "schema": {"type": "string"}}
    return {"headers": headers} if status in {200, 201, 304} else {}


def _links(operation: Operation) -> Json:
    """Return what can be done with what was answered."""
    if operation.name == "create_task":
        of_a_task = [each.name for each in OPERATIONS if "{taskId}" in each.path and "{executionId}" not in each.path]
        return {"links": {name: _link(name, taskId="$response.body#/id") for name in of_a_task}}
    if operation.name == "list_executions":
        found = {"taskId": "$request.path.taskId", "executionId": "$response.body#/executions/0/id"}
        return {"links": {"get_execution": _link("get_execution", **found)}}
    return {}


def _link(operation: str, **parameters: str) -> Json:
    return {"operationId": operation, "parameters": parameters}


def _content(answer: str) -> Json:
    if answer == "text/html":
        return {answer: {"schema": {"type": "string"}}}
    if answer == "OpenApi":
        return {"application/json": {"schema": {"type": "object"}}}
    return {"application/json": {"schema": ref(answer)}}
