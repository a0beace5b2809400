"""``cloudsched tasks logs ID --execution EXECUTION``: what it has logged, what it logs meanwhile, and for whom."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.cli.conftest import CommandResult

from cloudsched import App, Context
from cloudsched.cli import output
from cloudsched.testing import Simulation

Tasks = Callable[..., CommandResult]

log = logging.getLogger("tests.talk")
log.setLevel(logging.INFO)
MINUTE = timedelta(minutes=1)


@pytest.fixture(name="app")
def make_app() -> App:
    """An app with handlers that log, wait, and log again; the log of one is its owner's, too."""
    app = App()

    def talk(ctx: Context) -> str:
        """Log before and after an event."""
        log.info("it begins")
        word = ctx.wait_for("word")
        log.warning("it heard %s\x1b[2J", word)
        return "done"

    app.handler("talk", access="users", logs="owner")(talk)
    return app


def start(sim: Simulation, handler: str) -> str:
    """Run a task of Ada's until it waits; return the execution."""
    sim.app.create(id="t", owner="ada", title="T", handler=handler, schedule=sim.clock.now() + MINUTE)
    sim.advance(2 * MINUTE)
    return sim.executions("t")[0].id


def test_following_ends_when_the_execution_ends(tasks: Tasks, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is printed once, as it comes, without what a terminal would obey; then the command ends by itself."""
    execution = start(sim, "talk")
    polls = []

    def wait(seconds: float) -> None:
        polls.append(seconds)
        assert len(polls) < 5, "it follows an execution that has ended"
        if len(polls) == 2:
            sim.app.send_event("t", "word", "hello")
            sim.advance(MINUTE)

    monkeypatch.setattr(output, "time", SimpleNamespace(sleep=wait))
    said = tasks("logs", "t", "--execution", execution, "--follow")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert [line.partition("  ")[2] for line in lines] == ["it begins", "WARNING it heard hello [2J"], said.out
    assert len(polls) == 2


def test_without_following_it_prints_what_there_is(tasks: Tasks, sim: Simulation) -> None:
    """Once, though the execution goes on; as JSON a line each."""
    execution = start(sim, "talk")
    assert tasks("logs", "t", "--execution", execution).out.endswith("  it begins\n")
    (line,) = tasks("logs", "t", "--execution", execution, "--json").out.splitlines()
    assert json.loads(line)["text"] == "it begins"
