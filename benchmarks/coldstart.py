"""Measure a cold start: the processor time that a new executor takes until it has answered its first dispatch.

    python -m benchmarks.coldstart [--pairs 15] [--python PATH] [--json]

Each round starts a new process with the functions that are deployed. It imports them, receives a dispatch of a
recurring task from the local Cloud Tasks, runs its handler, commits to Google's Firestore emulator, creates the next
dispatch and answers. The floor is measured directly before or after it: a new process that only imports the four
libraries that a function like that is made of. The figures are processor time of the whole process, because a cold
start is bound by the processor.

The floor is measured twice: as the libraries are installed here, and as in a deployed function, where aiohttp, which
Google's libraries import where they find it, is not installed. ``--python`` takes another interpreter for the measured
processes, such as that of an environment in which only what a deployed function needs is installed.

An emulator asks for no credentials. What importing Google's library for them takes is measured in the same process,
after the response, and shown in a row of its own. The breakdown is of further processes, whose imports are timed one by
one.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import socket
import statistics
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.local_services import run_services
from rich.console import Console
from rich.table import Table

from cloudsched import App, ExecutionStatus, Schedule
from cloudsched.adapters.firestore.store import FirestoreStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.local_services import Services

    from cloudsched import Task

FUNCTIONS = Path(__file__).parent.parent / "functions"
PROCESS = Path(__file__).with_name("first_dispatch.py")
FLOOR = "import functions_framework, google.cloud.firestore, google.cloud.tasks_v2, pydantic"
DEPLOYED_FLOOR = f"import sys; sys.modules['aiohttp'] = None; {FLOOR}"
MAX_RATIO = 1.0
"""The target: the first dispatch is answered in the time that importing the libraries takes."""
KEEPS_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""What is deployed is compiled when it is installed, so the measured processes may keep what they have compiled."""
WATCHED_RUNS = 3
TIMEOUT_SECONDS = 120


