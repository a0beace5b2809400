"""Measure 60 threads of one `Client` beside 60 coroutines of one `AsyncClient`, and beside plain httpx.

    python -m benchmarks.client_threads [--callers 60] [--calls 20] [--delay 0.05] [--rounds 5]

A server in another process answers each request after the same delay. All candidates run in alternation, each on
connections of its own, which the round before has opened. The floor is the delay times the calls of one caller.
A call that fails counts as done, and is counted: the threads of `httpx.Client` sometimes close each other's sockets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
from rich.console import Console
from rich.table import Table

from cloudsched.client import AsyncClient, Client

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER = json.dumps({"occurrences": []}).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--callers", type=int, default=60)
    parser.add_argument("--calls", type=int, default=20, help="how many requests each caller sends, one after another")
    parser.add_argument("--delay", type=float, default=0.05, help="the seconds that each answer takes")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()

    ports: Any = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(ports, given.delay), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ports.get(timeout=60)}"
    try:
        seconds, failed = measure(url, given.callers, given.calls, given.rounds)
    finally:
        server.terminate()
    floor = given.delay * given.calls
    heads = ("candidate", "median s", "worst s", f"/ floor of {floor:g} s", "failed calls")
    table = Table(*heads, title=f"{given.callers} callers")
    for name, each in seconds.items():
        median = statistics.median(each)
        table.add_row(
            name, f"{median:.2f}", f"{max(each):.2f}", f"{median / floor if floor else 0:.2f}", str(failed[name])
        )
    Console(width=110).print(table)


def serve(ports: Any, delay: float) -> None:  # noqa: ANN401 - a queue of multiprocessing
    """Answer every request alike, after a delay."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(delay)
                writer.write(HEAD + ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        listener = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
        ports.put(listener.sockets[0].getsockname()[1])
        await listener.serve_forever()

    asyncio.run(run())


def measure(url: str, callers: int, calls: int, rounds: int) -> tuple[dict[str, list[float]], Counter[str]]:  # noqa: C901 - two colours
    """Return the seconds of each candidate in each round, without the first, and the calls that failed."""
    failed: Counter[str] = Counter()
    path = f"{url}/v1/tasks/t/upcoming?count=10"
    seconds: dict[str, list[float]] = {}
    with (
        Client(url) as client,
        httpx.Client() as plain,
        asyncio.Runner() as runner,
        ThreadPoolExecutor(callers) as pool,
    ):
        aclient = AsyncClient(url)
        aplain = httpx.AsyncClient()

        def in_threads(name: str, call: Callable[[], object]) -> Callable[[], None]:
            def each(_: int) -> None:
                for _ in range(calls):
                    try:
                        call()
                    except httpx.HTTPError:
                        failed[name] += 1

            def every() -> None:
                list(pool.map(each, range(callers)))

            return every

        def on_loop(call: Callable[[], Any]) -> Callable[[], None]:
            async def each() -> None:
                for _ in range(calls):
                    await call()

            async def every() -> None:
                await asyncio.gather(*(each() for _ in range(callers)))

            return lambda: runner.run(every())

        candidates = {
            "Client, threads": in_threads("ours", lambda: client.upcoming("t")),
            "AsyncClient, coroutines": on_loop(lambda: aclient.upcoming("t")),
            "httpx.Client, threads": in_threads("httpx.Client, threads", lambda: plain.get(path).json()),
            "httpx.AsyncClient, coroutines": on_loop(lambda: aplain.get(path)),
        }
        for number in range(rounds + 1):
            for name, run in candidates.items():
                start = time.perf_counter()
                run()
                if number:
                    seconds.setdefault(name, []).append(time.perf_counter() - start)
        runner.run(aclient.close())
        runner.run(aplain.aclose())
    return seconds, failed


if __name__ == "__main__":
    main()
