"""Compare the embedded stack with the alternatives for one machine: APScheduler 3, DBOS and huey, all with SQLite.

    python -m benchmarks.embedded [--tasks 2000] [--json] [--rivals PYTHON]

The rivals run in an environment of their own (`benchmarks.rivals`), unless ``--rivals`` names a Python that has them.
(procrastinate is not among them: it needs a PostgreSQL server.) Each contestant is one process with a
new SQLite file, set up as its documentation says. In turn, they

1. create one-off tasks that are due a little later, from one thread (measured: tasks per second);
2. run them, all due at the same instant (measured: tasks per second until the last handler is called);
3. run others that come due one by one, 100 a second (measured: how late each handler is called), and 1,000 a second;
4. run as many whose handlers wait for 20 ms (measured: tasks per second);
5. in another folder, create as many, and end before those are due; once they are, a new process runs them (measured:
   tasks per second, from the moment that its scheduler is told to start).

Before and after, it is measured how long the disk needs to sync a write as large as that of a created task. What is
synced at each commit cannot be faster than that: one thread creates at most one task in that time, and no handler
starts earlier after its claim. DBOS alone does not sync its commits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.embedded_workload import TOO_LATE
from benchmarks.rivals import install_rivals
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
SYNCS, SYNCED_BYTES = 50, 40 * 1024
OURS = "cloudsched"
LEAD_FACTORS = (3, 6, 12)
"""How long before they are due tasks are created, one after another until that is long enough for all of them."""
RIVALS = {"APScheduler 3": "embedded_apscheduler.py", "DBOS": "embedded_dbos.py", "huey": "embedded_huey.py"}
COLUMNS = {
    "created": ("created/s", 1),
    "run": ("run/s", 1),
    "restarted": ("run/s after a restart", 1),
    "lost": ("lost", 1),
    "late_p50": ("late p50 ms", 1e3),
    "late_p99": ("late p99 ms", 1e3),
    "late_max": ("late max ms", 1e3),
    "high_p99": ("late p99 ms at 1,000/s", 1e3),
    "waiting": ("20-ms handlers/s", 1),
}
"""The figures, each with its heading and the factor to its unit."""
TARGETS = {
    "created": "≥ 2,000",
    "run": "≥ 2,600",
    "restarted": "≥ 2,600",
    "late_p99": "≤ 1.5",
    "high_p99": "≤ 5.0",
    "waiting": "≥ 1,200",
}


class TooLateError(Exception):
    """A contestant's tasks came due before all of them were created."""


def measure(command: tuple[str, str], tasks: int, folder: Path) -> dict[str, Any]:
    """Run one contestant and return its figures; no figures if its tasks are due too early with every lead factor."""
    for factor in LEAD_FACTORS:
        try:
            return measure_once(command, tasks, folder / str(factor), factor)
        except TooLateError:
            continue
    return {}


def measure_once(command: tuple[str, str], tasks: int, folder: Path, factor: int) -> dict[str, Any]:
    """Run all parts of the workload in new folders, and return their figures.

    Raises:
        TooLateError: The tasks came due before all of them were created.
    """
    figures = run_part(command, tasks, folder / "work", "work", factor)
    left = run_part(command, tasks, folder / "restart", "leave", factor)
    time.sleep(max(0.0, left["due_at"] - time.time()) + 0.1)
    return figures | run_part(command, tasks, folder / "restart", "restart", factor)


def run_part(command: tuple[str, str], tasks: int, folder: Path, part: str, factor: int) -> dict[str, Any]:
    """Run one part of the workload in a process of its own, and return its figures."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "LEAD_FACTOR": str(factor)}
    interpreter, script = command
    process = subprocess.run(  # noqa: S603 - our own scripts
        (interpreter, str(HERE / script), str(folder), str(tasks), part),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if process.returncode == TOO_LATE:
        raise TooLateError
    if process.returncode:
        sys.exit(f"{script} failed in {part!r}:\n{process.stdout[-1000:]}{process.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return figures


def measure_sync(folder: Path) -> float:
    """Return the median of the seconds that the disk needs to sync what was appended to a file."""
    seconds = []
    with (folder / "synced").open("ab", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(os.urandom(SYNCED_BYTES))
            start = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    """Measure all contestants and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000, help="how many tasks are created")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, times in seconds")
    parser.add_argument("--rivals", metavar="PYTHON", help="a Python that has the rivals installed")
    options = parser.parse_args()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rivals = options.rivals or install_rivals()
        contestants = {OURS: (sys.executable, "embedded_cloudsched.py")}
        contestants |= {name: (str(rivals), script) for name, script in RIVALS.items()}
        syncs = [measure_sync(folder)]
        figures = {name: measure(command, options.tasks, folder / name) for name, command in contestants.items()}
        syncs.append(measure_sync(folder))
    if options.json:
        machine = {"cores": os.cpu_count(), "load_before": load_before, "load_after": os.getloadavg(), "sync": syncs}
        print(json.dumps({"tasks": options.tasks, "machine": machine, "figures": figures}, indent=2))
    else:
        show(figures, options.tasks, syncs)


def show(figures: dict[str, dict[str, Any]], tasks: int, syncs: list[float]) -> None:
    """Print the figures as a table, and what they are as ratios."""
    table = Table(title=f"{tasks} one-off tasks in one process over a SQLite file")
    for heading in ("", "version", *(heading for heading, _ in COLUMNS.values())):
        table.add_column(heading, justify="right" if heading else "left")
    for name, result in figures.items():
        if not result:
            table.add_row(name, "too slow")
            continue
        cells = (f"{result[key] * factor:,.{0 if factor == 1 else 1}f}" for key, (_, factor) in COLUMNS.items())
        table.add_row(name, result["version"], *cells)
    table.add_row("target", "", *(TARGETS.get(key, "") for key in COLUMNS))
    console = Console(width=150)
    console.print(table)
    console.print("a sync of the disk takes " + ", then ".join(f"{1e3 * each:.1f} ms" for each in syncs))
    for name in (name for name in RIVALS if figures[OURS] and figures[name]):
        ratios = {key: figures[OURS][key] / figures[name][key] for key in ("created", "run", "restarted")}
        console.print(f"{OURS} / {name}: " + ", ".join(f"{key} {ratio:.1f}x" for key, ratio in ratios.items()))


if __name__ == "__main__":
    main()
