"""Measure durable handlers: 100 steps, 100 concurrent calls, and a replay as the journal grows.

    python -m benchmarks.durable

Each workflow runs on a SQLite file that is synced at every commit.
The same workflows run with DBOS directly before, in an environment of its own (`benchmarks.machine`), also on a SQLite
file. DBOS's default for SQLite is a write-ahead log without a sync at each commit; the table shows it with and without
that sync.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.machine import install_rivals
from rich.console import Console
from rich.table import Table

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from cloudsched.adapters.operation_counts import Counts

app = App(Settings())
SIZE = 100
REPEAT = 5
"""How often each is run. The best counts."""


def work(number: int) -> int:
    """Return the number: the smallest step."""
    return number


@app.handler("steps")
def run_steps(ctx: Context, payload: dict[str, int]) -> int:
    """Run `n` steps, one after the other."""
    return sum(ctx.step("work", work, number) for number in range(payload["n"]))


@app.handler("work")
def handle_work(payload: dict[str, int]) -> int:
    """Return the number in the payload: the handler that `make_calls` calls."""
    return work(payload["n"])


@app.handler("calls")
def make_calls(ctx: Context, payload: dict[str, int]) -> int:
    """Make `n` calls concurrently."""
    return sum(ctx.gather(*[ctx.call("work", {"n": number}) for number in range(payload["n"])]))


@app.handler("long")
def run_steps_and_sleep(ctx: Context, payload: dict[str, int]) -> int:
    """Run `n` steps and sleep for a day; after the sleep all of them are replayed."""
    total = sum(ctx.step("work", work, number) for number in range(payload["n"]))
    ctx.sleep(timedelta(days=1))
    return total


@dataclass(frozen=True)
class Run:
    """The seconds that a workflow and its replay took, and its operations at the store and the queue."""

    seconds: float
    counts: Counts
    replay: float = 0.0


def run(handler: str, number: int) -> Run:
    """Run a workflow to its end on a new SQLite file."""
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "tasks.db")
        with Simulation(app, store=store) as sim:
            at = Schedule.once(START)
            task = app.create(owner="ada", title="W", handler=handler, payload={"n": number}, schedule=at)
            before = sim.counts.copy()
            start = time.perf_counter()
            sim.advance(timedelta(hours=1))
            seconds = time.perf_counter() - start
            counts = sim.counts.since(before)
            start = time.perf_counter()
            sim.run_until_idle()
            replay = time.perf_counter() - start
            (execution,) = sim.executions(task.id)
            assert execution.content == sum(range(number)), execution.error
        store.close()
    return Run(seconds, counts, replay)


DBOS = """
import json, os, sys, tempfile, time
from dbos import DBOS
folder = tempfile.mkdtemp()
DBOS(config={"name": "benchmark", "system_database_url": f"sqlite:///{folder}/dbos.db", "log_level": "ERROR"})


@DBOS.step()
def step(n):
    return n

@DBOS.workflow()
def steps(n):
    return sum(step(k) for k in range(n))

@DBOS.workflow()
def called(n):
    return n

@DBOS.workflow()
def calls(n):
    handles = [DBOS.start_workflow(called, k) for k in range(n)]
    return sum(handle.get_result() for handle in handles)

DBOS.launch()
assert steps(2) == 1 and calls(2) == 1
if "sync" in sys.argv:
    from sqlalchemy import event
    from dbos._dbos import _get_dbos_instance
    engine = _get_dbos_instance()._sys_db.engine
    engine.dispose()
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = FULL"))
seconds = {}
for name, workflow in (("steps", steps), ("calls", calls)):
    start = time.perf_counter()
    assert workflow(100) == 4950
    seconds[name] = time.perf_counter() - start
print(json.dumps(seconds))
sys.stdout.flush()
os._exit(0)
"""


def run_dbos(python: str, *arguments: str) -> dict[str, float]:
    """Return the seconds that DBOS takes for the same workflows, by their names."""
    process = subprocess.run([python, "-c", DBOS, *arguments], capture_output=True, text=True, timeout=120, check=True)  # noqa: S603 - the rivals'
    seconds_by_workflow: dict[str, float] = json.loads(process.stdout.strip().splitlines()[-1])
    return seconds_by_workflow


def main() -> None:
    """Measure the workflows and the replays, and print a table of each."""
    comparisons: list[tuple[str, dict[str, float]]] = []
    dbos = str(install_rivals())
    for name, arguments in (("DBOS", ()), ("DBOS, synced", ("sync",))):
        results = [run_dbos(dbos, *arguments) for _ in range(REPEAT)]
        comparisons.append((name, {key: min(each[key] for each in results) for key in results[0]}))
    table = Table(title=f"Workflows of {SIZE}, the best of {REPEAT}")
    for heading in ("", "seconds", "reads", "commits", "documents", "dispatches"):
        table.add_column(heading, justify="left" if not heading else "right")
    for handler, label in (("steps", "steps"), ("calls", "concurrent calls")):
        best = min((run(handler, SIZE) for _ in range(REPEAT)), key=lambda each: each.seconds)
        counts = best.counts
        figures = (counts.reads, counts.commits, counts.writes, counts.dispatches)
        table.add_row(f"{SIZE} {label}", f"{best.seconds:.3f}", *(f"{each:,}" for each in figures))
        for name, seconds_by_workflow in comparisons:
            table.add_row(f"  {name}", f"{seconds_by_workflow[handler]:.3f}")
    Console().print(table)
    table = Table(title="Replay, as the journal grows")
    for heading in ("steps", "all steps, seconds", "replay, ms", "per replayed step, µs"):
        table.add_column(heading, justify="right")
    base_replay = min(run("long", 0).replay for _ in range(REPEAT))
    table.add_row("0", "", f"{base_replay * 1000:.1f}", "")
    for number in (10, 100, 1000):
        runs = [run("long", number) for _ in range(REPEAT)]
        seconds, replay = min(each.seconds for each in runs), min(each.replay for each in runs)
        table.add_row(
            f"{number:,}", f"{seconds:.3f}", f"{replay * 1000:.1f}", f"{(replay - base_replay) / number * 1e6:.1f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()
