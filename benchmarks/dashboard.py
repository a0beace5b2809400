"""How long the server takes for each page of the dashboard: ``python -m benchmarks.dashboard --large``.

20,000 tasks, or else 1,000, run for three days of a simulation. Then each page is asked for as a browser does:
processor time of the dashboard, the API and the store (SQLite) together, at the first look and later, and the page's
bytes. The exit status is 1 if a first look takes more than `MOST_FIRST` milliseconds, or later ones `MOST_LATER`.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta

from werkzeug.test import Client as Browser

from cloudsched import App, Context
from cloudsched.client.local_client import LocalApi
from cloudsched.dashboard.application import Dashboard
from cloudsched.local.warm_up import warm_up
from cloudsched.testing import Simulation
from cloudsched.web.own_api import find_sender

START = datetime(2027, 3, 22, tzinfo=UTC)
MOST_FIRST, MOST_LATER, ROUNDS = 100, 60, 9
RULES = {"tick": "FREQ=HOURLY;INTERVAL=3", "report": "FREQ=DAILY", "digest": "FREQ=WEEKLY", "broken": "FREQ=DAILY"}
SHARES = ("tick", "broken", "broken", *["report"] * 12, *["digest"] * 5)
"""The handlers of each twenty tasks."""
VIEWS = (
    "", "tasks", "tasks?trouble=FAILED", "tasks?handler=report", "tasks/t0", "runs", "runs?outcome=failed",
    "runs?error=warehouse", "calendar", "calendar?week=2027-03-29", "calendar?day=2027-03-24", "calendar?month=2027-03",
    "due", "queues", "usage", "audit", "search?q=report", "changes?at=/",
)  # fmt: skip


def make_app() -> App:
    """Return the app whose tasks run."""
    app = App()

    def run(ctx: Context) -> None:
        ctx.used(tokens=100)
        if ctx.task.handler == "broken":
            raise ValueError("the warehouse did not answer")

    for name in RULES:
        app.handler(name, retry=False, pull="gpu" if name == "digest" else None)(run)
    return app


def main() -> int:
    """Print the figures; return 1 if one is over its bound."""
    logging.disable(logging.CRITICAL)  # of what fails on purpose
    is_over = False
    with Simulation(make_app(), START, each_look=timedelta(0)) as sim:
        for number in range(20_000 if "--large" in sys.argv else 1000):
            handler = SHARES[number % len(SHARES)]
            first = START + timedelta(minutes=number * 7 % 1440)
            schedule = {"rrule": RULES[handler], "dtstart": f"{first:%Y-%m-%dT%H:%M:%S}", "timezone": "UTC"}
            owner, title = f"team-{number % 60}", f"{handler} {number}"
            sim.app.create(id=f"t{number}", owner=owner, title=title, handler=handler, schedule=schedule)
        sim.advance(timedelta(days=3))
        warm_up(sim.app)
        browser = Browser(Dashboard(LocalApi(find_sender(sim.app)), place="of a benchmark"))
        print(f"{'page':28} {'first':>9} {'median':>9} {'size':>10}")
        for path in VIEWS:
            took = []
            for _ in range(ROUNDS + 1):
                begin = time.process_time()
                page = browser.get(f"/{path}", base_url="http://localhost")
                took.append((time.process_time() - begin) * 1000)
            median = statistics.median(took[1:])
            is_over |= page.status_code != 200 or took[0] > MOST_FIRST or median > MOST_LATER
            print(f"{path or 'home':28} {took[0]:6.1f} ms {median:6.1f} ms {len(page.data) / 1000:7.1f} kB")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
