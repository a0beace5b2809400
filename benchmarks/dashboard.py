"""How heavy the dashboard's pages are, and how long the server takes: ``python -m benchmarks.dashboard``.

A local stack runs a task every minute until it has 540 executions, and one handler with 2,000 steps. Then each page is
asked for as a browser does. Server time is the processor time of the whole process for a page: that of the dashboard,
the API and the store together. The floor is a page without data.

================================ ==========================================================
what                             bound
================================ ==========================================================
500 executions, 2,000 steps      200 ms of server time
every page                       150 kB with stylesheet, scripts and icon, as they are sent
first useful paint               1 s, if there is a Chromium
================================ ==========================================================

Then come the views of a store of 20,000 tasks with an outage in it (`large_store`), in a process that has warmed up
(`warm_up`): processor time at the first look and later, HTML, and that zipped. ``--large`` measures these alone.
``--keep FOLDER`` leaves the store's file there, or takes the one that is there, and ``--serve PORT`` serves its pages,
with a clock that stands still.
"""

from __future__ import annotations

import argparse
import gzip
import io
import logging
import os
import shutil
import statistics
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import requests
from benchmarks.large_store import HANDLERS, NOW, write_store
from pydantic import BaseModel

import cloudsched.dashboard
from cloudsched import App, Context
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.dashboard.guard import LOCAL_HOSTS
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.embedded_page import EmbeddedPage
from cloudsched.local.own_pages import PageLocation
from cloudsched.local.stack import run_stack
from cloudsched.local.warm_up import warm_up
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.functions import wsgi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

START = datetime(2027, 3, 24, 2, tzinfo=UTC)
RUNS, STEPS, LISTED, ROUNDS = 540, 2000, 50, 9
MOST_MILLISECONDS, MOST_KILOBYTES, MOST_PAINT = 200, 150, 500
EMPTY = "locks"
"""The page without data."""


def make_app() -> App:
    """Return the app whose handlers ran."""
    app = App()

    @app.handler("tick", retry=0)
    def tick(ctx: Context) -> str:
        if ctx.scheduled_for.minute % 9 == 0:
            raise ValueError("the warehouse did not answer")
        return "done"

    @app.handler("long")
    def long(ctx: Context) -> int:
        return sum(ctx.step(f"part {number}", lambda: 1) for number in range(STEPS))

    return app


def weigh_static() -> int:
    """Return the bytes of what all pages load beside themselves."""
    folder = Path(cloudsched.dashboard.__file__).parent / "static"
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


VIEWS = {
    "home": "",
    "tasks": "tasks",
    "tasks that have failed": "tasks?trouble=FAILED",
    "a busy task": "tasks/tick-0",
    "runs of an hour": "runs?within=PT1H",
    "runs of a week that failed": "runs?within=P7D&status=FAILED",
    "calendar, week": "calendar",
    "calendar, week to come": "calendar?week=2027-03-29",
    "calendar, day": "calendar?day=2027-03-24",
    "calendar, day of the outage": "calendar?day=2027-03-22",
    "calendar, month": "calendar?month=2027-03",
    "calendar, month to come": "calendar?month=2027-04",
    "queues": "queues",
    "usage": "usage",
    "whether anything has changed": "changes?at=/ui/",
}
"""The views of the large store."""


def main() -> int:
    """Print the figures; return 1 if one is over its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="only the views of the large store")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the large store's file stays")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve the large store's pages, and measure nothing")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # of what fails on purpose
    is_over = False
    if not options.large and options.serve is None:
        is_over = _measure_small()
    with TemporaryDirectory() as scratch, _open_large(options.keep or Path(scratch)) as (app, pages):
        warm_up(app)
        if options.serve is None:
            _measure_large(pages)
        else:
            with WebServer(pages, port=options.serve) as server:
                server.serve()
                print(f"http://{server.address}/ui/", flush=True)
                threading.Event().wait()
    return int(is_over)


@contextmanager
def _open_large(folder: Path) -> Iterator[tuple[App, WSGIApplication]]:
    """Open the large store in a folder, which is written if there is none, and yield its app and its pages."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tasks.db"
    if not file.exists():
        write_store(file)
    app = App()
    for name in HANDLERS:
        app.handler(name, events={"decision": Decision} if name == "asks" else {})(_do_nothing)
    settings = Settings(
        store="sqlite",
        data=file,
        executor_url="http://localhost:1",
        tasks_emulator="localhost:1",  # nothing is dispatched
        secret="the secret of a benchmark",
        access=Access(open=True),
    )
    with app.override(settings, clock=MovableClock(NOW, frozen=True)):
        api = wsgi(app)
        page = EmbeddedPage(app, folder, None, PageLocation("a large store", "/ui", LOCAL_HOSTS))

        def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            chosen = page if environ["PATH_INFO"].startswith("/ui") else api
            return chosen(environ, start_response)

        yield app, serve
        app.close()


class Decision(BaseModel):
    """The answer that the runs of ``asks`` wait for."""

    approved: bool
    note: str = ""


def _do_nothing(_: Context) -> None:
    """Stand for what the store's tasks run."""


