"""The operation that lists handlers, with the schemas of their payloads."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import PydanticInvalidForJsonSchema, PydanticUserError, TypeAdapter

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.responses import overview_responses as responses
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.engine.handlers.registry import Handler


@operation("GET", "/v1/handlers", "Tasks", response_schema="HandlerList")
def list_handlers(call: ApiCall) -> Response:
    """List the handlers that you may name in a task, with the JSON schemas of their payloads.

    Users see those that are open to users. The API does not know handlers that only workers have.
    """
    handlers = tuple(map(_make_handler, list_visible_handlers(call)))
    return json_response(responses.HandlerList(handlers=handlers).to_wire())


def list_visible_handlers(call: ApiCall) -> list[Handler]:
    """Return the handlers that the caller may name, by their names."""
    visible = call.app.container.registry
    if call.caller.requesters is Requesters.USERS and call.caller.visible_owner is not None:
        visible = visible.for_users()
    return sorted((each for each in visible if not each.is_built_in), key=lambda each: each.name)


def _make_handler(handler: Handler) -> responses.HandlerInfo:
    about = inspect.cleandoc(handler.function.__doc__ or "").partition("\n\n")[0]
    events = {name: _make_schema(each.adapter) for name, each in handler.events.items()}
    return responses.HandlerInfo(
        name=handler.name,
        description=" ".join(about.split()) or handler.draft,
        access=handler.access,
        is_tool=handler.is_tool,
        queue=None if handler.workers is None else handler.workers.queue,
        query_per_execution=handler.query_per_execution,
        tokens_per_execution=handler.tokens_per_execution,
        payload_schema=None if handler.payload is None else _make_schema(handler.payload),
        event_schemas={name: schema for name, schema in events.items() if schema is not None} or None,
    )


def _make_schema(kind: TypeAdapter[Any]) -> dict[str, Any] | None:
    with suppress(PydanticInvalidForJsonSchema, PydanticUserError):
        return kind.json_schema()
    return None
