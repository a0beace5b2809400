"""A page stays live without disturbing whoever looks at it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect
from tests.dashboard.browser.conftest import ZONE, Site, Visitor
from tests.dashboard.conftest import ATTACK
from tests.harness import wait_until

from cloudsched.dashboard.times import write_relative
from cloudsched.web.auth.roles import Role

POLL = 2000
"""How often a local page asks, in milliseconds."""


def poll(page: Page) -> None:
    """Let the page ask once, and wait for its answer."""
    page.evaluate("() => { looked = new Promise(done => document.addEventListener('looked', done, {once: true})) }")
    page.clock.run_for(POLL)
    page.evaluate("() => looked.then(() => true)")


def list_requests(page: Page) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    return asked


def test_what_changes_is_shown_in_place(tour: Visitor, site: Site) -> None:
    """A task that somebody else changes shows so, and can be changed; focus, scroll and selection stay."""
    task = site.create("live-in-place")
    page = tour.go(f"tasks/{task}", clock=True)
    page.set_viewport_size({"width": 1280, "height": 300})
    poll(page)
    page.locator("summary").last.focus()
    page.evaluate(
        "kept = document.activeElement; scrollTo(0, 60);"
        "getSelection().selectAllChildren(document.querySelector('.crumbs'))"
    )
    place = page.evaluate("scrollY")
    site.call("POST", f"/v1/tasks/{task}/pause")
    poll(page)
    page.get_by_text("Paused").first.wait_for()
    assert page.evaluate("document.activeElement === kept")
    assert page.evaluate("scrollY") == place
    assert page.evaluate("getSelection().toString()").strip()
    site.call("PATCH", f"/v1/tasks/{task}", {"title": "Renamed"})
    poll(page)
    page.get_by_role("button", name="Resume the task").click()
    page.locator("#said", has_text="Resumed.").wait_for()


def test_a_refusal_and_typed_text_stay(visitor: Visitor, site: Site) -> None:
    """Also when the page goes on."""
    for name in ("live-answered", "live-typed"):
        site.create(name, handler="decides")
        site.call("POST", f"/v1/tasks/{name}/trigger")
    path = "/v1/executions?status=SUSPENDED&handler=decides"
    wait_until(lambda: len(site.call("GET", path)["executions"]) == 2)
    page = visitor.open("decisions", clock=True)
    visitor.expect_complaint("409")
    typed, gone = (page.locator(f"[data-key^={name}]") for name in ("live-typed", "live-answered"))
    typed.locator("[name=note]").fill("fine")
    site.call("POST", "/v1/tasks/live-answered/events/decision", {"payload": {"approved": False}})
    wait_until(lambda: len(site.call("GET", path)["executions"]) == 1)
    gone.get_by_role("button", name="Approve").click()
    said = page.get_by_role("alert").filter(has_text="Nobody waits for this answer any more")
    said.wait_for()
    for _ in range(7):  # longer than what was done is told
        poll(page)
    assert said.is_visible()
    assert typed.locator("[name=note]").input_value() == "fine"


def test_when_nothing_changes_one_read_is_all(tour: Visitor, site: Site) -> None:
    """The page asks for the change cursor only, which costs one read; the page itself is not fetched again."""
    page = tour.go("tasks", clock=True)
    poll(page)
    poll(page)
    asked = list_requests(page)
    before = site.stack.counts.reads
    for _ in range(5):
        poll(page)
    assert [url for url in asked if "/changes" not in url] == []
    assert len(asked) == 5
    assert site.stack.counts.reads - before <= 5


def test_nothing_is_asked_while_hidden(tour: Visitor) -> None:
    """A tab in the background asks nothing, and asks at once when it is seen again."""
    page = tour.go("tasks", clock=True)
    poll(page)
    asked = list_requests(page)
    hide = (
        "isHidden => { Object.defineProperty(document, 'hidden', {value: Boolean(isHidden), configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange')) }"
    )
    page.evaluate(hide, 1)
    page.clock.run_for(60_000)
    assert asked == []
    with page.expect_response(lambda response: "/changes" in response.url):
        page.evaluate(hide, 0)


def test_rows_keep_their_order_under_the_pointer(tour: Visitor, site: Site) -> None:
    """While the focus is in a list, a new row waits, and the page says so; `r` shows it."""
    page = tour.go("tasks", clock=True)
    poll(page)
    page.keyboard.press("j")
    first = page.locator("tbody tr").first.get_attribute("data-key")
    site.create("live-new-row")
    poll(page)
    page.get_by_text("1 more. They show when you leave the list, or press r.").wait_for()
    assert page.locator("tbody tr").first.get_attribute("data-key") == first
    page.keyboard.press("r")
    page.get_by_role("link", name="live-new-row").wait_for()


def test_a_server_that_is_gone_is_said_and_asked_less(visitor: Visitor) -> None:
    """What was last seen stays, the page says since when, waits 2, 4, 8 seconds, and says when it is live again."""
    page = visitor.open("tasks", clock=True)
    poll(page)
    visitor.expect_complaint("net::ERR_FAILED")
    page.route("**/changes*", lambda route: route.abort())
    page.clock.run_for(POLL)
    page.get_by_text("Not live since").wait_for()
    assert page.locator("tbody tr").count() > 0
    asked = list_requests(page)
    page.clock.run_for(1900)
    assert asked == []
    page.unroute("**/changes*")
    page.clock.run_for(200)
    page.get_by_text("Live, every 2 s").wait_for()


def test_while_a_form_is_sent_the_view_is_busy(tour: Visitor, site: Site) -> None:
    """``aria-busy`` on main until the answer is there; the button says what it does."""
    task = site.create("live-busy")
    page = tour.go(f"tasks/{task}", clock=True)
    held: list[Any] = []
    page.route("**/verbs/pause", lambda route: held.append(route))  # noqa: PLW0108 - Playwright reads its signature
    with page.expect_request("**/verbs/pause"):
        page.get_by_role("button", name="Pause the task").click()
    assert page.locator("main").get_attribute("aria-busy") == "true"
    assert page.get_by_text("Pause the task…").count() == 1
    held[0].continue_()
    page.get_by_role("button", name="Resume the task").wait_for()
    page.locator("main:not([aria-busy])").wait_for()


def test_a_form_waits_for_what_the_page_asks(visitor: Visitor, site: Site) -> None:
    """It may ask for the very task that the form deletes, and the browser would complain that this is gone."""
    task = site.create("gone-while-asked")
    page = visitor.open(f"tasks/{task}", clock=True)
    held: list[Any] = []
    page.route("**/changes*", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/changes*"):
        page.clock.run_for(POLL)
    page.get_by_text("Cancel or delete…").click()
    with page.expect_request("**/verbs/delete") as sent:
        page.get_by_role("button", name="Delete the task and its runs").click()
        assert site.call("GET", f"/v1/tasks/{task}")["id"] == task, "nothing is sent yet"
        held[0].continue_()
    assert sent.value.method == "POST"
    page.wait_for_url("**/tasks?done=delete")


@pytest.mark.parametrize("path", ["", "tasks", "calendar"])
def test_a_page_that_has_not_changed_is_fetched_once(visitor: Visitor, path: str) -> None:
    """It has the cursor of what it shows, so its first look finds nothing new. All else that it loads is kept."""
    page = visitor.open(path, clock=True)  # the first look, which tells the server the zone
    asked = list_requests(page)
    page.goto(page.url)
    poll(page)
    documents = [url for url in asked if "/static/" not in url and "/changes?" not in url]
    assert documents == [page.url]
    kept = [url for url in asked if "/static/" in url]
    assert len({*kept}) == len(kept)


def test_the_clock_keeps_the_zone_of_a_task(tour: Visitor, site: Site) -> None:
    """Its page begins in the task's zone, and stays in it when it asks whether anything has changed."""
    schedule = {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "Asia/Kolkata"}
    task = site.create("live-zoned", schedule=schedule)
    page = tour.go(f"tasks/{task}", clock=True)
    clock = page.locator("#clock time")
    assert clock.inner_text().endswith("+0530")
    poll(page)
    assert clock.inner_text().endswith("+0530")


