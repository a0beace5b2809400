"""Each view in a real browser: no console complains, axe finds nothing, it fits, and a keyboard is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dashboard.browser.conftest import Site, Visitor
from tests.dashboard.browser.fitness import BEYOND, DATE, LINES_OF, OVER, check, check_keyboard
from tests.harness import wait_until

from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator

UNNAMED = """() => [...document.querySelectorAll("tbody *")]
    .filter(each => getComputedStyle(each).overflow === "hidden" && !each.closest("svg, .vh"))
    .filter(each => each.scrollHeight > each.clientHeight || each.scrollWidth > each.clientWidth)
    .filter(each => each.title !== each.textContent.trim().replace(/\\s+/g, " "))
    .map(each => each.outerHTML.slice(0, 200))"""
VIEWS = {
    "": "Home",
    "tasks": "Tasks",
    "tasks?search=nothing-like-it": "Tasks",
    "tasks/weekday-report": "Weekday report",
    "tasks/weekday-report?on=2027-03-21": "Weekday report",
    "tasks/sync": "Sync catalogue",
    "tasks/monthly-close": "Monthly close",
    "new": "New task",
    "new?handler=report": "New task",
    "tasks/weekday-report/edit": "Edit Weekday report",
    "tasks/weekday-report/run": "Run Weekday report once",
    "bulk?action=pause&owner=ada": "Pause",
    "bulk?action=delete&owner=ada": "Delete",
    "calendar?week=2027-03-22": "Calendar",
    "calendar?day=2027-03-28": "Calendar",
    "calendar?month=2027-03": "Calendar",
    "runs": "Runs",
    "retry?handler=broken": "Retry",
    "queues": "Queues",
    "usage": "Usage",
    "actions": "Actions",
    "bulk?action=pause&status=ACTIVE": "Pause",
    "usage?by=handler": "Usage",
    "search?q=report": "Search",
    "audit": "Changes",
    "deliveries?owner=ada": "Deliveries",
    "people/ada": "ada",
}
"""Each view's address, and how its heading begins. Add the address of a new view here."""
EXECUTIONS = ("monthly-close", "sync")
PROBLEMS = {
    "tasks/nope": "Not found",
    "nothing": "Not found",
    "tasks/weekday-report/executions/nope": "Not found",
    "bulk?action=nope": "Not possible",
    "tasks?page=made-up": "Not possible",
}
"""Addresses that show a problem, and its heading."""


def find_box(found: Locator) -> FloatRect:
    """Return where an element stands, which has to be seen."""
    box = found.bounding_box()
    assert box is not None
    return box


@pytest.mark.parametrize("path", VIEWS)
def test_each_view_is_fit_for_everybody(tour: Visitor, path: str) -> None:
    """One h1 that names the view; axe finds nothing; no sideways scrolling; light and dark; Tab reaches everything."""
    page = tour.go(path)
    assert page.locator("h1").inner_text().startswith(VIEWS[path])
    check(page)
    check_keyboard(page)


@pytest.mark.parametrize("path", ["tasks", "tasks?status=ACTIVE&owner=ada", "runs", "due", "calendar"])
def test_the_first_row_is_on_the_first_screen_of_a_phone(tour: Visitor, path: str) -> None:
    """What a list is about comes before how it can be filtered, and each link is high enough for a finger."""
    page = tour.go(path)
    page.set_viewport_size({"width": 390, "height": 844})
    row = find_box(page.locator("main :is(table.list tbody tr, .week > li)").first)
    assert row["y"] + row["height"] <= 844, "the first row is below the first screen"
    lowest = "all => Math.min(...all.map(each => each.getBoundingClientRect().height))"
    assert page.locator("main tbody a:visible").evaluate_all(lowest) >= 24, "a finger misses a link"


def test_no_date_breaks_on_a_phone(tour: Visitor, site: Site) -> None:
    """Neither ``2030-01-01`` nor ``24 March 2031``, at any width of a phone."""
    site.create("dated-once")
    site.create("dated-weekly", schedule={"rrule": "FREQ=WEEKLY", "dtstart": "2031-03-24T09:00:00", "timezone": "UTC"})
    page = tour.go("tasks")
    for width in range(340, 440, 4):
        page.set_viewport_size({"width": width, "height": 844})
        lines = page.evaluate(LINES_OF, ["table.list", DATE])
        assert {date for date, _ in lines} >= {"2030-01-01", "24 March 2031"}
        assert all(count == 1 for _, count in lines), f"{width} px: {lines}"
    page = tour.go("tasks/dated-once")
    for width in range(340, 440, 20):
        page.set_viewport_size({"width": width, "height": 844})
        lines = page.evaluate(LINES_OF, ["dl.facts", DATE])
        assert lines
        assert all(count == 1 for _, count in lines), f"{width} px: {lines}"


