"""Virtual time, and the limits of Google's services as rates that are kept in it.

Deliveries are simulated one after the other, each to its end, so the calls of two deliveries that overlap do not arrive
in the order of their time. Every limit therefore counts per second (or per window) of virtual time, which no order
changes.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched.testing import START

RANGE_WRITES_PER_SECOND: Final = 500.0
"""Writes a second into one range of rising index values (Firestore, best practices)."""
DOCUMENT_WRITES_PER_SECOND: Final = 1.0
"""Sustained writes a second to one document."""
DOCUMENT_WINDOW: Final = 10.0
"""Over how many seconds they are sustained: a claim and its end may follow each other at once."""
RAMP_BASE: Final = 500.0
"""Operations a second with which traffic to a collection may start (Firestore's 500/50/5)."""
QUEUE_RAMP_BASE: Final = 2_000.0
"""Tasks a second of all queues together with which a ramp begins (Cloud Tasks)."""
RAMP_GROWTH: Final = 1.5
RAMP_PERIOD: Final = 300.0
QUEUE_API_CALLS_PER_SECOND: Final = 100_000.0
"""Six million API calls a minute and project (Cloud Tasks)."""


class Refusal(grpc.RpcError):  # type: ignore[misc]  # grpcio ships no types
    """How a call fails."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class VirtualTime:
    """The time of whatever runs at the moment, in seconds since `START`: a clock, a `time` module, and latencies.

    Args:
        chance: Draws the latencies.
    """

    def __init__(self, chance: random.Random) -> None:
        self.seconds = 0.0
        self._chance = chance

    def now(self) -> datetime:
        """Return the instant, as the engine's clock does."""
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        """Return the seconds, as `time.monotonic` does."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass, as `time.sleep` does."""
        self.seconds += seconds

    def pass_latency(self, median: float, sigma: float = 0.4) -> None:
        """Let a call take its time: about `median` seconds, sometimes a multiple of that (log-normal)."""
        self.seconds += median * math.exp(sigma * self._chance.gauss(0.0, 1.0))


def to_seconds(at: datetime) -> float:
    return (at - START).total_seconds()


@dataclass(slots=True)
class RateWindows:
    """So many units a second for each key, counted in windows."""

    rate: float
    width: float = 1.0
    counts: defaultdict[tuple[Hashable, int], int] = field(default_factory=lambda: defaultdict(int))

    def has_room(self, key: Hashable, at: float) -> bool:
        """Return whether one more is within the rate."""
        window = int(at / self.width)
        return self.counts[key, window] < self._get_size(window)

    def add(self, key: Hashable, at: float, units: int = 1) -> None:
        """Count some, which come together; those beyond a window's room take that of the following ones."""
        window = int(at / self.width)
        while units > 0:
            room = max(0, self._get_size(window) - self.counts[key, window])
            taken = min(units, room)
            self.counts[key, window] += taken
            units -= taken
            window += 1

    def _get_size(self, window: int) -> int:
        units = self.rate * self.width
        return math.floor(units * (window + 1)) - math.floor(units * window)

    def sum_by_key(self, since: float, until: float) -> dict[Any, int]:
        """Return the units of each key between two times."""
        totals: defaultdict[Any, int] = defaultdict(int)
        for (key, window), count in self.counts.items():
            if since <= window * self.width < until:
                totals[key] += count
        return totals


@dataclass(slots=True)
class Ramp:
    """Traffic that may begin at a level and grow by half every five minutes."""

    level: float = RAMP_BASE
    started_at: float = 0.0
    fraction: float = 1.0
    """The part of the traffic that is simulated."""
    counts: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def allowed(self, at: float) -> float:
        """Return how many a second are allowed at a time."""
        return float(self.level * RAMP_GROWTH ** max(0, (at - self.started_at) // RAMP_PERIOD))

    def take(self, at: float) -> bool:
        """Count one, if that is allowed."""
        rate, second = self.allowed(at) * self.fraction, int(at)
        if self.counts[second] >= math.floor(rate * (second + 1)) - math.floor(rate * second):
            return False
        self.counts[second] += 1
        return True
