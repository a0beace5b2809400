"""Take the pictures of the dashboard for README and docs: ``python .ci/site/screenshots.py [FOLDER]``.

A local stack tells one story, of the ten days around a clock change in Paris, with a clock that stands still: the same
pictures each time. They need Debian's Chromium.
"""

from __future__ import annotations

import logging
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import recording
import requests
from playwright.sync_api import sync_playwright

from cloudsched import App, Context
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import run_stack

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

START: Final = datetime(2027, 3, 17, 7, 30, tzinfo=UTC)
NOW: Final = datetime(2027, 3, 24, 14, 42, 7, tzinfo=UTC)
FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
NARROW: Final[ViewportSize] = {"width": 360, "height": 740}
MOST_HIGH: Final = {False: 1150, True: 1500}
"""Where a long page is cut, wide and narrow: a picture is for a glance, and lighter than 200 kB."""


def make_app() -> App:
    """Return the app of the story."""
    app = App()

    @app.handler("report")
    def report(ctx: Context) -> dict[str, str]:
        ctx.used(queries=3, tokens=850)
        return {"about": ctx.task.title}

    @app.handler("sync", retry=0)
    def sync(ctx: Context) -> str:
        ctx.used(queries=4)
        if ctx.scheduled_for.day in {22, 24} and ctx.scheduled_for.hour in {3, 11, 14}:
            raise TimeoutError("the warehouse did not answer within 30 s")
        return "612 articles"

    @app.handler("close")
    def close(ctx: Context) -> str:
        invoices = ctx.step("collect invoices", lambda: 214)
        ctx.progress(f"{invoices} invoices collected")
        ctx.sleep(timedelta(days=2))
        ctx.step("balance the books", lambda: {"total": 1284.5})
        ctx.progress("balanced, waiting for approval")
        return str(ctx.wait_for("approved", timeout=timedelta(days=6)))

    return app


def _weekly(rule: str, at: str, zone: str = "Europe/Paris") -> dict[str, str]:
    return {"rrule": rule, "dtstart": at, "timezone": zone}


TASKS: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "monthly-close",
        "title": "Monthly close",
        "handler": "close",
        "labels": ["team=finance"],
        "schedule": _weekly("FREQ=MONTHLY;BYMONTHDAY=18", "2027-03-18T09:00:00"),
    },
    {
        "id": "weekday-report",
        "title": "Weekday report",
        "handler": "report",
        "labels": ["team=sales"],
        "schedule": _weekly("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "2027-03-17T09:00:00"),
    },
    {
        "id": "nightly-backup",
        "title": "Nightly backup",
        "handler": "report",
        "owner": "ops",
        "schedule": _weekly("FREQ=DAILY", "2027-03-17T02:30:00"),
    },
    {
        "id": "market-open",
        "title": "Market open",
        "handler": "report",
        "owner": "lin",
        "schedule": _weekly("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "2027-03-17T09:30:00", "America/New_York"),
    },
    {
        "id": "sync-catalogue",
        "title": "Sync catalogue",
        "jitter": "PT4S",
        "handler": "sync",
        "owner": "ops",
        "labels": ["team=shop"],
        "schedule": _weekly("FREQ=HOURLY", "2027-03-17T08:00:00"),
    },
    {
        "id": "render-trailer",
        "title": "Render trailer",
        "handler": "report",
        "owner": "shop",
        "pull": {"queue": "gpu", "skill": "cuda"},
        "schedule": {"at": "2027-03-24T15:02:00+01:00"},
    },
    {
        "id": "tidy-inboxes",
        "title": "Tidy inboxes",
        "handler": "report",
        "owner": "ops",
        "schedule": _weekly("FREQ=WEEKLY;BYDAY=SU", "2027-03-17T04:00:00", "UTC"),
    },
)


BUDGETS: Final = {"ada": 400, "lin": 25, "ops": 850}
"""How many queries these owners may use in a month: one has used most of them."""


def main(folder: Path = FOLDER) -> int:
    """Take the pictures; return 1 if there is no browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("There is no Chromium. On Debian: apt install chromium.", file=sys.stderr)
        return 1
    logging.disable(logging.CRITICAL)
    with run_stack(make_app(), store="sqlite", clock=MovableClock(START, frozen=True)) as stack:
        for task in TASKS:
            _call(stack.url, "POST", "/v1/tasks", {"owner": "ada", **task})
        for owner, queries in BUDGETS.items():
            _call(stack.url, "PUT", f"/v1/people/{owner}/budget", {"maxQueriesPerMonth": queries})
        _call(stack.url, "POST", "/dev/clock", {"advanceTo": NOW.isoformat()})
        _call(stack.url, "POST", "/v1/tasks/tidy-inboxes/pause")
        execution = _call(stack.url, "GET", "/v1/tasks/monthly-close/executions")["executions"][0]["id"]
        views = {
            "home": "",
            "tasks": "tasks",
            "task": "tasks/weekday-report",
            "execution": f"tasks/monthly-close/executions/{execution}",
            "calendar": "calendar",
            "calendar-month": "calendar?month=2027-03",
        }
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, path in views.items():
                _take(browser, f"{stack.url}/ui/{path}", folder / f"{name}.png")
            _take(browser, f"{stack.url}/ui/usage?tz=Europe/Paris", folder / "usage.png", is_live=False)
            _take(browser, f"{stack.url}/ui/calendar", folder / "calendar-dark.png", scheme="dark")
            _take(browser, f"{stack.url}/ui/", folder / "home-narrow.png", narrow=True)
            browser.close()
    (folder / "demo.svg").write_text(recording.draw(recording.run_demo()), "utf-8")
    print(f"{len([*folder.glob('*.*')])} pictures in {folder}")
    return 0


def _call(url: str, method: str, path: str, body: object = None) -> dict[str, Any]:
    response = requests.request(method, url + path, json=body, timeout=300)
    response.raise_for_status()
    return dict(response.json())


def _take(
    browser: Browser,
    url: str,
    file: Path,
    *,
    scheme: Literal["light", "dark"] = "light",
    narrow: bool = False,
    is_live: bool = True,
) -> None:
    context = browser.new_context(viewport=NARROW if narrow else WIDE, color_scheme=scheme, timezone_id="Europe/Paris")
    page = context.new_page()
    if is_live:
        with page.expect_response(lambda answer: "/changes" in answer.url):  # the second look is in the browser's zone
            page.goto(url)
    else:
        page.goto(url)
    page.wait_for_load_state("networkidle")
    size = page.viewport_size or WIDE
    height = min(page.evaluate("document.documentElement.scrollHeight"), MOST_HIGH[narrow])
    page.screenshot(path=file, full_page=True, clip={"x": 0, "y": 0, "width": size["width"], "height": height})
    context.close()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
