"""The figures of `benchmarks.scale` as rows, as a table and in dollars."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.scale_limits import QUEUE_RAMP_BASE, RAMP_BASE, Ramp
from benchmarks.scale_world import OPERATIONS_PER_OCCURRENCE
from rich.table import Table

from cloudsched.config.features import DEFAULT_PRICES, Prices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.scale_scenarios import Recovery, Steady
    from benchmarks.scale_world import Deployment

MONTH_SECONDS: Final = 30 * 86_400
CONCURRENCY: Final = 10
"""Deliveries at a time of one instance (EXECUTE_CONCURRENCY): an instance costs the same whatever it does."""
INSTANCE_DOLLARS_PER_SECOND: Final = 0.000024 + 0.5 * 0.0000025
"""One vCPU and 512 MiB (Cloud Run)."""
STORAGE_DOLLARS_PER_BYTE: Final = 0.15 / 2**30
OUTAGE_SECONDS: Final = 3_600.0
_HEADINGS: Final = (
    "tasks", "occurrences/s", "shards", "queues", "served/s", "late, p50 and p99", "hottest range", "hottest document",
    "queues' use", "after a purge", "after an outage", "USD a month",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """What was found out about one deployment; no recovery if it falls behind anyway."""

    deployment: Deployment
    steady: Steady
    fan_out: float
    """How many seconds after the sweep's job the sweep of every shard has begun."""
    purge: Recovery | None
    outage: Recovery | None

    @property
    def backlog(self) -> float:
        """How many tasks are overdue after an hour: each is, once, however often it was due."""
        return min(self.deployment.tasks, OUTAGE_SECONDS * self.deployment.possible_rate)

    @property
    def purge_seconds(self) -> float | None:
        """How long it takes until everything has run that was lost while as much was due as comes in an hour."""
        return None if self.purge is None else self.purge.seconds_for(self.backlog)

    @property
    def outage_seconds(self) -> float | None:
        """How long it takes until everything has run that came due in an hour without executor."""
        return None if self.outage is None else self.outage.seconds_for(self.backlog)

    @property
    def ramp_seconds(self) -> float:
        """How long traffic has to grow from nothing to its rate."""
        rate = self.deployment.possible_rate
        documents = Ramp(RAMP_BASE).seconds_to(OPERATIONS_PER_OCCURRENCE * rate)
        return max(documents, Ramp(QUEUE_RAMP_BASE).seconds_to(rate))

    def to_dollars(self, prices: Mapping[str, float] = DEFAULT_PRICES) -> dict[str, float]:
        """Return what a month costs, of what is served: operations, instances, storage, sweeps."""
        steady, deployment = self.steady, self.deployment
        rate = steady.served_rate if steady.is_saturated else deployment.possible_rate
        occurrences = rate * MONTH_SECONDS
        amounts = {
            "read": steady.reads,
            "write": steady.writes,
            "delete": steady.deletes,
            "queueOperation": 2 * steady.dispatches,
            "request": steady.dispatches,
        }
        table = Prices(table=tuple(prices.items()))
        parts = deployment.shards if deployment.shards > 1 else 0
        sweep = {"read": 1.0 + parts, "write": 1.0, "queueOperation": 2.0 * parts, "request": 1.0 + parts}
        return {
            "operations": table.cost({name: amount * occurrences for name, amount in amounts.items()}),
            "instances": steady.busy_seconds * occurrences / CONCURRENCY * INSTANCE_DOLLARS_PER_SECOND,
            "storage": steady.task_bytes * deployment.tasks * STORAGE_DOLLARS_PER_BYTE,
            "sweeps": table.cost(sweep) * MONTH_SECONDS / 60,
        }

    def to_row(self) -> dict[str, Any]:
        """Return the row of the JSON; null where something never ends."""
        steady, deployment, dollars = self.steady, self.deployment, self.to_dollars()
        seconds = [self.purge_seconds, self.outage_seconds]
        recovery = None if None in seconds else max(each for each in seconds if each is not None)
        million = None if self.purge is None else self.purge.seconds_for(1e6)
        return {
            "tasks": deployment.tasks,
            "occurrencesPerSecond": deployment.rate,
            "shards": deployment.shards,
            "queues": deployment.queues.count,
            "hottestRangeWritesPerSecond": round(steady.range_writes, 1),
            "latenessP99Seconds": round(steady.lateness[1], 3),
            "readsPerOccurrence": round(steady.reads, 3),
            "writesPerOccurrence": round(steady.writes, 3),
            "dispatchesPerOccurrence": round(steady.dispatches, 3),
            "recoverySeconds": _round(recovery),
            "dollarsPerMonth": round(math.fsum(dollars.values()), 2),
            "possibleOccurrencesPerSecond": round(deployment.possible_rate, 1),
            "servedPerSecond": round(steady.served_rate, 1),
            "isSaturated": steady.is_saturated,
            "latenessMedianSeconds": round(steady.lateness[0], 3),
            "hottestRange": steady.hottest_range,
            "hottestDocument": steady.hottest_document,
            "hottestDocumentWritesPerSecond": round(steady.document_writes, 2),
            "queueUse": round(steady.queue_use, 3),
            "abortedCommits": {name.removeprefix("aborted by "): number for name, number in steady.aborted.items()},
            "hashImbalance": round(steady.imbalance, 4),
            "recoveryAfterPurgeSeconds": _round(self.purge_seconds),
            "recoveryAfterOutageSeconds": _round(self.outage_seconds),
            "recoveryOfAMillionSeconds": _round(million),
            "sweepFanOutSeconds": round(self.fan_out, 3),
            "rampSeconds": self.ramp_seconds,
            "dollars": {name: round(each, 2) for name, each in dollars.items()},
            "simulatedOccurrences": steady.occurrences,
            "simulatedFraction": round(steady.fraction, 6),
            "error": round(steady.error, 4),
        }


