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

_BEST_PRACTICES: Final = "https://firebase.google.com/docs/firestore/best-practices"
_TASKS_QUOTAS: Final = "https://cloud.google.com/tasks/docs/quotas"
_TASKS_SCALING: Final = "https://cloud.google.com/tasks/docs/manage-cloud-task-scaling"
_TASKS_RATES: Final = "https://cloud.google.com/tasks/docs/reference/rpc/google.cloud.tasks.v2#ratelimits"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of one of Google's services.

    Attributes:
        name: What is limited.
        value: How much the models allow.
        said: Google's line about it.
        source: Where it stands.
        assumed: What the models make of that line, if it says less.
    """

    name: str
    value: float
    said: str
    source: str
    assumed: str = ""


RANGE = Limit(
    "writes a second into rising values of an index",
    500,
    "If you index a field that increases or decreases sequentially between documents in a collection, like a "
    "timestamp, then the maximum write rate to the collection is 500 writes per second.",
    _BEST_PRACTICES,
    "for each place in an index: the values before the one that rises",
)
NAMES = Limit(
    "writes a second to documents whose names follow each other",
    500,
    "Do not use monotonically increasing document IDs (…) Such sequential IDs can lead to hotspots that impact "
    "latency.",
    _BEST_PRACTICES,
    "no figure is documented: the same 500, a task and its records together",
)
DOCUMENT = Limit(
    "writes a second to one document",
    1,
    "The exact maximum rate that an app can update a single document depends highly on the workload.",
    _BEST_PRACTICES,
    "no figure is documented any more: 1, over ten seconds, as the page of limits said before",
)
RAMP = Limit(
    "operations a second on a collection that is new or was idle",
    500,
    "We recommend starting with a maximum of 500 operations per second to a new collection and then increasing traffic "
    "by 50% every 5 minutes.",
    _BEST_PRACTICES,
)
QUEUE_RATE = Limit(
    "calls a second of a queue", 500, "500 task dispatches per second per queue", _TASKS_QUOTAS, "as you set it"
)
QUEUE_CALLS = Limit(
    "calls at the same time of a queue", 5_000, "The maximum allowed value is 5,000.", _TASKS_RATES, "as you set it"
)
QUEUE_RAMP = Limit(
    "tasks a second that all queues together begin with",
    2_000,
    "A high-TPS queue group is a contiguous set of queues (…) that have at least 2000 tasks created or dispatched in "
    "total. (…) increase traffic by no more than 50% every 5 minutes.",
    _TASKS_SCALING,
)
QUEUE_API = Limit(
    "calls a second of the API of Cloud Tasks, in a project",
    100_000,
    "API requests: 6,000,000 requests per minute",
    _TASKS_QUOTAS,
)
QUEUE_COUNT = Limit("queues in a region", 1_000, "Number of queues per region: 1,000 per region", _TASKS_QUOTAS)
INSTANCES = Limit(
    "handlers at the same time of all instances",
    0,
    "Maximum number of container instances: depends on selected region and CPU and memory configurations.",
    "https://cloud.google.com/run/quotas",
    "not modelled: the scripts refuse queues that call more",
)
WRITES = Limit("writes a second of a database", 0, "", "https://firebase.google.com/docs/firestore/quotas", "none")

RANGE_WRITES_PER_SECOND: Final = RANGE.value
DOCUMENT_WRITES_PER_SECOND: Final = DOCUMENT.value
DOCUMENT_WINDOW: Final = 10.0
"""Over how many seconds they are sustained: a claim and its end may follow each other at once."""
RAMP_BASE: Final = RAMP.value
QUEUE_RAMP_BASE: Final = QUEUE_RAMP.value
RAMP_GROWTH: Final = 1.5
RAMP_PERIOD: Final = 300.0
QUEUE_API_CALLS_PER_SECOND: Final = QUEUE_API.value


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
