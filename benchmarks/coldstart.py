"""What a cold start costs: importing the executor's module, beside the libraries that it cannot do without.

    python -m benchmarks.coldstart [--pairs 15]

Each import happens in a new interpreter, the two of a pair right after each other, and is measured in processor time,
which is what a cold start waits for. The executor opens its store and queue at the first dispatch, so the second line
imports those too: it is what the first dispatch has waited for.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

FUNCTIONS = Path(__file__).parent.parent / "functions"
LIBRARIES = "import functions_framework, google.cloud.firestore, google.cloud.tasks_v2, pydantic"
EXECUTOR = "import main"
ADAPTERS = "import main, cloudsched.adapters.firestore.store, cloudsched.adapters.google.cloud_tasks"
MOST = 1.15


def seconds(statement: str) -> float:
    """Return the processor time that a new interpreter takes for an import."""
    script = f"import time; began = time.process_time(); {statement}; print(time.process_time() - began)"
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own script
        (sys.executable, "-c", script), cwd=FUNCTIONS, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    pairs = parser.parse_args().pairs
    for statement in (LIBRARIES, EXECUTOR, ADAPTERS):
        seconds(statement)  # compiles what is not compiled yet
    table = Table("what", "median ms", "median ratio", "target", title="Cold start: importing")
    floors: list[float] = []
    rows = []
    for name, statement in (("the executor's module", EXECUTOR), ("with its store and queue", ADAPTERS)):
        took, ratios = [], []
        for number in range(pairs):
            first, second = (statement, LIBRARIES) if number % 2 else (LIBRARIES, statement)
            measured = {first: seconds(first), second: seconds(second)}
            took.append(measured[statement])
            floors.append(measured[LIBRARIES])
            ratios.append(measured[statement] / measured[LIBRARIES])
        rows.append((name, f"{statistics.median(took) * 1e3:.0f}", f"{statistics.median(ratios):.2f}", f"≤ {MOST:.2f}"))
    table.add_row("floor: the four libraries", f"{statistics.median(floors) * 1e3:.0f}", "1.00", "")
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