def make_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the page in the documentation."""
    lines = [
        f"| {' | '.join(_HEADINGS)} |",
        f"|{'---:|' * len(_HEADINGS)}",
    ]
    for row in rows:
        late = f"{row['latenessMedianSeconds']:.2f} s, {row['latenessP99Seconds']:.2f} s"
        cells = (
            f"{row['tasks']:,}",
            f"{row['occurrencesPerSecond']:,}",
            f"{row['shards']:,}",
            f"{row['queues']:,}",
            f"{row['servedPerSecond']:,.0f}",
            f"**{late}**, growing" if row["isSaturated"] else late,
            f"{row['hottestRangeWritesPerSecond']:,.0f}/s",
            f"{row['hottestDocumentWritesPerSecond']:.2f}/s",
            f"{row['queueUse']:.0%}",
            _show_duration(row["recoveryAfterPurgeSeconds"]),
            _show_duration(row["recoveryAfterOutageSeconds"]),
            "—" if row["isSaturated"] else f"{row['dollarsPerMonth']:,.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def make_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table that people read."""
    table = Table(title="A month of steady load, simulated")
    headings = (
        "tasks", "due/s", "shards", "queues", "served/s", "late p50 s", "p99 s", "reads", "writes", "dispatches",
        "range/s", "document/s", "queue use", "purged s", "outage s", "$ a month", "± %",
    )  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row['tasks']:,}",
            f"{row['occurrencesPerSecond']:,}",
            str(row["shards"]),
            str(row["queues"]),
            f"{row['servedPerSecond']:,.0f}{' !' if row['isSaturated'] else ''}",
            f"{row['latenessMedianSeconds']:.2f}",
            f"{row['latenessP99Seconds']:.2f}",
            f"{row['readsPerOccurrence']:.2f}",
            f"{row['writesPerOccurrence']:.2f}",
            f"{row['dispatchesPerOccurrence']:.2f}",
            f"{row['hottestRangeWritesPerSecond']:,.0f}",
            f"{row['hottestDocumentWritesPerSecond']:.2f}",
            f"{row['queueUse']:.0%}",
            _show(row["recoveryAfterPurgeSeconds"]),
            _show(row["recoveryAfterOutageSeconds"]),
            f"{row['dollarsPerMonth']:,.0f}",
            f"{100 * row['error']:.0f}",
        )
    return table


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _show_duration(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def _show(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:,.0f}"
