"""The Python of reference/tasks.md, and of the change of code in guides/workflows.md, runs as it stands there."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.doc_blocks import read_section

from cloudsched import App, Context, EventSender, NotAwaited, Schedule
from cloudsched.testing import START, Simulation

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "tasks.md").read_text("utf-8")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
DECLARED, SENDER = PYTHON.findall(REFERENCE)
CHANGING = read_section(DOCS / "guides" / "workflows.md", "Change the code of a workflow that is under way")
(VERSION,) = PYTHON.findall(CHANGING)
CALLS = re.findall(r"`(ctx\.call\([^`]*\))`", REFERENCE)[1:]


class Summary(BaseModel):
    """What a call is given."""

    parts: list[int]
    by: str


@pytest.fixture
def app(app: App) -> App:
    """Return an app with the handlers that the page calls."""

    @app.handler("publish")
    def publish(summary: Summary) -> Summary:
        return summary

    @app.handler("render")
    def render(payload: dict[str, Any]) -> str:
        return f"rendered {payload}"

    return app


def test_a_declared_event_is_what_the_handler_gets() -> None:
    app = App()
    exec(DECLARED, {"app": app, "BaseModel": BaseModel, "Context": Context, "timedelta": timedelta})  # noqa: S102 - our own
    with Simulation(app) as sim:
        task = app.create(owner="ada", handler="invoice")
        sim.advance(timedelta(minutes=1))
        app.send_event(task.id, "decision", {"approved": True})
        sim.advance(timedelta(minutes=1))
        assert [each.content for each in sim.executions(task.id)] == ["paid"]


@pytest.mark.parametrize("call", CALLS)
def test_each_call_that_the_page_shows_can_be_made(app: App, call: str) -> None:
    """With the options as they are written there."""
    given = {"payload": Summary(parts=[1], by="ada"), "film": {"title": "Metropolis"}}

    @app.handler("work")
    def work(ctx: Context) -> Any:  # noqa: ANN401 - whatever is called returns
        return eval(call, {**given, "ctx": ctx}).result()  # noqa: S307 - our own page

    with Simulation(app) as sim:
        sim.add_worker("gpu")
        task = app.create(owner="ada", handler="work", schedule=Schedule.once(START))
        sim.run_until_idle()
        assert [one.status for one in sim.executions(task.id)] == ["SUCCEEDED"]


def test_changed_code_follows_its_newest_version(app: App) -> None:
    """An execution that comes there for the first time does."""
    names = {"better_report": lambda: "better", "report": lambda: "old"}

    @app.handler("work")
    def work(ctx: Context) -> None:
        exec(VERSION, {**names, "ctx": ctx})  # noqa: S102 - our own page

    with Simulation(app) as sim:
        task = app.create(owner="ada", handler="work", schedule=Schedule.once(START))
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
    assert [step.result for step in execution.steps] == [2, "better"]


def test_the_example_of_senders_does_as_it_says(app: App) -> None:
    """An owner's event does not count where an admin's is asked for; the handler learns who sent the one that does."""

    @app.handler("decide")
    def decide(ctx: Context) -> str:
        exec(SENDER, {"ctx": ctx})  # noqa: S102 - the page's own code
        return "decided"

    with Simulation(app) as sim:
        task = app.create(owner="ada", handler="decide", schedule=Schedule.once(START))
        sim.advance(timedelta(seconds=1))
        with pytest.raises(NotAwaited):
            app.send_event(task.id, "approved", "forged", sender=EventSender(role="owner", subject="user:ada"))
        assert app.get(task.id).status == "ACTIVE"
        app.send_event(task.id, "approved", "yes", sender=EventSender(role="admin", subject="key:root"))
        sim.advance(timedelta(seconds=1))
        assert [message.body for message in sim.inbox("ada")] == ["by key:root"]
