"""``cloudsched mcp``: gives agents tools to schedule, over stdio or HTTP, by the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.api_group import connection_options

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mcp.server.mcpserver import MCPServer

    from cloudsched.cli.agents.authorization import OAuth
    from cloudsched.client import AsyncClient

PATH: Final = "/mcp"


@click.command()
@connection_options
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP at /mcp, instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: where to listen.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="With --http: the port.")
@click.option("--owner", help="The user for whom the tools act; they have the key's own rights if omitted.")
@click.option("--bearer", envvar="CLOUDSCHED_MCP_BEARER", help="With --http: the key that agents send.")
@click.option("--issuer", metavar="URL", help="With --http: the OAuth authorization server whose tokens are taken.")
@click.option("--resource", metavar="URL", help="With --issuer: this server's public address, with /mcp.")
@click.option("--read-scope", default="tasks:read", show_default=True, help="With --issuer: what a token needs.")
@click.option(
    "--write-scope", default="tasks:write", show_default=True, help="With --issuer: what it needs to change something."
)
@click.option("--jwks", metavar="URL", help="With --issuer: where its keys are, if its metadata does not say.")
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
    issuer: str | None,
    resource: str | None,
    jwks: str | None,
    read_scope: str,
    write_scope: str,
) -> None:
    """Give agents tools to schedule, with the rights of --key.

    An agent on this machine starts this command itself, and talks to it by stdio. The tools: preview_schedule,
    create_task, list_tasks, get_task, update_task, cancel_task and send_event.
    """
    import asyncio  # noqa: PLC0415 - not needed for --help

    from cloudsched.cli.agents.server import make_server  # noqa: PLC0415 - likewise
    from cloudsched.client import AsyncClient  # noqa: PLC0415 - likewise

    oauth = _find_oauth(issuer, resource, jwks, read_scope, write_scope)
    if over_http and bearer is None and oauth is None:
        raise click.UsageError("--http needs --bearer (or CLOUDSCHED_MCP_BEARER), or --issuer and --resource.")
    if over_http and bearer is not None and oauth is not None:
        raise click.UsageError("Give --bearer or --issuer, not both.")
    if oauth is not None and (owner is not None or not over_http):
        raise click.UsageError("--issuer is for --http, and each token names its owner: omit --owner.")
    if oauth is not None:
        _check_issuer(oauth)
    client = AsyncClient(url, key=key, token=token, platform_token=platform_token)
    server = make_server(client, owner, oauth)
    if not over_http:
        asyncio.run(_serve_until_end(client, server.run_stdio_async()))
        return
    import uvicorn  # noqa: PLC0415 - only for HTTP

    app = make_http_app(server, host, bearer, oauth)
    if port:
        click.echo(f"The tools are at http://{host}:{port}{PATH}. Stop them with Ctrl-C.", err=True)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning")
    asyncio.run(_serve_until_end(client, uvicorn.Server(config).serve()))


async def _serve_until_end(client: AsyncClient, serving: Coroutine[Any, Any, None]) -> None:
    """Serve, and close the connections to the API at the end."""
    async with client:
        await serving


def make_http_app(server: MCPServer[Any], host: str, bearer: str | None, oauth: OAuth | None = None) -> Any:  # noqa: ANN401 - an ASGI app
    """Return the server's ASGI app; where it has a public address, that host's requests are taken."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - only for HTTP

    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - the same

    public = [] if oauth is None else [urlsplit(oauth.resource).netloc]
    local = ["127.0.0.1", "localhost", "127.0.0.1:*", "localhost:*", "[::1]:*", host, f"{host}:*"]
    origins = [f"{scheme}://{name}" for name in (*local, *public) for scheme in ("http", "https")]
    security = TransportSecuritySettings(allowed_hosts=[*local, *public], allowed_origins=origins)
    app = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=security, host=host
    )
    if oauth is not None:
        app.router.routes[:0] = oauth.metadata_routes
    if bearer is None:
        return app
    from cloudsched.cli.agents.authorization import require_bearer  # noqa: PLC0415 - only with a key of its own

    return require_bearer(app, bearer)


def _find_oauth(
    issuer: str | None, resource: str | None, jwks: str | None, read_scope: str, write_scope: str
) -> OAuth | None:
    if not any((issuer, resource, jwks)):
        return None
    if issuer is None or resource is None:
        raise click.UsageError("--issuer and --resource belong together, and --jwks to them.")
    from cloudsched.cli.agents.authorization import OAuth  # noqa: PLC0415 - only with OAuth
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - the same

    reachable = tuple(Settings.from_environment().access.reachable)
    return OAuth(issuer, resource, jwks, reachable, read_scope, write_scope)


def _check_issuer(oauth: OAuth) -> None:
    try:
        oauth.check_issuer()
    except OSError as error:
        click.echo(f"{error}. Every token is refused until it does.", err=True)
