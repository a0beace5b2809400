"""Questions about a day and about a run, with the clicks counted that their answers take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.dashboard.browser.conftest import Site, Visitor
from tests.harness import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator


class Clicks:
    """Clicks, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, target: Locator) -> None:
        target.click()
        self.count += 1


def test_why_not_on_good_friday(tour: Visitor, site: Site) -> None:
    """From the task's page in two clicks and a date: the calendar's day is named, with what would have been due."""
    days = {"days": [{"date": "2027-04-02", "name": "Good Friday"}]}
    site.call("PUT", "/v1/calendars/holidays", days)
    rule = {"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", "dtstart": "2027-03-20T09:00:00", "timezone": "Europe/Paris"}
    task = site.create("payroll", schedule={**rule, "calendars": [{"id": "holidays"}]})
    page, click = tour.go(f"tasks/{task}"), Clicks()
    click(page.get_by_text("Why, on another day?"))
    page.get_by_label("Day, in Europe/Paris").fill("2027-04-02")
    click(page.get_by_role("button", name="Ask why"))
    page.get_by_text("Good Friday").first.wait_for()
    assert click.count <= 2
    assert "on=2027-04-02" in page.url, "it can be sent to somebody"


def test_what_did_a_run_get_as_input(tour: Visitor, site: Site) -> None:
    """From the task's page in one click, also if an edit has given the task another payload since."""
    task = site.create("priced", handler="echo", payload={"limit": "1"})
    site.call("POST", f"/v1/tasks/{task}/trigger", {"payload": {"limit": "17"}})
    wait_until(lambda: site.call("GET", f"/v1/tasks/{task}/executions")["executions"])
    site.call("PATCH", f"/v1/tasks/{task}", {"payload": {"limit": "2"}})
    page, click = tour.go(f"tasks/{task}"), Clicks()
    click(page.get_by_role("table", name="Executions").locator("tbody a").first)
    page.get_by_role("heading", name="What its handler got").wait_for()
    assert '"limit": "17"' in page.get_by_label("Payload", exact=True).inner_text()
    assert click.count == 1
