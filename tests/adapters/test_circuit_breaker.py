"""The circuit breaker: it fails fast while a service is down, and closes once the service is back."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.harness import wait_until

from cloudsched.adapters.circuit_breaker import FAILURE_THRESHOLD, CircuitBreakerProxy
from cloudsched.engine.ports.store import Store
from cloudsched.errors import NotFound, StoreUnavailable


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


def test_an_open_circuit_fails_at_once_and_closes_when_the_service_recovers() -> None:
    """After several failures in a row nothing is sent until the recovery time is over; one success closes it."""
    port = Flaky()
    circuit = CircuitBreakerProxy(port, StoreUnavailable, "The store", recovery=timedelta(milliseconds=1))
    slow = CircuitBreakerProxy(port, StoreUnavailable, "The store")
    for _ in range(FAILURE_THRESHOLD + 3):
        with pytest.raises(StoreUnavailable):
            slow.port.load()
    assert slow.state == "open"
    assert port.calls == FAILURE_THRESHOLD
    for _ in range(FAILURE_THRESHOLD):
        with pytest.raises(StoreUnavailable):
            circuit.port.load()
    port.is_down = False
    while circuit.state == "open":
        pass
    assert circuit.state == "half_open"
    assert circuit.port.load() == "here"
    assert circuit.state == "closed"


def test_one_call_is_the_trial() -> None:
    """While it is under way, all others fail at once: a service that comes back is not met by everybody."""
    refused: list[bool] = []

    class Waiting(Flaky):
        def load(self) -> str:
            if not self.is_down:
                with pytest.raises(StoreUnavailable, match="5 times in a row"):
                    circuit.port.load()
                refused.append(True)
            return super().load()

    port = Waiting()
    circuit = CircuitBreakerProxy[Flaky](port, StoreUnavailable, "The store", recovery=timedelta(seconds=0.2))
    for _ in range(FAILURE_THRESHOLD):
        with pytest.raises(StoreUnavailable):
            circuit.port.load()
    port.is_down = False
    wait_until(lambda: circuit.state == "half_open")
    assert circuit.port.load() == "here"
    assert (refused, circuit.state) == ([True], "closed")


def test_each_part_of_a_store_is_behind_the_circuit() -> None:
    """Whatever ports a store has: lists and searches do not ask one that is down, either."""
    parts = [name for name, value in vars(Store).items() if isinstance(value, property)]
    assert {"records", "inbox", "search"} <= {*parts}
    for name in parts:
        part = Flaky()
        store = CircuitBreakerProxy(SimpleNamespace(**{name: part}), StoreUnavailable, "The store").port
        for _ in range(FAILURE_THRESHOLD + 3):
            with pytest.raises(StoreUnavailable):
                getattr(store, name).load()
        assert part.calls == FAILURE_THRESHOLD, name


def test_an_expected_error_is_not_a_failure() -> None:
    """A conflict or a missing document shows that the service works."""
    circuit = CircuitBreakerProxy(Flaky(), StoreUnavailable, "The store")
    for _ in range(2 * FAILURE_THRESHOLD):
        with pytest.raises(NotFound):
            circuit.port.missing()
    assert circuit.state == "closed"
