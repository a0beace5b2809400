"""What an edit of a task's plan does with what the old plan has left: runs that wait, and occurrences that came due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.transitions.backlog import end_plan, keep_schedule, shorten_backlog
from cloudsched.domain.transitions.lifecycle import drop_unstarted, unstarted_runs
from cloudsched.domain.transitions.records import execution_record

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution, Run
    from cloudsched.domain.documents.task import Task


def reset_plan(task: Task, changed: Task, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Return the edited task without the state of its old plan, and the records of the runs that this skips."""
    why = "Its task was rescheduled before it started."
    rest, records = _skip_runs(changed, unstarted_runs(changed), now, why)
    started = tuple(run.model_copy(update={"is_counted": False}) for run in rest.runs)
    ended = keep_schedule(end_plan(task, now, ExecutionStatus.SKIPPED, why), task.schedule)
    ends = [at for at in (ended.planned_to, task.earlier_planned_to) if at is not None]
    # An occurrence that is in both schedules is the same one, and is not run again.
    planned_to = max((at for at in ends if changed.schedule.occurs(at)), default=None)
    reset = {
        "runs": started,
        "run_count": 0,
        "consecutive_failures": 0,
        "backfill": None,
        "backlog": (),
        "plan_from": None,
        "pending_records": ended.pending_records,
        "outcome": None if planned_to is None else task.outcome,
        "planned_to": planned_to,
        "earlier_planned_to": max(ends, default=None),
    }
    return rest.model_copy(update=reset), records


def shorten_plan(task: Task, changed: Task, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Return the edited task without what lies beyond its `until` or `max_runs`, and the records of its runs there."""
    why = "Its task was given an earlier end before it started."
    rest, records = _drop_runs_past_end(changed, now, why)
    return shorten_backlog(task, rest, now, why), records


def _drop_runs_past_end(task: Task, now: datetime, why: str) -> tuple[Task, tuple[Execution, ...]]:
    waiting = unstarted_runs(task)
    late = [run for run in waiting if task.until is not None and run.scheduled_for > task.until]
    excess = 0 if task.max_runs is None else task.run_count - task.max_runs
    keep = max(0, len(waiting) - max(excess, len(late)))
    return _skip_runs(task, waiting[keep:], now, why)


def _skip_runs(task: Task, runs: list[Run], now: datetime, reason: str) -> tuple[Task, tuple[Execution, ...]]:
    records = tuple(execution_record(task, run, ExecutionStatus.SKIPPED, now, message=reason) for run in runs)
    return drop_unstarted(task, *runs), records
