"""How a worker stops: it finishes what runs, or gives it back, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from tests.engine.harness import HOUR, MINUTE
from tests.harness import wait_until
from tests.worker.harness import Gate, WorkerHarness

from cloudsched import App, AsyncContext, Context, Task
from cloudsched.worker import worker as background
from cloudsched.worker.source import ClaimedWork


@pytest.fixture(params=["plain", "async"])
def running_task(request: pytest.FixtureRequest, harness: WorkerHarness, app: App, gate: Gate) -> Task:
    """A task whose handler says something and waits at the gate."""

    def wait(ctx: Context) -> int:
        ctx.progress(f"begun by attempt {ctx.attempt}")
        gate.wait()
        return ctx.attempt

    async def wait_on_loop(ctx: AsyncContext) -> int:
        await ctx.progress(f"begun by attempt {ctx.attempt}")
        await gate.wait_on_loop()
        return ctx.attempt

    app.handler("wait")(wait if request.param == "plain" else wait_on_loop)
    return harness.offer("wait")


def test_a_stopping_worker_finishes_what_runs(harness: WorkerHarness, running_task: Task, gate: Gate) -> None:
    """A worker that is asked to stop claims nothing more, and waits for its running tasks."""
    worker = harness.worker(grace=MINUTE)
    with harness.run_beside(worker):
        gate.wait_until_inside()
        later = harness.offer("wait")
        worker.stop()
        gate.open()
        harness.wait_for_outcomes("succeeded")
    assert harness.record(running_task).status == "SUCCEEDED"
    assert list(harness.app.executions(later.id).items) == []
    assert not worker.leaves_handlers_running


@pytest.mark.parametrize("how", ["no grace", "a second signal"])
def test_a_task_that_outlasts_the_grace_period_is_released(
    harness: WorkerHarness, running_task: Task, gate: Gate, how: str
) -> None:
    """It costs no attempt, keeps its progress, is offered again at once, and the old attempt's result is discarded."""
    worker = harness.worker(grace=timedelta(0) if how == "no grace" else 10 * MINUTE)
    with harness.run_beside(worker):
        gate.wait_until_inside()
        worker.stop()
        if how == "a second signal":
            worker.stop()
        harness.wait_for_outcomes("released")
    assert worker.leaves_handlers_running
    (run,) = harness.app.get(running_task.id).runs
    assert (run.attempt, run.attempts, run.lease) == (1, (), None)
    assert [step.text for step in run.progress] == ["begun by attempt 1"]
    gate.open()
    wait_until(lambda: gate.inside == 0, "the old try has ended")
    harness.work()
    record = harness.record(running_task)
    assert (record.status, record.content, len(record.attempts)) == ("SUCCEEDED", 1, 1)
    assert harness.statuses() == ["released", "succeeded"]


def test_an_idle_worker_stops_at_once(harness: WorkerHarness, app: App) -> None:
    """It waits neither for its next poll nor for the grace period."""

    @app.handler("act")
    def act() -> None: ...

    with harness.run_beside(harness.worker(grace=HOUR)):
        pass


def test_releasing_a_task_releases_its_lock(harness: WorkerHarness, app: App, gate: Gate) -> None:
    """Another task with the same key may run then."""

    @app.handler("wait")
    def wait() -> None:
        gate.wait()

    harness.offer("wait", lock_key="press")
    worker = harness.worker(grace=timedelta(0))
    with harness.run_beside(worker):
        gate.wait_until_inside()
    harness.wait_for_outcomes("released")
    gate.open()
    other = harness.offer("wait", lock_key="press")
    harness.work()
    harness.work()
    assert harness.record(other).status == "SUCCEEDED"


class SourceStoppedDuringClaim:
    """A source whose worker is asked to stop while it claims."""

    def __init__(self, harness: WorkerHarness, stop: Callable[[], None]) -> None:
        self._desk = harness.source()
        self._stop = stop
        self.worker_filter, self.location = self._desk.worker_filter, self._desk.location
        self.can_listen, self.listen, self.close = False, self._desk.listen, self._desk.close
        self.wait = timedelta(0)

    def claim(self, limit: int) -> Sequence[ClaimedWork]:
        found = self._desk.claim(limit)
        self._stop()
        return found


def test_work_claimed_while_stopping_is_released(harness: WorkerHarness, app: App) -> None:
    """Work whose claim is answered after the signal is not started: it is offered again at once, at no cost."""
    ran: list[int] = []

    @app.handler("act")
    def act() -> None:
        ran.append(1)

    task = harness.offer("act")
    worker = harness.worker(SourceStoppedDuringClaim(harness, lambda: worker.stop()))  # noqa: PLW0108 - it is not there yet
    worker.run()
    (run,) = harness.app.get(task.id).runs
    assert (ran, harness.summaries, run.attempt, run.attempts, run.lease) == ([], [], 1, (), None)
    harness.work()
    assert len(harness.record(task).attempts) == 1


@pytest.mark.parametrize("how", ["a second signal", "one signal and the time of an answer"])
def test_an_unanswered_claim_does_not_block_stopping(
    harness: WorkerHarness, app: App, gate: Gate, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping does not wait for the source; work that the claim returns later is released."""

    @app.handler("act")
    def act() -> None: ...

    task = harness.offer("act")
    monkeypatch.setattr(background, "SHUTDOWN_WAIT_SECONDS", 0.05 if how.startswith("one") else 3600.0)
    worker = harness.worker(SourceStoppedDuringClaim(harness, gate.wait))
    with harness.run_beside(worker):
        gate.wait_until_inside()
        worker.stop()
        if how == "a second signal":
            worker.stop()
    gate.open()
    wait_until(lambda: harness.app.get(task.id).runs[0].lease is None, "it is given back")
    assert harness.summaries == []
