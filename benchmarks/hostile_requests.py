"""Measure what the dearest requests cost the processor: every operation, with the hostile requests of the tests.

    python -m benchmarks.hostile_requests [--operation NAME] [--memory 3000]

Each request is sent to the API in this process, over a store in memory with a user's dearest tasks in it. The figure is
the time of the processor (`time.process_time`), the least of three tries: other processes do not count. A task changes
before each further try, so that none finds what was summed up for the last one. Those that are shown are sent once more
for the memory that they take.
"""

from __future__ import annotations

import argparse
import resource
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests import greeting_app
from tests.harness import LocalClient
from tests.hostile_requests import HostileRequest, fill, iter_hostile_requests, prepare
from werkzeug.wrappers import Request

from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from werkzeug.test import TestResponse

AIM = 0.2
"""Seconds of the processor that no request should need more of."""
TASKS = 900
"""How many of the largest tasks there are: as many as a user may have, with those of `prepare`."""


def main() -> None:
    """Send the requests and print the dearest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operation", help="only this operation")
    parser.add_argument("--memory", type=int, default=3000, help="how many megabytes this process may have")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (arguments.memory * 2**20,) * 2)
    figures: list[Figure] = []
    with Simulation(greeting_app.app) as sim:
        client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))

        def send(method: str, path: str, body: object = None, **more: Any) -> TestResponse:
            content = {"data": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
            return client.open(path, method=method, **content, **more)

        known = prepare(sim, send)
        ids = fill(send, TASKS)
        for each in iter_hostile_requests(known, ids):
            if arguments.operation in {None, each.operation}:
                call = partial(send, each.method, each.path, each.body, headers=each.headers)
                seconds, answer = measure(call)
                for number in range(2 if seconds > AIM else 0):
                    send("PATCH", "/v1/tasks/plain", {"title": str(number)})
                    seconds = min(seconds, measure(call)[0])
                figures.append(Figure(seconds, len(answer.get_data()), answer.status_code, each))
        for title, order in (("dearest", attrgetter("seconds")), ("largest", attrgetter("size"))):
            table = Table("processor", "answer", "memory", "status", "request", title=f"The {title}")
            for figure in sorted(figures, key=order, reverse=True)[:20]:
                each = figure.request
                memory = measure_memory(partial(send, each.method, each.path, each.body, headers=each.headers))
                told = (f"{figure.seconds * 1000:.0f} ms", f"{figure.size / 1e6:.2f} MB", f"{memory / 1e6:.0f} MB")
                table.add_row(*told, str(figure.status), str(each))
            Console(width=150).print(table)
    over = sum(each.seconds > AIM for each in figures)
    Console(width=150).print(f"{len(figures)} requests, {over} of more than {AIM * 1000:.0f} ms")


@dataclass(frozen=True, slots=True)
class Figure:
    """What one request took."""

    seconds: float
    size: int
    """The bytes of its answer."""
    status: int
    request: HostileRequest


def measure(send: Callable[[], TestResponse]) -> tuple[float, TestResponse]:
    """Return the seconds of the processor that a request takes, and its answer."""
    begin = time.process_time()
    response = send()
    return time.process_time() - begin, response


def measure_memory(send: Callable[[], TestResponse]) -> int:
    """Return the most memory that a request takes, in bytes. It runs much slower meanwhile."""
    tracemalloc.start()
    try:
        send().get_data()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    main()
