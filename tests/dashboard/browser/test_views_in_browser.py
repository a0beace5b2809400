"""Each view in a real browser: no console complains, axe finds nothing, and it fits, in both colour schemes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from tests.dashboard.browser.conftest import Site, Visitor

VIEWS = {
    "": "Home",
    "tasks": "Tasks",
    "tasks?q=nothing-like-it": "Tasks",
    "tasks/weekday-report": "Weekday report",
    "tasks/sync": "Sync catalogue",
    "new": "New task",
    "new?handler=report": "New task",
    "tasks/weekday-report/edit": "Edit Weekday report",
    "tasks/weekday-report/run": "Run Weekday report once",
    "bulk?action=delete&owner=ada": "Delete",
    "calendar?week=2027-03-22": "Calendar",
    "calendar?day=2027-03-28&tz=task": "Calendar",
    "queues": "Queues",
    "locks": "Locks",
    "outbox?owner=ada": "Outbox",
    "time": "Time",
}
"""Each view's address, and how its heading begins. Add the address of a new view here."""
EXECUTIONS = ("monthly-close", "sync")
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

BEYOND = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
    .filter(each => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('pre, .views'))
    .map(each => each.outerHTML.slice(0, 200))"""
"""What stands out of a page that scrolls sideways."""


def find_violations(page: Page, *rules: str) -> list[str]:
    """Return what axe finds, of some rules or of all of WCAG 2.2 AA and its best practices."""
    only: dict[str, Any] = {"type": "rule", "values": list(rules)} if rules else {"type": "tag", "values": STANDARDS}
    found = Axe().run(page, options={"runOnly": only, "resultTypes": ["violations"]}).response["violations"]
    return [f"{each['id']}: {node['html'][:200]} {node['failureSummary']}" for each in found for node in each["nodes"]]


def check(page: Page) -> None:
    """Check a page in both colour schemes, wide and narrow."""
    assert page.locator("h1").count() == 1
    assert page.locator("main").get_attribute("aria-busy") is None
    assert find_violations(page) == []
    assert page.evaluate(BEYOND) == [], "it scrolls sideways"
    page.emulate_media(color_scheme="dark")
    assert find_violations(page, "color-contrast") == []
    for width in (360, 320):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate(BEYOND) == [], f"it scrolls sideways at {width} px"
    assert find_violations(page, "color-contrast", "target-size", "scrollable-region-focusable") == []
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("path", VIEWS)
def test_each_view_is_fit_for_everybody(visitor: Visitor, path: str) -> None:
    """One h1 that names the view; axe finds nothing; no sideways scrolling at 360 and 320 px; light and dark."""
    page = visitor.open(path)
    assert page.locator("h1").inner_text().startswith(VIEWS[path])
    check(page)


@pytest.mark.parametrize("task", EXECUTIONS)
def test_an_execution_is_fit_for_everybody(visitor: Visitor, site: Site, task: str) -> None:
    """The same for executions: one that is suspended and one that failed."""
    executions = site.call("GET", f"/v1/tasks/{task}/executions")["executions"]
    check(visitor.open(f"tasks/{task}/executions/{executions[0]['id']}?step=1"))


@pytest.mark.parametrize("role", [Role.VIEWER, Role.USER, Role.READER])
def test_each_role_sees_what_it_may(visitor: Visitor, role: Role) -> None:
    """Users and readers see their own tasks, viewers all; who may not act is told so, and no verb is drawn."""
    page = visitor.open("tasks", role)
    assert page.get_by_role("link", name="Weekday report").count() == 1
    assert page.get_by_text("Sync catalogue").count() == (1 if role is Role.VIEWER else 0)
    page = visitor.open("tasks/weekday-report", role)
    may_act = role is Role.USER
    assert page.get_by_text("You may look, and not act.").count() == (0 if may_act else 1)
    assert (page.locator("main form[action*=verbs]").count() > 0) == may_act
    assert find_violations(page) == []


def test_what_is_not_there_is_a_page_of_its_own(visitor: Visitor) -> None:
    """An unknown address says so, in a page that is fit for everybody."""
    visitor.expect_complaint("404")
    page = visitor.open("tasks/nope")
    assert "nope" in page.locator("main").inner_text()
    assert find_violations(page) == []


def test_every_view_works_without_script(visitor: Visitor) -> None:
    """With script switched off, each view shows the same heading, and its filters and links work."""
    page = visitor.open("calendar?week=2027-03-22", java_script_enabled=False)
    page.get_by_label("Owner").fill("shop")
    page.get_by_role("button", name="Filter").click()
    assert "owner=shop" in page.url
    assert "week=2027-03-22" in page.url
    assert page.locator("svg a").count() > 0
    page.locator("#table a").first.click()
    assert page.locator("h1").inner_text()
