"""huey runs the workload of ``embedded.py``: its SQLite storage, one consumer with worker threads in the process.

Its file is synced at each commit (``fsync=True``), so a created task is on disk. It runs without durability all the
same: a task leaves the file before its handler is called, and is lost if the process dies then.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version

from benchmarks.embedded_workload import BenchmarkRun
from huey import SqliteHuey  # type: ignore[import-not-found]  # the rivals'

benchmark = BenchmarkRun()
huey = SqliteHuey(filename=str(benchmark.folder / "huey.db"), fsync=True, results=False)


@huey.task()  # type: ignore[untyped-decorator]  # not here
def note(number: int) -> None:
    """Record the call."""
    benchmark.record_run(number)


class Contestant:
    """Schedules tasks as its documentation shows."""

    version = version("huey")

    def start(self) -> None:
        """Start its scheduler, which looks for due tasks once a second, and its worker threads."""
        consumer = huey.create_consumer(workers=8, scheduler_interval=1, initial_delay=0.01, max_delay=0.01)
        consumer.start()

    def create(self, number: int, due_at: float) -> None:
        """Schedule a task."""
        note.schedule(args=(number,), eta=datetime.fromtimestamp(due_at, UTC))


if __name__ == "__main__":
    benchmark.run(Contestant())
