"""What the tests of workers share: a world with a queue of work, and a source of either kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from tests.engine.harness import HOUR, SECOND
from tests.harness import wait_until

from cloudsched import App, Execution, Schedule, Task
from cloudsched.client import Client
from cloudsched.features.pull.work_queue import WorkerFilter
from cloudsched.testing import Simulation
from cloudsched.worker.api_source import ApiSource
from cloudsched.worker.slot import AttemptSummary
from cloudsched.worker.source import WorkSource
from cloudsched.worker.store_source import StoreSource
from cloudsched.worker.worker import Worker

NEVER = HOUR
"""For what must not happen by itself within a test."""
BRIEF = 0.3 * SECOND
"""A lease with heartbeats every tenth of a second."""


@dataclass
class WorkerHarness:
    """An app in a simulation, an API in front of it, and the summaries that a worker has reported."""

    sim: Simulation
    url: str
    kind: Literal["store", "api"]
    summaries: list[AttemptSummary] = field(default_factory=list)

    @property
    def app(self) -> App:
        return self.sim.app

    def offer(self, handler: str, **fields: Any) -> Task:
        """Create a task for workers that is due now."""
        usual = {"owner": "ada", "title": handler, "handler": handler, "pull": "gpu"}
        task = self.app.create(**{**usual, "schedule": Schedule.once(self.sim.now), **fields})
        self.sim.advance(timedelta(0))
        return task

    def source(self, *skills: str, queue: str = "gpu", owner: str | None = None) -> StoreSource | ApiSource:
        """Return a source whose worker has this app's handlers."""
        names = frozenset(handler.name for handler in self.app.container.registry)
        wanted = WorkerFilter(queue, skills, names, owner, "box-1")
        if self.kind == "store":
            return StoreSource(self.app, wanted, "here")
        return ApiSource(lambda: Client(self.url, timeout=60), self.app.container.registry, wanted, "there")

    def worker(self, desk: WorkSource | None = None, **options: Any) -> Worker:
        """Return a worker that polls only when it is notified, unless given other options."""
        usual = {"poll": NEVER, "grace": 10 * SECOND, "on_attempt_finished": self.summaries.append}
        return Worker(self.source() if desk is None else desk, **{**usual, **options})

    def work(self, **options: Any) -> None:
        """Run all that is offered, and what that leads to at this instant."""
        self.worker(**options).run(once=True)
        self.sim.advance(timedelta(0))

    @contextmanager
    def run_beside(self, worker: Worker) -> Iterator[threading.Thread]:
        """Let a worker run beside the test, in this thread; stop it at the end, unless the test has done so."""
        failures: list[BaseException] = []

        def run() -> None:
            try:
                worker.run()
            except BaseException as error:  # noqa: BLE001 - raised below
                failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            if not worker.was_stopped:
                worker.stop()
            thread.join(60)
        assert not thread.is_alive(), "it does not stop"
        if failures:
            raise failures[0]

    def record(self, task: Task) -> Execution:
        (found,) = self.app.executions(task.id).items
        return found

    def statuses(self) -> list[str]:
        """Return the status that the worker has reported for each of its attempts."""
        return [ended.status for ended in self.summaries]

    def wait_for_outcomes(self, *expected: str) -> None:
        """Wait until the worker has reported these statuses, in any order."""
        wait_until(lambda: sorted(self.statuses()) == sorted(expected), f"the attempts end as {expected}")


class Gate:
    """Where a handler waits for the test, and the test for the handler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = threading.Event()
        self._on_open: list[Callable[[], object]] = []
        self.inside = 0
        self.most = 0
        """How many were inside at once."""

    def wait(self) -> None:
        """Say that a handler is here, and wait until the gate is open."""
        self._enter()
        assert self._is_open.wait(60), "nobody opens the gate"
        self._leave()

    async def wait_on_loop(self) -> None:
        """Do the same without blocking the event loop, and without a thread."""
        opened = asyncio.Event()
        with self._lock:
            self._on_open.append(partial(asyncio.get_running_loop().call_soon_threadsafe, opened.set))
        if self._is_open.is_set():
            opened.set()
        self._enter()
        await asyncio.wait_for(opened.wait(), 30)
        self._leave()

    def open(self) -> None:
        """Open the gate for all who wait, and for those who come later."""
        self._is_open.set()
        with self._lock:
            waiting, self._on_open = self._on_open, []
        for notify in waiting:
            notify()

    def _enter(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def _leave(self) -> None:
        with self._lock:
            self.inside -= 1

    def wait_until_inside(self, count: int = 1) -> None:
        """Wait until so many handlers are here."""
        wait_until(lambda: self.inside == count, f"{count} handlers wait")
