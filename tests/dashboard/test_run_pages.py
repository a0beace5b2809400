"""The page of a run says when it started, and went on, or that it never did."""

from __future__ import annotations

import re

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR

from cloudsched import App, Context, Schedule, Settings
from cloudsched.domain.documents.execution import ExecutionStatus


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("naps")
    def naps(ctx: Context) -> None:
        ctx.sleep(5 * HOUR)

    @app.handler("plain")
    def plain() -> None: ...

    return app


def read(pages: Pages, task_id: str, status: ExecutionStatus = ExecutionStatus.SUCCEEDED) -> str:
    run = next(each for each in pages.sim.executions(task_id) if each.status is status)
    return pages.read(f"/tasks/{task_id}/executions/{run.id}")


def test_a_run_that_never_started_has_nothing_that_a_handler_did(pages: Pages, app: App) -> None:
    """Neither attempts, a result, a log nor progress, as one that ran has, even if it returned nothing."""
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:00:00", timezone="UTC")
    app.create(id="naps", owner="ada", title="Naps", handler="naps", schedule=hourly)
    pages.sim.advance(8 * HOUR)
    ran, skipped = read(pages, "naps", ExecutionStatus.SUCCEEDED), read(pages, "naps", ExecutionStatus.SKIPPED)
    assert {"Result", "Progress", "Log"} <= {*re.findall("<h2[^>]*>([^<]*)</h2>", ran)}
    assert not {"Result", "Progress", "Log"} & {*re.findall("<h2[^>]*>([^<]*)</h2>", skipped)}
    assert "The handler returned nothing." in ran
    assert "It never started." in skipped
    for words in ("The handler returned", "has ended yet", "<dt>Started by</dt>"):
        assert words not in skipped


def test_an_attempt_that_waited_says_when_it_began_and_when_it_went_on(pages: Pages, app: App) -> None:
    app.create(id="naps", owner="ada", title="Naps", handler="naps")
    app.create(id="plain", owner="ada", title="Plain", handler="plain")
    pages.sim.advance(6 * HOUR)
    [run] = pages.sim.executions("naps")
    [attempt] = run.attempts
    assert run.started_at is not None
    table = re.sub(r"\s+", " ", read(pages, "naps").partition("<caption>")[2].partition("</table>")[0])
    began, went_on = re.findall('datetime="([^"]+)"', table)
    assert (began, went_on) == (run.started_at.isoformat(), attempt.started_at.isoformat())
    assert "went on" in table
    assert "went on" not in read(pages, "plain")
