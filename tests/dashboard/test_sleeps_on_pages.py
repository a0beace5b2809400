"""When a run that sleeps was due, and in which zone its page says so."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, MINUTE

from cloudsched import App, Context, Schedule
from cloudsched.domain.in_words import say_clock
from cloudsched.testing import START

WAKES = START + 3 * DAY


@pytest.fixture
def app(app: App) -> App:
    @app.handler("naps")
    def naps(ctx: Context) -> None:
        ctx.sleep(WAKES)

    return app


def test_a_held_run_was_due_when_it_was_due(pages: Pages) -> None:
    """Not when its task was resumed between two pauses: its page and the API have the end of its sleep."""
    sim = pages.sim
    task = sim.app.create(owner="ada", handler="naps", schedule=Schedule.once(START + MINUTE))
    sim.advance(2 * MINUTE)
    sim.app.pause(task.id)
    sim.advance(4 * DAY)
    sim.app.resume(task.id)
    sim.app.pause(task.id)
    (held,) = [each for each in sim.app.explain(task.id).findings if each.reason == "DUE"]
    assert held.at == WAKES
    assert f"It was due on {say_clock(WAKES)}" in pages.read(f"/tasks/{task.id}", "ada")


def test_a_page_has_one_zone(pages: Pages) -> None:
    """The chosen one, also in what the API says in the task's. Findings that differ in their times alone are folded."""
    sim = pages.sim
    rule = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:00:00", timezone="America/New_York")
    task = sim.app.create(owner="ada", handler="naps", schedule=rule, overlap="ALLOW")
    sim.advance(DAY)
    sim.app.pause(task.id)
    sim.advance(4 * DAY)
    page = (
        pages.words(f"/tasks/{task.id}?tz=Asia/Tokyo", "ada")
        .partition('aria-label="Why"')[2]
        .partition("</section>")[0]
    )
    assert f"{say_clock(WAKES.astimezone(ZoneInfo('Asia/Tokyo')))}, and waits" in page
    assert not re.findall(r"at \d\d:\d\d \(([^)]*)\)", page), "its head names it"
    assert page.count("and starts nothing until") == 1, "what stands in the headline is no evidence of it"
    assert re.search(r"<summary>\d\d more like it</summary>", page)
