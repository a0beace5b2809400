"""Show what a deployment takes at each size, and where it breaks: the real engine, in virtual time, on models.

    python -m benchmarks.scale [--quick] [--json]
    python -m benchmarks.scale --markdown                    # the table of docs/explanation/scale.md
    python -m benchmarks.scale --chart docs/images/scale.svg

The engine, the planner, the sweep and both adapters are those that run in production. Firestore and Cloud Tasks are
models: index entries are derived from ``infra/firestore.indexes.json``, as the scripts choose them for so many shards,
and 500 writes a second fit into each sequential range; documents, ramps, queues' rates and concurrency have their
limits; every call has a latency; what does not fit is ABORTED and retried. Of large deployments a part is simulated:
``docs/explanation/scale.md`` says how, and what none of this measures.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.scale_chart import draw_chart
from benchmarks.scale_queue import QueueSetup
from benchmarks.scale_report import Result, make_markdown, make_table
from benchmarks.scale_scenarios import Effort, measure_fan_out, measure_outage, measure_purge, measure_steady
from benchmarks.scale_world import Deployment
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SIZES: Final = (10**4, 10**6, 10**8)
RATES: Final = (10, 1_000, 50_000)
QUICK: Final = Effort(rate=40.0, window=10, backlog=300, hashed=50_000)
FULL: Final = Effort(rate=100.0, window=20, backlog=2_000, hashed=1_000_000)
CHART: Final = Effort(rate=24.0, window=10, backlog=0, hashed=10_000)
CHART_SHARDS: Final = (1, 8, 512)
CHART_RATES: Final = (60, 125, 200, 240, 300, 400, 600)
"""Occurrences a second of each shard."""
_RATE_OF_A_SHARD: Final = 125
"""Half of what a shard takes."""
_RATE_OF_A_QUEUE: Final = 312.5
"""Five eighths of what a queue dispatches, so that a backlog can drain beside the load."""
_CONCURRENT: Final = 120
"""Concurrent dispatches of a queue: what 500 deliveries a second take, of about 0.2 s each, and a fifth more."""
_DEFAULT_RATE: Final = 100
"""Up to here the default settings do: one shard, and one queue of 200/30."""


def choose_deployment(tasks: int, rate: float) -> Deployment:
    """Return the settings that `docs/explanation/scale.md` advises for a rate."""
    if rate <= _DEFAULT_RATE:
        return Deployment(tasks, rate)
    shards = 2 ** math.ceil(math.log2(rate / _RATE_OF_A_SHARD))
    queues = QueueSetup(math.ceil(rate / _RATE_OF_A_QUEUE), 500.0, _CONCURRENT)
    return Deployment(tasks, rate, shards, queues)


def measure(sizes: Sequence[int], rates: Sequence[float], effort: Effort) -> Iterator[Result]:
    """Yield a result for each size and rate: as advised, and with one shard.

    A recovery depends on the rate, the shards and the queues alone: it is simulated once for each, and every size has
    a backlog of its own.
    """
    recoveries = {}
    for tasks in sizes:
        for rate in rates:
            advised = choose_deployment(tasks, rate)
            for deployment in dict.fromkeys((advised, replace(advised, shards=1))):
                steady, fan_out = measure_steady(deployment, effort), measure_fan_out(deployment)
                if steady.is_saturated:
                    yield Result(deployment, steady, fan_out, None, None)
                    continue
                key = (deployment.rate, deployment.shards)
                if key not in recoveries:
                    recoveries[key] = measure_purge(deployment, effort), measure_outage(deployment, effort)
                yield Result(deployment, steady, fan_out, *recoveries[key])


def measure_chart() -> dict[int, list[tuple[float, float]]]:
    """Return for each number of shards the lateness (p99) at rates around its limit."""
    return {
        shards: [
            (shards * rate, measure_steady(_spread(shards, shards * rate), CHART).lateness[1]) for rate in CHART_RATES
        ]
        for shards in CHART_SHARDS
    }


def _spread(shards: int, rate: float) -> Deployment:
    """Return a deployment that nothing but its shards limits."""
    return Deployment(round(rate * 3_600), rate, shards, QueueSetup(math.ceil(rate / 250.0), 500.0, _CONCURRENT))


def main() -> None:
    """Simulate, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="simulate less: within two minutes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--chart", type=Path, help="draw the chart of lateness by rate into this SVG file instead")
    options = parser.parse_args()
    logging.getLogger("cloudsched").setLevel(logging.CRITICAL)  # what is aborted is counted, and in the figures
    if options.chart is not None:
        options.chart.write_text(draw_chart(measure_chart()), encoding="utf-8")
        return
    begun, used, effort = time.monotonic(), time.process_time(), QUICK if options.quick else FULL
    rows = _collect(measure(SIZES, RATES, effort))
    if options.json:
        print(json.dumps({"rows": rows}))
        return
    if options.markdown:
        print(make_markdown(rows))
        return
    console = Console(width=190)
    console.print(make_table(rows))
    print("!: it falls behind. ±: sampling error of rates, two standard deviations; 0 if nothing was sampled.")
    hottest = max(rows, key=lambda row: row["hottestRangeWritesPerSecond"])
    print(f"The hottest range: {hottest['hottestRange']}. Ramps from cold take", end=" ")
    print(", ".join(f"{rate:,}/s: {_find_ramp(rows, rate) / 60:.0f} min" for rate in RATES), end=".\n")
    slowest = max(rows, key=lambda row: row["sweepFanOutSeconds"])
    print(
        f"All {slowest['shards']} shards are being swept {slowest['sweepFanOutSeconds']:.2f} s after the sweep's job."
    )
    print(f"{time.process_time() - used:.0f} s of CPU, {time.monotonic() - begun:.0f} s.")


def _collect(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return the rows of results, and say what each has found as soon as it is there."""
    rows = []
    for result in results:
        rows.append(result.to_row())
        row = rows[-1]
        size = f"{row['tasks']:,} tasks, {row['occurrencesPerSecond']:,} a second, shards: {row['shards']}"
        print(f"{size}: p99 {row['latenessP99Seconds']} s", file=sys.stderr, flush=True)
    return rows


def _find_ramp(rows: Sequence[dict[str, float]], rate: float) -> float:
    return max(row["rampSeconds"] for row in rows if row["occurrencesPerSecond"] == rate)


if __name__ == "__main__":
    main()
