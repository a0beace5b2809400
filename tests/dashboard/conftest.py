"""A local stack with a story in it: what ran, what failed, what waits and what is to come."""

from __future__ import annotations

import html
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import requests
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, PEOPLE, make_keys

from cloudsched import App, Context
from cloudsched.dashboard.visit import UTC_ZONE, Visit
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import Stack, run_stack
from cloudsched.testing import Simulation

log = logging.getLogger("tests.talks")
log.setLevel(logging.INFO)
START = datetime(2027, 3, 20, 7, 30, tzinfo=UTC)
NOW = datetime(2027, 3, 27, 14, 42, 7, tzinfo=UTC)
"""The day before clocks go forward in Paris."""
GATE = threading.Event()
"""The handler ``gated`` runs until a test sets it."""
PARIS = ZoneInfo("Europe/Paris")
ATTACK = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


DAILY = {"schedule": {"rrule": "FREQ=DAILY", "dtstart": "2030-01-01T09:00:00", "timezone": "UTC"}}


def schedule(rule: str, at: str) -> dict[str, str]:
    return {"rrule": rule, "dtstart": at, "timezone": "Europe/Paris"}


@pytest.fixture
def app(app: App) -> App:
    """An app with the handler of the fixture ``create``, and one that sleeps."""

    @app.handler("work", access="users")
    def work(payload: dict[str, int]) -> str:
        return f"done {payload}"

    @app.handler("rests")
    def rests(ctx: Context) -> None:
        ctx.sleep(timedelta(hours=5))

    return app


def make_app() -> App:
    app = App()

    @app.handler("report")
    def report(ctx: Context) -> dict[str, str]:
        return {"about": str(ctx.task.title)}

    @app.handler("memo", access="users")
    def memo(ctx: Context) -> str:
        return str(ctx.task.title)

    @app.handler("broken", retry=0)
    def broken(ctx: Context) -> None:
        raise ValueError(f"the warehouse of {ctx.task.owner} did not answer {ATTACK}")

    @app.handler("fragile", access="users", retry=0)
    def fragile(_: Context) -> None:
        raise ValueError("it always does")

    @app.handler("asks", access="users")
    def asks(ctx: Context) -> str:
        return str(ctx.wait_for("approved", timeout=60 * DAY))

    @app.handler("gated")
    def gated(_: Context) -> None:
        assert GATE.wait(60), "no test has opened the gate"

    @app.handler("close")
    def close(ctx: Context) -> str:
        count = ctx.step("collect", lambda: 214)
        ctx.progress(f"{count} invoices collected")
        ctx.sleep(2 * DAY)
        ctx.step("balance", lambda: {"total": 12.5})
        return str(ctx.wait_for("approved", timeout=60 * DAY))

    add_plain_handlers(app)
    return app


def add_plain_handlers(app: App) -> None:
    @app.handler("echo", access="users")
    def echo(payload: dict[str, str]) -> dict[str, str]:
        return payload

    @app.handler("talks", access="users")
    def talks(ctx: Context) -> None:
        log.info("it begins %s", ATTACK)
        log.warning("it heard %s", ctx.wait_for("word", timeout=60 * DAY))


TASKS: tuple[dict[str, Any], ...] = (
    {
        "id": "weekday-report",
        "title": "Weekday report",
        "handler": "report",
        "labels": ["team=sales"],
        "schedule": schedule("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "2027-03-20T09:00:00"),
    },
    {
        "id": "monthly-close",
        "title": "Monthly close",
        "handler": "close",
        "overlap": "allow",
        "schedule": schedule("FREQ=MONTHLY;BYMONTHDAY=21", "2027-03-21T09:00:00"),
    },
    {
        "id": "sync",
        "title": f"Sync catalogue {ATTACK}",
        "owner": "shop",
        "handler": "broken",
        "schedule": schedule("FREQ=DAILY", "2027-03-21T02:30:00"),
    },
)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A stack whose clock stands still at `NOW`, a week after the tasks were created."""
    with run_stack(make_app(), store="sqlite", clock=MovableClock(START, frozen=True)) as running:
        for task in TASKS:
            response = requests.post(f"{running.url}/v1/tasks", json={"owner": "ada", **task}, timeout=60)
            assert response.status_code == 201, response.text
        move = {"advanceTo": NOW.isoformat()}
        assert requests.post(f"{running.url}/dev/clock", json=move, timeout=120).status_code == 200
        yield running


@pytest.fixture
def ui(stack: Stack) -> str:
    return f"{stack.url}/ui"


def visit(*, zone: ZoneInfo = UTC_ZONE, owner: str | None = None, **query: str) -> Visit:
    """Return an admin's look at a page, at `NOW`."""
    return Visit(NOW, zone, query, may_change=True, role="admin", owner=owner, is_local=True)


def look(**query: str) -> Visit:
    """Return an admin's look at a page in Paris, whatever its address says."""
    return replace(visit(zone=PARIS), query=query)


def get(url: str, **query: str) -> requests.Response:
    return requests.get(url, params=query, timeout=60)


def send(url: str, body: object = None) -> requests.Response:
    """Ask the API, with a body that is JSON."""
    return requests.post(url, json=body, timeout=60)


def find_execution(ui: str, task: str) -> str:
    return str(get(f"{ui.removesuffix('/ui')}/v1/tasks/{task}/executions").json()["executions"][0]["id"])


def post(url: str, form: dict[str, str], **headers: str) -> requests.Response:
    origin = "/".join(url.split("/")[:3])
    given = {"Origin": origin, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return requests.post(url, data=form, headers=given, timeout=60)


def read_form(page: str) -> dict[str, str]:
    """Return what a browser would send of the page's form, without a button."""
    form = page[page.index("data-preview") :]
    found = {
        name: html.unescape(value)
        for name, value in re.findall(r'<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"', form)
        if "checkbox" not in name
    }
    for name, body in re.findall(r'<select[^>]* name="([^"]+)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', body)
        found[name] = html.unescape(chosen[1]) if chosen else ""
    for name, text in re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL):
        found[name] = html.unescape(text)
    if not re.search(r'name="deliveryChannels" value="[A-Z]+" checked', form):
        found.pop("deliveryChannels", None)
    return found


def read_hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of the page's form, as a browser would send them."""
    form = page[page.index('<form method="post"') :]
    return {
        name: html.unescape(text) for name, text in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
    }


@pytest.fixture
def pages(simulate: Callable[..., Simulation]) -> Iterator[Pages]:
    keys, access = make_keys(PEOPLE)
    with ExitStack() as parts:
        yield Pages(simulate(access=access, public_url="https://api.example"), keys, parts)
