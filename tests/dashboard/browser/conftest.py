"""A real browser, Debian's Chromium, and a stack whose page it visits as each role."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import requests
from pydantic import BaseModel
from tests.browsers import find_chromium, make_browser_environment
from tests.dashboard.conftest import NOW, START, TASKS, make_app

from cloudsched import Context
from cloudsched.client import Client
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.dashboard.application import Dashboard
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import Stack, run_stack
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, JSHandle, Page, ViewportSize


ROLES = (Role.ADMIN, Role.VIEWER, Role.USER, Role.READER)
ZONE = "Europe/Paris"
ASK_NOTHING = "() => { window.fetch = () => new Promise(() => {}); window.stop() }"
REFILL = timedelta(milliseconds=200)
"""In how long a queue may send a whole burst again."""
SIZE: ViewportSize = {"width": 1280, "height": 900}


class Decision(BaseModel):
    """A yes or a no, with its reason."""

    approved: bool
    note: str = ""


def decide(ctx: Context) -> str:
    return str(ctx.wait_for("decision", Decision, timeout=timedelta(days=1)))


class Words(BaseModel):
    """A payload of any length."""

    text: str


def be_wordy(ctx: Context, words: Words) -> None:
    """Fail, with the longest of all that a run's page shows, in which no line can break."""
    ctx.step("S" * 200, lambda: "R" * 3000)
    ctx.progress("G" * 500)
    raise ValueError(words.text[:2000])


@dataclasses.dataclass(frozen=True)
class Site:
    """A stack with keys, and for each role the address of a page that acts with a key of that role."""

    stack: Stack
    pages: dict[Role, str]
    """As `cloudsched dashboard` serves them; the admin's has the stack's clock, as the one of `cloudsched dev` has."""
    key: str
    """The admin's."""
    story: frozenset[str] = frozenset()
    """The tasks that all tests find."""

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Ask the API as an admin; return its answer."""
        response = requests.request(
            method, self.stack.url + path, json=body, headers={"X-Api-Key": self.key}, timeout=60
        )
        assert response.ok, response.text
        return dict(response.json()) if response.content else {}

    def list_tasks(self) -> list[dict[str, Any]]:
        return list(self.call("GET", "/v1/tasks?pageSize=500")["tasks"])

    def create(self, task_id: str, **fields: object) -> str:
        body = {"id": task_id, "title": task_id, "owner": "ada", "handler": "memo", **fields}
        self.call("POST", "/v1/tasks", {"schedule": {"at": "2030-01-01T00:00:00Z"}, **body})
        return task_id


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The story of the other tests, on a stack for one module. A test changes only tasks of its own."""
    keys = {role: create_key(role.value, role, "ada" if role in {Role.USER, Role.READER} else None) for role in ROLES}
    base = Settings(access=Access(api_keys=tuple(str(entry) for _, entry in keys.values())))
    with ExitStack() as parts:
        clock = MovableClock(START, frozen=True)
        app = make_app()
        app.handler("decides", events={"decision": Decision})(decide)
        app.handler("wordy", retry=0)(be_wordy)
        stack = parts.enter_context(run_stack(app, base=base, store="sqlite", clock=clock))
        pages = {}
        for role, (key, _) in keys.items():
            client = parts.enter_context(Client(stack.url, key=key))
            page = Dashboard(client, place="of a test", clock=stack.mover if role is Role.ADMIN else None)
            server = parts.enter_context(WebServer(page))
            server.serve()
            parts.callback(server.stop)
            pages[role] = f"http://{server.address}/"
        made = Site(stack, pages, keys[Role.ADMIN][0])
        for task in TASKS:
            made.call("POST", "/v1/tasks", {"owner": "ada", **task})
        for verb in ("pause", "cancel"):  # lists have tasks of each status
            made.call("POST", f"/v1/tasks/{made.create(f'to-{verb}')}/{verb}")
        made.create("to-complete", schedule={"at": (NOW - timedelta(hours=1)).isoformat()})
        stack.mover.move({"advanceTo": NOW.isoformat()})
        yield dataclasses.replace(made, story=frozenset(task["id"] for task in made.list_tasks()))


@pytest.fixture(autouse=True)
def delete_new_tasks(site: Site) -> Iterator[None]:
    """Delete what a test has created, once its pages are closed: the next one finds the story, and nothing else.

    It finds a queue that dispatches, too: while the clock stands still, a queue sends its burst of 100 and no more.
    """
    yield
    for task in site.list_tasks():
        if task["id"] not in site.story:
            site.call("DELETE", f"/v1/tasks/{task['id']}")
    site.stack.clock.freeze(site.stack.clock.now() + REFILL)


def refuse_strings(wait_for_function: Callable[..., JSHandle]) -> Callable[..., JSHandle]:
    """Refuse to wait for a string, which the pages' policy forbids to evaluate at any look but the first one."""

    def wait(page: Page, expression: str, **options: Any) -> JSHandle:
        if "=>" not in expression:
            raise ValueError(f"{expression!r} is no function. Write: () => {expression}")
        return wait_for_function(page, expression, **options)

    return wait


