"""Measure a cold start: the processor time that a new executor takes until it has answered its first dispatch.

    python -m benchmarks.coldstart [--python PATH]

Each round starts a new process with the functions that are deployed. It imports them, receives a dispatch of a
recurring task from the local Cloud Tasks, runs its handler, commits to Google's Firestore emulator, creates the next
dispatch and answers. The floor is measured directly before or after it: a new process that only imports the four
libraries that a function like that is made of. The figures are processor time of the whole process, because a cold
start is bound by the processor.

The floor is measured twice: as the libraries are installed here, and as in a deployed function, where aiohttp, which
Google's libraries import where they find it, is not installed. ``--python`` takes another interpreter for the measured
processes, such as that of an environment in which only what a deployed function needs is installed.

An emulator asks for no credentials. What importing Google's library for them takes is measured in the same process,
after the response, and shown in a row of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.cold_executor import FUNCTIONS, KEEPS_BYTECODE, ColdExecutor
from benchmarks.local_services import run_services
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

FLOOR = "import functions_framework, google.cloud.firestore, google.cloud.tasks_v2, pydantic"
DEPLOYED_FLOOR = f"import sys; sys.modules['aiohttp'] = None; {FLOOR}"


def measure_import(statement: str, python: str) -> float:
    """Return the seconds of processor time that an import takes in a new interpreter."""
    script = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    process = subprocess.run(  # noqa: S603 - our own interpreter, our own script
        (python, "-c", script),
        cwd=FUNCTIONS,
        env={**os.environ, **KEEPS_BYTECODE},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(process.stdout)


def measure(pairs: int, python: str) -> dict[str, list[dict[str, float]]]:
    """Measure the floors and the first dispatch in alternation, and return what each process reported."""
    with run_services() as service:
        executor = ColdExecutor(service, python)
        candidates: dict[str, Callable[[], dict[str, Any]]] = {
            "floor": lambda: {"answered": measure_import(FLOOR, python)},
            "deployed floor": lambda: {"answered": measure_import(DEPLOYED_FLOOR, python)},
            "first dispatch": lambda: executor.run(executor.create_task()),
        }
        try:
            for run in candidates.values():
                run()  # so that every module has its compiled bytecode before the first measurement
            runs: dict[str, list[dict[str, float]]] = {name: [] for name in candidates}
            order = list(candidates)
            for _ in range(pairs):
                for name in order:
                    runs[name].append(candidates[name]())
                order.append(order.pop(0))
        finally:
            executor.close()
    return runs


def show(runs: dict[str, list[dict[str, float]]]) -> None:
    """Print the medians; those of the rounds' ratios are disturbed less by other load than ratios of the medians."""
    floor, deployed = ([each["answered"] for each in runs[name]] for name in ("floor", "deployed floor"))
    reports = runs["first dispatch"]
    ready, answered = ([each[name] for each in reports] for name in ("ready", "answered"))
    with_credentials = [each["answered"] + each["credentials"] for each in reports]
    table = Table("what", "median ms", "ratio", "as deployed", title="Cold start: processor time of a new process")
    for label, seconds, floors in (
        ("floor: importing the four libraries", floor, (floor, None)),
        ("floor without aiohttp, as deployed", deployed, (None, deployed)),
        ("the executor's functions are imported", ready, (None, None)),
        ("the first dispatch is answered", answered, (floor, deployed)),
        ("… with Google's library for credentials", with_credentials, (floor, deployed)),
    ):
        ratios = [
            f"{statistics.median(one / other for one, other in zip(seconds, each, strict=True)):.2f}" if each else ""
            for each in floors
        ]
        table.add_row(label, f"{statistics.median(seconds) * 1e3:.0f}", *ratios)
    Console(width=110).print(table)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the measured processes")
    options = parser.parse_args()
    show(measure(15, options.python))


if __name__ == "__main__":
    main()
