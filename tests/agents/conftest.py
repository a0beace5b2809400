"""The MCP server over both transports, and the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from anyio.from_thread import start_blocking_portal
from httpx2 import AsyncClient as HttpClient
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from tests.cli.conftest import _preview_from_the_start, _put_process_back, _shorten_pauses, run_command, tasks, url
from tests.drafts_app import make_app
from tests.harness import free_port, wait_until

from cloudsched import App
from cloudsched.agents.command import make_http_app
from cloudsched.agents.tools import make_server
from cloudsched.client import AsyncClient

__all__ = ["_preview_from_the_start", "_put_process_back", "_shorten_pauses", "run_command", "tasks", "url"]
BEARER = "a-bearer-key-for-tests"


@pytest.fixture(name="app")
def drafting_app() -> App:
    """The app with handlers that wait for nothing."""
    return make_app()


class Agent:
    """Calls tools as an agent does, by the SDK's own client; `run` calls a function with a connected one."""

    def __init__(self, run: Callable[[Callable[[McpClient], Awaitable[Any]]], Any]) -> None:
        self._run = run

    def tools(self) -> dict[str, Any]:
        listed = self._run(lambda client: client.list_tools())
        return {each.name: each for each in listed.tools}

    def call(self, tool: str, **arguments: Any) -> Any:  # noqa: ANN401 - the tool's answer
        """Return what a tool answers; a text if it is an error."""
        result = self._run(lambda client: client.call_tool(tool, arguments))
        text = "".join(each.text for each in result.content)
        return text if result.is_error else result.structured_content or json.loads(text)


@contextmanager
def serve_http(url: str, bearer: str, owner: str | None = None) -> Iterator[str]:
    """Serve the tools over streamable HTTP; give the address."""
    port = free_port()
    client = AsyncClient(url)
    server = make_server(client, owner)
    app = make_http_app(server, "127.0.0.1", bearer)
    running = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None))

    async def serve() -> None:
        async with client:
            await running.serve()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    wait_until(lambda: running.started, "the server")
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.should_exit = True
        thread.join(60)


def http_agent(address: str, token: str | None) -> Agent:
    """Return an agent that sends this token; each call has a connection of its own."""

    def run(ask: Callable[[McpClient], Awaitable[Any]]) -> Any:  # noqa: ANN401 - the SDK's answer
        async def connect() -> Any:  # noqa: ANN401 - the same
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            async with (
                HttpClient(headers=headers, timeout=60) as http,
                McpClient(streamable_http_client(address, http_client=http)) as client,
            ):
                return await ask(client)

        return asyncio.run(connect())

    return Agent(run)


@pytest.fixture(params=["stdio", "http"])
def agent(request: pytest.FixtureRequest, url: str) -> Iterator[Agent]:
    """An agent over each transport; over stdio it starts the command itself."""
    if request.param == "http":
        with serve_http(url, BEARER, "ada") as address:
            yield http_agent(address, BEARER)
        return
    arguments = ["-m", "cloudsched", "mcp", "--url", url, "--owner", "ada"]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(McpClient(server)) as client:
        yield Agent(lambda ask: portal.call(ask, client))
