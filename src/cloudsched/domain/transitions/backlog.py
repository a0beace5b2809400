"""What becomes of the occurrences that came due and have not started, when their task stops or is given another plan.

A pause, a cancel and an edit of the plan decide that in their own commit, so that every one of them ends with exactly
one record:

* What the policies rule out is decided at once: SKIPPED by ``overlap`` or ``catchUp``, EXPIRED by ``expiration``.
* What they would run waits for the end of a pause (`Task.backlog`); the policies judge it again when its turn comes.
  A cancel records it as CANCELLED, a new plan that does not have it as SKIPPED.

Any number of occurrences may have come due, so a decision is stored as a range of the schedule. Its commit writes the
first `MAX_RECORDS_PER_COMMIT` records; the sweep writes the rest (`Task.pending_records`), also of a task that has
ended. Finding the ends of a range takes a search, not a walk over its occurrences.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Run, Trigger
from cloudsched.domain.documents.policy import CatchUpMode, Overlap
from cloudsched.domain.documents.task import DueRange, PendingRecords, TaskStatus
from cloudsched.domain.transitions.planning import find_past_start, occurrence_after, start_time
from cloudsched.domain.transitions.records import execution_record, keep_recent
from cloudsched.domain.transitions.zone_plans import (
    DistantSchedule,
    name_occurrence,
    occurrence_id,
    plan_distance,
    planned_schedule,
)
from cloudsched.errors import NotAllowed, SearchLimitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule

MAX_RECORDS_PER_COMMIT = 100
"""The most occurrences that one commit records without running them."""
MAX_BACKLOG_RANGES = 10
"""How many pauses may follow each other before what came due ahead of the first of them has run."""
MAX_PENDING_RANGES = 30
MAX_PENDING_SCHEDULES = 5
"""How many decided ranges a task may hold, and how many of them with a schedule of their own: it is one document."""

_MAX_IN_CLAIM = 20
"""How many that calendars left out are recorded in the commit of a claim; the sweep records the rest."""
_TICK = timedelta(microseconds=1)
_DISTANT_PAST = datetime(1, 1, 1, tzinfo=UTC)
_S = ExecutionStatus


@dataclass(frozen=True, slots=True)
class BacklogDecision:
    """What becomes of the due occurrences: the earlier ones get a final status, the later ones run."""

    decided: tuple[PendingRecords, ...] = ()
    kept: tuple[DueRange, ...] = ()

    def end(self, status: ExecutionStatus, message: str) -> tuple[PendingRecords, ...]:
        """Return all of them decided, with this status for those that would have run."""
        return (*self.decided, *_decide(self.kept, status, message))


def due_ranges(task: Task, now: datetime) -> tuple[DueRange, ...]:
    """Return the occurrences that came due and have not started, the earliest first."""
    if task.status is TaskStatus.PAUSED:
        return task.backlog
    first = task.next_execution_time
    if first is None or task.status is not TaskStatus.ACTIVE:
        return ()
    waiting = [DueRange(next_at=max(first, r.next_at), until=r.until) for r in task.backlog if r.until >= first]
    start = occurrence_after(task, waiting[-1].until) if waiting else first
    if start is not None and start_time(task, start) <= now:
        end = now if task.until is None else min(now, task.until)
        last = _last_where(planned_schedule(task), start, end, lambda occurrence: start_time(task, occurrence) <= now)
        waiting.append(DueRange(next_at=start, until=last))
    return tuple(waiting)


def decide_backlog(task: Task, now: datetime) -> BacklogDecision:
    """Decide, by the task's policies, which of its due occurrences run and which end without having run.

    What waits for the end of a pause was decided when that began.
    """
    ranges = due_ranges(task, now)
    if not ranges or task.status is TaskStatus.PAUSED:
        return BacklogDecision(kept=ranges)
    overlapping = _find_overlapping_run(task, now)
    if overlapping is not None:
        return decide_overlap(task, overlapping, ranges)
    decided = list[PendingRecords]()
    if task.expiration is not None:
        late, ranges = _split(task, ranges, now - task.expiration)
        decided += _decide(late, _S.EXPIRED, f"It had not started within {task.expiration}.")
    tolerance = task.catch_up.tolerance()
    if tolerance < now - _DISTANT_PAST:
        late, ranges = _split(task, ranges, now - tolerance)
        decided += _decide(late, _S.SKIPPED, f"It was more than {tolerance} late (catchUp is {task.catch_up.mode}).")
    if task.catch_up.mode is not CatchUpMode.ALL:
        ranges, newest = _without_newest(task, ranges)
        if newest:
            why = f"{occurrence_id(task, newest[0].until)} came due after it (catchUp is {task.catch_up.mode})."
            decided += _decide(ranges, _S.SKIPPED, why)
            ranges = newest
    excess = max(0, len(ranges) - MAX_BACKLOG_RANGES)
    decided += _decide(ranges[:excess], _S.SKIPPED, f"Its task was paused {excess + MAX_BACKLOG_RANGES} times since.")
    return BacklogDecision(tuple(decided), ranges[excess:])


def decide_overlap(task: Task, run: Run, ranges: tuple[DueRange, ...]) -> BacklogDecision:
    """Decide what becomes of occurrences that came due while a run was open; BUFFER keeps the newest."""
    why = f"The run of {run.execution_id} was still open (overlap is {task.overlap})."
    if task.overlap is not Overlap.BUFFER:
        return BacklogDecision(_decide(ranges, _S.SKIPPED, why))
    others, newest = _without_newest(task, ranges)
    return BacklogDecision(_decide(others, _S.SKIPPED, why), newest)


def apply_decision(task: Task, decided: Iterable[PendingRecords]) -> Task:
    """Return the task past the occurrences that are decided, their records still to be written."""
    decided = tuple(decided)
    if not decided:
        return task
    last = decided[-1]
    planned_to = last.until if task.planned_to is None else max(last.until, task.planned_to)
    outcome = (
        {"outcome": last.status, "outcome_execution_id": occurrence_id(task, last.until)} if task.is_one_time else {}
    )
    # The new records are written first, so of several decisions only large ones leave records for the sweep.
    pending = (*decided, *task.pending_records)
    return task.model_copy(update={"planned_to": planned_to, "pending_records": pending, **outcome})


def stop_plan(task: Task, now: datetime) -> Task:
    """Return an ACTIVE task with its due occurrences decided, and those that must still run saved in its backlog."""
    decision = decide_backlog(task, now)
    stopped = {"next_execution_time": None, "backlog": decision.kept}
    return apply_decision(note_left_out(task, now), decision.decided).model_copy(update=stopped)


def resume_plan(task: Task, now: datetime) -> Task:
    """Return a PAUSED task with the plan that it resumes: first its backlog, then the occurrences from now on."""
    plan_from = now if task.plan_from is None else max(now, task.plan_from)
    left_out_from = now if task.schedule.calendars else None
    first_at = task.first_at or find_past_start(task.schedule, now)
    resumed = task.model_copy(update={"plan_from": plan_from, "left_out_from": left_out_from, "first_at": first_at})
    first = task.backlog[0].next_at if task.backlog else plan_from
    return resumed.model_copy(update={"next_execution_time": occurrence_after(resumed, first - _TICK)})


def end_plan(task: Task, now: datetime, status: ExecutionStatus, message: str) -> Task:
    """Return the task without its plan: what was still to run gets this status."""
    ended = apply_decision(note_left_out(task, now), decide_backlog(task, now).end(status, message))
    past = {"planned_to": _last_recorded(ended), "plan_from": None}
    return ended.model_copy(update={"next_execution_time": None, "backlog": (), **past})


def _last_recorded(task: Task) -> datetime | None:
    """Return the last occurrence with a record, which may lie beyond those that an earlier end has kept."""
    recorded = None if task.plan_from is None else task.plan_from - _TICK
    if recorded is None or not planned_schedule(task).occurs(recorded):
        return task.planned_to
    return recorded if task.planned_to is None else max(recorded, task.planned_to)


def shorten_backlog(task: Task, shorter: Task, now: datetime, message: str) -> Task:
    """Return `shorter`, the task with an earlier end, with what came due beyond that end recorded as SKIPPED."""
    ranges = due_ranges(task, now)
    if not ranges:
        return shorter
    is_full = shorter.max_runs is not None and shorter.run_count >= shorter.max_runs
    end = None if is_full else shorter.until
    kept, dropped = list[DueRange](), list[DueRange]()
    for each in ranges:
        if not is_full and (end is None or each.until <= end):
            kept.append(each)
        elif is_full or end is None or each.next_at > end:
            dropped.append(each)
        else:
            last = _last_where(planned_schedule(task), each.next_at, end)
            kept.append(DueRange(next_at=each.next_at, until=last))
            following = planned_schedule(task).next_after(last)
            dropped.append(DueRange(next_at=following or each.until, until=each.until))
    if not dropped:
        return shorter
    decided = _decide(dropped, _S.SKIPPED, message)
    if not kept:
        return apply_decision(shorter, decided).model_copy(update={"backlog": ()})
    past = decided[-1].until + _TICK  # the plan continues from here, once those before it have run
    plan_from = past if shorter.plan_from is None else max(past, shorter.plan_from)
    pending = (*decided, *shorter.pending_records)
    return shorter.model_copy(update={"pending_records": pending, "backlog": tuple(kept), "plan_from": plan_from})


def forget_backlog(task: Task) -> dict[str, Any]:
    """Return the changes to an ACTIVE task whose plan has gone past its backlog."""
    following = task.next_execution_time
    if following is None or not (task.backlog or task.plan_from) or task.status is not TaskStatus.ACTIVE:
        return {}
    backlog = tuple(each for each in task.backlog if each.until >= following)
    if backlog or (task.plan_from is not None and task.plan_from > following):
        return {"backlog": backlog}
    return {"backlog": (), "plan_from": None, "planned_to": _last_recorded(task)}


def keep_schedule(task: Task, schedule: Schedule) -> Task:
    """Return the task with its schedule noted in what is still to be recorded of it."""
    pending = tuple(
        each if each.schedule else each.model_copy(update={"schedule": schedule}) for each in task.pending_records
    )
    return task.model_copy(update={"pending_records": pending})


def take_records(task: Task, now: datetime, taken: int = 0) -> tuple[Task, tuple[Execution, ...]]:
    """Return a batch of the records that are still to be written, and the task without them.

    With as many records `taken` by others in the same commit, the batch is that much smaller. It ends early where the
    searches of its occurrences use up what they may.
    """
    if not task.pending_records:
        return task, ()
    records, rest = list[Execution](), list[PendingRecords]()
    for pending in task.pending_records:
        schedule = pending.schedule or task.schedule
        distance = timedelta(0) if task.zone_plan is None or pending.schedule else plan_distance(task)
        planned = DistantSchedule(schedule, distance) if distance else schedule
        occurrence: datetime | None = pending.next_at
        while occurrence is not None and occurrence <= pending.until and taken + len(records) < MAX_RECORDS_PER_COMMIT:
            run = Run(
                execution_id=name_occurrence(schedule, occurrence, distance),
                scheduled_for=occurrence,
                due_at=occurrence,
            )
            left_out = pending.is_left_out
            try:
                message = schedule.calendar_note(occurrence) if left_out else pending.message
                search = partial(schedule.skipped_after, until=pending.until) if left_out else planned.next_after
                following = search(occurrence)
            except SearchLimitReached:
                if not records:
                    raise
                break  # the next batch begins with this occurrence
            records.append(execution_record(task, run, pending.status, now, message=message))
            occurrence = following
        if occurrence is not None and occurrence <= pending.until:
            rest.append(pending.model_copy(update={"next_at": occurrence}))
    recent = keep_recent(task.recent_outcomes, *(each.status for each in records))
    return task.model_copy(update={"pending_records": tuple(rest), "recent_outcomes": recent}), tuple(records)


def note_left_out(task: Task, now: datetime) -> Task:
    """Return the task with what its calendars have left out up to now among the records that are to be written.

    So its history shows these occurrences, with the holiday's name. They are recorded once they have passed, in the
    commit that claims the task's next run, pauses it, ends it or gives it another plan.
    Nothing comes due of a task that is paused or has ended, so nothing of that time is left out either.
    """
    if task.left_out_from is None or not task.schedule.calendars:
        return task
    until = now if task.is_active else min(now, task.status_changed_at)
    first = task.schedule.skipped_after(task.left_out_from - _TICK, until)
    noted = task.model_copy(update={"left_out_from": max(now + _TICK, task.left_out_from)})
    if first is None:
        return noted
    pending = PendingRecords(next_at=first, until=until, status=ExecutionStatus.SKIPPED, message="", is_left_out=True)
    return noted.model_copy(update={"pending_records": (*task.pending_records, pending)})


def take_left_out(task: Task, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Return the task, and the first records of what its calendars have left out up to now."""
    noted = note_left_out(task, now)
    if len(noted.pending_records) == len(task.pending_records):
        return noted, ()
    return take_records(noted, now, MAX_RECORDS_PER_COMMIT - _MAX_IN_CLAIM)


