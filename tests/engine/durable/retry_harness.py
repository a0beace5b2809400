"""An app whose handlers fail, are fixed, and are retried by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.engine.harness import DAY, Row, create, register_work_handler, run_to_end

from cloudsched import App, Context, Execution
from cloudsched.testing import Simulation


class RetryHarness:
    """An app whose handlers record their effects, and fail where the test says."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.effects = list[str]()
        self.broken = {"the code"}

        @self.app.handler("charge", retry=False)
        def charge(row: Row) -> int:
            self.perform(f"charge {row.n}")
            return row.n

    def perform(self, what: str) -> str:
        """Have an effect, or fail."""
        self.effects.append(what)
        if what in self.broken:
            raise ConnectionError(what)
        return what

    def step(self, ctx: Context, name: str) -> str:
        return ctx.step(name, self.perform, name, retry=False)

    def raise_if_broken(self) -> None:
        """Be the bug that is fixed before the retry."""
        if "the code" in self.broken:
            raise KeyError("the code")

    def run_fix_and_retry(self, call: Callable[[Context], Any], **fields: Any) -> tuple[Execution, list[str]]:
        """Run a handler until it fails, fix everything, and retry; return the effects since the failure."""
        register_work_handler(self.app, call)
        with Simulation(self.app) as sim:
            task = create(self.app, **{"retry": {"maxRetries": 0}, **fields})
            failed = run_to_end(sim, task, 10 * DAY)
            assert failed.status == "FAILED", failed
            self.effects.clear()
            self.broken.clear()
            self.app.retry(task.id)
            sim.run_until_idle(10 * DAY)
            return self.app.execution(task.id, failed.id), self.effects
