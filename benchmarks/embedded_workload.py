"""The course that each contestant of ``embedded.py`` runs. It imports nothing but the standard library."""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Protocol

RATE = 100
"""Tasks a second in the third part."""

TRIAL = 100
"""So many tasks, which never come due, show how long creating one takes."""


class Contestant(Protocol):
    """A scheduler with one handler, which calls `BenchmarkRun.ran` with the task's number."""

    version: str

    def create(self, number: int, due_at: float) -> None:
        """Create the one-off task of that number, due at that time (Unix seconds); return once it is on disk."""
        ...


class BenchmarkRun:
    """Collects when each task ran."""

    def __init__(self) -> None:
        self.folder, self.tasks = Path(sys.argv[1]), int(sys.argv[2])
        self._ran_at: dict[int, float] = {}
        self._lock = threading.Lock()

    def ran(self, number: int) -> None:
        """Note that a task's handler was called."""
        with self._lock:
            self._ran_at.setdefault(number, time.time())

    def run(self, contestant: Contestant) -> None:
        """Run the three parts and print the figures as JSON."""
        began = time.time()
        for number in range(TRIAL):
            contestant.create(-1 - number, began + 3600)
        patience = max(5.0, 3 * self.tasks * (time.time() - began) / TRIAL)
        began = time.time()
        due_at = began + patience
        for number in range(self.tasks):
            contestant.create(number, due_at)
        created = self.tasks / (time.time() - began)
        if time.time() > due_at:
            sys.exit("creating took so long that the tasks came due meanwhile")
        self._wait(self.tasks)
        ends = max(self._ran_at.values())
        run = self.tasks / (ends - due_at)
        self._ran_at.clear()
        count, due_at = 10 * RATE, time.time() + patience
        for number in range(count):
            contestant.create(self.tasks + number, due_at + number / RATE)
        self._wait(count)
        late = sorted(at - due_at - (number - self.tasks) / RATE for number, at in self._ran_at.items())
        figures = {
            "version": contestant.version,
            "created": created,
            "run": run,
            "late_p50": statistics.median(late),
            "late_p99": late[int(0.99 * len(late))],
            "late_max": late[-1],
        }
        print(json.dumps(figures), flush=True)

    def _wait(self, count: int) -> None:
        give_up_at = time.time() + 300
        while len(self._ran_at) < count:
            if time.time() > give_up_at:
                sys.exit(f"only {len(self._ran_at)} of {count} tasks ran")
            time.sleep(0.01)
