"""A delivery that comes too early by the executor's clock: it runs nothing, and the next one comes when it is due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.engine.harness import RecordingQueue

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.claim import DeliveryAction
from cloudsched.engine.ports.clock import MAX_SKEW
from cloudsched.testing import START

SECRET = "the secret of this test"  # noqa: S105
SECOND = timedelta(seconds=1)
DUE = START + timedelta(hours=1)


class Deployment:
    """An app whose task is due in an hour, and whose clock is its own."""

    def __init__(self, store: SqliteStore) -> None:
        self.clock, self.queue, self.calls = ManualClock(START), RecordingQueue(), list[str]()
        settings = Settings(secret=SECRET, executor_url="http://executor")
        self.app = App(settings, store=store, dispatcher=self.queue, clock=self.clock)
        self.app.handler("tick")(lambda: self.calls.append("ran"))
        self.app.create(id="t", owner="ada", title="T", handler="tick", schedule=Schedule.once(DUE))

    def deliver_last(self) -> DeliveryAction:
        """Deliver the latest message, whatever time it is."""
        message = self.queue.sent[-1]
        return self.app.deliver(message.body, message.token).action


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    store = SqliteStore()
    yield Deployment(store)
    store.close()


@pytest.mark.parametrize("lag", [timedelta(microseconds=1), SECOND, MAX_SKEW, 2 * MAX_SKEW])
def test_a_clock_that_is_behind_costs_one_hop(deployment: Deployment, lag: timedelta) -> None:
    """The next delivery comes as much later as the clock is behind, and not again and again until it has caught up."""
    (first,) = deployment.queue.sent
    assert first.at == DUE
    deployment.clock.move_to(DUE - lag)  # the queue's clock says that it is due
    assert deployment.deliver_last() is DeliveryAction.HOPPED
    hop = deployment.queue.sent[-1]
    assert (hop.at, deployment.calls) == (DUE + lag, [])
    deployment.clock.move_to(hop.at - lag)
    assert deployment.deliver_last() is DeliveryAction.RAN
    assert (len(deployment.queue.sent), deployment.calls) == (2, ["ran"])


def test_a_dispatch_that_an_operator_delivers_early_still_runs_on_its_instant(deployment: Deployment) -> None:
    """No clock is half an hour behind: so it was delivered by hand, and what follows is not put off."""
    deployment.clock.move_to(DUE - timedelta(minutes=30))
    assert deployment.deliver_last() is DeliveryAction.HOPPED
    assert deployment.queue.sent[-1].at == DUE
