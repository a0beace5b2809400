"""The workload that each contestant of ``embedded.py`` runs. It imports only the standard library."""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Protocol

RATE, HIGH_RATE = 100, 1000
"""Tasks per second in the parts that measure lateness."""
WAIT_SECONDS, WAITING_FROM = 0.02, 1_000_000
"""How long the handler of each task from that number on waits, as for an answer from elsewhere."""

TRIAL_TASKS = 100
"""How many tasks, which never come due, are created first to estimate how long a creation takes."""
LEAD_FACTOR = int(os.environ.get("LEAD_FACTOR", "3"))
"""How many times the time that creating the tasks should take lies before they are due."""
TOO_LATE = 75
"""The exit status of a process whose tasks came due before all of them were created."""
GIVE_UP_AFTER = 30.0
"""After how many seconds without a run the tasks that a restarted process has not run count as lost."""


class Contestant(Protocol):
    """A scheduler with one handler, which calls `BenchmarkRun.record_run` with the task's number."""

    version: str

    def start(self) -> None:
        """Start to run due tasks, also those that another process has created in the same folder."""
        ...

    def create(self, number: int, due_at: float) -> None:
        """Create the one-off task of that number, due at that time (Unix seconds); return once it is on disk."""
        ...


class BenchmarkRun:
    """Runs the workload and collects when each task ran.

    The command line has the folder, the number of tasks and the part: ``work`` creates tasks and runs them; ``leave``
    creates tasks and dies before they are due; ``restart`` runs what the latter has left.
    """

    def __init__(self) -> None:
        self.folder, self.tasks, self.part = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
        self._ran_at: dict[int, float] = {}
        self._lock = threading.Lock()

    def record_run(self, number: int) -> None:
        """Record that a task's handler was called; only the first call counts."""
        with self._lock:
            self._ran_at.setdefault(number, time.time())
        if number >= WAITING_FROM:
            time.sleep(WAIT_SECONDS)

    def run(self, contestant: Contestant) -> None:
        """Run a part, print its figures as JSON, and end the process as a kill would."""
        parts = {"work": self._work, "leave": self._leave, "restart": self._restart}
        figures = parts[self.part](contestant)
        print(json.dumps({"version": contestant.version, **figures}), flush=True)
        os._exit(0)

    def _work(self, contestant: Contestant) -> dict[str, float]:
        contestant.start()
        start = time.time()
        for number in range(TRIAL_TASKS):
            contestant.create(-1 - number, start + 3600)
        per_task = (time.time() - start) / TRIAL_TASKS
        lead_time = max(5.0, LEAD_FACTOR * self.tasks * per_task)
        start = time.time()
        due_at = start + lead_time
        for number in range(self.tasks):
            contestant.create(number, due_at)
        created = self.tasks / (time.time() - start)
        if time.time() > due_at:
            os._exit(TOO_LATE)
        self._wait_for_runs(self.tasks)
        run = self.tasks / (max(self._ran_at.values()) - due_at)
        lateness = self._measure_lateness(contestant, self.tasks, RATE, 10 * RATE, per_task)
        high = self._measure_lateness(contestant, 2 * self.tasks, HIGH_RATE, 2 * HIGH_RATE, per_task)
        return {
            "created": created,
            "run": run,
            "late_p50": statistics.median(lateness),
            "late_p99": lateness[int(0.99 * len(lateness))],
            "late_max": lateness[-1],
            "high_p99": high[int(0.99 * len(high))],
            "waiting": self._measure_waiting(contestant, per_task),
        }

    def _measure_lateness(
        self, contestant: Contestant, first: int, rate: int, count: int, per_task: float
    ) -> list[float]:
        """Run tasks that come due one by one; return by how much each was late, in order."""
        self._ran_at.clear()
        due_at = time.time() + max(5.0, LEAD_FACTOR * count * per_task)
        for number in range(count):
            contestant.create(first + number, due_at + number / rate)
        self._wait_for_runs(count)
        return sorted(at - due_at - (number - first) / rate for number, at in self._ran_at.items())

    def _measure_waiting(self, contestant: Contestant, per_task: float) -> float:
        """Run tasks that are due at once, and whose handlers wait; return how many a second."""
        self._ran_at.clear()
        due_at = time.time() + max(5.0, LEAD_FACTOR * self.tasks * per_task)
        for number in range(self.tasks):
            contestant.create(WAITING_FROM + number, due_at)
        self._wait_for_runs(self.tasks)
        return self.tasks / (max(self._ran_at.values()) + WAIT_SECONDS - due_at)

    def _leave(self, contestant: Contestant) -> dict[str, float]:
        """Create the tasks, due when all of them exist, in a process that ends before that."""
        contestant.start()
        start = time.time()
        for number in range(TRIAL_TASKS):
            contestant.create(-1 - number, start + 3600)
        lead_time = max(5.0, LEAD_FACTOR * self.tasks * (time.time() - start) / TRIAL_TASKS)
        due_at = time.time() + lead_time
        for number in range(self.tasks):
            contestant.create(number, due_at)
        if time.time() > due_at:
            os._exit(TOO_LATE)
        return {"due_at": due_at}

    def _restart(self, contestant: Contestant) -> dict[str, float]:
        """Run what is overdue; the time counts from the moment that the scheduler is told to start."""
        started_at = time.time()
        contestant.start()
        latest, known = started_at, 0
        while known < self.tasks and time.time() - latest < GIVE_UP_AFTER:
            time.sleep(0.01)
            if len(self._ran_at) > known:
                latest, known = time.time(), len(self._ran_at)
        ran_at = list(self._ran_at.values()) or [latest]
        return {
            "restarted": len(ran_at) / (max(ran_at) - started_at),
            "first_after_restart": min(ran_at) - started_at,
            "lost": self.tasks - known,
        }

    def _wait_for_runs(self, count: int) -> None:
        deadline = time.time() + 300
        while len(self._ran_at) < count:
            if time.time() > deadline:
                sys.exit(f"only {len(self._ran_at)} of {count} tasks ran")
            time.sleep(0.01)
