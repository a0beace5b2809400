"""While a service is down: callers are told at once and truthfully, and nothing is lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.breaking import FAILURES, Circuit
from cloudsched.errors import NotFound, StoreUnavailable
from cloudsched.testing import START, Simulation

HOURLY = Schedule.every(timedelta(hours=1), start=START + timedelta(hours=1))


class Flaky:
    """A port that is down until it is not."""

    def __init__(self) -> None:
        self.is_down = True
        self.calls = 0

    def load(self) -> str:
        self.calls += 1
        if self.is_down:
            raise StoreUnavailable("The store", "deadline exceeded")
        return "here"

    def missing(self) -> None:
        raise NotFound("task", "x")


def test_an_open_circuit_answers_at_once_and_closes_when_the_service_is_back() -> None:
    """After some failures in a row nothing is sent until the recovery time is over; one success closes it again."""
    port = Flaky()
    circuit = Circuit(port, StoreUnavailable, "The store", recovery=timedelta(milliseconds=1))
    slow = Circuit(port, StoreUnavailable, "The store")
    for _ in range(FAILURES + 3):
        with pytest.raises(StoreUnavailable):
            slow.port.load()
    assert slow.state == "open"
    assert port.calls == FAILURES
    for _ in range(FAILURES):
        with pytest.raises(StoreUnavailable):
            circuit.port.load()
    port.is_down = False
    while circuit.state == "open":
        pass
    assert circuit.state == "half_open"
    assert circuit.port.load() == "here"
    assert circuit.state == "closed"


def test_an_answer_that_is_no_is_not_a_failure() -> None:
    """A conflict or a missing document says that the service works."""
    circuit = Circuit(Flaky(), StoreUnavailable, "The store")
    for _ in range(2 * FAILURES):
        with pytest.raises(NotFound):
            circuit.port.missing()
    assert circuit.state == "closed"


def fallback_app() -> App:
    app = App(Settings())
    app.registry.register("tick")(lambda: "tock")
    return app


@pytest.mark.parametrize("fallback", [False, True])
def test_the_sweep_delivers_what_is_due_while_the_queue_is_down(fallback: bool) -> None:  # noqa: FBT001 - a case
    """With the fallback on, hourly runs go on without any queue; without it they wait, and none is lost either way."""
    app = fallback_app()
    with Simulation(app, fallback=fallback) as sim:
        task = app.create(owner="ada", title="Tick", handler="tick", schedule=HOURLY)
        sim.queue.lose_everything()
        sim.queue.is_down = True
        sim.advance(timedelta(hours=5, minutes=30))
        ran = [execution.scheduled_for for execution in sim.executions(task.id) if execution.status == "SUCCEEDED"]
        assert len(ran) == (5 if fallback else 0)
        sim.queue.is_down = False
        sim.advance(timedelta(hours=1))
        records = [execution.scheduled_for.hour for execution in sim.executions(task.id)]
        assert records == [1, 2, 3, 4, 5, 6]


def test_a_deferred_task_far_ahead_does_not_hold_up_one_that_is_due() -> None:
    """What the queue does not take is counted, and the sweep goes on with the next task."""
    app = fallback_app()
    with Simulation(app, fallback=True) as sim:
        sim.queue.is_down = True
        far = app.create(owner="ada", title="Far", handler="tick", schedule=Schedule.once(START + timedelta(days=9)))
        near = app.create(owner="ada", title="Near", handler="tick", schedule=Schedule.once(START + timedelta(hours=1)))
        assert far.deferred
        assert near.deferred
        sim.clock.advance(timedelta(hours=1, minutes=1))
        done = app.sweep()
        assert (done.examined, done.unsent) == (2, 1)
        assert app.get(near.id).status == "COMPLETED"