def test_the_first_page_is_in_the_zone_of_the_browser(visitor: Visitor) -> None:
    """Nothing shows before, and the page is asked for twice at most, also by a browser that keeps no cookie."""
    page = visitor.open("tasks")
    assert f"Times in {ZONE}" in page.locator(".foot").inner_text()
    strict = visitor.open("tasks", java_script_enabled=False)
    assert "Times in UTC" in strict.locator(".foot").inner_text()
    asked: list[str] = []
    page.context.clear_cookies()
    page.add_init_script("Object.defineProperty(document, 'cookie', {get: () => '', set: () => {}})")
    page.on("request", lambda request: asked.append(request.url) if request.is_navigation_request() else None)
    page.reload()
    page.wait_for_load_state("networkidle")
    assert len(asked) == 1
    assert page.locator("h1").is_visible()


def test_an_execution_is_asked_for_itself(tour: Visitor, site: Site) -> None:
    """Its progress does not change its task, so while it is open the page asks for the execution itself."""
    execution = site.call("GET", "/v1/tasks/monthly-close/executions")["executions"][0]["id"]
    page = tour.go(f"tasks/monthly-close/executions/{execution}", clock=True)
    poll(page)
    before = site.stack.counts.reads
    asked = list_requests(page)
    while not asked:  # the first answer may be to a question that the page had asked before
        poll(page)
    assert all("open=1" in url for url in asked)
    assert site.stack.counts.reads - before <= 5 * (len(asked) + 1)


