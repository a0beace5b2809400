"""A worker that dies with what it runs: that uses up no retry, and whatever has ended it is found."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.harness import MINUTE, SECOND
from tests.harness import wait_until
from tests.worker.harness import Gate, WorkerHarness

from cloudsched import Context, ExecutionStatus, Task

LEASE = 10 * MINUTE


class Crew:
    """Workers that die with all that they have claimed, as their handlers do not end before."""

    def __init__(self, harness: WorkerHarness) -> None:
        self.harness = harness

    def die(self) -> None:
        """Claim what is offered, and never report: the leases end."""
        self.harness.source().claim(8)
        self.harness.sim.advance(LEASE + 2 * MINUTE)

    def offer(self, count: int, **fields: Any) -> list[Task]:
        return [self.harness.offer("work", **fields) for _ in range(count)]


@pytest.fixture
def crew(harness: WorkerHarness) -> Crew:
    return Crew(harness)


def test_a_death_uses_up_no_retry(crew: Crew, harness: WorkerHarness) -> None:
    """Though its task has none. The record has the attempt, and says why it ended."""
    harness.app.handler("work", expected_duration=LEASE, retry=False)(lambda: "done")
    (task,) = crew.offer(1)
    crew.die()
    harness.work()
    record = harness.record(task)
    assert record.status is ExecutionStatus.SUCCEEDED
    assert [each.error and each.error.type for each in record.attempts] == ["WorkerLost", None]


def test_one_that_is_lost_three_times_in_a_row_has_failed(crew: Crew, harness: WorkerHarness) -> None:
    """However many retries it has, and its error names the handler."""
    harness.app.handler("work", expected_duration=LEASE, retry=10)(lambda: "done")
    (task,) = crew.offer(1)
    for _ in range(3):
        crew.die()
    record = harness.record(task)
    assert (record.status, record.attempt_count) == (ExecutionStatus.FAILED, 3)
    assert record.error is not None
    assert "3 times in a row" in record.error.message
    assert "'work'" in record.error.message


def test_runs_that_were_lost_together_take_turns(crew: Crew, harness: WorkerHarness, gate: Gate) -> None:
    """A worker runs one of them at a time, and gives the others back. What was not lost runs beside it."""

    def work(ctx: Context) -> str:
        if ctx.task.id in {each.id for each in lost}:
            gate.wait()
        return "done"

    harness.app.handler("work", expected_duration=LEASE, retry=False)(work)
    lost = crew.offer(3)
    crew.die()
    crew.offer(2)
    worker = harness.worker(concurrency=8, poll=0.02 * SECOND)
    with harness.run_beside(worker):
        wait_until(lambda: gate.inside == 1 and len(harness.summaries) == 2, "one of them runs, and what is new has")
        harness.sim.advance(6 * SECOND)
        wait_until(lambda: all(each.attempt_count for each in map(harness.record, lost)))
        assert gate.most == 1
        gate.open()
        for _ in range(3):
            harness.sim.advance(6 * SECOND)
            wait_until(lambda: harness.statuses().count("succeeded") >= 3)

        def have_run() -> bool:
            harness.sim.advance(6 * SECOND)
            return harness.statuses().count("succeeded") == 5

        wait_until(have_run, "the others have run")
    assert [harness.record(each).status for each in lost] == [ExecutionStatus.SUCCEEDED] * 3
