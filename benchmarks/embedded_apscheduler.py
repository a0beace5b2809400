"""APScheduler 3 runs the workload of ``embedded.py``: its SQLAlchemy job store over SQLite, its default thread pool."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from benchmarks.embedded_workload import BenchmarkRun

benchmark = BenchmarkRun()


def note(number: int) -> None:
    """Record the call."""
    benchmark.record_run(number)


class Contestant:
    """Creates jobs as its documentation shows."""

    version = version("apscheduler")

    def __init__(self) -> None:
        self.scheduler = BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url=f"sqlite:///{benchmark.folder / 'jobs.db'}")},
            executors={"default": ThreadPoolExecutor(10)},
            job_defaults={"misfire_grace_time": None},
            timezone=UTC,
        )

    def start(self) -> None:
        """Start the scheduler, which reads its job store."""
        self.scheduler.start()

    def create(self, number: int, due_at: float) -> None:
        """Create a one-off job."""
        self.scheduler.add_job(note, "date", run_date=datetime.fromtimestamp(due_at, UTC), args=(number,))


if __name__ == "__main__":
    benchmark.run(Contestant())