class ColdExecutor:
    """Starts new executor processes, and has a dispatch delivered to each."""

    def __init__(self, service: Services, python: str = sys.executable) -> None:
        self._python = python
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=8)
        address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        settings = dataclasses.replace(
            service.settings, store="firestore", firestore_emulator=service.firestore, executor_url=address
        )
        self._environment = {**settings.to_child_environment(), **KEEPS_BYTECODE}
        store = FirestoreStore(project=settings.project, emulator=service.firestore, deadline=timedelta(minutes=1))
        self._app = App(settings, store=store)

        @self._app.handler("remind")
        def remind(payload: dict[str, str]) -> None:
            """Stand for the deployed handler of that name, which the other process runs."""

    def create_task(self) -> Task:
        """Create a recurring task that is due in a few seconds, so that its dispatch waits at the socket."""
        due = self._app.container.clock.now().replace(microsecond=0) + timedelta(seconds=3)
        schedule = Schedule(rrule="FREQ=DAILY", dtstart=due.replace(tzinfo=None).isoformat(), timezone="UTC")
        return self._app.create(
            owner="ada", title="Water", handler="remind", payload={"text": "Water the plants"}, schedule=schedule
        )

    def run(self, task: Task, *, watch: bool = False) -> dict[str, Any]:
        """Start a process that answers the task's dispatch; return its report after checking that the task has run."""
        descriptor = self._listener.fileno()
        options = ["watch"] if watch else []
        process = subprocess.run(  # noqa: S603 - our own interpreter, our own script
            (self._python, str(PROCESS), str(descriptor), str(FUNCTIONS / "main.py"), *options),
            cwd=FUNCTIONS,
            env=self._environment,
            pass_fds=(descriptor,),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        report: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
        (execution,) = self._app.executions(task.id).items
        if execution.status is not ExecutionStatus.SUCCEEDED or not report["status"].startswith("200"):
            raise AssertionError(f"The dispatch was not served: {report['status']}, {execution}")
        if self._app.get(task.id).next_execution_time == task.next_execution_time:
            raise AssertionError("The next occurrence was not planned.")
        self._app.cancel(task.id)
        return report

    def serve(self, *, watch: bool = False) -> dict[str, Any]:
        """Create a task and run it; return the process's report."""
        return self.run(self.create_task(), watch=watch)

    def close(self) -> None:
        """Close the app and the socket."""
        self._app.close()
        self._listener.close()


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


def package_of(module: str) -> str:
    """Return under which name a module's time is shown."""
    first, *rest = module.split(".")
    if first in sys.stdlib_module_names:
        return "the standard library"
    if first in {"cloudsched", "google"} and rest:
        return ".".join((first, *rest[: 2 if rest[0] == "cloud" else 1]))
    return "functions (main.py)" if first in {"main", "handlers"} else first


def break_down(reports: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the median milliseconds and the number of modules of each package; and of what is no import."""
    names = {package_of(module) for report in reports for module in report["own_seconds"]}
    sums = [Counter[str]() for _ in reports]
    for total, report in zip(sums, reports, strict=True):
        for module, seconds in report["own_seconds"].items():
            total[package_of(module)] += seconds
    counts = Counter(package_of(module) for module in reports[0]["own_seconds"])
    shares = {
        name: {"ms": round(statistics.median(each[name] for each in sums) * 1e3, 1), "modules": counts[name]}
        for name in names
    }
    rest = statistics.median(report["answered"] - sum(report["own_seconds"].values()) for report in reports)
    shares["serving (no import)"] = {"ms": round(rest * 1e3, 1), "modules": 0}
    return dict(sorted(shares.items(), key=lambda item: -item[1]["ms"]))


def measure(pairs: int, python: str) -> dict[str, Any]:
    """Measure the floors and the first dispatch in alternation, then the breakdown, and return the figures."""
    with run_services() as service:
        executor = ColdExecutor(service, python)
        candidates: dict[str, Callable[[], dict[str, Any]]] = {
            "floor": lambda: {"answered": measure_import(FLOOR, python)},
            "deployed_floor": lambda: {"answered": measure_import(DEPLOYED_FLOOR, python)},
            "first_dispatch": executor.serve,
        }
        try:
            for run in candidates.values():
                run()  # so that every module has its compiled bytecode before the first measurement
            runs: dict[str, list[dict[str, Any]]] = {name: [] for name in candidates}
            order = list(candidates)
            for _ in range(pairs):
                for name in order:
                    runs[name].append(candidates[name]())
                order.append(order.pop(0))
            watched = [executor.serve(watch=True) for _ in range(WATCHED_RUNS)]
        finally:
            executor.close()
    return summarize(runs, watched, pairs)


def summarize(runs: Mapping[str, list[dict[str, Any]]], watched: list[dict[str, Any]], pairs: int) -> dict[str, Any]:
    """Return the medians; those of the rounds' ratios are disturbed less by other load than ratios of the medians."""
    answered: dict[str, list[float]] = {
        name: [report["answered"] for report in reports] for name, reports in runs.items()
    }
    reports = runs["first_dispatch"]
    first, modules = answered["first_dispatch"], reports[0]["modules"]
    with_credentials = [report["answered"] + report["credentials"] for report in reports]

    def to_ms(seconds: Sequence[float]) -> float:
        return round(statistics.median(seconds) * 1e3, 1)

    def compare(seconds: Sequence[float], floor: str) -> float:
        return round(statistics.median(one / other for one, other in zip(seconds, answered[floor], strict=True)), 3)

    return {
        "pairs": pairs,
        "floor_ms": to_ms(answered["floor"]),
        "deployed_floor_ms": to_ms(answered["deployed_floor"]),
        "imported_ms": to_ms([report["ready"] for report in reports]),
        "first_dispatch_ms": to_ms(first),
        "with_credentials_ms": to_ms(with_credentials),
        "ratio": compare(first, "floor"),
        "deployed_ratio": compare(first, "deployed_floor"),
        "with_credentials_ratio": compare(with_credentials, "floor"),
        "with_credentials_deployed_ratio": compare(with_credentials, "deployed_floor"),
        "max_ratio": MAX_RATIO,
        "modules": len(modules),
        "own_modules": sum(name.startswith("cloudsched") for name in modules),
        "breakdown": break_down(watched),
    }


def show(figures: Mapping[str, Any]) -> None:
    """Print the figures as tables."""
    console = Console(width=110)
    table = Table(
        "what", "median ms", "ratio", "as deployed", "target", title="Cold start: processor time of a new process"
    )
    table.add_row("floor: importing the four libraries", f"{figures['floor_ms']:.0f}", "1.00", "", "")
    table.add_row("floor without aiohttp, as deployed", f"{figures['deployed_floor_ms']:.0f}", "", "1.00", "")
    table.add_row("the executor's functions are imported", f"{figures['imported_ms']:.0f}", "", "", "")
    target = f"≤ {figures['max_ratio']:.2f}"
    for label, name, prefix in (
        ("the first dispatch is answered", "first_dispatch_ms", ""),
        ("… with Google's library for credentials", "with_credentials_ms", "with_credentials_"),
    ):
        ratios = figures[f"{prefix}ratio"], figures[f"{prefix}deployed_ratio"]
        table.add_row(label, f"{figures[name]:.0f}", f"{ratios[0]:.2f}", f"{ratios[1]:.2f}", target)
        target = ""
    console.print(table)
    parts = Table("package", "ms", "modules", title=f"Where it goes: {figures['modules']} modules")
    for name, share in figures["breakdown"].items():
        parts.add_row(name, f"{share['ms']:.1f}", str(share["modules"] or ""))
    console.print(parts)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15, help="how often each process is measured")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the measured processes")
    parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
    options = parser.parse_args()
    figures = measure(options.pairs, options.python)
    if options.json:
        print(json.dumps(figures))
    else:
        show(figures)


if __name__ == "__main__":
    main()
