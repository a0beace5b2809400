"""The operations on scripts, which owners keep by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from werkzeug.wrappers import Response

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.script import MAX_TOOLS, ScriptSource, ToolName
from cloudsched.domain.documents.task import LongText, Owner
from cloudsched.scripts.wiring import ScriptsWiring
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from cloudsched.scripts.documents import StoredScript


class PutScript(WireModel):
    """A script to create or replace."""

    owner: Owner | None = None
    """The script's owner: the caller if omitted, or ``system``."""
    source: ScriptSource
    """The body of an async function, in JavaScript."""
    description: LongText = ""
    """A description for people."""
    tools: Annotated[tuple[ToolName, ...], Field(max_length=MAX_TOOLS)] | None = None
    """The handlers that it may call. If omitted, all that are tools."""


@operation(
    "PUT",
    "/v1/scripts/{scriptName}",
    "Scripts",
    body=PutScript,
    response_schema="ScriptDetails",
    error_statuses=(409, 503),
)
def put_script(call: ApiCall, body: PutScript) -> Response:
    """Create or replace a script.

    Only tasks and scripts of its owner can run it. Runs that have begun keep their version.
    """
    script = ScriptsWiring.of(call.app.container).scripts.put(
        call.path["scriptName"],
        call.caller.resolve_record_owner(body.owner),
        source=body.source,
        description=body.description,
        tools=body.tools,
        by=call.authority,
    )
    return json_response(_script_to_json(script))


@operation(
    "GET",
    "/v1/scripts/{scriptName}",
    "Scripts",
    query=bodies.OwnerQuery,
    response_schema="ScriptDetails",
)
def get_script(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Get a script.

    The answer has its source.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    script = ScriptsWiring.of(call.app.container).scripts.get(call.path["scriptName"], owner)
    return json_response(_script_to_json(script))


@operation("GET", "/v1/scripts", "Scripts", query=bodies.OwnerQuery, response_schema="ScriptList")
def list_scripts(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List an owner's scripts.

    The answer does not have their sources.
    """
    found = ScriptsWiring.of(call.app.container).scripts.list(call.caller.resolve_record_owner(query.owner))
    shown = [_script_to_json(each) for each in found]
    for script in shown:
        del script["source"]
    return json_response({"scripts": shown})


@operation(
    "DELETE",
    "/v1/scripts/{scriptName}",
    "Scripts",
    query=bodies.OwnerQuery,
    success_statuses=(204,),
    error_statuses=(409,),
)
def delete_script(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Delete a script.

    Runs that have begun go on. Later ones fail, until there is a script of this name again.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    ScriptsWiring.of(call.app.container).scripts.delete(call.path["scriptName"], owner, by=call.authority)
    return Response(status=204)


def _script_to_json(script: StoredScript) -> dict[str, Any]:
    hidden = {"id", "schemaVersion", "definedBy"}
    return {name: value for name, value in script.to_wire().items() if name not in hidden}
