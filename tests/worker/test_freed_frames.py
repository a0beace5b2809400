"""What an attempt of a worker had in its variables is freed when it ends, and needs no search for garbage."""

from __future__ import annotations

from tests import held_frames
from tests.harness import wait_until
from tests.held_frames import DURABLE, PLAIN
from tests.worker.harness import WorkerHarness


def test_an_attempt_that_has_ended_holds_nothing(harness: WorkerHarness) -> None:
    """Failed, suspended, cancelled or put off, at the store or through the API."""
    handlers = PLAIN | (DURABLE if harness.kind == "store" else {})
    held_frames.register(harness.app, handlers)
    worker = harness.worker(concurrency=8)
    with held_frames.watch():
        for name in handlers:
            harness.offer(name)
        with harness.run_beside(worker):
            wait_until(lambda: len(harness.summaries) == len(handlers), "all have ended")
            wait_until(lambda: held_frames.count_held() == 0, "nothing is held", 5)
