"""What waits longer than the queue's 30 days says on its pages that hops carry it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.dashboard.role_pages import Pages

from cloudsched import App, Context, Settings
from cloudsched.testing import START

DAY = timedelta(days=1)


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("naps")
    def naps(ctx: Context, payload: dict[str, int]) -> None:
        ctx.sleep(timedelta(days=payload.get("days", 1)))

    return app


@pytest.mark.parametrize(("days", "words"), [(75, "2 or 3 hops carry the dispatch that is due on "), (3, "")])
def test_a_long_sleep_shows_its_hops(pages: Pages, days: int, words: str) -> None:
    """On the page of the task and of the execution, to everybody who may see them; a short one has none."""
    at = START + timedelta(minutes=1)
    task = pages.sim.app.create(owner="ada", title="T", handler="naps", schedule=at, payload={"days": days})
    pages.sim.advance(timedelta(minutes=2))
    (run,) = pages.sim.app.get(task.id).runs
    for who in ("ada", "admin", "viewer", "reader"):
        for path in (f"/tasks/{task.id}", f"/tasks/{task.id}/executions/{run.execution_id}"):
            text = pages.get(who, path).text
            assert ("hops carry" in text) == bool(words)
            assert words in text


def test_a_schedule_far_ahead_shows_its_hops(pages: Pages) -> None:
    """On the page of the task."""
    task = pages.sim.app.create(owner="ada", title="T", handler="naps", schedule=START + 100 * DAY)
    assert "3 or 4 hops carry the dispatch that is due on 2027-04-11" in pages.get("ada", f"/tasks/{task.id}").text
