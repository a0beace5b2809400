"""The workload that each contestant of ``embedded.py`` runs. It imports only the standard library."""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Protocol

RATE = 100
"""Tasks per second in the third part."""

TRIAL_TASKS = 100
"""How many tasks, which never come due, are created first to estimate how long a creation takes."""


class Contestant(Protocol):
    """A scheduler with one handler, which calls `BenchmarkRun.record_run` with the task's number."""

    version: str

    def create(self, number: int, due_at: float) -> None:
        """Create the one-off task of that number, due at that time (Unix seconds); return once it is on disk."""
        ...


class BenchmarkRun:
    """Runs the workload and collects when each task ran."""

    def __init__(self) -> None:
        self.folder, self.tasks = Path(sys.argv[1]), int(sys.argv[2])
        self._ran_at: dict[int, float] = {}
        self._lock = threading.Lock()

    def record_run(self, number: int) -> None:
        """Record that a task's handler was called; only the first call counts."""
        with self._lock:
            self._ran_at.setdefault(number, time.time())

    def run(self, contestant: Contestant) -> None:
        """Run the three parts and print the figures as JSON."""
        start = time.time()
        for number in range(TRIAL_TASKS):
            contestant.create(-1 - number, start + 3600)
        lead_time = max(5.0, 3 * self.tasks * (time.time() - start) / TRIAL_TASKS)
        start = time.time()
        due_at = start + lead_time
        for number in range(self.tasks):
            contestant.create(number, due_at)
        created = self.tasks / (time.time() - start)
        if time.time() > due_at:
            sys.exit("the tasks came due before all of them were created")
        self._wait_for_runs(self.tasks)
        finished_at = max(self._ran_at.values())
        run = self.tasks / (finished_at - due_at)
        self._ran_at.clear()
        count, due_at = 10 * RATE, time.time() + lead_time
        for number in range(count):
            contestant.create(self.tasks + number, due_at + number / RATE)
        self._wait_for_runs(count)
        lateness = sorted(at - due_at - (number - self.tasks) / RATE for number, at in self._ran_at.items())
        figures = {
            "version": contestant.version,
            "created": created,
            "run": run,
            "late_p50": statistics.median(lateness),
            "late_p99": lateness[int(0.99 * len(lateness))],
            "late_max": lateness[-1],
        }
        print(json.dumps(figures), flush=True)

    def _wait_for_runs(self, count: int) -> None:
        deadline = time.time() + 300
        while len(self._ran_at) < count:
            if time.time() > deadline:
                sys.exit(f"only {len(self._ran_at)} of {count} tasks ran")
            time.sleep(0.01)
