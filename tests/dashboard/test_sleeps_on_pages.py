"""Until a handler sleeps is shown like every other instant."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, MINUTE

from cloudsched import App, Context, Schedule, Settings
from cloudsched.domain.in_words import say_clock
from cloudsched.testing import START

WAKES = START + 3 * DAY


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("naps")
    def naps(ctx: Context) -> None:
        ctx.sleep(WAKES)

    return app


def test_a_sleep_ends_in_the_zone_of_its_page(pages: Pages) -> None:
    """On an execution's page and on its task's in the task's zone, on Home in that of the page; the API keeps UTC."""
    at, sim = START + MINUTE, pages.sim
    task = sim.app.create(
        owner="ada", title="T", handler="naps", schedule=Schedule.once(at, timezone="America/New_York")
    )
    sim.advance(2 * MINUTE)
    (run,) = sim.app.get(task.id).runs
    assert run.suspension is not None
    assert run.suspension.reason == f"sleeps until {WAKES.isoformat()}"
    zones = {
        f"tasks/{task.id}": "America/New_York",
        f"tasks/{task.id}/executions/{run.execution_id}": "America/New_York",
        f"tasks/{task.id}/executions/{run.execution_id}?tz=Asia/Tokyo": "Asia/Tokyo",
    }
    for path, zone in zones.items():
        text = pages.read(f"/{path}", "ada").replace("\N{NO-BREAK SPACE}", " ")
        shown = f"{WAKES.astimezone(ZoneInfo(zone)):%a %d %b %Y %H:%M %z}"
        assert f"It sleeps until {shown}." in text, path
        assert f"sleeps until {WAKES.isoformat()}" not in text, path


def test_a_held_run_was_due_when_it_was_due(pages: Pages) -> None:
    """Not when its task was resumed between two pauses: its page and the API have the end of its sleep."""
    sim = pages.sim
    task = sim.app.create(owner="ada", title="T", handler="naps", schedule=Schedule.once(START + MINUTE))
    sim.advance(2 * MINUTE)
    sim.app.pause(task.id)
    sim.advance(4 * DAY)
    sim.app.resume(task.id)
    sim.app.pause(task.id)
    (held,) = [each for each in sim.app.explain(task.id).findings if each.reason == "DUE"]
    assert held.at == WAKES
    assert f"It was due on {say_clock(WAKES)}" in pages.read(f"/tasks/{task.id}", "ada")
    sim.app.resume(task.id)
    sim.advance(MINUTE)
    assert sim.app.get(task.id).status == "COMPLETED"
