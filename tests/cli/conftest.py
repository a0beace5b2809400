"""Fixtures for commands: a simulation's API on a free port, and functions that type commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import BaseModel
from werkzeug.wrappers import Request

from cloudsched import App, Context
from cloudsched.adapters.clocks import ManualClock
from cloudsched.cli import main as cli
from cloudsched.cli import next as next_module
from cloudsched.cli import run as run_module
from cloudsched.cli import tasks as tasks_module
from cloudsched.cli.doctor import api_checks
from cloudsched.client import connection
from cloudsched.errors import EventTimedOut
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import START, Simulation
from cloudsched.web.functions import serve_api

app = App()
broken: set[str] = set()
"""What is wrong with the handlers at the moment."""


class Name(BaseModel):
    """Whom to greet."""

    name: str


@app.handler("greet")
def greet(ctx: Context, payload: Name) -> str:
    """Return a greeting."""
    return f"hello {payload.name} from {ctx.task.owner}"


@app.handler("look-up", retry=0)
def look_up(ctx: Context) -> str:
    """Fail while the test has broken it; then wait for an event."""
    if "look-up" in broken:
        raise KeyError("x")
    try:
        ctx.wait_for("word")
    except EventTimedOut:
        return "none"
    return "heard"


@app.handler("shout", retry=1)
def shout() -> None:
    """Fail with words that a terminal should not be given as they are."""
    raise ValueError("first line\nsecond\x1b[2J line")


@pytest.fixture(autouse=True)
def _shorten_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat requests to an API that does not answer without a pause, and look often whether something has ended."""
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.0)
    for module in (tasks_module, api_checks, run_module):
        monkeypatch.setattr(module, "POLL_SECONDS", 0.01)


@pytest.fixture(autouse=True)
def _preview_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `cloudsched next` begin where simulations do, whatever day it is."""
    monkeypatch.setattr(next_module, "SystemClock", lambda: ManualClock(START))


@pytest.fixture(name="app")
def reset_app() -> App:
    """The app with the handlers above, none of them broken."""
    broken.clear()
    return app


@pytest.fixture(autouse=True)
def _put_process_back(own_process: None) -> None:
    """Commands configure logging, and import what users have written."""


@contextmanager
def serve_api_of(app: App) -> Iterator[str]:
    """Serve its API; give the address."""

    @Request.application
    def answer(request: Request) -> Any:  # noqa: ANN401 - whatever it answers
        return serve_api(app, request)

    with WebServer(answer) as server:
        server.serve()
        yield f"http://{server.address}"


@pytest.fixture
def url(sim: Simulation) -> Iterator[str]:
    """The address of its API."""
    with serve_api_of(sim.app) as address:
        yield address


class CommandResult:
    """The output and the exit code of a command."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., CommandResult]:
    """Run a command through `main`, as a shell does: `main` prints errors. Output to a pipe has no colours."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["cloudsched", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output = capsys.readouterr()
        return CommandResult(ended.value.code or 0, output.out, output.err)

    return run


@pytest.fixture
def tasks(run_command: Callable[..., CommandResult], url: str) -> Callable[..., CommandResult]:
    """Type a `cloudsched tasks` command."""
    return lambda *words: run_command("tasks", "--url", url, *words)


@pytest.fixture
def calendars(run_command: Callable[..., CommandResult], url: str) -> Callable[..., CommandResult]:
    """Type a `cloudsched admin calendars` command."""
    return lambda *words: run_command("admin", "calendars", "--url", url, *words)