@pytest.mark.parametrize("at", ["", "/", "/nothing", "//evil.example/", "/tasks/nope/executions/nope", "%00"])
def test_any_address_may_be_asked_about(site: Site, at: str) -> None:
    """What the script names is only a hint: nothing but the API is asked, and nothing fails."""
    answer = requests.get(f"{site.pages[Role.ADMIN]}changes", params={"at": at}, timeout=60)
    assert answer.status_code in {200, 404}


def test_script_and_server_write_times_alike(tour: Visitor) -> None:
    """Of each length, in both directions."""
    page = tour.go("")
    seconds = [0, 0.05, 0.5, 1, 9.99, 10, 59, 60, 61, 599, 600, 3599, 3600, 3661, 86399, 86400, 90061, 30 * 86400, 1e9]
    both = [*seconds, *(-each for each in seconds if each)]
    written = page.evaluate(
        "async lengths => { const {writeRelative} = await import(new URL('relative.js', document.scripts[0].src));"
        "return lengths.map(each => writeRelative(each)) }",
        [each * 1000 for each in both],
    )
    assert written == [write_relative(timedelta(seconds=each)) for each in both]


def test_what_a_handler_logs_shows_as_it_comes(tour: Visitor, site: Site) -> None:
    """In an open execution, as text whatever it contains, and what comes is added in place."""
    task = site.create("live-log", handler="talks")
    site.call("POST", f"/v1/tasks/{task}/trigger")
    path = f"/v1/tasks/{task}/executions"
    wait_until(lambda: [each for each in site.call("GET", path)["executions"] if each["status"] == "SUSPENDED"])
    execution = site.call("GET", path)["executions"][0]["id"]
    page = tour.go(f"tasks/{task}/executions/{execution}", clock=True)
    panel = page.locator(".log")
    lines = panel.get_by_role("listitem")
    assert lines.count() == 1
    assert ATTACK in lines.first.inner_text()
    assert panel.locator("script, img, b").count() == 0
    page.evaluate("kept = document.querySelector('.log li')")
    site.call("POST", f"/v1/tasks/{task}/events/word", {"payload": "<b>hello</b>"})
    wait_until(lambda: site.call("GET", f"{path}/{execution}")["status"] == "SUCCEEDED")
    poll(page)
    expect(lines).to_have_count(2)
    expect(lines.last).to_contain_text("WARNING it heard <b>hello</b>")
    assert page.evaluate("kept.isConnected"), "what was there has stayed"
    for role, is_shown in ((Role.VIEWER, True), (Role.USER, False)):
        text = requests.get(f"{site.pages[role]}tasks/{task}/executions/{execution}", timeout=60).text
        assert ("it begins" in text) == is_shown
        assert "<b>hello" not in text


@pytest.mark.parametrize("script", [True, False])
def test_what_a_button_has_done_is_in_view(tour: Visitor, site: Site, *, script: bool) -> None:
    """On a phone, too, however far down the button was pressed, and without script."""
    task = site.create(f"told-{script}".lower(), schedule={"rrule": "FREQ=DAILY", "dtstart": "2030-01-01T09:00:00"})
    page = tour.go(f"tasks/{task}", script=script)
    page.set_viewport_size({"width": 390, "height": 400})
    for word, said in (("pause", "Paused."), ("resume", "Resumed.")):
        button = page.locator(f'form[action$="/verbs/{word}"] button').first
        button.wait_for(state="attached")
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        button.evaluate("each => each.click()")
        note = page.locator("#said", has_text=said)
        expect(note).to_be_in_viewport(ratio=0.9)
        top = page.evaluate("document.querySelector('.top').getBoundingClientRect().bottom")
        box = note.bounding_box()
        assert box
        assert box["y"] >= top - 1, "behind the bar at the top"
