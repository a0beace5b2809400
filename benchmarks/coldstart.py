"""Measure a cold start: the time to import the executor's module, compared with the libraries that it must import.

    python -m benchmarks.coldstart [--pairs 15] [--json]

Each import runs in a new interpreter, the two of a pair one directly after the other. The figure is processor time,
because a cold start is bound by the processor. The executor opens its store and queue only at the first dispatch, so
the second row imports their modules too: together they are what the first dispatch waits for.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

FUNCTIONS = Path(__file__).parent.parent / "functions"
LIBRARIES = "import functions_framework, google.cloud.firestore, google.cloud.tasks_v2, pydantic"
EXECUTOR = "import main"
ADAPTERS = "import main, cloudsched.adapters.firestore.store, cloudsched.adapters.google.cloud_tasks"
MAX_RATIO = 1.15
"""The target: the import may take this many times as long as the libraries alone."""


class Comparison(NamedTuple):
    """What one import costs, and its floor, in seconds of processor time."""

    seconds: float
    floor_seconds: float
    ratio: float
    """The median of the pairs' ratios, which other load on the machine disturbs less than the ratio of the medians."""


def measure_import(statement: str) -> float:
    """Return the seconds of processor time that an import takes in a new interpreter."""
    script = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    process = subprocess.run(  # noqa: S603 - our own interpreter, our own script
        (sys.executable, "-c", script), cwd=FUNCTIONS, capture_output=True, text=True, check=True
    )
    return float(process.stdout)


def compare(statement: str, pairs: int) -> Comparison:
    """Measure an import and the libraries alone in pairs, and return the medians. Every second pair is reversed."""
    seconds, floors, ratios = [], [], []
    for number in range(pairs):
        first, second = (statement, LIBRARIES) if number % 2 else (LIBRARIES, statement)
        measured = {first: measure_import(first), second: measure_import(second)}
        seconds.append(measured[statement])
        floors.append(measured[LIBRARIES])
        ratios.append(measured[statement] / measured[LIBRARIES])
    return Comparison(statistics.median(seconds), statistics.median(floors), statistics.median(ratios))


def main() -> None:
    """Measure both imports and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15, help="how often each import is measured")
    parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
    options = parser.parse_args()
    for statement in (LIBRARIES, EXECUTOR, ADAPTERS):
        measure_import(statement)  # so that every module has its compiled bytecode before the first measurement
    executor, adapters = compare(EXECUTOR, options.pairs), compare(ADAPTERS, options.pairs)
    if options.json:
        figures = {"executor": executor._asdict(), "executor_with_adapters": adapters._asdict()}
        print(json.dumps({"pairs": options.pairs, "max_ratio": MAX_RATIO, **figures}))
        return
    table = Table("import", "median ms", "median ratio", "target", title="Cold start: importing")
    floor = statistics.median((executor.floor_seconds, adapters.floor_seconds))
    table.add_row("floor: the four libraries", f"{floor * 1e3:.0f}", "1.00", "")
    for name, comparison in (("the executor's module", executor), ("with its store and queue", adapters)):
        table.add_row(name, f"{comparison.seconds * 1e3:.0f}", f"{comparison.ratio:.2f}", f"≤ {MAX_RATIO:.2f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
