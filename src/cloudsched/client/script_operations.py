"""The operations of the API on stored scripts, as flows that both clients run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, Flow, operation
from cloudsched.client.views import ScriptView, reader

if TYPE_CHECKING:
    from collections.abc import Iterable


class ScriptOperations:
    """The methods of `Client` and `AsyncClient` for stored scripts."""

    @operation
    def put_script(
        self,
        name: str,
        source: str,
        *,
        owner: str | None = None,
        description: str = "",
        tools: Iterable[str] | None = None,
    ) -> Flow[ScriptView]:
        """Create or replace a script; see docs/how-to/stored-scripts.md.

        Args:
            name: Its name, for ``script={"name": …}`` in a task and ``scripts.name(…)`` in a script.
            source: The body of an async function, in JavaScript.
            owner: Whose it is: only this owner's tasks can run it. The caller's if None, or ``system``.
            description: What it does, for people.
            tools: The handlers that it may call; None for all tools.
        """
        body: dict[str, Any] = {"source": source, "description": description}
        body |= {} if owner is None else {"owner": owner}
        body |= {} if tools is None else {"tools": list(tools)}
        answer = yield ApiRequest("PUT", _script_path(name), body)
        return answer.read("a script", reader(ScriptView))

    @operation
    def script(self, name: str, owner: str | None = None) -> Flow[ScriptView]:
        """Return a script, with its source."""
        answer = yield ApiRequest("GET", _script_path(name), query=_owner_query(owner))
        return answer.read("a script", reader(ScriptView))

    @operation
    def scripts(self, owner: str | None = None) -> Flow[list[ScriptView]]:
        """Return an owner's scripts, without their sources."""
        answer = yield ApiRequest("GET", "/v1/scripts", query=_owner_query(owner))
        return answer.read_list("scripts", reader(ScriptView))

    @operation
    def delete_script(self, name: str, owner: str | None = None) -> Flow[None]:
        """Delete a script; what runs already goes on."""
        yield ApiRequest("DELETE", _script_path(name), query=_owner_query(owner))


def _script_path(name: str) -> str:
    return f"/v1/scripts/{quote(name, safe='')}"


def _owner_query(owner: str | None) -> dict[str, str]:
    return {} if owner is None else {"owner": owner}
