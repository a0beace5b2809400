"""DBOS runs the workload of ``embedded.py``: delayed workflows on a queue, its system database in SQLite."""

from __future__ import annotations

import time
from importlib.metadata import version

from benchmarks.embedded_workload import BenchmarkRun
from dbos import DBOS, SetEnqueueOptions  # type: ignore[import-not-found]  # the rivals'

benchmark = BenchmarkRun()
DBOS(
    config={
        "name": "benchmark",
        "system_database_url": f"sqlite:///{benchmark.folder / 'dbos.db'}",
        "log_level": "ERROR",
        "run_admin_server": False,
    }
)


@DBOS.workflow()  # type: ignore[untyped-decorator]  # not here
def note(number: int) -> None:
    """Record the call."""
    benchmark.record_run(number)


class Contestant:
    """Enqueues delayed workflows as its documentation shows."""

    version = version("dbos")

    def start(self) -> None:
        """Launch it, and register the queue, which it then polls."""
        DBOS.launch()
        DBOS.register_queue("queue")

    def create(self, number: int, due_at: float) -> None:
        """Enqueue a delayed workflow."""
        with SetEnqueueOptions(delay_seconds=max(0.0, due_at - time.time())):
            DBOS.enqueue_workflow("queue", note, number)


if __name__ == "__main__":
    benchmark.run(Contestant())
