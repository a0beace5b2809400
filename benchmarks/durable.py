"""What a durable handler costs: 100 steps, 100 calls side by side, and a replay as the journal grows.

    python benchmarks/durable.py [--dbos PYTHON]

Each workflow runs on a SQLite file that is synced at every commit. The floor beside it is the same operations on the
same store with nothing decided in between: so many reads, and commits of so many documents.
With ``--dbos`` (a Python that has DBOS, from PyPI) the same workflows run there in the same minute, on a SQLite file,
too. Its default for SQLite is a write-ahead log without a sync at each commit; both ways are shown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from cloudsched.adapters.operation_counts import Counts

app = App(Settings())
MANY = 100


def work(number: int) -> int:
    """Do next to nothing."""
    return number


@app.handler("steps")
def steps(ctx: Context, payload: dict[str, int]) -> int:
    """So many steps, one after the other."""
    return sum(ctx.step("work", work, number) for number in range(payload["n"]))


@app.handler("work")
def called(payload: dict[str, int]) -> int:
    """Be called."""
    return work(payload["n"])


@app.handler("calls")
def calls(ctx: Context, payload: dict[str, int]) -> int:
    """So many calls, side by side."""
    return sum(ctx.gather(*[ctx.call("work", {"n": number}) for number in range(payload["n"])]))


@app.handler("long")
def long(ctx: Context, payload: dict[str, int]) -> int:
    """So many steps, and one replay of all of them."""
    total = sum(ctx.step("work", work, number) for number in range(payload["n"]))
    ctx.sleep(timedelta(days=1))
    return total


@dataclass(frozen=True)
class Run:
    """How long a workflow took, and what it asked of the store and the queue."""

    seconds: float
    counts: Counts
    replay: float = 0.0


def run(handler: str, number: int) -> Run:
    """Run a workflow to its end on a file of its own."""
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "tasks.db")
        with Simulation(app, store=store) as sim:
            at = Schedule.once(START)
            task = app.create(owner="ada", title="W", handler=handler, payload={"n": number}, schedule=at)
            before = sim.counts.copy()
            began = time.perf_counter()
            sim.advance(timedelta(hours=1))
            seconds = time.perf_counter() - began
            counts = sim.counts.since(before)
            began = time.perf_counter()
            sim.run_until_idle()
            replay = time.perf_counter() - began
            (execution,) = sim.executions(task.id)
            assert execution.content == sum(range(number)), execution.error
        store.close()
    return Run(seconds, counts, replay)


def floor(counts: Counts) -> float:
    """Return the seconds that the store and the queue model alone need for the same operations."""
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "tasks.db")
        with Simulation(app, store=store):
            task = app.create(owner="ada", title="W", handler="work", payload={"n": 1})
            stored = store.load(task.id)
            assert stored is not None
            version = stored.version
            entry = JournalEntry(number=1, kind=StepKind.STEP, name="work", execution_id="e", started_at=START)
            more = (counts.writes - counts.commits) / counts.commits
            wanted = 0.0
            began = time.perf_counter()
            for _ in range(counts.commits):
                wanted += more
                entries = [entry] * int(wanted)
                wanted -= int(wanted)
                version = store.commit(task, version, entries=entries)
            for _ in range(counts.reads):
                store.load(task.id)
            seconds = time.perf_counter() - began
        store.close()
    return seconds


DBOS = """
import json, os, sys, tempfile, time
from dbos import DBOS
folder = tempfile.mkdtemp()
DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{folder}/dbos.db", "log_level": "ERROR"})


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
found = {}
for name, workflow in (("steps", steps), ("calls", calls)):
    began = time.perf_counter()
    assert workflow(100) == 4950
    found[name] = time.perf_counter() - began
print(json.dumps(found))
sys.stdout.flush()
os._exit(0)
"""


def dbos(python: str, *arguments: str) -> dict[str, float]:
    """Return how long DBOS takes for the same workflows."""
    done = subprocess.run([python, "-c", DBOS, *arguments], capture_output=True, text=True, timeout=120, check=True)  # noqa: S603 - a Python of the caller's
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dbos", metavar="PYTHON")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    rivals: list[tuple[str, dict[str, float]]] = []
    if options.dbos:
        for name, arguments in (("DBOS", ()), ("DBOS, synced", ("sync",))):
            tries = [dbos(options.dbos, *arguments) for _ in range(options.repeat)]
            rivals.append((name, {key: min(each[key] for each in tries) for key in tries[0]}))
    table = Table(title=f"Workflows of {MANY}, the best of {options.repeat}")
    for heading in ("", "seconds", "reads", "commits", "documents", "dispatches"):
        table.add_column(heading, justify="left" if not heading else "right")
    for handler, what in (("steps", "steps"), ("calls", "calls side by side")):
        best = min((run(handler, MANY) for _ in range(options.repeat)), key=lambda each: each.seconds)
        counts = best.counts
        figures = (counts.reads, counts.commits, counts.writes, counts.dispatches)
        table.add_row(f"{MANY} {what}", f"{best.seconds:.3f}", *(f"{each:,}" for each in figures))
        least = min(floor(counts) for _ in range(options.repeat))
        table.add_row("  floor: the store alone", f"{least:.3f}")
        for name, found in rivals:
            table.add_row(f"  {name}", f"{found[handler]:.3f}")
    Console().print(table)
    table = Table(title="Replay, as the journal grows")
    for heading in ("steps", "all of them, seconds", "their replay, ms", "a replayed step, µs"):
        table.add_column(heading, justify="right")
    nothing = min(run("long", 0).replay for _ in range(options.repeat))
    table.add_row("0", "", f"{nothing * 1000:.1f}", "")
    for number in (10, 100, 1000):
        runs = [run("long", number) for _ in range(options.repeat)]
        seconds, replay = min(each.seconds for each in runs), min(each.replay for each in runs)
        table.add_row(
            f"{number:,}", f"{seconds:.3f}", f"{replay * 1000:.1f}", f"{(replay - nothing) / number * 1e6:.1f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()
