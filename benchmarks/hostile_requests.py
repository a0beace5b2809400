"""Measure what the dearest requests cost the processor: every operation, with the hostile requests of the tests.

    python -m benchmarks.hostile_requests [--operation NAME] [--show 20] [--memory 3000]

Each request is sent to the API in this process, over a store in memory with a user's dearest tasks in it. The figure is
the time of the processor (`time.process_time`), the least of three tries: other processes do not count. A task changes
before each further try, so that none finds what was summed up for the last one.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests import greeting_app
from tests.harness import LocalClient
from tests.hostile_requests import fill, iter_hostile_requests, prepare
from werkzeug.wrappers import Request

from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from werkzeug.test import TestResponse

AIM = 0.2
"""Seconds of the processor that no request should need more of."""


def main() -> None:
    """Send the requests and print the dearest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operation", help="only this operation")
    parser.add_argument("--show", type=int, default=20, help="how many requests are shown")
    parser.add_argument("--quick", action="store_true", help="fewer of the general values")
    parser.add_argument("--memory", type=int, default=3000, help="how many megabytes this process may have")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (arguments.memory * 2**20,) * 2)
    figures: list[tuple[float, int, str]] = []
    with Simulation(greeting_app.app) as sim:
        client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))

        def send(method: str, path: str, body: object = None, **more: Any) -> TestResponse:
            content = {"data": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
            return client.open(path, method=method, **content, **more)

        known = prepare(sim, send)
        ids = fill(send)
        for each in iter_hostile_requests(known, ids, is_quick=arguments.quick):
            if arguments.operation in {None, each.operation}:
                call = partial(send, each.method, each.path, each.body, headers=each.headers)
                seconds, status = measure(call)
                for number in range(2 if seconds > AIM else 0):
                    send("PATCH", "/v1/tasks/plain", {"title": str(number)})
                    seconds = min(seconds, measure(call)[0])
                figures.append((seconds, status, str(each)))
    figures.sort(reverse=True)
    table = Table("processor", "status", "request")
    for seconds, status, name in figures[: arguments.show]:
        table.add_row(f"{seconds * 1000:.0f} ms", str(status), name)
    over = sum(seconds > AIM for seconds, _, _ in figures)
    Console(width=150).print(table, f"{len(figures)} requests, {over} of more than {AIM * 1000:.0f} ms")


def measure(send: Callable[[], TestResponse]) -> tuple[float, int]:
    """Return the seconds of the processor that a request takes, and its status."""
    begin = time.process_time()
    response = send()
    return time.process_time() - begin, response.status_code


if __name__ == "__main__":
    main()
