"""The circuit breakers in front of remote services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy
    from cloudsched.errors import Unavailable

T = TypeVar("T")


class Circuits:
    """Has a circuit breaker for each remote service in use."""

    def __init__(self) -> None:
        self._circuits: dict[str, CircuitBreakerProxy[Any]] = {}

    def with_circuit_breaker(self, name: str, port: T, error: type[Unavailable]) -> T:
        """Return a port's adapter behind a circuit breaker, which opens when that error is raised again and again."""
        from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy  # noqa: PLC0415 - imported only for remote services

        circuit = CircuitBreakerProxy(port, error, f"The {name}")
        self._circuits[name] = circuit
        return circuit.port

    @property
    def circuits(self) -> dict[str, str]:
        """The state of the circuit breaker of each remote service in use: closed, open or half_open."""
        return {name: circuit.state for name, circuit in self._circuits.items()}