def test_no_age_breaks_on_a_phone(tour: Visitor) -> None:
    """``2 d 15 h ago`` and ``in 17 min`` stand on one line, and nothing is wider than its panel for that."""
    page = tour.go("")
    for width in range(320, 440, 8):
        page.set_viewport_size({"width": width, "height": 844})
        lines = page.evaluate(LINES_OF, ["main", r"\d+\s(s|min|h|d)\sago"])
        assert lines
        assert all(count == 1 for _, count in lines), f"{width} px: {lines}"
        assert page.evaluate(BEYOND) == [], f"{width} px"


def test_what_waits_in_a_queue_fits_a_phone(tour: Visitor, site: Site) -> None:
    """Each table of the page within its panel, at any width of a phone."""
    site.create("waits-for-a-worker", pull={"queue": "gpu-of-long-name", "skill": "cuda"})
    site.call("POST", "/v1/tasks/waits-for-a-worker/trigger")
    page = tour.go("queues?queue=gpu-of-long-name")
    assert page.locator("tbody a", has_text="waits-for-a-worker").count() == 1
    name = "/v1/dispatch-queues/cloudsched"
    for state in ("PAUSED", "RUNNING"):
        site.call("PATCH", name, {"state": state})
        page.reload()
        page.get_by_text("dispatches").first.evaluate(
            "it => it.append(' At least 10,000 tasks are late and have not started.')"
        )
        for width in (*range(320, 400, 8), 768):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate(BEYOND) == [], f"{state}, {width} px"
            assert page.evaluate(OVER) == [], f"{state}, {width} px"


