"""Forms in a real browser: what is typed is read back, and the keyboard is enough."""

from __future__ import annotations

import re

from tests.dashboard.browser.conftest import Site, Visitor

MOST_TABS = 60


def test_a_task_is_made_with_the_keyboard_while_its_schedule_is_read_back(tour: Visitor, site: Site) -> None:
    """The next ten instants appear while typing, the focus stays, and Enter on the button creates the task."""
    page = tour.go("new?handler=report")
    page.locator("[name=title]").focus()
    page.keyboard.type("Made by keys")
    page.keyboard.press("Tab")
    page.keyboard.type("every day at 9:00")
    page.locator("#preview tbody tr").first.wait_for()
    assert page.locator("#preview tbody tr").count() == 10
    assert "09:00" in page.locator("#preview b").inner_text()
    assert page.evaluate("document.activeElement.name") == "schedule"
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "create":
            break
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"^Created\.")).wait_for()
    found = site.call("GET", "/v1/tasks?handler=report&pageSize=500")["tasks"]
    [made] = [task for task in found if task["title"] == "Made by keys"]
    assert made["id"] in page.url


def test_what_is_wrong_appears_while_typing_and_goes_again(tour: Visitor) -> None:
    """At its field, named for those who do not see it; nothing is stored, and no console complains."""
    page = tour.go("new?handler=report")
    zone = page.locator("[name=timezone]")
    page.locator("[name=schedule]").fill("every day at 9:00")
    zone.fill("Europe/Atlantis")
    page.locator("[name=timezone][aria-invalid=true]").wait_for()
    described = zone.get_attribute("aria-describedby") or ""
    assert "Atlantis" in page.locator(f"#{described.split()[-1]}").inner_text()
    zone.fill("Europe/Paris")
    page.locator("[name=timezone]:not([aria-invalid])").wait_for()
    assert page.locator(f"#{described.split()[-1]}").inner_text() == ""
