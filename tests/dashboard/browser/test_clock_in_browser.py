"""The clock of a local stack, moved on Home."""

from __future__ import annotations

from datetime import timedelta

from tests.dashboard.browser.conftest import Site, Visitor
from tests.dashboard.conftest import GATE


def test_the_next_occurrence_is_a_key_away(tour: Visitor, site: Site) -> None:
    """`n` goes to what is due next, and it has run; `h` goes on by an hour."""
    before = site.stack.clock.now()
    at = before + timedelta(minutes=1)
    task = site.create("due-on-the-way", schedule={"at": at.isoformat()})
    page = tour.go("")
    page.get_by_role("button", name="To the next occurrence").wait_for()
    page.keyboard.press("n")
    page.get_by_text("The clock was moved.").wait_for()
    assert abs(site.stack.clock.now() - at) < timedelta(seconds=1)
    assert site.call("GET", f"/v1/tasks/{task}")["status"] == "COMPLETED"
    page.keyboard.press("h")
    page.wait_for_function("() => !document.querySelector('main[aria-busy]')")
    assert site.stack.clock.now() - at >= timedelta(hours=1)


def test_what_runs_on_the_way_appears_as_it_runs(tour: Visitor, site: Site) -> None:
    """While the clock is still moving, since a handler takes its time, what has begun is no longer next."""
    now = site.stack.clock.now()
    site.create("runs-on-the-way", handler="gated", schedule={"at": (now + timedelta(minutes=10)).isoformat()})
    page = tour.go("?tz=UTC")
    page.get_by_role("link", name="runs-on-the-way").wait_for()
    try:
        page.get_by_role("button", name="+1 h").click()
        page.get_by_role("link", name="runs-on-the-way").wait_for(state="hidden")  # it is no longer next
        assert page.get_by_text("The clock was moved.").count() == 0
        assert page.locator("main").get_attribute("aria-busy") == "true"
    finally:
        GATE.set()
    page.get_by_text("The clock was moved.").wait_for()
    page.locator("main:not([aria-busy])").wait_for()
    assert site.stack.clock.now() >= now + timedelta(hours=1)