def require_room(task: Task, action: str) -> None:
    """Check that a task can hold another decision.

    Raises:
        NotAllowed: The sweep has yet to write what earlier ones left.
    """
    schedules = sum(each.schedule is not None for each in task.pending_records)
    if len(task.pending_records) > MAX_PENDING_RANGES or schedules > MAX_PENDING_SCHEDULES:
        hint = "The sweep is recording what came due before earlier changes; try again in a minute."
        raise NotAllowed(action, "changed too often", hint)


def _find_overlapping_run(task: Task, now: datetime) -> Run | None:
    """Return the open run during which the due occurrences came due, if ``overlap`` decides about them."""
    first = task.next_execution_time
    if task.overlap is Overlap.ALLOW or first is None:
        return None
    scheduled = (run for run in task.runs if run.trigger is Trigger.SCHEDULE)
    return next((run for run in scheduled if start_time(task, first) > (run.started_at or now)), None)


def _decide(ranges: Iterable[DueRange], status: ExecutionStatus, message: str) -> tuple[PendingRecords, ...]:
    return tuple(
        PendingRecords(next_at=each.next_at, until=each.until, status=status, message=message) for each in ranges
    )


def _split(
    task: Task, ranges: tuple[DueRange, ...], since: datetime
) -> tuple[tuple[DueRange, ...], tuple[DueRange, ...]]:
    """Split ranges into what was to start before an instant, and the rest."""

    def is_early(occurrence: datetime) -> bool:
        return start_time(task, occurrence) < since

    early, rest = list[DueRange](), list[DueRange]()
    for each in ranges:
        if rest or not is_early(each.next_at):
            rest.append(each)
            continue
        last = _last_where(planned_schedule(task), each.next_at, each.until, is_early)
        early.append(DueRange(next_at=each.next_at, until=last))
        following = planned_schedule(task).next_after(last)
        if last < each.until and following is not None:
            rest.append(DueRange(next_at=following, until=each.until))
    return tuple(early), tuple(rest)


def _without_newest(task: Task, ranges: tuple[DueRange, ...]) -> tuple[tuple[DueRange, ...], tuple[DueRange, ...]]:
    """Split ranges into all but their newest occurrence, and that one."""
    if not ranges:
        return (), ()
    *others, last = ranges
    newest = DueRange(next_at=last.until, until=last.until)
    if last.next_at < last.until:
        before = _last_where(planned_schedule(task), last.next_at, last.until - _TICK)
        others.append(DueRange(next_at=last.next_at, until=before))
    return tuple(others), (newest,)


def _last_where(
    schedule: Schedule | DistantSchedule,
    first: datetime,
    end: datetime,
    holds: Callable[[datetime], bool] = lambda _: True,
) -> datetime:
    """Return the last occurrence from `first` to `end` before the first one for which a condition does not hold.

    The condition holds for `first`. If it is not monotonic, this is one of the places where it stops holding.
    """
    low, high = first, end
    while (following := schedule.next_after(low)) is not None and following <= high and holds(following):
        middle = low + (high - low) / 2
        jump = schedule.next_after(middle)
        if jump is not None and jump <= high and holds(jump):
            low = jump
        else:
            low, high = following, max(middle, following)
    return low
