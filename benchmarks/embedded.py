"""Compare the embedded stack with the alternatives for one machine, APScheduler 3 and DBOS, all with SQLite.

    python -m benchmarks.embedded [--tasks 2000]

The rivals run in an environment of their own (`benchmarks.rivals`). Each contestant is one process
with a new SQLite file, set up as its documentation says, with every acknowledged task on disk. In turn, they

1. create one-off tasks that are due a little later, from one thread (measured: tasks per second);
2. run them, all due at the same instant (measured: tasks per second until the last handler is called);
3. run others that come due one by one, 100 a second (measured: how late each handler is called).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.rivals import install_rivals
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
RIVALS = {"APScheduler 3": "embedded_apscheduler.py", "DBOS": "embedded_dbos.py"}
MAX_LATENESS_MS = 10.0


def measure(python: Path | str, script: Path, tasks: int, folder: Path) -> dict[str, Any]:
    """Run one contestant and return its figures."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    process = subprocess.run(  # noqa: S603 - our own scripts
        (str(python), str(script), str(folder), str(tasks)),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if process.returncode:
        sys.exit(f"{script.name} failed:\n{process.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return figures


def main() -> None:
    """Measure all contestants and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2000, help="how many tasks are created")
    tasks = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        python = install_rivals()
        contestants = [("cloudsched", sys.executable, "embedded_cloudsched.py")]
        contestants += [(name, str(python), script) for name, script in RIVALS.items()]
        figures = {}
        for name, interpreter, script in contestants:
            own_folder = folder / script
            own_folder.mkdir()
            figures[name] = measure(interpreter, HERE / script, tasks, own_folder)
    table = Table(title=f"{tasks} one-off tasks in one process over a SQLite file")
    for heading in ("", "version", "created/s", "run/s", "late p50 ms", "late p99 ms", "late max ms"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, result in figures.items():
        lateness = [f"{result[key] * 1e3:,.1f}" for key in ("late_p50", "late_p99", "late_max")]
        table.add_row(name, result["version"], f"{result['created']:,.0f}", f"{result['run']:,.0f}", *lateness)
    console = Console(width=110)
    console.print(table)
    ours = figures["cloudsched"]
    for name in RIVALS:
        theirs = figures[name]
        created, run = ours["created"] / theirs["created"], ours["run"] / theirs["run"]
        console.print(f"cloudsched / {name}: created {created:.1f}x, run {run:.1f}x (targets: more than 1)")
    console.print(f"cloudsched p99 lateness: {ours['late_p99'] * 1e3:.1f} ms (target: under {MAX_LATENESS_MS:.0f})")


if __name__ == "__main__":
    main()
