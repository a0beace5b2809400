"""The invariants of occurrences that came due and were not started: each waits, runs, or is covered by one record.

B1  When a task is changed, each due occurrence is claimed, recorded, or still part of the plan.
B2  The same holds for each occurrence that was saved for later when its task was paused.
B3  No occurrence is covered by two records, and a record says how many it covers.
B4  A new schedule skips nothing that it has as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tests.simulation.invariants_runs import fail
from tests.simulation.schedules import covers, list_due

from cloudsched import Execution, ExecutionStatus, Task
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_id

if TYPE_CHECKING:
    from tests.simulation.world import World


_TICK = timedelta(microseconds=1)


class BacklogInvariants:
    """Watches the commits of a world and raises as soon as a rule does not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._covered: dict[tuple[str, datetime], dict[str, str]] = {}
        """The record of each occurrence that one covers beside its own."""
        self._own: dict[tuple[str, datetime], set[str]] = {}
        """The records that there are."""

    def on_commit(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        if after.deleted_at is not None:
            self._covered.pop((after.id, after.created_at), None)
            self._own.pop((after.id, after.created_at), None)
            return
        if before is None or before.created_at != after.created_at:
            return
        if self._world.fault_profile.has_two_releases and not before.schedule.has_elapsed_rules:
            return  # which instants are due depends on the data: see `invariants_journeys`
        self._check_covered(before, executions)
        for record in executions:
            is_rescheduled = record.status is ExecutionStatus.SKIPPED and "rescheduled" in (record.message or "")
            is_in_time = after.until is None or record.scheduled_for <= after.until
            if is_rescheduled and is_in_time and after.max_runs is None and after.schedule.occurs(record.scheduled_for):
                fail(f"B4: {after.id}'s {record.id} is skipped by a schedule that has it as well")
        handled = {one.id for one in executions} | {run.execution_id for run in after.runs}
        for occurrence in _due_occurrences(before, after.updated_at):
            is_recorded = any(covers(each, occurrence) for each in executions)
            if not is_recorded and occurrence_id(before, occurrence) not in handled:
                if _must_run(before, after, occurrence):
                    continue
                rule = "B2" if before.status is TaskStatus.PAUSED else "B1"
                fail(f"{rule}: {after.id}'s occurrence {occurrence} was due, and is neither run nor recorded")

    def _check_covered(self, task: Task, executions: Sequence[Execution]) -> None:
        key = task.id, task.created_at
        covered, own = self._covered.setdefault(key, {}), self._own.setdefault(key, set())
        for record in executions:
            if record.id in covered:
                fail(f"B3: {task.id}'s {record.id} is recorded, and covered by {covered[record.id]}")
            own.add(record.id)
            if record.covers is None:
                continue
            others = [*_list_others(task, record)]
            if len(others) + 1 != record.covers.count:
                fail(f"B3: {task.id}'s {record.id} covers {len(others) + 1}, and says {record.covers.count}")
            for name in others:
                if name in covered or name in own:
                    fail(f"B3: {task.id}'s {name} is covered by {record.id}, and by another record")
                covered[name] = record.id

    def on_purge(self, task: Task | None) -> None:
        if task is not None:
            self._covered.pop((task.id, task.created_at), None)
            self._own.pop((task.id, task.created_at), None)


def _list_others(task: Task, record: Execution) -> Iterator[str]:
    """Yield the names of the occurrences that a record covers beside its own."""
    assert record.covers is not None
    schedule, last = task.schedule, record.covers.until
    at: datetime | None = record.scheduled_for
    while at is not None:
        at = schedule.find_skipped(at, last) if record.is_left_out else schedule.next_after(at)
        if at is None or at > last:
            return
        yield occurrence_id(task, at)


def _due_occurrences(task: Task, now: datetime) -> Iterator[datetime]:
    if task.status is TaskStatus.PAUSED:
        for each in task.backlog:
            yield from task.schedule.between(each.next_at, each.until + _TICK)
    elif task.status is TaskStatus.ACTIVE:
        yield from list_due(task, now)


def _must_run(before: Task, after: Task, occurrence: datetime) -> bool:
    if before.schedule.timezone != after.schedule.timezone and after.schedule.follows_owner:
        return True  # its local times have moved with its owner: see `invariants_journeys`
    if after.status is TaskStatus.PAUSED:
        return any(each.next_at <= occurrence <= each.until for each in after.backlog)
    if after.max_runs is not None and after.run_count >= after.max_runs and after.run_count > before.run_count:
        return True  # the claim of its last run has ended the plan
    following = after.next_execution_time
    return (
        following is not None and occurrence >= following and occurrence_after(after, occurrence - _TICK) == occurrence
    )