def test_no_number_of_a_day_parts_from_its_word(tour: Visitor) -> None:
    """Each has a line of its own, with its word, on a phone and on a wide screen."""
    page = tour.go("calendar?week=2027-03-22")
    for width in (320, 390, 430, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        lines = page.evaluate(LINES_OF, [".week", r"[\d,]+ [a-z]+"])
        assert any(fact.endswith(" succeeded") for fact, _ in lines)
        assert all(count == 1 for _, count in lines), f"{width} px: {lines}"
        assert page.evaluate(OVER) == [], f"{width} px"


def test_a_decision_is_made_in_the_row_of_its_text(tour: Visitor, site: Site) -> None:
    """From 1024 px on, the note and the buttons stand beside the text, and make the row no higher."""
    site.create("asks-to-pay", handler="decides")
    site.call("POST", "/v1/tasks/asks-to-pay/trigger")
    wait_until(lambda: site.call("GET", "/v1/tasks/asks-to-pay/executions?status=SUSPENDED")["executions"])
    page = tour.go("decisions")
    row = page.locator(".items > li", has_text="asks-to-pay")
    for width in (1024, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        text, approve, reject = (find_box(row.locator(each)) for each in ("> div", "[value=approve]", "[value=reject]"))
        note = find_box(row.get_by_label("Note"))
        assert text["x"] + text["width"] <= note["x"] < approve["x"] < reject["x"]
        assert find_box(row)["height"] < text["height"] + 24, f"{width} px"
        assert approve["y"] == reject["y"] < text["y"] + 12
        assert abs(note["y"] - approve["y"]) < 4


@pytest.mark.parametrize("width", [320, 390, 1024, 1281, 1400])
def test_menu_and_names_are_whole(tour: Visitor, width: int) -> None:
    """No view is cut from the menu, on two lines of a phone; who changed something is on one line."""
    page = tour.go("audit")
    page.set_viewport_size({"width": width, "height": 900})
    menu = page.locator(".views ul")
    assert menu.evaluate("each => each.scrollWidth <= each.clientWidth")
    assert find_box(menu)["height"] < 72
    if width > 640:
        assert page.locator("td.wide code").first.evaluate("each => each.getClientRects().length") == 1


@pytest.mark.parametrize("task", EXECUTIONS)
def test_an_execution_is_fit_for_everybody(tour: Visitor, site: Site, task: str) -> None:
    """The same for executions: one that is suspended and one that failed."""
    executions = site.call("GET", f"/v1/tasks/{task}/executions")["executions"]
    page = tour.go(f"tasks/{task}/executions/{executions[0]['id']}?step=1")
    check(page)
    check_keyboard(page)


def test_the_longest_run_breaks_no_page(tour: Visitor, site: Site) -> None:
    """Title, step, payload, result and error of any length, without a space, from 320 to 1440 pixels."""
    task = "i" * 128
    due = {"at": site.stack.clock.now().isoformat()}
    site.create(task, handler="wordy", title="T" * 500, payload={"text": "P" * 9000}, schedule=due)
    wait_until(lambda: site.call("GET", f"/v1/tasks/{task}/executions?status=FAILED")["executions"])
    (run,) = site.call("GET", f"/v1/tasks/{task}/executions")["executions"]
    for path in ("", f"/executions/{run['id']}?step=1", f"/executions/{run['id']}/compare?with={run['id']}"):
        page = tour.go(f"tasks/{task}{path}")
        check(page)
        assert page.locator(".crumbs code").first.evaluate("each => each.scrollWidth <= each.parentNode.clientWidth")
        if "compare" not in path:
            page.set_viewport_size({"width": 320, "height": 900})
            note, act = page.locator("main > .note"), page.locator("main > .note .btn").locator("visible=true").first
            assert find_box(act)["y"] - find_box(note)["y"] < 400, "an error stands in front of what can be done"
        page.set_viewport_size({"width": 1440, "height": 900})
        assert page.evaluate(BEYOND) == []
    assert page.locator("main").bounding_box()["height"] < 20_000


def test_the_longest_texts_break_no_list(tour: Visitor, site: Site) -> None:
    """Title, owner, label and error are cut in a row, which stays a row on a phone, whatever its words are."""
    owner, label = "o" * 128, f"{'k' * 31}={'v' * 31}"
    for number in range(3):
        task = f"longest-row-{number}"
        text = "E" * 2000 if number else "other " * 300
        site.create(task, handler="wordy", title="T" * 500, owner=owner, labels=[label], payload={"text": text})
        site.call("POST", f"/v1/tasks/{task}/trigger")
    wait_until(lambda: len(site.call("GET", f"/v1/executions?owner={owner}&status=FAILED")["executions"]) == 3)
    for path in (f"tasks?owner={owner}&label={label}", f"runs?owner={owner}", f"search?q={'T' * 200}"):
        page = tour.go(path)
        check(page)
        for width in (700, 768, 900, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(BEYOND) == []
            cut = page.locator(".num small").evaluate_all(
                "all => all.filter(each => each.scrollWidth > each.clientWidth)"
            )
            assert not cut, f"a date is cut at {width} px"
        page.set_viewport_size({"width": 360, "height": 900})
        heights = page.locator("table.list tbody tr").evaluate_all("all => all.map(each => each.offsetHeight)")
        assert len(heights) > 1
        assert max(heights) < 250, path
        assert page.evaluate(UNNAMED) == [], "what is cut is not whole under the pointer"


@pytest.mark.parametrize("path", PROBLEMS)
def test_a_problem_is_a_page_that_is_fit_for_everybody(tour: Visitor, path: str) -> None:
    """What is not there, and what is not possible, says so in a page like the others."""
    heading = PROBLEMS[path]
    tour.expect_complaint(path)  # no other test asks for these addresses
    page = tour.go(path)
    assert page.locator("h1").inner_text() == heading
    check(page)
    check_keyboard(page)


def test_a_refused_form_is_fit_for_everybody(tour: Visitor) -> None:
    """What is wrong stands at its field, for everybody."""
    page = tour.go("new?handler=report")
    page.locator("[name=schedule]").fill("every day at 9:00")
    page.locator("[name=timezone]").fill("Europe/Atlantis")
    page.locator("[name=timezone][aria-invalid=true]").wait_for()
    check(page)


def test_the_zone_of_a_form_follows_the_words(tour: Visitor) -> None:
    """While they are typed: the field and what is read back below it name the same zone."""
    page = tour.go("new?handler=report")
    page.locator("[name=timezone]").fill("UTC")
    page.locator("[name=schedule]").fill("every day at 9:00 in Tokyo")
    page.locator("#preview").get_by_text("Asia/Tokyo").first.wait_for()
    assert page.locator("[name=timezone]").input_value() == "Asia/Tokyo"


def test_the_form_for_a_key_is_fit_for_everybody(tour: Visitor, site: Site) -> None:
    """Signing in with a key, by keyboard, leads to the page; its button signs out again."""
    tour.expect_complaint("/ui/queues")
    page = tour.go(f"{site.stack.url}/ui/queues")
    assert page.locator("h1").inner_text() == "Sign in"
    check(page)
    check_keyboard(page)
    page.get_by_label("API key").fill(site.key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Queues").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("You are signed out.").wait_for()
    answer = page.goto(f"{site.stack.url}/ui/queues")
    assert answer
    assert answer.status == 401


def test_every_view_works_without_script(tour: Visitor) -> None:
    """With script switched off, each view shows the same heading, and its filters and links work."""
    page = tour.go("calendar?week=2027-03-22", script=False)
    page.locator(".week svg a").first.wait_for(state="attached")
    page.locator(".week .number").first.click()
    assert page.locator("h1").inner_text() in {"Runs", "Due"}
    for path, heading in VIEWS.items():
        page.goto(tour.site.pages[Role.ADMIN] + path)
        assert page.locator("h1").inner_text().startswith(heading)
        assert page.locator("main").get_attribute("aria-busy") is None
