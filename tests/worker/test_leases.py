"""How a worker keeps the leases of its runs, and what it does when it loses one or cannot deliver a result."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.engine.harness import MINUTE, SECOND
from tests.harness import wait_until
from tests.instants import about
from tests.worker.harness import BRIEF, NEVER, Gate, WorkerHarness

from cloudsched import App, AsyncContext, Context, Task
from cloudsched.errors import CloudschedError, Forbidden, StoreUnavailable, Unauthenticated
from cloudsched.worker import slot, source


def lease_end(harness: WorkerHarness, task: Task) -> datetime:
    (run,) = harness.app.get(task.id).runs
    assert run.lease is not None
    return run.lease.until


def wait_for_renewal(harness: WorkerHarness, task: Task, since: datetime) -> None:
    wait_until(lambda: lease_end(harness, task) > since, "the lease is renewed")


def send_until_refused(ctx: Context, answers: list[bool]) -> None:
    """Send heartbeats until one is answered with False."""

    def send_heartbeat() -> bool:
        answers.append(ctx.heartbeat())
        return not answers[-1]

    wait_until(send_heartbeat, "a heartbeat is refused")


@pytest.fixture(params=["plain", "async"])
def silent_task(request: pytest.FixtureRequest, harness: WorkerHarness, app: App, gate: Gate) -> Task:
    """A task whose handler says nothing until the gate is open, with a brief lease."""

    def linger() -> str:
        gate.wait()
        return "done"

    async def linger_on_loop() -> str:
        await gate.wait_on_loop()
        return "done"

    app.handler("linger", expected_duration=BRIEF)(linger if request.param == "plain" else linger_on_loop)
    return harness.offer("linger")


def test_heartbeats_are_sent_for_a_silent_handler(harness: WorkerHarness, silent_task: Task, gate: Gate) -> None:
    """The lease is renewed again and again while the handler says nothing, and its result counts."""
    with harness.run_beside(harness.worker()):
        gate.wait_until_inside()
        for _ in range(3):
            until = lease_end(harness, silent_task)
            harness.sim.clock.advance(BRIEF / 3)
            wait_for_renewal(harness, silent_task, until)
        gate.open()
        harness.wait_for_outcomes("succeeded")
    assert [attempt.status for attempt in harness.record(silent_task).attempts] == ["SUCCEEDED"]


@pytest.mark.parametrize("edited", [1, 60, 1200])
def test_an_edit_changes_the_lease_from_its_next_renewal_on(harness: WorkerHarness, app: App, edited: int) -> None:
    """Heartbeats follow the lease's new duration, no lease ends earlier than promised, and no clock is moved."""

    @app.handler("act", expected_duration=5 * MINUTE)
    def act() -> None: ...

    task = harness.offer("act")
    (assignment,) = harness.source().claim(1)
    context = assignment.start()
    assert context is not None
    promised = lease_end(harness, task)
    harness.app.patch(task.id, {"expectedDuration": edited})
    for minute in (1, 4):
        harness.sim.clock.advance(timedelta(minutes=minute) - (harness.sim.now - assignment.run.scheduled_for))
        assert context.heartbeat()
        until, now = lease_end(harness, task), harness.sim.now
        assert until >= promised
        assert until == about(max(promised, now + timedelta(seconds=edited)))
        assert abs(assignment.lease_keeper.duration - (until - now)) < SECOND
        assert abs(context.now() - now) < 30 * SECOND, "a handler's clock is that of the leases"
        assert abs(context.time_left() - (until - now)) < 30 * SECOND


