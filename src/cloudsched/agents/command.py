"""``cloudsched mcp``: gives agents tools to schedule, over stdio or HTTP, by the Model Context Protocol."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.options import connection_options
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, MutableMapping

    from mcp.server.mcpserver import MCPServer

    from cloudsched.client import AsyncClient

    Message = MutableMapping[str, Any]
    AsgiApp = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
    ]

PATH: Final = "/mcp"
MIN_KEY_LENGTH: Final = 16


@click.command()
@connection_options
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP at /mcp, instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: where to listen.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="With --http: the port.")
@click.option("--owner", help="The user for whom the tools act. Without it they have the key's rights.")
@click.option("--bearer", envvar="CLOUDSCHED_MCP_BEARER", help="With --http: the key that agents send.")
def mcp(*, over_http: bool, host: str, port: int, owner: str | None, bearer: str | None, **connection: Any) -> None:
    """Give agents tools to schedule, with the rights of --key.

    An agent on this machine starts this command itself, and talks to it by stdio. The tools: preview_schedule,
    create_task, list_tasks, get_task, update_task, cancel_task, list_questions and send_event.
    """
    from cloudsched.agents.tools import make_server  # noqa: PLC0415 - not needed for --help
    from cloudsched.client import AsyncClient  # noqa: PLC0415 - likewise

    if over_http and bearer is None:
        raise click.UsageError("--http needs --bearer (or CLOUDSCHED_MCP_BEARER).")
    client = AsyncClient(**connection)
    server = make_server(client, owner)
    if bearer is None or not over_http:
        asyncio.run(_serve_until_end(client, server.run_stdio_async()))
        return
    import uvicorn  # noqa: PLC0415 - only for HTTP

    app = make_http_app(server, host, bearer)
    if port:
        click.echo(f"The tools are at http://{host}:{port}{PATH}. Stop them with Ctrl-C.", err=True)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning")
    asyncio.run(_serve_until_end(client, uvicorn.Server(config).serve()))


async def _serve_until_end(client: AsyncClient, serving: Coroutine[Any, Any, None]) -> None:
    async with client:
        await serving


def make_http_app(server: MCPServer[Any], host: str, bearer: str) -> Any:  # noqa: ANN401 - an ASGI app
    """Return the server's ASGI app, which answers whoever sends the key, at this host's names alone."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - only for HTTP

    local = ["127.0.0.1", "localhost", "127.0.0.1:*", "localhost:*", "[::1]:*", host, f"{host}:*"]
    origins = [f"{scheme}://{name}" for name in local for scheme in ("http", "https")]
    security = TransportSecuritySettings(allowed_hosts=local, allowed_origins=origins)
    app = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=security, host=host
    )
    return require_bearer(app, bearer)


def require_bearer(app: AsgiApp, key: str) -> AsgiApp:
    """Return an app that answers 401 to requests without the key, which is compared in constant time.

    The key is not passed on: the API is called with the server's own. One that can be guessed is Misconfigured.
    """
    if len(key) < MIN_KEY_LENGTH:
        raise Misconfigured(f"A bearer key has at least {MIN_KEY_LENGTH} characters.")

    async def guarded(scope: Message, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        scheme, _, given = dict(scope.get("headers", ())).get(b"authorization", b"").partition(b" ")
        is_known = hmac.compare_digest(given.strip(), key.encode()) and scheme.lower() == b"bearer"  # RFC 9110, 11.1
        if scope["type"] == "http" and not is_known:
            headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"Send Authorization: Bearer and this server's key."})
            return
        await app(scope, receive, send)

    return guarded