def _measure_large(pages: WSGIApplication) -> None:
    print(f"{'20,000 tasks, 52,700 runs':38} {'first':>9} {'median':>9} {'worst':>9} {'page':>10} {'zipped':>10}")
    for name, path in VIEWS.items():
        took = []
        for _ in range(ROUNDS + 1):
            start = time.process_time()
            content = _request(pages, f"/ui/{path}")
            took.append((time.process_time() - start) * 1000)
        print(
            f"{name:38} {took[0]:6.1f} ms {statistics.median(took[1:]):6.1f} ms {max(took[1:]):6.1f} ms "
            f"{len(content) / 1000:7.1f} kB {len(gzip.compress(content)) / 1000:7.1f} kB"
        )


def _request(pages: WSGIApplication, address: str) -> bytes:
    """Ask for a page without a socket, so that only the server's own time counts."""
    path, _, query = address.partition("?")
    environ = {
        "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "localhost",
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(), "wsgi.errors": sys.stderr,
    }  # fmt: skip
    said: list[str] = []

    def start(status: str, _headers: object, _error: object = None) -> Callable[[bytes], object]:
        said.append(status)
        return len

    body = b"".join(pages(environ, start))
    if not said[0].startswith("200"):
        raise ValueError(f"{address}: {said[0]} {body[:500].decode()}")
    return body


def _measure_small() -> bool:
    """Print the figures of a small stack; return whether one is over its bound."""
    is_over = False
    with run_stack(make_app(), store="sqlite", clock=MovableClock(START, frozen=True)) as stack:
        _create(
            stack.url, "ticks", "tick", {"rrule": f"FREQ=MINUTELY;COUNT={RUNS + 600}", "dtstart": "2027-03-24T02:01:00"}
        )
        _create(stack.url, "long", "long", {"at": (START + timedelta(seconds=5)).isoformat()})
        for number in range(LISTED - 2):
            _create(stack.url, f"far-{number}", "tick", {"at": f"2028-01-01T00:{number:02}:00Z"})
        move = {"advance": f"PT{RUNS}M"}
        requests.post(f"{stack.url}/dev/clock", json=move, timeout=600).raise_for_status()
        records = requests.get(f"{stack.url}/v1/tasks/long/executions", timeout=60).json()["executions"]
        execution = f"tasks/long/executions/{records[0]['id']}"
        pages = {
            "without data": EMPTY,
            "home": "",
            f"tasks, {LISTED} on the page": "tasks",
            f"a task with {RUNS} executions": "tasks/ticks",
            f"a task, {RUNS} executions, zoomed": "tasks/ticks?from=2027-03-24T10:00:00Z&until=2027-03-24T11:00:00Z",
            f"calendar, {RUNS} ran, 600 due": "calendar?week=2027-03-22&tz=UTC",
            f"execution, {STEPS:,} steps": execution,
            f"execution, {STEPS:,} steps, to scale": f"{execution}?scale=true",
            "whether anything has changed": "changes?at=/ui/tasks",
        }
        print(f"load of the machine in the last minute: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
        static = weigh_static()
        print(f"stylesheet, scripts and icon: {static / 1000:.1f} kB")
        print(f"{'page':38} {'median':>9} {'worst':>9} {'page':>10} {'zipped':>10} {'in all':>10} {'reads':>6}")
        for name, path in pages.items():
            took, content, reads = _measure(f"{stack.url}/ui/{path}", lambda: stack.counts.reads)
            median, total = statistics.median(took), (len(content) + static) / 1000
            print(
                f"{name:38} {median:6.1f} ms {max(took):6.1f} ms {len(content) / 1000:7.1f} kB "
                f"{len(gzip.compress(content)) / 1000:7.1f} kB {total:7.1f} kB {reads:6}"
            )
            is_over |= median > MOST_MILLISECONDS or total > MOST_KILOBYTES
        is_over |= _print_paint(f"{stack.url}/ui/")
    return is_over


def _create(url: str, task: str, handler: str, schedule: dict[str, str]) -> None:
    body = {"id": task, "title": f"Task {task}", "owner": "ada", "handler": handler, "schedule": schedule}
    requests.post(f"{url}/v1/tasks", json=body, timeout=60).raise_for_status()


def _measure(url: str, count: Callable[[], int]) -> tuple[list[float], bytes, int]:
    took, reads = [], 0
    content = b""
    with requests.Session() as session:
        for _ in range(ROUNDS + 1):
            before, start = count(), time.process_time()
            response = session.get(url, timeout=60)
            took.append((time.process_time() - start) * 1000)
            response.raise_for_status()
            content, reads = response.content, count() - before
    return took[1:], content, reads  # the first one compiles the template


def _print_paint(url: str) -> bool:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("There is no Chromium, so the first paint is not measured.")
        return False
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        paints = []
        for _ in range(5):
            page = browser.new_page()
            page.goto(url)
            page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            page.close()
        browser.close()
    print(f"first paint of home, nothing cached: median {statistics.median(paints):.0f} ms, worst {max(paints):.0f} ms")
    return bool(statistics.median(paints) > MOST_PAINT)


if __name__ == "__main__":
    sys.exit(main())
