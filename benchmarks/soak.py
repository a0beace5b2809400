"""Run `cloudsched serve` for long under an even load, and see whether anything grows.

    python -m benchmarks.soak [--minutes 30] [--rate 100] [--json]

Each second `--rate` occurrences come due: of ten, eight call a handler of one line, one notifies its owner (an inbox
message, which is a delivery), and one is durable, with two steps. What has ended is kept for a minute and a half, so
from the third minute on as much expires as is made. Each minute it is measured how late the handlers were called, and
what the process has: memory, threads, descriptors, the store's file and its log. At the end, every occurrence that came
due is looked for. Run it with nothing else running: lateness is the machine's as well.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from benchmarks.machine import describe_machine
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = timedelta(seconds=90)
LEAD = timedelta(seconds=5)
HANDLERS = """
import time
from datetime import UTC, datetime
from cloudsched import App, Context

app = App()
calls = open("calls.txt", "a", buffering=1)

def note(ctx: Context) -> None:
    late = (datetime.now(UTC) - ctx.scheduled_for).total_seconds()
    calls.write(f"{ctx.task.id} {ctx.execution_id} {late:.6f}\\n")

@app.handler("plain")
def plain(ctx: Context) -> None:
    note(ctx)

@app.handler("tell")
def tell(ctx: Context) -> None:
    note(ctx)
    ctx.notify("Soak", "It is time.")

@app.handler("durable")
def durable(ctx: Context) -> int:
    ctx.step("note", lambda: note(ctx))
    return ctx.step("count", lambda: 1)
"""
COLUMNS = {
    "late_p50_ms": "late p50 ms",
    "late_p99_ms": "late p99 ms",
    "called": "called",
    "memory_mb": "memory MB",
    "threads": "threads",
    "descriptors": "descriptors",
    "file_mb": "file MB",
    "log_mb": "log MB",
}


def run(minutes: int, rate: int) -> dict[str, Any]:
    """Run the load; return the figures of each minute, and how many occurrences were missing or called twice."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "handlers.py").write_text(HANDLERS, "utf-8")
        environment = {each: value for each, value in os.environ.items() if not each.startswith("CLOUDSCHED_")}
        environment |= {"CLOUDSCHED_OPEN": "on", "CLOUDSCHED_RETENTION_DAYS": f"{KEPT / timedelta(days=1):.5f}"}
        with (folder / "log.txt").open("w") as log:
            service = subprocess.Popen(
                [sys.executable, "-m", "cloudsched", "serve", "--port", "0", "--data", "data"],
                cwd=folder,
                env=environment | {"CLOUDSCHED_LOG_LEVEL": "WARNING"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                begun = create_tasks(find_address(folder / "log.txt"), rate, minutes)
                return watch(service.pid, folder, begun, minutes, rate)
            finally:
                service.terminate()
                service.wait()


def find_address(log: Path) -> str:
    """Wait until the service says where it is."""
    for _ in range(600):
        if found := re.search(r"API +(http://\S+)/v1/tasks\n(?s:.*)Ready", log.read_text("utf-8")):
            return found[1]
        time.sleep(0.1)
    raise SystemExit(f"The service does not start:\n{log.read_text('utf-8')}")


def create_tasks(url: str, rate: int, minutes: int) -> datetime:
    """Create tasks that come due each second from one instant on; return that."""
    begin = datetime.now(UTC).replace(microsecond=0) + LEAD + timedelta(seconds=rate // 20)
    end = begin + timedelta(minutes=minutes, seconds=-1)
    schedule = {"rrule": f"FREQ=SECONDLY;UNTIL={end:%Y%m%dT%H%M%SZ}", "dtstart": f"{begin:%Y-%m-%dT%H:%M:%S}"}
    with httpx.Client(base_url=url, timeout=30) as client:
        for number in range(rate):
            handler = {8: "tell", 9: "durable"}.get(number % 10, "plain")
            fields = {"id": f"t{number}", "owner": f"o{number}", "title": "Soak", "handler": handler}
            policies = {"catchUp": "all", "overlap": "allow", "executionRetention": f"PT{KEPT.seconds}S"}
            task = {**fields, **policies, "schedule": schedule}
            answer = client.post("/v1/tasks", json=task)
            if answer.status_code != HTTPStatus.CREATED:
                raise SystemExit(answer.text)
    if datetime.now(UTC) > begin:
        raise SystemExit("The tasks came due before all of them were created: use a smaller --rate.")
    return begin


def watch(pid: int, folder: Path, begin: datetime, minutes: int, rate: int) -> dict[str, Any]:
    """Measure after each minute."""
    table = []
    with (folder / "calls.txt").open(encoding="utf-8") as calls:
        seen: list[str] = []
        for minute in range(1, minutes + 1):
            time.sleep(max(0.0, (begin + timedelta(minutes=minute) - datetime.now(UTC)).total_seconds()))
            lines = calls.readlines()
            seen += [line.rpartition(" ")[0] for line in lines]
            late = sorted(float(line.rpartition(" ")[2]) for line in lines)
            if not late:
                raise SystemExit(f"Nothing ran in minute {minute}:\n{(folder / 'log.txt').read_text('utf-8')[-2000:]}")
            row = measure(pid, folder / "data") | {
                "minute": minute,
                "called": len(late),
                "late_p50_ms": round(statistics.median(late) * 1e3, 1),
                "late_p99_ms": round(late[int(len(late) * 0.99)] * 1e3, 1),
            }
            table.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
        time.sleep(LEAD.total_seconds())
        seen += [line.rpartition(" ")[0] for line in calls.readlines()]
    due = rate * minutes * 60
    return {"minutes": table, "due": due, "missing": due - len({*seen}), "twice": len(seen) - len({*seen})}


def measure(pid: int, data: Path) -> dict[str, float]:
    """Return what a process has."""
    status = dict(re.findall(r"(\w+):\s+(\d+)", Path(f"/proc/{pid}/status").read_text("utf-8")))
    size = {each: sum(file.stat().st_size for file in files(data, each)) for each in ("tasks.db", "tasks.db-wal")}
    return {
        "memory_mb": round(int(status["VmRSS"]) / 1024, 1),
        "threads": int(status["Threads"]),
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "file_mb": round(size["tasks.db"] / 1e6, 1),
        "log_mb": round(size["tasks.db-wal"] / 1e6, 1),
    }


def files(data: Path, name: str) -> Iterator[Path]:
    """Yield the file, if it is there."""
    yield from data.glob(name)


def main() -> None:
    """Run the load, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--rate", type=int, default=100, help="occurrences a second")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = run(chosen.minutes, chosen.rate)
    if chosen.json:
        print(json.dumps({"machine": describe_machine(), **found}, indent=1))
        return
    title = f"{found['due']:,} occurrences: {found['missing']} missing, {found['twice']} called twice"
    table = Table("minute", *COLUMNS.values(), title=title)
    for row in found["minutes"]:
        table.add_row(str(row["minute"]), *(f"{row[name]:,}" for name in COLUMNS))
    Console().print(table)


if __name__ == "__main__":
    main()
