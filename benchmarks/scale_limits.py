"""What breaks first: each limit with its source, and how many runs a second it allows at the settings of a rate.

python -m benchmarks.scale_limits     writes the tables of settings and limits into docs/run/capacity.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks import google_limits
from benchmarks.scale_settings import (
    DEFAULT_RATE,
    HANDLER_SECONDS,
    MAX_RATE,
    OVERHEAD_SECONDS,
    ScaleSettings,
    choose_settings,
    make_settings_sheet,
)
from benchmarks.scale_tables import Sheet, write

from cloudsched.domain.documents.usage import UsageCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.google_limits import Limit

RUN: Final = UsageCounts(executions=1, reads=1, writes=3, dispatches=1)
"""What a run of a recurring task takes, as it is counted and billed."""
TASK_WRITES: Final = 2
"""The writes of it that are the task's: the claim and the end. The third is its record."""
TASK_OPERATIONS: Final = RUN.reads + TASK_WRITES
CEILING_RATES: Final = (DEFAULT_RATE, 1_000, 10_000)
"""Settings whose ceiling is looked for."""
_DELIVERY_SECONDS: Final = HANDLER_SECONDS + OVERHEAD_SECONDS


@dataclass(frozen=True, slots=True)
class Demand:
    """A limit, what a run takes of it, and how many runs a second fit into it."""

    limit: Limit
    takes: str
    fit: Callable[[ScaleSettings], float]
    note: str = ""
    """For which tasks it counts, if not for all."""


DEMANDS: Final = (
    Demand(
        google_limits.QUEUE_CALLS,
        f"{_DELIVERY_SECONDS} s of one call",
        lambda found: found.queues_per_priority * found.calls / _DELIVERY_SECONDS,
    ),
    Demand(
        google_limits.QUEUE_RATE,
        f"{RUN.dispatches} call",
        lambda found: found.queues_per_priority * found.calls_a_second,
    ),
    Demand(
        google_limits.RANGE,
        f"{TASK_WRITES} writes of the task",
        lambda found: found.shards * google_limits.RANGE.value / TASK_WRITES,
    ),
    Demand(
        google_limits.NAMES,
        f"{RUN.writes} writes",
        lambda _: google_limits.NAMES.value / RUN.writes,
        "only if ids rise",
    ),
    Demand(
        google_limits.INSTANCES,
        f"{_DELIVERY_SECONDS} s of one handler",
        lambda found: found.concurrency * found.instances / _DELIVERY_SECONDS,
    ),
    Demand(
        google_limits.QUEUE_API,
        f"{RUN.dispatches} call",
        lambda _: google_limits.QUEUE_API.value / RUN.dispatches,
    ),
    Demand(google_limits.QUEUE_COUNT, "—", lambda _: MAX_RATE, "four priorities of 200 queues"),
    Demand(
        google_limits.DOCUMENT,
        f"{TASK_WRITES} writes",
        lambda _: math.inf,
        "a task may run every two seconds",
    ),
    Demand(
        google_limits.RAMP,
        f"{TASK_OPERATIONS} operations",
        lambda _: google_limits.RAMP.value / TASK_OPERATIONS,
        "only from cold",
    ),
    Demand(
        google_limits.QUEUE_RAMP,
        f"{RUN.dispatches} creation and {RUN.dispatches} call",
        lambda _: google_limits.QUEUE_RAMP.value / (2 * RUN.dispatches),
        "only from cold",
    ),
    Demand(google_limits.WRITES, f"{RUN.writes} writes", lambda _: math.inf),
)


def make_limits_sheet() -> Sheet:
    """Return each limit with Google's line, and how many runs a second it allows."""
    settings = [choose_settings(rate) for rate in CEILING_RATES]
    headings = (
        "limit", "Google says", "we assume", "a run takes", "by default",
        *(f"settings for {rate:,}" for rate in CEILING_RATES[1:]),
    )  # fmt: skip
    return Sheet("limits", headings, tuple(_list_limit_cells(each, settings) for each in DEMANDS), 4)


def _list_limit_cells(demand: Demand, settings: Sequence[ScaleSettings]) -> tuple[str, ...]:
    limit = demand.limit
    said = f"[“{limit.said}”]({limit.source})" if limit.said else f"[none is documented]({limit.source})"
    fits = [demand.fit(each) for each in settings]
    most = ["—" if math.isinf(fit) else f"{fit:,.0f}" for fit in fits]
    name = f"{limit.name}: {demand.note}" if demand.note else limit.name
    return name, said, limit.assumed or "the same", demand.takes, *most


if __name__ == "__main__":
    write([make_limits_sheet(), make_settings_sheet()])
