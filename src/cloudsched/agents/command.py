"""``cloudsched mcp``: gives agents tools to schedule, over stdio or HTTP, by the Model Context Protocol."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.options import connection_options
from cloudsched.errors import CloudschedError, Forbidden, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.client import AsyncClient

PATH: Final = "/mcp"
TOOLS_OF_REQUEST: Final = "cloudsched.agents.tools"
"""Where a request's scope has the tools of its caller."""


@click.command()
@connection_options
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP at /mcp, instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: where to listen.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="With --http: the port.")
@click.option("--owner", help="Over stdio: the person for whom the tools act, with an admin's or a delegate's key.")
def mcp(*, over_http: bool, host: str, port: int, owner: str | None, **connection: Any) -> None:
    """Give agents tools to schedule.

    An agent on this machine starts this command itself, and talks to it by stdio, with the rights of --key or --token.
    Over HTTP, each request brings a key or a token of its own, as Authorization: Bearer, and acts with its rights.
    """
    from cloudsched.agents.server import make_server  # noqa: PLC0415 - not needed for --help
    from cloudsched.agents.tools import AgentTools  # noqa: PLC0415 - likewise
    from cloudsched.client import AsyncClient  # noqa: PLC0415 - likewise

    if over_http and any((owner, connection["key"], connection["token"])):
        raise click.UsageError(
            "--owner, --key and --token are for stdio. With --http, each request brings its own key or token."
        )
    if not over_http:
        client = AsyncClient(**connection)
        person = client if owner is None else client.acting_for(owner)
        asyncio.run(_serve_stdio(client, make_server(lambda _: AgentTools.of(person))))
        return
    import uvicorn  # noqa: PLC0415 - only for HTTP

    client = AsyncClient(connection["url"], platform_token=connection["platform_token"])
    app = make_http_app(client, host)
    if port:
        click.echo(f"The tools are at http://{host}:{port}{PATH}. Stop them with Ctrl-C.", err=True)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning")
    asyncio.run(_serve_http(client, host, uvicorn.Server(config)))


async def _serve_stdio(client: AsyncClient, server: Any) -> None:  # noqa: ANN401 - the SDK's server
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - only for stdio

    from cloudsched.agents.server import IS_FIRST_SDK  # noqa: PLC0415 - likewise

    standard_output = sys.stdout
    with ExitStack() as opened:
        if IS_FIRST_SDK:  # it closes what it writes to
            sys.stdout = opened.enter_context(os.fdopen(os.dup(1), "w", encoding="utf-8"))
        async with client, stdio_server() as (received, sent):
            sys.stdout = standard_output
            await server.run(received, sent, server.create_initialization_options())


async def _serve_http(client: AsyncClient, host: str, server: Any) -> None:  # noqa: ANN401 - uvicorn's
    from cloudsched.domain.local_requests import is_loopback  # noqa: PLC0415 - only for HTTP

    async with client:
        if not is_loopback(host) and await _is_open(client):
            raise click.UsageError(
                f"The API takes requests of this machine without a key, so whoever reaches {host} would be an admin. "
                "Leave --host out, or give the API keys."
            )
        await server.serve()


async def _is_open(client: AsyncClient) -> bool:
    """Return whether the API takes this machine's requests without a credential."""
    from cloudsched.agents.tools import AgentTools  # noqa: PLC0415 - only for HTTP

    try:
        await AgentTools.of(client)
    except CloudschedError:
        return False
    return True


def make_http_app(client: AsyncClient, host: str) -> Any:  # noqa: ANN401 - an ASGI app
    """Return the server's ASGI app, at this host's names alone. Each request acts with its own key or token.

    The client has none of its own. Without a key that the API accepts, a request gets 401.
    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - only for HTTP
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - likewise

    from cloudsched.agents.server import make_server  # noqa: PLC0415 - likewise
    from cloudsched.agents.tools import AgentTools  # noqa: PLC0415 - likewise

    async def find_tools(request: Any) -> AgentTools:  # noqa: ANN401 - Starlette's
        tools: AgentTools = request.scope[TOOLS_OF_REQUEST]
        return tools

    local = ["127.0.0.1", "localhost", "127.0.0.1:*", "localhost:*", "[::1]:*", host, f"{host}:*"]
    origins = [f"{scheme}://{name}" for name in local for scheme in ("http", "https")]
    security = TransportSecuritySettings(allowed_hosts=local, allowed_origins=origins)
    manager = StreamableHTTPSessionManager(
        make_server(find_tools), stateless=True, json_response=True, security_settings=security
    )

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        if scope["type"] == "lifespan":
            await _live(manager, receive, send)
            return
        if scope["type"] != "http" or scope["path"].rstrip("/") != PATH:
            await _refuse(send, 404, f"The tools are at {PATH}.")
            return
        headers = read_credential(scope)
        tools = None
        try:
            tools = await AgentTools.of(_with_headers(client, headers)) if headers else None
        except Unauthenticated:
            pass
        except Forbidden:
            await _refuse(send, 403, "This key or token may not use these tools.")
            return
        except CloudschedError:
            await _refuse(send, 503, "The scheduler cannot be reached now.")
            return
        if tools is None:
            await _refuse(send, 401, "Send Authorization: Bearer and a key or token of the scheduler.")
            return
        scope[TOOLS_OF_REQUEST] = tools
        await manager.handle_request(scope, receive, send)

    return app


def read_credential(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers in which the API gets a request's own key or token. Empty if it has none."""
    sent = {name.lower(): value for name, value in scope["headers"]}
    scheme, _, bearer = sent.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer":  # a scheme has no case (RFC 9110, section 11.1)
        bearer = b""
    given = sent.get(b"x-api-key", bearer).strip().decode("latin-1")
    if not (given and given.isascii() and given.isprintable()):
        return {}
    is_token = given.startswith("eyJ") and given.count(".") == 2  # noqa: PLR2004 - a JSON web token (RFC 7519)
    return {"Authorization": f"Bearer {given}"} if is_token else {"X-Api-Key": given}


def _with_headers(client: AsyncClient, headers: dict[str, str]) -> AsyncClient:
    """Return a client with a credential of its own, which shares the connections."""
    copied = copy.copy(client)
    copied._headers = headers  # noqa: SLF001 - as `acting_for` does
    return copied


async def _refuse(send: Any, status: int, text: str) -> None:  # noqa: ANN401 - as ASGI has it
    headers = [(b"content-type", b"text/plain"), *([(b"www-authenticate", b"Bearer")] if status == 401 else [])]  # noqa: PLR2004
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


async def _live(manager: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
    """Keep the manager of the SDK running from the start of the server to its end."""
    await receive()
    async with manager.run():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
