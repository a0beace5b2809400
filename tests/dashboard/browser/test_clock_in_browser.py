"""The clock of a local stack, dragged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.dashboard.browser.test_live_in_browser import poll
from tests.dashboard.conftest import GATE

from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from tests.dashboard.browser.conftest import Site, Visitor

CHANGE = datetime(2027, 3, 28, 1, tzinfo=UTC)
"""Clocks go forward in Paris."""


def test_keys_plan_and_enter_goes(tour: Visitor, site: Site) -> None:
    """On the slider an arrow is an hour and Page a day; nothing moves before Enter; then what was due has run."""
    page = tour.go("time?tz=Europe/Paris")
    before = site.stack.clock.now()
    task = site.create("due-on-the-way", schedule={"at": (before + timedelta(minutes=90)).isoformat()})
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert site.stack.clock.now() == before
    page.keyboard.press("Enter")
    page.get_by_text("The clock was moved.").wait_for()
    assert abs(site.stack.clock.now() - before - timedelta(hours=2)) < timedelta(seconds=1)
    assert site.call("GET", f"/v1/tasks/{task}")["status"] == "COMPLETED"
    slider = page.get_by_role("slider")  # another one: the page has changed
    slider.focus()
    planned = int(slider.input_value())
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert int(slider.input_value()) - planned == 5 * 3600


def test_the_clock_is_dragged_over_a_clock_change(tour: Visitor, site: Site) -> None:
    """With the mouse, to the other side: the planned time says its offset, before and after, and so does the clock."""
    page = tour.go("time?tz=Europe/Paris&reach=day")
    if site.stack.clock.now() > CHANGE:
        pytest.fail("The story begins before the clock change.")
    page.get_by_text("clocks go forward on 28 Mar").first.wait_for()
    box = page.get_by_role("slider").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 14, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.1, y, steps=3)
    assert " +0100" in page.locator("#planned").inner_text()
    page.mouse.move(box["x"] + box["width"] * 0.9, y, steps=5)
    page.mouse.up()
    assert " +0200" in page.locator("#planned").inner_text()
    page.get_by_role("button", name="Go there").click()
    page.get_by_text("The clock was moved.").wait_for()
    assert site.stack.clock.now() > CHANGE
    assert "+0200" in page.locator("#clock").inner_text()
    # The slider begins at the new now: what has passed cannot be planned any more.
    assert int(page.get_by_role("slider").get_attribute("min") or 0) >= int(CHANGE.timestamp())


def test_what_is_planned_survives_what_is_new(tour: Visitor, site: Site) -> None:
    """When the page changes meanwhile, the slider still says where it stands."""
    page = tour.go("time?tz=UTC", clock=True)
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    before = page.locator("#planned").inner_text()
    site.create("new-while-planning", schedule={"at": (site.stack.clock.now() + timedelta(days=1)).isoformat()})
    poll(page)
    page.get_by_role("link", name="new-while-planning").wait_for()
    assert before
    assert page.locator("#planned").inner_text() == before


def test_what_runs_on_the_way_appears_as_it_runs(tour: Visitor, site: Site) -> None:
    """While the clock is still moving, since a handler takes its time, what ran before that is in the list."""
    now = site.stack.clock.now()
    for name, handler, minutes in (("ran-on-the-way", "memo", 5), ("runs-on-the-way", "gated", 10)):
        site.create(name, handler=handler, schedule={"at": (now + timedelta(minutes=minutes)).isoformat()})
    page = tour.go("time?tz=UTC")
    try:
        page.get_by_role("button", name="+1 h", exact=True).click()
        page.get_by_role("table", name="What ran").get_by_role("link", name="ran-on-the-way").wait_for()
        assert page.get_by_text("The clock was moved.").count() == 0
        assert page.locator("main").get_attribute("aria-busy") == "true"
    finally:
        GATE.set()
    page.get_by_text("The clock was moved.").wait_for()
    page.locator("main:not([aria-busy])").wait_for()
    assert site.stack.clock.now() >= now + timedelta(hours=1)


def test_the_clock_is_frozen_and_let_run(tour: Visitor, site: Site) -> None:
    """By one button each, which says what it does."""
    page = tour.go("time?tz=UTC")
    page.get_by_role("button", name="Let the clock run").click()
    page.get_by_role("button", name="Freeze the clock").click()
    page.get_by_role("button", name="Let the clock run").wait_for()
    frozen = site.stack.clock.now()
    assert site.stack.clock.now() == frozen


def test_space_freezes_the_clock_and_lets_it_run(tour: Visitor, site: Site) -> None:
    """Wherever the focus is, but on a button, which it presses."""
    page = tour.go("time?tz=UTC")
    page.keyboard.press("Space")
    page.get_by_role("button", name="Freeze the clock").wait_for()
    assert str(site.stack.clock.mode) == "running"
    page.get_by_role("slider").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Let the clock run").wait_for()
    assert str(site.stack.clock.mode) == "frozen"
    page.get_by_role("button", name="Let the clock run").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Freeze the clock").click()
    page.get_by_role("button", name="Let the clock run").wait_for()


def test_only_who_may_act_moves_the_clock(tour: Visitor) -> None:
    """Beside a deployment there is no clock, and no way to it."""
    page = tour.go("", Role.VIEWER)
    assert page.get_by_role("link", name="Time").count() == 0
