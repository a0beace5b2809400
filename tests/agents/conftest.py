"""The MCP server over both transports, and the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
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
from tests.cli.conftest import (
    _preview_from_the_start,
    _put_process_back,
    _shorten_pauses,
    run_command,
    serve_api_of,
    tasks,
    url,
)
from tests.drafts_app import make_app
from tests.harness import free_port, wait_until

from cloudsched import App
from cloudsched.agents.arguments import ToolRefused
from cloudsched.agents.command import make_http_app
from cloudsched.agents.tools import AgentTools
from cloudsched.client import AsyncClient
from cloudsched.config.access import Access
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

__all__ = ["_preview_from_the_start", "_put_process_back", "_shorten_pauses", "run_command", "tasks", "url"]

PEOPLE: dict[str, tuple[Role, str | None]] = {
    "ada": (Role.USER, "ada"),
    "bob": (Role.USER, "bob"),
    "reader": (Role.READER, "ada"),
    "admin": (Role.ADMIN, None),
}
_MADE = {name: create_key(name, *role) for name, role in PEOPLE.items()}
KEYS = {name: key for name, (key, _) in _MADE.items()}
"""A key of each person."""
ENTRIES = tuple(str(entry) for _, entry in _MADE.values())
"""The same as an API is told them."""


@pytest.fixture(name="app")
def drafting_app() -> App:
    """The app with handlers that wait for nothing."""
    return make_app()


@pytest.fixture(name="sim")
def guarded_sim(app: App) -> Iterator[Simulation]:
    """A simulation of it, in which everybody needs a key."""
    access = Access(api_keys=ENTRIES)
    with Simulation(app, access=access) as simulation:
        yield simulation


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
        texts = [each.text for each in result.content]
        if result.is_error:
            return "".join(texts)
        told = {} if len(texts) == 1 else {"told": texts[0]}
        assert result.structured_content == {**json.loads(texts[-1]), **told}  # who reads one of them misses nothing
        return result.structured_content


@contextmanager
def serve_http(url: str) -> Iterator[str]:
    """Serve the tools over streamable HTTP; give the address."""
    port = free_port()
    client = AsyncClient(url)
    app = make_http_app(client, "127.0.0.1")
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
    """Ada's agent over each transport; over stdio it starts the command itself."""
    if request.param == "http":
        with serve_http(url) as address:
            yield http_agent(address, KEYS["ada"])
        return
    arguments = ["-m", "cloudsched", "mcp", "--url", url, "--key", KEYS["ada"]]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(McpClient(server)) as client:
        yield Agent(lambda ask: portal.call(ask, client))


class Caller:
    """Calls tools in this process, with a key of its own."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url
        self._key = key

    def __call__(self, tool: str, **arguments: Any) -> Any:  # noqa: ANN401 - the tool's answer
        """Return what a tool answers; a text if it is refused."""

        async def ask() -> dict[str, Any]:
            async with AsyncClient(self.url, key=self._key) as client:
                return await (await AgentTools.of(client)).call(tool, arguments)

        try:
            return asyncio.run(ask())
        except ToolRefused as refusal:
            return str(refusal)


@pytest.fixture
def ada(url: str, sim: Simulation) -> Caller:
    """Ada's tools. She is in Paris."""
    del sim
    caller = Caller(url, KEYS["ada"])
    caller("i_am_in", zone="Europe/Paris")
    return caller


@pytest.fixture
def open_url(url: str) -> Iterator[str]:
    """The address of an API that takes requests of this machine without a key."""
    del url
    with Simulation(make_app()) as other, serve_api_of(other.app) as address:
        yield address
