"""How many threads a worker has: none waits for a coroutine, and a plain handler has one while it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, AsyncContext, Depends
from cloudsched.worker.slot import MAX_HEARTBEAT_THREADS, MAX_SOURCE_THREADS

if TYPE_CHECKING:
    from tests.worker.harness import Gate, WorkerHarness


MANY = 50
FIXED = 4
"""The test's thread that runs the worker, the one that claims, the supervisor, and the loop of async handlers."""
MOST = FIXED + MAX_SOURCE_THREADS + MAX_HEARTBEAT_THREADS


class ThreadCount:
    """Counts the threads that were started after it was made, except those of the test's own API server."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def threads(self) -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each not in self._before}

    def names(self) -> list[str]:
        return sorted(each.name for each in self.threads() if not each.name.startswith("CP Server"))


@pytest.fixture
def count() -> ThreadCount:
    """The count, from the test's start."""
    return ThreadCount()


def test_fifty_async_attempts_cost_no_thread_each(harness: WorkerHarness, app: App, count: ThreadCount) -> None:
    """All of them meet, with a dependency open, which only works if all run at once; the number of threads is fixed."""
    everybody = asyncio.Barrier(MANY)
    seen = list[list[str]]()
    closed = list[int]()

    async def open_session() -> AsyncIterator[int]:
        await everybody.wait()
        yield 1
        closed.append(1)

    @app.handler("meet", retry=False)
    async def meet(ctx: AsyncContext, session: Any = Depends(open_session)) -> Any:  # noqa: B008, ANN401 - a marker
        async with asyncio.timeout(120):
            await everybody.wait()
            seen.append(count.names())
            await ctx.progress("met")
            await everybody.wait()
        seen.append(count.names())
        return session

    for _ in range(MANY):
        harness.offer("meet")
    harness.work(concurrency=MANY)
    assert harness.statuses() == ["succeeded"] * MANY, harness.summaries
    assert len(closed) == MANY
    assert max(len(names) for names in seen) <= MOST, seen[-1]


def test_a_plain_handler_has_a_thread_while_it_runs(
    harness: WorkerHarness, app: App, gate: Gate, count: ThreadCount
) -> None:
    """As many threads as handlers that run, whatever the concurrency; and none is left when the worker has ended."""

    @app.handler("wait")
    def wait() -> None:
        gate.wait()

    for _ in range(3):
        harness.offer("wait")
    with harness.run_beside(harness.worker(concurrency=MANY)):
        gate.wait_until_inside(3)
        handlers = [name for name in count.names() if name.startswith("worker-handler")]
        assert len(handlers) == 3
        assert len(count.names()) <= MOST + 3
        gate.open()
        harness.wait_for_outcomes(*["succeeded"] * 3)
    for thread in count.threads():
        if thread.name.startswith("worker-"):
            thread.join(60)
    left = [name for name in count.names() if name.startswith("worker-")]
    assert left == []
