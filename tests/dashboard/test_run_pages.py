"""The page of a run says when it started and went on, and has panels only for what there is."""

from __future__ import annotations

import logging
import re

import pytest
from pydantic import BaseModel
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR

from cloudsched import App, Context, Schedule
from cloudsched.domain.documents.execution import ExecutionStatus


class Note(BaseModel):
    text: str


@pytest.fixture
def app(app: App) -> App:
    @app.handler("full")
    def full(ctx: Context, note: Note) -> str:
        ctx.progress("half")
        logging.getLogger("ours").warning("a line")
        return note.text

    return app


def read(pages: Pages, task_id: str, status: ExecutionStatus = ExecutionStatus.SUCCEEDED) -> str:
    run = next(each for each in pages.sim.executions(task_id) if each.status is status)
    return pages.read(f"/tasks/{task_id}/executions/{run.id}")


PANELS = {"Payload", "Result", "Progress", "Log"}


def list_headings(text: str) -> set[str]:
    return {each.strip() for each in re.findall("<(?:h2|caption)[^>]*>([^<]*)</", text)}


def test_a_panel_is_there_only_if_it_has_something(pages: Pages, app: App) -> None:
    """A run that got, reported, logged, returned and delivered nothing has none of them, and one that did has all."""
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:00:00", timezone="UTC")
    app.create(id="naps", owner="ada", title="Naps", handler="rests", schedule=hourly)
    app.create(id="full", owner="ada", title="Full", handler="full", payload={"text": "x"}, delivery_channels=["EMAIL"])
    pages.sim.advance(8 * HOUR)
    assert list_headings(read(pages, "full")) >= PANELS
    assert "its schedule" not in read(pages, "full"), "it has none"
    for status in (ExecutionStatus.SUCCEEDED, ExecutionStatus.SKIPPED):
        assert not list_headings(read(pages, "naps", status)) & PANELS
    assert "Attempts</" not in read(pages, "naps", ExecutionStatus.SKIPPED)
