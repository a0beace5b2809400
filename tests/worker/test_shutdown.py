"""How a worker stops: it finishes what runs, or gives it back, and loses nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.harness import wait_until

from cloudsched import Context  # noqa: TC001 - handlers' annotations are read at run time
from cloudsched.worker import background as worker_errands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.worker.harness import Gate, WorkerHarness

    from cloudsched import App, Task
    from cloudsched.worker.source import ClaimedWork


@pytest.fixture
def running_task(bench: WorkerHarness, app: App, gate: Gate) -> Task:
    """A task whose handler says something and waits at the gate."""

    @app.handler("wait")
    def wait(ctx: Context) -> int:
        ctx.progress(f"begun by attempt {ctx.attempt}")
        gate.wait()
        return ctx.attempt

    return bench.offer("wait")


def test_what_runs_is_finished(bench: WorkerHarness, begun: Task, gate: Gate) -> None:
    """A worker that is to stop claims nothing more, and waits for what runs."""
    worker = bench.worker(grace=timedelta(minutes=1))
    with bench.run_beside(worker):
        gate.wait_until_inside()
        later = bench.offer("wait")
        worker.stop()
        gate.open()
        bench.wait_for_outcomes("succeeded")
    assert bench.record(begun).status == "SUCCEEDED"
    assert list(bench.app.executions(later.id).items) == []
    assert not worker.leaves_handlers_running


@pytest.mark.parametrize("how", ["no grace", "a second signal"])
def test_what_does_not_end_is_given_back(bench: WorkerHarness, begun: Task, gate: Gate, how: str) -> None:
    """It costs no attempt, keeps what was said, is offered again at once, and what comes of the old try is dropped."""
    worker = bench.worker(grace=timedelta(0) if how == "no grace" else timedelta(minutes=10))
    with bench.run_beside(worker):
        gate.wait_until_inside()
        worker.stop()
        if how == "a second signal":
            worker.stop()
        bench.wait_for_outcomes("released")
    assert worker.leaves_handlers_running
    (run,) = bench.app.get(begun.id).runs
    assert (run.attempt, run.attempts, run.lease) == (1, (), None)
    assert [step.text for step in run.progress] == ["begun by attempt 1"]
    gate.open()
    wait_until(lambda: gate.inside == 0, "the old try has ended")
    bench.work()
    record = bench.record(begun)
    assert (record.status, record.content, len(record.attempts)) == ("SUCCEEDED", 1, 1)
    assert bench.what() == ["released", "succeeded"]


def test_an_idle_worker_stops_at_once(bench: WorkerHarness, app: App) -> None:
    """It does not wait for its next look, nor for the grace."""

    @app.handler("act")
    def act() -> None: ...

    with bench.run_beside(bench.worker(grace=timedelta(hours=1))):
        pass


def test_the_lock_of_what_is_given_back_is_free(bench: WorkerHarness, app: App, gate: Gate) -> None:
    """Another task of the same key may run then."""

    @app.handler("wait")
    def wait() -> None:
        gate.wait()

    bench.offer("wait", lock_key="press")
    worker = bench.worker(grace=timedelta(0))
    with bench.run_beside(worker):
        gate.wait_until_inside()
    bench.wait_for_outcomes("released")
    gate.open()
    other = bench.offer("wait", lock_key="press")
    bench.work()
    bench.work()
    assert bench.record(other).status == "SUCCEEDED"


class SourceStoppedDuringClaim:
    """A desk of a worker that is told to stop while it claims."""

    def __init__(self, bench: WorkerHarness, stop: Callable[[], None]) -> None:
        self._desk = bench.source()
        self._stop = stop
        self.worker_filter, self.location = self._desk.worker_filter, self._desk.location
        self.can_listen, self.listen, self.close = False, self._desk.listen, self._desk.close

    def claim(self, limit: int) -> Sequence[ClaimedWork]:
        found = self._desk.claim(limit)
        self._stop()
        return found


def test_what_a_stopping_worker_is_given_it_gives_back(bench: WorkerHarness, app: App) -> None:
    """A claim that was answered after the signal is not begun: it is offered again at once, at no cost."""
    ran: list[int] = []

    @app.handler("act")
    def act() -> None:
        ran.append(1)

    task = bench.offer("act")
    worker = bench.worker(SourceStoppedDuringClaim(bench, lambda: worker.stop()))  # noqa: PLW0108 - it is not there yet
    worker.run()
    (run,) = bench.app.get(task.id).runs
    assert (ran, bench.summaries, run.attempt, run.attempts, run.lease) == ([], [], 1, (), None)
    bench.work()
    assert len(bench.record(task).attempts) == 1


@pytest.mark.parametrize("how", ["a second signal", "one signal and the time of an answer"])
def test_a_claim_that_is_not_answered_keeps_no_worker(
    bench: WorkerHarness, app: App, gate: Gate, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wants it to stop does not wait for the desk; what comes of the claim later is given back."""

    @app.handler("act")
    def act() -> None: ...

    task = bench.offer("act")
    monkeypatch.setattr(worker_errands, "SHUTDOWN_WAIT_SECONDS", 0.05 if how.startswith("one") else 3600.0)
    worker = bench.worker(SourceStoppedDuringClaim(bench, gate.wait))
    with bench.run_beside(worker):
        gate.wait_until_inside()
        worker.stop()
        if how == "a second signal":
            worker.stop()
    gate.open()
    wait_until(lambda: bench.app.get(task.id).runs[0].lease is None, "it is given back")
    assert bench.summaries == []
