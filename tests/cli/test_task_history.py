"""What `cloudsched tasks` shows of a task's past and future: steps, progress, tracebacks, occurrences; at any width."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.cli.conftest import CommandResult
from tests.instants import DAY, HOUR

from cloudsched import App, Context, Schedule
from cloudsched.testing import Simulation

Tasks = Callable[..., CommandResult]

DAILY = ("--rrule", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "--tz", "Europe/Paris")
GREET = ("create", "Hello", "--owner", "ada", "--handler", "greet", "--payload", '{"name": "Ada"}', "--id", "t")


@pytest.fixture
def film(app: App) -> Iterator[None]:
    """A durable handler that reports progress, does two steps, calls another one, and waits."""

    def ask() -> str:
        raise KeyError("the shop is closed")

    @app.handler("film", retry=0)
    def film(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        ctx.progress("half way")
        ctx.step("cut", lambda: {"reels": 3})
        ctx.call("greet", payload={"name": "Grace"}).result()
        ctx.sleep(DAY)
        return ctx.step("sell", ask)

    yield
    app.container.registry.registrations.handlers.pop("film")  # the app is shared by the module


@pytest.mark.usefixtures("film")
@pytest.mark.parametrize("command", ["logs", "tree"])
def test_steps_and_progress_are_shown(command: str, tasks: Tasks, sim: Simulation) -> None:
    """While it waits, and after it has failed, each step has its number, kind, name, status and result."""
    sim.app.create(owner="ada", title="Film", handler="film", schedule=Schedule.once(sim.now), id="f")
    sim.advance(HOUR)
    waiting = tasks(command, "f").out
    for words in ("half way", '1. step cut  SUCCEEDED  {"reels": 3}', "2. call greet  SUCCEEDED", "3. sleep  WAITING"):
        assert words in waiting
    sim.advance(2 * DAY)
    failed = tasks(command, "f").out
    assert re.search(r"4\. step sell  FAILED  KeyError: .*the shop is closed", failed)
    assert "Traceback (most recent call last):" in failed
    assert "in ask" in failed


def test_why_says_one_sentence_first(tasks: Tasks) -> None:
    """The status and the reason, then the evidence; as JSON what the API says."""
    tasks(*GREET, *DAILY)
    tasks("trigger", "t")
    status, *others = tasks("why", "t").out.splitlines()
    assert status.startswith(("ACTIVE: The run that was triggered starts", "ACTIVE: It was due"))
    assert others[0].startswith("  - The next occurrence, on Fri 1 Jan 2027 at 09:00 (Europe/Paris), waits for the end")
    assert json.loads(tasks("why", "t", "--json").out)["findings"][1]["reason"] == "OVERLAP"
