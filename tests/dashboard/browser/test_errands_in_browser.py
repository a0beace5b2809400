"""What somebody who is called at night has to do, in as few clicks as that may take."""

from __future__ import annotations

from datetime import timedelta

from playwright.sync_api import Locator, expect
from tests.dashboard.browser.conftest import Site, Visitor
from tests.dashboard.conftest import NOW
from tests.harness import wait_until


class Clicks:
    """Clicks, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def on(self, target: Locator) -> None:
        """Click on something."""
        target.click()
        self.count += 1


def wait_for_failures(site: Site, count: int) -> None:
    """Wait until so many runs of the handler have failed."""
    path = f"/v1/executions/failures?handler=fragile&from={(NOW - timedelta(hours=1)).isoformat().replace('+', '%2B')}"
    wait_until(lambda: site.call("GET", path)["count"] >= count, f"{count} runs have failed")


def test_what_failed_in_the_last_hour_is_retried_in_three_clicks(visitor: Visitor, site: Site) -> None:
    """The question names the count and the first ten; the answer is a task that shows how far it is."""
    for number in range(23):
        body = {"id": f"errand-{number}", "title": f"Errand {number}", "owner": "ada", "handler": "fragile"}
        site.call("POST", "/v1/tasks", body)
    wait_for_failures(site, 23)
    page, clicks = visitor.open(), Clicks()
    expect(page.locator("#need + *, section[aria-labelledby=need]").first).to_contain_text("23 tasks of fragile")
    clicks.on(page.get_by_role("link", name="Runs"))
    clicks.on(page.get_by_role("button", name="Retry all 23"))
    expect(page.get_by_role("heading", name="Retry 23 executions?")).to_be_visible()
    expect(page.get_by_text("and 13 more")).to_be_visible()
    assert page.locator("table tbody tr").count() == 10
    clicks.on(page.get_by_role("button", name="Retry 23 executions"))
    expect(page.get_by_text("Started. This task retries them")).to_be_visible()
    expect(page.get_by_text('"changed": 23')).to_be_visible()
    assert clicks.count == 3
