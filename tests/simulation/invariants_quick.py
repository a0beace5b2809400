"""The rules of quick handlers, which may be called twice, while nothing counts twice.

* Q1: a handler is called only if the task, as its process read it, allowed that: it was ACTIVE and of the dispatch's
  revision, the run was due, nobody held a lease on it, and it had no final record.
* Q2: a result is committed only on a version of the task that allows it: ACTIVE, of the dispatch's revision, the run
  without a lease and at the attempt that was called, by a process that has called it.

That each occurrence has one final record, that a run counts once, and that nothing is passed over hold for them as for
all others; `invariants_runs.py` checks it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.planning import start_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from tests.simulation.world import Process, World

    from cloudsched import Execution, Task
    from cloudsched.engine.ports.store import VersionedTask

QUICK = "blink"
"""The handler that is quick in the code of some processes, or of all."""

Key = tuple[str, "datetime", str]


class QuickInvariants:
    """Watches the runs of the handler that may be quick."""

    def __init__(self, world: World, fail: Callable[[str], NoReturn]) -> None:
        self._world = world
        self._fail = fail
        self._commits = 0
        self._finals: dict[Key, int] = {}
        """After how many commits each record became final."""

    def on_read(self, stored: VersionedTask | None) -> None:
        """Note what the current process has read."""
        if stored is not None and self._world.current is not None:
            self._world.current.read[stored.task.id] = (stored.task, self._commits)

    def is_unclaimed(self, process: Process, task: Task, key: Key) -> bool:
        """Whether the handler of a run is called that its process has not claimed."""
        return task.handler == QUICK and process.wanted is None and key not in process.claims

    def check_start(self, process: Process, task: Task, key: Key) -> None:
        """Check Q1."""
        known = process.read.get(task.id)
        if known is None:
            self._fail(f"Q1: {key} is called by {process.name}, which has not read it")
        read, number = known
        if self._finals.get(key, number + 1) <= number:
            self._fail(f"Q1: {key} is called although its record was final when {process.name} read it")
        if not read.is_active or read.revision != process.revision:
            self._fail(f"Q1: {key} is called of {read.status}, revision {read.revision}, not {process.revision}")
        run, now = read.find_run(key[2]), self._world.latest_time(process)
        if run is not None and run.lease is not None:
            self._fail(f"Q1: {key} is called although it was claimed until {run.lease.until}")
        following = read.next_execution_time
        due_at = run.due_at if run else None if following is None else start_time(read, following)
        if due_at is None or due_at > now:
            self._fail(f"Q1: {key} is called before it is due, at {due_at}")

    def find_begun(self, before: Task | None, executions: Sequence[Execution]) -> Iterator[Execution]:
        """Yield the records of attempts that were committed with their claim."""
        for each in executions:
            run = None if before is None else before.find_run(each.id)
            is_claimed = run is not None and run.lease is not None
            is_new = len(each.attempts) > (0 if run is None else len(run.attempts))
            if before is not None and before.handler == QUICK and not is_claimed and is_new:
                yield each

    def on_commit(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        """Check Q2, and note the final records."""
        self._commits += 1
        if before is not None and not self._world.rules.current_verb():
            for each in self.find_begun(before, executions):
                self._check_result(before, each)
        for each in executions:
            key = (after.id, after.created_at, each.id)
            if each.status.is_final:
                self._finals.setdefault(key, self._commits)
            else:
                self._finals.pop(key, None)

    def _check_result(self, before: Task, record: Execution) -> None:
        process, run = self._world.current, before.find_run(record.id)
        assert process
        key, expected = (before.id, before.created_at, record.id), 1 if run is None else run.attempt
        if not before.is_active or before.revision != process.revision:
            self._fail(f"Q2: {key} got its result of {before.status}, revision {before.revision}")
        if record.attempts[-1].number != expected:
            self._fail(f"Q2: {key} got attempt {record.attempts[-1].number}, and {expected} was next")
        following = before.next_execution_time
        due_at = run.due_at if run else None if following is None else start_time(before, following)
        begun_at = record.attempts[-1].started_at
        if due_at is None or due_at > begun_at + 2 * self._world.fault_profile.drift:
            self._fail(f"Q2: {key} began at {begun_at}, and was due at {due_at}")
        if self._world.fault_profile.is_fault_free and begun_at - max(due_at, before.updated_at) > timedelta(seconds=1):
            self._fail(f"4: {key} was {begun_at - due_at} late")
        if record.status is ExecutionStatus.TIMED_OUT or before.status is not TaskStatus.ACTIVE:
            self._fail(f"Q2: {key} is {record.status} without ever being claimed")