@pytest.fixture(scope="session")
def started() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """One browser for all modules, and Playwright's loop, which rests unless `chromium` gives it the thread."""
    path = find_chromium()
    from playwright.sync_api import Page, expect, sync_playwright  # noqa: PLC0415 - only where there is a browser

    expect.set_options(timeout=30_000)
    with (
        make_browser_environment() as environment,
        sync_playwright() as playwright,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(Page, "wait_for_function", refuse_strings(Page.wait_for_function))
        args = ["--no-sandbox", "--disable-dev-shm-usage", "--renderer-process-limit=1"]
        browser = playwright.chromium.launch(executable_path=path, args=args, env=dict(environment))
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)  # noqa: SLF001 - what loops of other kinds use, too
        yield browser, loop
        asyncio._set_running_loop(loop)  # noqa: SLF001
        browser.close()


@pytest.fixture(scope="module")
def chromium(started: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The browser, for one module. Until it ends, Playwright's loop has the thread, and no other loop can run in it."""
    browser, loop = started
    asyncio._set_running_loop(loop)  # noqa: SLF001
    yield browser
    asyncio._set_running_loop(None)  # noqa: SLF001


class Visitor:
    """Opens pages as some role, and notes what their consoles complain about."""

    def __init__(self, site: Site, browser: Browser) -> None:
        self.site = site
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []
        """Errors in the console and in scripts."""
        self._expected: list[str] = []
        self._kept: dict[tuple[Role, bool, bool], Page] = {}

    def go(self, path: str, role: Role = Role.ADMIN, *, script: bool = True, clock: bool = False) -> Page:
        """Open a page in the same tab as before, which takes a fifth of what a new one takes.

        This is for tests that leave nothing behind in the browser. With script, it has been here before: the page
        remembers the zone of the browser. `clock` is that of `open`.
        """
        page = self._kept.get((role, script, clock))
        if page is None:
            page = self._kept[role, script, clock] = self._make_tab(clock=clock, java_script_enabled=script)
            if script:
                page.context.add_cookies([{"name": "cloudsched-zone", "value": ZONE, "url": self.site.pages[role]}])
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(SIZE)
        page.goto(path if path.startswith("http") else self.site.pages[role] + path)
        return page

    def rest(self) -> None:
        """Let the pages that `go` has opened ask for nothing more: nobody looks at them, and their task may be gone."""
        for page in self._kept.values():
            page.unroute_all(behavior="ignoreErrors")
            page.evaluate(ASK_NOTHING)

    def open(self, path: str = "", role: Role = Role.ADMIN, *, clock: bool = False, **options: Any) -> Page:
        """Open a page in a browser of its own.

        Args:
            path: The page's address, below the mount.
            role: Who looks.
            clock: Whether the page's timers only run when the test says so (``page.clock.run_for``).
            options: Of the browser's context, such as its size.
        """
        page = self._make_tab(clock=clock, **options)
        page.goto(self.site.pages[role] + path)
        if clock:
            page.wait_for_load_state("networkidle")  # it has remembered the browser's zone, and asked again
        return page

    def _make_tab(self, *, clock: bool, **options: Any) -> Page:
        context = self._browser.new_context(**{"viewport": SIZE, "timezone_id": ZONE, **options})
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        if clock:  # stopped before the page is there, so that not one look is under way that no test asked for
            page.clock.install()
            page.clock.pause_at(time.time() + 60)
        return page

    def expect_complaint(self, words: str) -> None:
        """Say which complaint the test provokes, by its words or address. It may come until the page is closed."""
        self._expected.append(words)

    def close(self) -> list[str]:
        """Close everything that was opened; return the complaints that no test expected."""
        for context in self._contexts:
            context.close()
        return self.take_unexpected()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location['url']})")

    def take_unexpected(self) -> list[str]:
        """Return the complaints that no test expected, each of them once."""
        noted, self.complaints = self.complaints, []
        return [text for text in noted if not any(words in text for words in self._expected)]


@pytest.fixture(scope="module")
def guide(site: Site, chromium: Browser) -> Iterator[Visitor]:
    """Who looks at pages in one tab for all tests of a module."""
    guide = Visitor(site, chromium)
    yield guide
    assert guide.close() == []


@pytest.fixture
def tour(guide: Visitor) -> Iterator[Visitor]:
    """The same, for one test: when it is over, no console may have complained."""
    yield guide
    guide.rest()
    assert guide.take_unexpected() == []


@pytest.fixture
def visitor(site: Site, chromium: Browser) -> Iterator[Visitor]:
    """Who looks at pages. When the test is over, no console may have complained."""
    visitor = Visitor(site, chromium)
    yield visitor
    assert visitor.close() == []
