"""A worker runs async handlers side by side on one event loop, with either source."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest
from tests.worker.harness import BRIEF, WorkerHarness

from cloudsched import App, AsyncContext
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.engine.handlers.context import LeaseRenewal
from cloudsched.worker.source import LeaseKeeper

MANY = 12


def test_async_handlers_run_side_by_side(harness: WorkerHarness, app: App) -> None:
    """All of them wait for the last one, so they end only if all run at once; on one loop, in one thread."""
    barrier = asyncio.Barrier(MANY)
    threads = set[int]()

    @app.handler("meet", retry=False)
    async def meet(ctx: AsyncContext) -> int:
        threads.add(threading.get_ident())
        async with asyncio.timeout(60):
            await barrier.wait()
        await ctx.progress("met")
        return ctx.attempt

    for _ in range(MANY):
        harness.offer("meet")
    harness.work(concurrency=MANY)
    assert [each.status for each in harness.summaries] == ["succeeded"] * MANY, harness.summaries
    assert len(threads) == 1


def test_an_iterator_is_read_beside_the_loop(harness: WorkerHarness, app: App) -> None:
    """An async handler may return an iterator that blocks: a thread reads its items, and the loop goes on."""

    @app.handler("read")
    async def read() -> Iterator[bool]:
        loop = threading.get_ident()
        return (threading.get_ident() != loop for _ in range(2))

    task = harness.offer("read")
    harness.work()
    assert harness.record(task).content == [True, True]


def test_a_blocked_loop_does_not_lose_the_lease(
    harness: WorkerHarness, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker sends heartbeats beside the loop, also while a handler blocks it by mistake."""
    beat = threading.Event()
    renew = LeaseKeeper.renew

    def count(keeper: LeaseKeeper, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        beat.set()
        return renew(keeper, progress)

    monkeypatch.setattr(LeaseKeeper, "renew", count)

    @app.handler("block", expected_duration=BRIEF)
    async def block() -> bool:
        return beat.wait(60)

    harness.offer("block")
    harness.work()
    assert [each.status for each in harness.summaries] == ["succeeded"]
