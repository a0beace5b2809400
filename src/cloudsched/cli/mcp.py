"""``cloudsched mcp``: gives agents tools to schedule, over stdio or HTTP, by the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.api_group import connection_options

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mcp.server.mcpserver import MCPServer

    from cloudsched.client import AsyncClient

PATH: Final = "/mcp"


@click.command()
@connection_options
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP at /mcp, instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: where to listen.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="With --http: the port.")
@click.option("--owner", help="The user for whom the tools act; they have the key's own rights if omitted.")
@click.option("--bearer", envvar="CLOUDSCHED_MCP_BEARER", help="With --http: the key that agents send.")
def mcp(  # noqa: PLR0913 - one argument for each option
    *,
    url: str,
    key: str | None,
    token: str | None,
    platform_token: str | None,
    over_http: bool,
    host: str,
    port: int,
    owner: str | None,
    bearer: str | None,
) -> None:
    """Give agents tools to schedule, with the rights of --key.

    An agent on this machine starts this command itself, and talks to it by stdio. The tools: preview_schedule,
    create_task, list_tasks, get_task, update_task, cancel_task and send_event.
    """
    import asyncio  # noqa: PLC0415 - not needed for --help

    from cloudsched.cli.agents.server import make_server  # noqa: PLC0415 - likewise
    from cloudsched.client import AsyncClient  # noqa: PLC0415 - likewise

    if over_http and bearer is None:
        raise click.UsageError("--http needs --bearer (or CLOUDSCHED_MCP_BEARER).")
    client = AsyncClient(url, key=key, token=token, platform_token=platform_token)
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
    """Serve, and close the connections to the API at the end."""
    async with client:
        await serving


def make_http_app(server: MCPServer[Any], host: str, bearer: str) -> Any:  # noqa: ANN401 - an ASGI app
    """Return the server's ASGI app, which answers whoever sends the key, at this host's names alone."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - only for HTTP

    from cloudsched.cli.agents.authorization import require_bearer  # noqa: PLC0415 - the same

    local = ["127.0.0.1", "localhost", "127.0.0.1:*", "localhost:*", "[::1]:*", host, f"{host}:*"]
    origins = [f"{scheme}://{name}" for name in local for scheme in ("http", "https")]
    security = TransportSecuritySettings(allowed_hosts=local, allowed_origins=origins)
    app = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=security, host=host
    )
    return require_bearer(app, bearer)
