"""The Python of docs/guides/handlers.md runs as it stands there."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from cloudsched import App, Schedule
from cloudsched.testing import START, Simulation

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "handlers.md").read_text("utf-8")
PLAIN, _, EXAMPLE, OWN_CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


class Close(BaseModel):
    """What the example is given."""

    account: str


class Invoice(BaseModel):
    """What its step returns."""

    parts: list[dict[str, int]]


class AsyncClient:
    """A client that answers without a network."""

    async def get(self, url: str) -> SimpleNamespace:
        assert url == "https://bank.example/a1"
        return SimpleNamespace(content=b'{"parts": [{"n": 1}, {"n": 2}]}')


@pytest.mark.parametrize("replay", [False, True])
def test_the_example_runs(*, replay: bool) -> None:
    """It fetches, calls, sleeps, waits for its approval and publishes."""
    names: dict[str, Any] = {
        "httpx": SimpleNamespace(AsyncClient=AsyncClient),
        "timedelta": timedelta,
        "Close": Close,
        "Invoice": Invoice,
    }
    exec(EXAMPLE, names)  # noqa: S102 - our own page
    app: App = names["app"]

    @app.handler("summarise")
    async def summarise(payload: dict[str, int]) -> int:
        return payload["n"] * 10

    @app.handler("publish")
    def publish(payload: dict[str, object]) -> str:
        return f"{payload['parts']} by {payload['by']}"

    with Simulation(app, replay=replay) as sim:
        fields: dict[str, Any] = {"title": "Close", "handler": "close-month", "payload": {"account": "a1"}}
        task = app.create(owner="ada", schedule=Schedule.once(START), **fields)
        sim.advance(timedelta(days=46))
        app.send_event(task.id, "approved", {"by": "grace"})
        sim.run_until_idle(timedelta(days=9))
        (execution,) = sim.executions(task.id)
        assert execution.content == "[10, 20] by grace", execution.error


def test_the_plain_example_runs() -> None:
    """Its owner gets the message."""
    names: dict[str, Any] = {}
    exec(PLAIN, names)  # noqa: S102 - our own page
    with Simulation(names["app"]) as sim:
        names["sync"].run_now(names["Sync"](account="a1"), owner="ada")
        sim.run_until_idle()
        assert [each.body for each in sim.inbox("ada")] == ["2 pages"]


def test_own_code_creates_on_its_loop() -> None:
    """The second example runs, with an app of its own."""
    app, ran = App(), []

    @app.handler("publish")
    def publish(payload: dict[str, list[str]]) -> None:
        ran.append(payload["parts"])

    names: dict[str, Any] = {"app": app}
    exec(OWN_CODE, names)  # noqa: S102 - our own page
    with Simulation(app) as sim, asyncio.Runner() as runner:
        task_id = runner.run(names["publish_later"](["a"], "ada"))
        assert app.get(task_id).owner == "ada"
        sim.advance(timedelta(days=2))
    assert ran == [["a"]]
