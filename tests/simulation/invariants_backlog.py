"""The invariants of occurrences that came due and were not started: each waits, runs, or has one record.

B1  When a task is changed, each due occurrence is claimed, recorded, decided, or still part of the plan.
B2  The same holds for each occurrence that was saved for later when its task was paused.
B3  Each decided occurrence gets the decided record, once; in the end the sweep has written all of these records.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from tests.simulation.invariants_runs import InvariantViolated
from tests.simulation.schedules import is_same_plan

from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.planning import due_occurrences, occurrence_after
from cloudsched.domain.transitions.zone_plans import name_occurrence, occurrence_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulation.world import World

    from cloudsched import Execution, Task
    from cloudsched.domain.documents.task import DueRange, PendingRecords

_TICK = timedelta(microseconds=1)


class BacklogInvariants:
    """Watches the commits of a world and raises as soon as a rule does not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._decided: dict[tuple[str, datetime], dict[str, str]] = {}
        self.count = 0
        """How many occurrences were decided and not recorded at once."""

    def _fail(self, rule: str) -> NoReturn:
        raise InvariantViolated(rule)

    def on_commit(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        """Check one commit of a task."""
        if after.deleted_at is not None:
            self._decided.pop((after.id, after.created_at), None)
            return
        pending = {
            name_occurrence(each.schedule or after.schedule, at): each.status.value
            for each in after.pending_records
            for at in _occurrences(after, each)
        }
        self._check_decisions(after, pending, executions)
        if before is None or before.created_at != after.created_at:
            return
        if self._world.fault_profile.has_two_releases and not before.schedule.has_elapsed_rules:
            return  # which instants are due depends on the data: see `invariants_journeys`
        handled = {one.id for one in executions} | {run.execution_id for run in after.runs} | pending.keys()
        for occurrence in _due_occurrences(before, after.updated_at):
            if occurrence_id(before, occurrence) not in handled and not _must_run(before, after, occurrence):
                rule = "B2" if before.status is TaskStatus.PAUSED else "B1"
                self._fail(f"{rule}: {after.id}'s occurrence {occurrence} was due, and is neither run nor recorded")

    def _check_decisions(self, task: Task, pending: dict[str, str], executions: Sequence[Execution]) -> None:
        decided = self._decided.setdefault((task.id, task.created_at), {})
        for record in executions:
            status = decided.pop(record.id, None)
            if status is not None and record.status != status:
                self._fail(f"B3: {task.id}'s {record.id} was decided as {status}, and recorded as {record.status}")
        for identity, status in decided.items():
            if pending.get(identity) != status:
                self._fail(f"B3: {task.id}'s {identity} was decided as {status}, and is forgotten")
        self.count += len(pending.keys() - decided.keys())
        decided.update(pending)

    def on_purge(self, task: Task | None) -> None:
        """Forget a task that is removed."""
        if task is not None:
            self._decided.pop((task.id, task.created_at), None)

    def check_end_state(self) -> None:
        """Check that everything that was decided is recorded when everything has settled."""
        for (task_id, _), decided in self._decided.items():
            if decided:
                self._fail(f"B3: nobody recorded {task_id}'s {sorted(decided)}")


def _occurrences(task: Task, part: DueRange | PendingRecords) -> Iterator[datetime]:
    schedule = getattr(part, "schedule", None) or task.schedule
    occurrence: datetime | None = part.next_at
    while occurrence is not None and occurrence <= part.until:
        yield occurrence
        left_out = getattr(part, "is_left_out", False)
        occurrence = schedule.skipped_after(occurrence, part.until) if left_out else schedule.next_after(occurrence)


def _due_occurrences(task: Task, now: datetime) -> Iterator[datetime]:
    if task.status is TaskStatus.PAUSED:
        for each in task.backlog:
            yield from _occurrences(task, each)
    elif task.status is TaskStatus.ACTIVE:
        yield from (each.at for each in due_occurrences(task, now)[0])


def _must_run(before: Task, after: Task, occurrence: datetime) -> bool:
    if before.schedule.timezone != after.schedule.timezone and after.schedule.follows_owner:
        return True  # its local times have moved with its owner: see `invariants_journeys`
    if not is_same_plan(before.schedule, after.schedule):
        return False
    if after.status is TaskStatus.PAUSED:
        return any(each.next_at <= occurrence <= each.until for each in after.backlog)
    if after.max_runs is not None and after.run_count >= after.max_runs and after.run_count > before.run_count:
        return True  # the claim of its last run has ended the plan
    following = after.next_execution_time
    return (
        following is not None and occurrence >= following and occurrence_after(after, occurrence - _TICK) == occurrence
    )