def test_a_handler_learns_that_its_task_is_cancelled(
    harness: WorkerHarness, app: App, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """After a cancel `ctx.heartbeat()` is False, and it is logged, whether the handler or the worker noticed first."""
    answers: list[bool] = []

    @app.handler("ask", expected_duration=BRIEF)
    def ask(ctx: Context) -> str:
        send_until_refused(ctx, answers)
        gate.wait()
        return "stopped"

    task = harness.offer("ask")
    with harness.run_beside(harness.worker()):
        wait_until(lambda: len(answers) > 1, "it has asked")
        harness.app.cancel(task.id)
        gate.wait_until_inside()
        wait_until(lambda: "ctx.heartbeat() tells its handler" in caplog.text, "the log says so")
        gate.open()
        harness.wait_for_outcomes("succeeded")
        assert answers[0] is True
        assert answers[-1] is False
    assert harness.app.get(task.id).status == "CANCELLED"


def test_a_result_after_a_lost_lease_is_discarded(
    harness: WorkerHarness, silent_task: Task, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """An attempt whose lease has ended is TIMED_OUT and its result discarded: the next attempt's counts."""
    with harness.run_beside(harness.worker()):
        gate.wait_until_inside()
        harness.sim.clock.advance(5 * MINUTE)
        wait_until(lambda: "the lease is lost" in caplog.text, "a heartbeat finds it out")
        harness.app.sweep()
        harness.sim.advance(timedelta(0))
        gate.open()
        harness.wait_for_outcomes("lost", "succeeded")
    assert [attempt.status for attempt in harness.record(silent_task).attempts] == ["TIMED_OUT", "SUCCEEDED"]
    assert harness.statuses() == ["lost", "succeeded"]


class Elapsed:
    """The seconds that workers measure, which pass only when a test advances them."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def elapsed(monkeypatch: pytest.MonkeyPatch) -> Elapsed:
    """What attempts and their leases are measured by."""
    made = Elapsed()
    for module in (source, slot):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_no_lease_is_renewed_after_the_time_limit(
    harness: WorkerHarness, app: App, gate: Gate, elapsed: Elapsed, kind: str
) -> None:
    """After the time limit nothing renews the lease, not even the handler, so that it expires."""
    answers: list[bool] = []

    def linger(ctx: Context) -> None:
        if ctx.attempt == 1:
            send_until_refused(ctx, answers)
            gate.wait()

    async def linger_on_loop(ctx: AsyncContext) -> None:
        if ctx.attempt == 1:
            while await ctx.heartbeat():
                answers.append(True)
            await gate.wait_on_loop()

    app.handler("linger", expected_duration=BRIEF)(linger if kind == "plain" else linger_on_loop)
    task = harness.offer("linger")
    with harness.run_beside(harness.worker(time_limit=NEVER)):
        wait_until(lambda: answers, "it has asked")
        elapsed.seconds += NEVER.total_seconds()
        gate.wait_until_inside()
        until = lease_end(harness, task)
        harness.sim.clock.advance(BRIEF / 3)
        assert lease_end(harness, task) == until
        harness.sim.clock.advance(5 * MINUTE)
        harness.app.sweep()
        harness.sim.advance(timedelta(0))
        gate.open()
        harness.wait_for_outcomes("lost", "succeeded")  # the next attempt's result comes in time
    assert answers[0] is True
    assert [attempt.status for attempt in harness.record(task).attempts] == ["TIMED_OUT", "SUCCEEDED"]


class FailingCommits:
    """Lets a store's commits fail: before they take effect, or after it."""

    def __init__(self, harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before, self.after = 0, 0
        self.error: CloudschedError = StoreUnavailable("The store", "as the test says")
        self.failed = 0
        commit = harness.app.container.store.commit

        def commit_or_fail(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the store's own
            if self.before:
                self.before -= 1
                self.fail()
            version = commit(*arguments, **named)
            if self.after:
                self.after -= 1
                self.fail()
            return version

        monkeypatch.setattr(harness.app.container.store, "commit", commit_or_fail)

    def fail(self) -> None:
        self.failed += 1
        raise self.error


@pytest.mark.parametrize("error", [None, Unauthenticated("The API key is not known."), Forbidden("no")])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_unacknowledged_result_is_delivered_again(
    harness: WorkerHarness, app: App, monkeypatch: pytest.MonkeyPatch, when: str, error: CloudschedError | None
) -> None:
    """Whether the commit took effect or not: there is one record with one attempt, and the worker knows it."""
    breaking = FailingCommits(harness, monkeypatch)
    breaking.error = error or breaking.error

    @app.handler("act")
    def act() -> str:
        setattr(breaking, when, 1 if harness.kind == "api" else 3)
        return "done"

    task = harness.offer("act")
    harness.work()
    record = harness.record(task)
    assert (record.status, record.content, len(record.attempts)) == ("SUCCEEDED", "done", 1)
    assert harness.statuses() == ["succeeded"]
    assert breaking.failed >= 1


@pytest.mark.parametrize("harness", ["store"], indirect=True)
def test_an_undeliverable_result_does_not_keep_a_worker_from_stopping(
    harness: WorkerHarness, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the store is away, a worker asked to stop at once does so, and logs what it could not deliver."""
    breaking = FailingCommits(harness, monkeypatch)

    @app.handler("act")
    def act() -> None:
        breaking.before = 10**6

    harness.offer("act")
    worker = harness.worker(grace=timedelta(0))
    with harness.run_beside(worker):
        wait_until(lambda: breaking.failed > 3, "it is brought again and again")
    harness.wait_for_outcomes("lost")
    assert "its result was not acknowledged" in harness.summaries[0].reason


@pytest.mark.parametrize("harness", ["store"], indirect=True)
def test_heartbeats_continue_after_an_outage(
    harness: WorkerHarness, silent_task: Task, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an unanswered heartbeat the worker keeps trying: the next one renews the lease."""
    breaking = FailingCommits(harness, monkeypatch)
    with harness.run_beside(harness.worker()):
        gate.wait_until_inside()
        until = lease_end(harness, silent_task)
        harness.sim.clock.advance(BRIEF / 3)
        breaking.before = 3
        wait_until(lambda: breaking.failed == 3, "heartbeats fail")
        wait_for_renewal(harness, silent_task, until)
        gate.open()
        harness.wait_for_outcomes("succeeded")


def wait_for_loss(harness: WorkerHarness, caplog: pytest.LogCaptureFixture) -> None:
    harness.sim.clock.advance(5 * MINUTE)
    wait_until(lambda: "the lease is lost" in caplog.text, "a heartbeat finds it out")


def test_a_result_after_an_expired_lease_counts_if_nobody_took_over(
    harness: WorkerHarness, silent_task: Task, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """A result under an expired lease counts if no other worker has claimed the run; the log reports no loss."""
    with harness.run_beside(harness.worker()):
        gate.wait_until_inside()
        wait_for_loss(harness, caplog)
        gate.open()
        harness.wait_for_outcomes("succeeded")
    assert harness.record(silent_task).content == "done"
    assert "counts only if no other worker has claimed the run" in caplog.text
    assert "dropped" not in caplog.text


def test_a_run_with_an_expired_lease_is_released_on_stop(
    harness: WorkerHarness, silent_task: Task, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that is asked to stop tries to release the run, although its lease has ended."""
    with harness.run_beside(harness.worker(grace=timedelta(0))):
        gate.wait_until_inside()
        wait_for_loss(harness, caplog)
    harness.wait_for_outcomes("released")
    (run,) = harness.app.get(silent_task.id).runs
    assert (run.attempt, run.attempts, run.lease) == (1, (), None)
