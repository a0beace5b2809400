"""cloudsched runs the workload of ``embedded.py``: the embedded store in a file, the queue in the process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.metadata import version

from benchmarks.embedded_workload import BenchmarkRun
from pydantic import BaseModel

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.adapters.sqlite.store import SqliteStore

benchmark = BenchmarkRun()
store, clock = SqliteStore(benchmark.folder / "tasks.db"), SystemClock()


def deliver(body: bytes, token: str) -> object:
    """Pass the queue's messages to the app."""
    return app.deliver(body, token)


queue = InProcessDispatcher(clock, deliver)
app = App(Settings(secret="a secret of this benchmark"), store=store, dispatcher=queue, clock=clock)


class Numbered(BaseModel):
    """The handler's payload."""

    number: int


@app.handler("note")
def note(task: Numbered) -> None:
    """Record the call."""
    benchmark.record_run(task.number)


class Contestant:
    """Creates tasks as a caller would."""

    version = version("cloudsched")

    def start(self) -> None:
        """Start the queue, and fill it from the store, as `cloudsched serve` does."""
        queue.start()
        app.container.sweeper.resend(clock.now() + timedelta(minutes=10))

    def create(self, number: int, due_at: float) -> None:
        """Create a one-off task."""
        at = datetime.fromtimestamp(due_at, UTC)
        app.create(owner="ada", title="Note", handler="note", payload={"number": number}, schedule=Schedule.once(at))


if __name__ == "__main__":
    benchmark.run(Contestant())
