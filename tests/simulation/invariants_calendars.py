"""The invariants of calendars, whose days change while tasks run.

C1  What is started by the schedule is an occurrence of it, with the days that the task had when it was started.
C2  What is recorded as left out is SKIPPED, and an occurrence of a schedule of the task without its calendars.
C3  When left-out occurrences have passed, each is recorded, once.
C4  In the end no change is left to follow, and each task that may still run has its calendars' days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tests.simulation.invariants_runs import fail
from tests.simulation.schedules import covers, without_calendars

from cloudsched import Execution, Schedule, Task
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.system_tasks import FOLLOW_HANDLER
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.planning import occurrence_id
from cloudsched.features.calendars.documents import Calendar

if TYPE_CHECKING:
    from tests.simulation.world import World


_TICK = timedelta(microseconds=1)


class CalendarInvariants:
    """Watches the commits of a world and raises as soon as a rule does not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._begun: dict[tuple[str, datetime], datetime] = {}
        """Since when each task has the plan that it has."""
        self._recorded: set[tuple[str, datetime, str]] = set()

    def on_commit(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        key = after.id, after.created_at
        if before is None or before.created_at != after.created_at:
            self._begun[key] = after.created_at
            return
        if before.schedule.calendars:
            self._check_started(before, after)
            self._check_left_out(before, executions)
            if before.status is TaskStatus.ACTIVE and after.deleted_at is None:
                self._check_recorded(before, after, executions)
        if before.schedule != after.schedule or before.status is not after.status:
            self._begun[key] = after.updated_at

    def _check_started(self, before: Task, after: Task) -> None:
        if self._world.rules.current_verb() == "retry":
            return  # what a client runs again was started before the days changed
        known = {run.execution_id for run in before.runs}
        for run in after.runs:
            is_new = run.execution_id not in known and run.trigger is Trigger.SCHEDULE and run.attempt == 1
            if is_new and not before.schedule.occurs(run.scheduled_for):
                fail(f"C1: {after.id} starts {run.scheduled_for}, which its calendars do not leave")

    def _check_left_out(self, before: Task, executions: Sequence[Execution]) -> None:
        plan = without_calendars(before.schedule)
        for record in executions:
            if record.message is None or not record.message.startswith("Left out: "):
                continue
            if record.status is not ExecutionStatus.SKIPPED:
                fail(f"C2: {record.id} was left out, and is {record.status}")
            if not plan.occurs(record.scheduled_for):
                fail(f"C2: {record.id} was left out, and never was an occurrence")
            name = before.id, before.created_at, record.id
            if name in self._recorded:
                fail(f"C3: {record.id} was left out, and is recorded a second time")
            self._recorded.add(name)

    def _check_recorded(self, before: Task, after: Task, executions: Sequence[Execution]) -> None:
        since = self._begun[before.id, before.created_at] + _TICK
        until = after.planned_to
        if after.status is TaskStatus.PAUSED or after.status is TaskStatus.CANCELLED:
            until = after.updated_at
        if until is None or before.schedule != after.schedule:
            return
        if before.planned_to is not None:
            since = max(since, before.planned_to + _TICK)
        recorded = {each.id for each in executions} | {run.execution_id for run in after.runs}
        for occurrence in _left_out(before.schedule, since, until):
            is_covered = any(covers(each, occurrence) for each in executions)
            if occurrence_id(before, occurrence) not in recorded and not is_covered:
                fail(f"C3: {after.id}'s left out occurrence {occurrence} has no record")

    def check_end_state(self) -> None:
        """Check that every task follows its calendars when everything has settled."""
        records = self._world.real_store.records
        for task in self._world.tasks():
            if task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
                continue
            if task.handler == FOLLOW_HANDLER:
                fail(f"C4: nobody finished {task.id}")
            for rule in task.schedule.calendars:
                stored = records.load(Calendar, rule.id)
                if stored is not None and rule.content != stored.record.content:
                    fail(f"C4: {task.id} has {rule.content!r} of {rule.id}, which is {stored.record.content!r}")


def _left_out(schedule: Schedule, since: datetime, until: datetime) -> Iterator[datetime]:
    occurrence = schedule.find_skipped(since - _TICK, until)
    while occurrence is not None:
        yield occurrence
        occurrence = schedule.find_skipped(occurrence, until)
