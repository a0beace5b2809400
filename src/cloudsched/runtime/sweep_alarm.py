"""Tell a dead-man's switch after each sweep: the one alarm that comes when everything here is gone.

A good sweep calls one address, a bad one the other. Without a second address a bad sweep calls nobody, and the silence
alerts. The call comes after the sweep's own work is done, and the sweep never fails because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from cloudsched.engine.tasks.sweeper import Sweep


class Caller(Protocol):
    """Calls an address, and never raises (`adapters.delivery.switch`)."""

    def call(self, address: str, overdue: float, text: str) -> None:
        """Call it with the seconds that the oldest work has been due, and a line of text."""
        ...


class SweepAlarm:
    """Calls the switch's addresses.

    Args:
        addresses: That of good sweeps, and that of bad ones if there is one.
        overdue: For how long work may have been due in a good sweep.
        caller: Calls an address.
    """

    def __init__(self, addresses: tuple[str, ...], overdue: timedelta, caller: Caller) -> None:
        self._good = addresses[0]
        self._bad = addresses[1] if len(addresses) > 1 else None
        self._overdue = overdue.total_seconds()
        self._caller = caller

    def run(self, sweep: Callable[[], Sweep]) -> Sweep:
        """Sweep, and tell the switch how that went; return or raise what the sweep does."""
        try:
            found = sweep()
        except Exception as error:
            self._tell(self._bad, 0.0, f"the sweep failed: {type(error).__name__}")
            raise
        is_good = found.overdue_seconds <= self._overdue and not found.failed
        counts = f"examined={found.examined} dispatched={found.dispatched} unsent={found.unsent} failed={found.failed}"
        text = f"overdueSeconds={found.overdue_seconds:.0f} {counts}"
        self._tell(self._good if is_good else self._bad, found.overdue_seconds, text)
        return found

    def _tell(self, address: str | None, overdue: float, text: str) -> None:
        if address is not None:
            self._caller.call(address, overdue, text)
