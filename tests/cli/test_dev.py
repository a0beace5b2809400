"""``cloudsched dev`` on the command line: what it refuses before it starts anything, and what its log shows."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult
from tests.harness import request
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.cli import dev as dev_command
from cloudsched.cli import log_output
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import run_stack
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api


def test_an_internal_error_is_answered_and_logged(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log line belongs to no execution, and the formatter expects none: the response stays the problem document."""

    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    log, heard = logging.getLogger(), io.StringIO()
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "level", log.level)
    monkeypatch.setattr("sys.stderr", heard)
    log_output.configure_stack_logging(MovableClock(sim.now, frozen=True))
    monkeypatch.setattr(type(sim.app), "get", fail)
    response = serve_api(sim.app, Request.from_values("/v1/tasks/t", environ_base={"REMOTE_ADDR": "127.0.0.1"}))
    assert (response.status_code, response.mimetype) == (500, "application/problem+json")
    assert json.loads(response.get_data())["title"] == "Internal error"
    assert "RuntimeError: ours" in heard.getvalue()


def test_the_exit_code_is_that_of_the_command(
    run_command: Callable[..., CommandResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a shell has it: what COMMAND exits with, 128 plus a signal that ends it, 127 if there is no such command."""
    monkeypatch.chdir(tmp_path)
    for command, code in ((("sh", "-c", "exit 7"), 7), (("sh", "-c", "kill -9 $$"), 137), (("no-such-command",), 127)):
        assert run_command("dev", "--store", "sqlite", "--", *command).code == code, command


def test_a_taken_port_is_reported(
    run_command: Callable[..., CommandResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second stack on the same port says so and exits with 2; the first one keeps running."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dev_command, "wait_for_signal", lambda: pytest.fail("it runs beside the first"))
    with run_stack(App(), base=Settings(), store="sqlite") as first:
        for option, address in (("--port", first.url), ("--tasks-port", first.emulator.address)):
            ports = {"--port": "0", "--tasks-port": "0", option: address.rpartition(":")[2]}
            said = run_command("dev", "--store", "sqlite", *(word for pair in ports.items() for word in pair))
            assert said.code == 2, option
            assert "cannot listen" in said.err.lower()
            lines = [line for line in (said.out + said.err).splitlines() if "time zone data" not in line]
            assert len(lines) == 1
        assert request(first.url, "GET", "/v1/tasks").status == 200
