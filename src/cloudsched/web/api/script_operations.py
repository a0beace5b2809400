"""The operations on stored scripts: JavaScript that an owner's tasks run by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from werkzeug.wrappers import Response

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.script import MAX_TOOLS, ScriptSource, ToolName
from cloudsched.domain.documents.task import LongText, Owner
from cloudsched.engine.tasks.scripts import Scripts
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import operation
from cloudsched.web.api.parse import read_json_object, validate
from cloudsched.web.api.responses import json_response
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from cloudsched.domain.documents.stored_script import StoredScript
    from cloudsched.web.api.operation import ApiCall


class PutScript(WireModel):
    """A script to create or replace."""

    owner: Owner | None = None
    """Whose script it is: the caller's if it is omitted, or ``system``."""
    source: ScriptSource
    """The body of an async function, in JavaScript."""
    description: LongText = ""
    """What it does, for people."""
    tools: Annotated[tuple[ToolName, ...], Field(max_length=MAX_TOOLS)] | None = None
    """The handlers that it may call; if omitted, all that are tools."""


@operation(
    "PUT",
    "/v1/scripts/{scriptName}",
    "Scripts",
    right=Right.WRITE,
    content=PutScript,
    response_schema="ScriptDetails",
    error_statuses=(409, 503),
)
def put_script(call: ApiCall) -> Response:
    """Create or replace a script.

    Only tasks and scripts of its owner can run it. What runs already goes on with the version that it began with.
    """
    body = validate(PutScript, read_json_object(call.request))
    script = Scripts(call.app.container.engine).put(
        call.path["scriptName"],
        call.caller.resolve_record_owner(body.owner),
        source=body.source,
        description=body.description,
        tools=body.tools,
        by=call.authority,
    )
    return json_response(_to_json(script))


@operation(
    "GET",
    "/v1/scripts/{scriptName}",
    "Scripts",
    query=bodies.OwnerQuery,
    response_schema="ScriptDetails",
    error_statuses=(404,),
)
def get_script(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Get a script.

    With its source.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    return json_response(_to_json(Scripts(call.app.container.engine).get(call.path["scriptName"], owner)))


@operation("GET", "/v1/scripts", "Scripts", query=bodies.OwnerQuery, response_schema="ScriptList")
def list_scripts(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List an owner's scripts.

    Without their sources.
    """
    found = Scripts(call.app.container.engine).list(call.caller.resolve_record_owner(query.owner))
    shown = [{name: value for name, value in _to_json(each).items() if name != "source"} for each in found]
    return json_response({"scripts": shown})


@operation(
    "DELETE",
    "/v1/scripts/{scriptName}",
    "Scripts",
    right=Right.WRITE,
    query=bodies.OwnerQuery,
    success_statuses=(204,),
    error_statuses=(404, 409),
)
def delete_script(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Delete a script.

    What runs already goes on; what begins later fails, until there is a script of this name again.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    Scripts(call.app.container.engine).delete(call.path["scriptName"], owner, by=call.authority)
    return Response(status=204)


def _to_json(script: StoredScript) -> dict[str, Any]:
    return {name: value for name, value in script.to_wire().items() if name not in {"id", "schemaVersion", "definedBy"}}
