"""Restart a process again and again under handlers that take longer than it lives, and count what that costs.

    python -m benchmarks.restarts [--restarts 200] [--handlers 6] [--seconds 3] [--signal TERM|KILL] [--poison]

The process is `cloudsched serve` over one folder, as a supervisor starts it: again as soon as it has ended. Its
handlers take `--seconds`, and may not be retried (`retry=False`). The process is stopped by the signal after a random
time, from one second to twice what a handler takes. It gets half a second to end, as from a container's runtime,
and then SIGKILL. `--poison` adds a task whose handler ends its process.

It prints how many attempts were lost, how many of the tasks' own retries were used, and how all runs ended.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.local_services import serve

from cloudsched.client import Client
from cloudsched.errors import CloudschedError

HANDLERS = """
import os, time
from cloudsched import App, Context

app = App()


@app.handler("work", retry=False)
def work(ctx: Context) -> str:
    time.sleep(SECONDS)
    return "done"


@app.handler("poison", retry=False)
def poison(ctx: Context) -> None:
    time.sleep(0.5)
    os._exit(70)
"""


GRACE_SECONDS = 0.5
"""How long a process may take to end after the signal."""


class Load:
    """The tasks that run in a server, or have."""

    def __init__(self) -> None:
        self.created: list[str] = []

    def create(self, client: Client, handler: str) -> None:
        """Create a task that is due now."""
        name = f"{handler}-{len(self.created)}"
        client.create(id=name, owner="ada", handler=handler, title=handler)
        self.created.append(name)

    def list_open(self, client: Client) -> list[str]:
        """Return those that have not ended."""
        return [each for each in self.created if client.get(each).status == "ACTIVE"]

    def report(self, client: Client) -> None:
        """Print what became of them."""
        records = {each: next(iter(client.executions(each))) for each in self.created}
        errors = Counter(each.error.type for record in records.values() for each in record.attempts if each.error)
        lost = errors["ProcessEnded"] + errors["ResultLost"]
        own = errors.total() - lost
        print(f"tasks {len(records)}, attempts that were lost {lost}, attempts that failed by themselves {own}")
        print("ended as", dict(Counter(f"{each.split('-')[0]} {record.status}" for each, record in records.items())))


def main() -> None:
    """Run it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--handlers", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--signal", choices=["TERM", "KILL"], default="TERM")
    parser.add_argument("--poison", action="store_true")
    options = parser.parse_args()
    chance, signum = random.Random(0), signal.Signals[f"SIG{options.signal}"]  # noqa: S311 - to be repeated
    load, killed, began = Load(), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "handlers.py").write_text(HANDLERS.replace("SECONDS", str(options.seconds)))
        for _ in range(options.restarts):
            with suppress(AssertionError), serve(folder) as (service, address):  # a handler may end it at once
                with suppress(CloudschedError), Client(address) as client:
                    if options.poison and not load.created:
                        load.create(client, "poison")
                    for _ in range(options.handlers - sum(each.startswith("work") for each in load.list_open(client))):
                        load.create(client, "work")
                time.sleep(chance.uniform(1.0, 2 * options.seconds))
                service.signal(signum)
                try:
                    service.wait(GRACE_SECONDS)
                except subprocess.TimeoutExpired:
                    killed += 1
        deadline = time.monotonic() + 60 + 20 * options.seconds
        is_done = False
        while not is_done:
            with suppress(AssertionError, CloudschedError), serve(folder) as (_, address), Client(address) as client:
                while load.list_open(client) and time.monotonic() < deadline:
                    time.sleep(0.2)
                seconds = time.monotonic() - began
                print(f"{options.restarts} restarts by {signum.name} in {seconds:.0f} s; {killed} had to be killed")
                load.report(client)
                is_done = True


if __name__ == "__main__":
    main()
