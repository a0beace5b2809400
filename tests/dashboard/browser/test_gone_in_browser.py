"""When no answer comes, that is the loudest thing on the page; nothing on it is green, and no click loses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect
from tests.dashboard.browser.conftest import Site, Visitor

from cloudsched.client import Client
from cloudsched.dashboard.application import Dashboard
from cloudsched.local.wsgi_server import WebServer

COUNT_GREEN = """() => {
  const isGreen = (colour) => {
    const [red, green, blue, alpha] = (colour.match(/[\\d.]+/g) ?? []).map(Number);
    return alpha !== 0 && green > red + 12 && green > blue + 12;
  };
  const isFiltered = getComputedStyle(document.querySelector("main")).filter === "grayscale(1)";
  const isGrey = (node) => isFiltered && node.closest("main, .clock");
  return [...document.querySelectorAll("body *")].filter((node) => {
    const style = getComputedStyle(node);
    return node.getClientRects().length && style.visibility === "visible" && !isGrey(node)
      && [style.color, style.backgroundColor, style.stroke, style.fill].some(isGreen);
  }).length;
}"""
"""How many visible things are green, those not counted that a filter shows grey."""
COUNT_HIDDEN = """() => {
  const note = document.querySelector(".gone");
  const isSeen = (x, y) => note.contains(document.elementFromPoint(x, y));
  let hidden = 0;
  for (const top of [0, document.documentElement.scrollHeight]) {
    scrollTo(0, top);
    const box = note.getBoundingClientRect();
    if (top === 0 && box.bottom > document.getElementById("main").getBoundingClientRect().top) hidden += 1;
    for (const x of [0, innerWidth / 2, document.documentElement.clientWidth - 1])
      for (const y of [box.top + 1, box.bottom - 2]) if (!isSeen(x, y)) hidden += 1;
  }
  scrollTo(0, 0);
  return hidden;
}"""
"""How many places of the note from edge to edge are covered or out of view, at the top of the page and at its end."""
TICKS = "main .ok > i, main i.ok"


@contextmanager
def serve(client: Client) -> Iterator[tuple[str, WebServer]]:
    with WebServer(Dashboard(client, place="of a test")) as server:
        server.serve()
        yield f"http://{server.address}/", server
        server.stop()


def ask(page: Page) -> None:
    page.evaluate("() => { looked = new Promise(done => document.addEventListener('looked', done, {once: true})) }")
    page.clock.run_for(10_000)
    page.evaluate("() => looked.then(() => true)")


def test_when_the_server_is_stopped_the_page_says_so_first_and_stays(visitor: Visitor, site: Site) -> None:
    """With what is seen, from when, and a countdown; neither a link nor a search loses it, and it heals by itself."""
    for words in ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_FAILED"):
        visitor.expect_complaint(words)
    with Client(site.stack.url, key=site.key) as client, serve(client) as (address, server):
        page, tasks = (visitor.open(clock=True) for _ in range(2))
        for each, path in ((page, ""), (tasks, "tasks")):
            each.goto(address + path)
            each.wait_for_load_state("networkidle")
            ask(each)
        assert page.locator(TICKS).count() > 0
        assert page.evaluate(COUNT_GREEN) > 0
        shown = page.locator("#clock time").inner_text()
        page.route("**/*", lambda route: route.abort())
        ask(page)
        note = page.get_by_role("alert")
        expect(note).to_contain_text("No answer since")
        page.unroute("**/*")
        page.get_by_role("button", name="Try now").click()
        expect(page.locator(".gone")).to_have_count(0)
        assert page.evaluate(COUNT_GREEN) > 0
        server.stop()
    ask(page)
    expect(note).to_contain_text(f"This page is from {shown}")
    expect(page.locator(".gone")).to_contain_text("Trying again in 2 s.")
    for width in (1600, 1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(COUNT_HIDDEN) == 0, width
    assert page.evaluate(COUNT_GREEN) == 0
    assert not any(tick.is_visible() for tick in page.locator(TICKS).all())
    page.clock.run_for(1000)
    expect(page.locator(".gone")).to_contain_text("Trying again in 1 s.")
    page.get_by_role("link", name="Calendar").first.click(no_wait_after=True)
    expect(note).to_contain_text("this page is kept")
    assert page.url == address
    expect(page.get_by_role("heading", name="Needs attention")).to_be_visible()
    tasks.get_by_role("textbox", name="Handler").fill("kept words")
    tasks.get_by_role("button", name="Show").click(no_wait_after=True)
    expect(tasks.get_by_role("alert")).to_contain_text("this page is kept")
    assert tasks.get_by_role("textbox", name="Handler").input_value() == "kept words"


@pytest.mark.parametrize("is_form", [False, True])
def test_an_api_that_is_gone_behind_the_page_keeps_what_is_seen(
    visitor: Visitor,
    site: Site,
    is_form: bool,  # noqa: FBT001 - a parameter
) -> None:
    """The page's server answers 503 then: nothing that was seen or typed is lost, and nothing is said to be done."""
    visitor.expect_complaint("503")
    task = site.create("behind")
    with Client(site.stack.url, key=site.key) as client, serve(client) as (address, _):
        page = visitor.open(clock=True)
        page.goto(f"{address}{'new?handler=report' if is_form else f'tasks/{task}'}")
        page.wait_for_load_state("networkidle")
        page.route("**/*", lambda route: route.fulfill(status=503, content_type="text/html", body=PROBLEM))
        if is_form:
            page.get_by_label("Title", exact=True).fill("Typed")
            page.get_by_role("button", name="Create").click()
        else:
            page.get_by_role("button", name="Pause the task").click()
        note = page.get_by_role("alert").first
        if is_form:
            expect(note).to_contain_text("nothing was sent: this page is kept")
            assert page.get_by_label("Title", exact=True).input_value() == "Typed"
        else:
            expect(note).to_contain_text("The store does not answer. What you sent may have been done, or not")
            expect(page.get_by_role("button", name="Pause the task", exact=True)).to_be_visible()
        page.unroute("**/*")


def test_what_failed_last_is_said_alone(visitor: Visitor, site: Site) -> None:
    """After a press that may have been done, a link's "not opened" takes its place; a button keeps its key."""
    visitor.expect_complaint("503")
    visitor.expect_complaint("ERR_FAILED")
    with Client(site.stack.url, key=site.key) as client, serve(client) as (address, _):
        page = visitor.open(clock=True)
        page.goto(f"{address}tasks/{site.create('twice')}")
        page.wait_for_load_state("networkidle")
        button = page.get_by_role("button", name="Pause the task")
        button.evaluate("node => node.insertAdjacentHTML('beforeend', ' <kbd>p</kbd>')")
        page.route("**/*", lambda route: route.abort())
        button.click()
        note = page.get_by_role("alert").first
        expect(note).to_contain_text("may have been done, or not")
        expect(button.locator("kbd")).to_have_text("p")
        expect(button).to_have_text("Pause the task p")
        page.get_by_role("link", name="Calendar").first.click(no_wait_after=True)
        expect(note).to_contain_text("What you chose was not opened: this page is kept.")
        expect(note).not_to_contain_text("may have been done")
        expect(note).to_contain_text("No answer since")
        page.unroute("**/*")


PROBLEM = '<main><div class="note fail"><svg></svg><div><p><b>The store does not answer.</b></p></div></div></main>'
