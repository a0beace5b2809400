"""A delivery that comes too early by the executor's clock: the handler is called in time, now or by the next one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE, RecordingQueue

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.claim import DeliveryAction
from cloudsched.engine.ports.clock import MAX_SKEW
from cloudsched.engine.ports.procedure import LongCall, Pause, StoreCommit
from cloudsched.engine.ports.queue import HEAD_START
from cloudsched.testing import START

SECRET = "the secret of this test"  # noqa: S105
MICROSECOND, SECOND = timedelta(microseconds=1), timedelta(seconds=1)
DUE = START + HOUR


class Deployment:
    """An app whose task is due in an hour, and whose clock is its own."""

    def __init__(self, store: SqliteStore) -> None:
        self.clock, self.queue, self.calls = ManualClock(START), RecordingQueue(), list[str]()
        settings = Settings(secret=SECRET, executor_url="http://executor")
        self.app = App(settings, store=store, dispatcher=self.queue, clock=self.clock)
        self.app.container.executor._sleep = lambda _: None  # noqa: SLF001 - as by the system's clock
        self.app.handler("tick")(lambda: self.calls.append("ran"))

    def create(self, **fields: Any) -> None:
        task: dict[str, Any] = {"handler": "tick", "schedule": Schedule.once(DUE)}
        self.app.create(id="t", **task | fields)

    def deliver_last(self) -> DeliveryAction:
        """Deliver the latest message, whatever time it is."""
        message = self.queue.sent[-1]
        return self.app.deliver(message.body, message.token).action

    def take_steps(self) -> Iterator[tuple[object, Any]]:
        """Take the steps of the latest message one by one. Yield each call, and what it returned."""
        message = self.queue.sent[-1]
        steps = self.app.container.deliver(message.body, message.token)
        call = next(steps)
        while True:
            yield call, (result := call.make())
            try:
                call = steps.send(result)
            except StopIteration as stop:
                yield None, stop.value
                return


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    store = SqliteStore()
    yield Deployment(store)
    store.close()


@pytest.mark.parametrize("lag", [HEAD_START + MICROSECOND, SECOND, MAX_SKEW, 2 * MAX_SKEW])
def test_a_clock_that_is_behind_costs_one_hop(deployment: Deployment, lag: timedelta) -> None:
    """The next delivery comes as much later as the clock is behind, and not again and again until it has caught up."""
    deployment.create()
    assert deployment.queue.sent[0].at == DUE
    deployment.clock.move_to(DUE - lag)  # the queue's clock says that it is due
    assert deployment.deliver_last() is DeliveryAction.HOPPED
    hop = deployment.queue.sent[-1]
    assert (hop.at, deployment.calls) == (DUE + lag, [])
    deployment.clock.move_to(hop.at - lag)
    assert deployment.deliver_last() is DeliveryAction.RAN
    assert (len(deployment.queue.sent), deployment.calls) == (2, ["ran"])


def test_a_dispatch_that_an_operator_delivers_early_still_runs_on_its_instant(deployment: Deployment) -> None:
    """No clock is half an hour behind: so it was delivered by hand, and what follows is not put off."""
    deployment.create()
    deployment.clock.move_to(DUE - 30 * MINUTE)
    assert deployment.deliver_last() is DeliveryAction.HOPPED
    assert deployment.queue.sent[-1].at == DUE


def test_what_is_due_in_a_moment_is_claimed_now_and_called_in_time(deployment: Deployment) -> None:
    """Whatever the claim takes is over by then, and whoever looks at the run sees that it began in time."""
    deployment.create()
    deployment.clock.move_to(DUE - HEAD_START)
    steps = deployment.take_steps()
    assert isinstance(next(steps)[0], StoreCommit)
    (run,) = deployment.app.get("t").runs
    assert (run.started_at, run.lease is not None) == (DUE, True)
    deployment.clock.move_to(DUE - HEAD_START / 2)
    assert isinstance(pause := next(steps)[0], Pause)
    assert pause.seconds == (HEAD_START / 2).total_seconds()
    deployment.clock.move_to(DUE)
    assert isinstance(next(steps)[0], LongCall)
    assert deployment.calls == ["ran"]


def test_a_clock_that_is_set_back_holds_up_no_run_that_is_claimed(deployment: Deployment) -> None:
    deployment.create()
    deployment.clock.move_to(DUE - MICROSECOND)
    steps = deployment.take_steps()
    next(steps)
    deployment.clock.at = DUE - HOUR
    assert isinstance(pause := next(steps)[0], Pause)
    assert pause.seconds == HEAD_START.total_seconds()
    assert isinstance(next(steps)[0], LongCall)


def test_what_is_decided_by_an_end_is_decided_only_then(deployment: Deployment) -> None:
    """Its lease is another executor's to the last moment: a dispatch for the end of one waits for it."""
    deployment.create(expectedDuration=MINUTE)
    deployment.clock.move_to(DUE)
    next(deployment.take_steps())  # this executor claims, and dies
    lease = deployment.app.get("t").runs[0].lease
    assert lease is not None
    assert deployment.deliver_last() is DeliveryAction.HOPPED
    deployment.clock.move_to(lease.until - MICROSECOND)
    steps = deployment.take_steps()
    assert isinstance(next(steps)[0], Pause)
    assert deployment.app.get("t").runs[0].lease == lease
    deployment.clock.move_to(lease.until)
    assert isinstance(next(steps)[0], StoreCommit)
    assert deployment.app.get("t").runs[0].attempt == 2


def test_a_clock_that_stands_still_ends_every_delivery(deployment: Deployment) -> None:
    deployment.create(lockKey="printer")
    deployment.clock.move_to(DUE - MICROSECOND)
    assert deployment.deliver_last() is DeliveryAction.HOPPED
