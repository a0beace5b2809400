"""Apply a caller's draft: to a new task, or to an existing one.

Times: without a schedule the task runs once, now. A rule without DTSTART begins now, too: its first run
is within the second. An instant in the past, or nearer than the configured lead, is refused. One that
passed less than `JUST_NOW` ago is now. A recurring schedule that began in the past continues with its
first occurrence from now.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Run
from cloudsched.domain.documents.task import Task, TaskSpec, TaskStatus
from cloudsched.domain.documents.usage import begin_usage, month_of
from cloudsched.domain.recurrence.iso8601 import LAST_INSTANT
from cloudsched.domain.recurrence.notations import is_notation
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.definitions import bind_open_runs
from cloudsched.domain.transitions.lifecycle import (
    continue_or_complete,
    drop_unstarted,
    unstarted_runs,
    with_changes,
)
from cloudsched.domain.transitions.overlap_and_catch_up import due_ranges, end_plan, shorten_backlog
from cloudsched.domain.transitions.planning import (
    begin_plan,
    earliest,
    find_past_start,
    latest,
    occurrence_after,
    occurrence_from,
)
from cloudsched.domain.transitions.run_records import execution_record, require_payload_room
from cloudsched.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Container

    from cloudsched.domain.documents.authority import Requesters
    from cloudsched.domain.transitions.task_draft import TaskDraft

NO_LEAD = timedelta(0)
_SPEC: Final = tuple(TaskSpec.model_fields)
_get_spec: Final = attrgetter(*_SPEC)
_TICK: Final = timedelta(microseconds=1)
_COMPARED: Final = 20
"""The occurrences by which it is told whether a schedule's start changes it."""


def reset_plan(task: Task, changed: Task, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Return the edited task with nothing of its old plan but what came due and is in the new one, too.

    The rest of what came due and has not started is recorded as SKIPPED. Runs are counted anew, unless single dates
    alone were added to the plan of a task that goes on, or left out: to take back a skip or a move allows no more runs.
    """
    why = "Its task was rescheduled before it started."
    waiting = unstarted_runs(changed)
    kept = [run for run in waiting if _has_occurrence(changed, run.scheduled_for)][: changed.max_runs]
    rest, records = _skip_runs(changed, [run for run in waiting if run not in kept], now, why)
    is_one_time = task.is_one_time or changed.is_one_time
    if task.has_ended or is_one_time or not _has_same_rules(task.schedule, changed.schedule):
        runs = tuple(run if run in kept else run.model_copy(update={"is_counted": False}) for run in rest.runs)
        rest = rest.model_copy(update={"runs": runs, "run_count": len(kept)})
    ended, missed = end_plan(task, now, ExecutionStatus.SKIPPED, why, successor=rest)
    ends = [at for at in (ended.planned_to, ended.earlier_planned_to) if at is not None]
    # An occurrence that is in both schedules is the same one, and is not run again.
    processed = [at for at in ends if changed.schedule.occurs(at)]
    planned_to = max(
        (at for at in processed if not ended.backlog or at < ended.backlog[0].next_at),
        default=None,
    )
    reset: dict[str, object] = {
        "backfill": None,
        "backlog": ended.backlog,
        "plan_from": ended.plan_from,
        "recent_outcomes": ended.recent_outcomes,
        "outcome": None if planned_to is None else task.outcome,
        "planned_to": planned_to,
        "earlier_planned_to": max(ends, default=None),
    }
    if task.has_ended:  # another plan mends nothing, so a task that goes on is failing until it has succeeded
        reset |= {"consecutive_failures": 0, "failing_since": None}
    return rest.model_copy(update=reset), (*records, *missed)


def _has_same_rules(schedule: Schedule, other: Schedule) -> bool:
    """Return whether two schedules differ at most in the dates beside their rules."""
    one, another = (each.copy_unchecked(rdates=(), exdates=()) for each in (schedule, other))
    return one == another


def _has_occurrence(task: Task, at: datetime) -> bool:
    """Return whether an instant is in a task's schedule, and not behind its end."""
    return (task.until is None or at <= task.until) and task.schedule.occurs(at)


def shorten_plan(task: Task, changed: Task, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Drop the task's plan beyond `until` or `max_runs`, and return the records of its runs there."""
    why = "Its task was given an earlier end before it started."
    waiting = unstarted_runs(changed)
    late = [run for run in waiting if changed.until is not None and run.scheduled_for > changed.until]
    excess = 0 if changed.max_runs is None else changed.run_count - changed.max_runs
    keep = max(0, len(waiting) - max(excess, len(late)))
    rest, records = _skip_runs(changed, waiting[keep:], now, why)
    shorter, missed = shorten_backlog(task, rest, now, why)
    return shorter, (*records, *missed)


def _skip_runs(task: Task, runs: list[Run], now: datetime, reason: str) -> tuple[Task, tuple[Execution, ...]]:
    records = tuple(execution_record(task, run, ExecutionStatus.SKIPPED, now, message=reason) for run in runs)
    return drop_unstarted(task, *runs), records


def new_task(
    draft: TaskDraft, now: datetime, lead: timedelta = NO_LEAD, *, new_id: str | None = None, **state: Any
) -> Task:
    """Return the new task that a draft describes, with further fields of its state.

    Its first run is `lead` away.

    If the draft has no id, it gets the new one, or one that is drawn.
    """
    asked_at = _find_request_time(draft, now)
    schedule = anchor_schedule(draft.schedule, asked_at, lead)
    spec = dict(zip(_SPEC, _get_spec(draft), strict=True))
    first = schedule.first()
    task = Task.build(
        id=draft.id or new_id or str(uuid.uuid4()),
        owner=draft.owner,
        schedule=schedule,
        is_one_time=schedule.is_one_time,
        timezone=schedule.timezone,
        created_at=now,
        updated_at=now,
        status_changed_at=now,
        first_at=first if first is not None and first <= now and not schedule.is_one_time else None,
        message="Created.",
        usage=begin_usage(spec["handler"], month_of(now)),
        schedule_text=draft.schedule_text,
        **spec,
        **state,
    )
    if first is None or first < asked_at + lead or (task.until is not None and first > task.until):
        first = _first_occurrence(task, now, asked_at, lead)
    else:
        _require_room_after(task, first)
    return with_changes(task, now, next_execution_time=first, **begin_plan(task, now, first))


JUST_NOW = timedelta(seconds=10)
"""How long a single instant still counts as now: clocks differ, and requests take a moment."""


def _find_request_time(draft: TaskDraft, now: datetime) -> datetime:
    """Return the instant at which a draft's schedule is judged, so that "now" is not in the past on arrival."""
    asked_at = now if draft.read_at is None else min(now, draft.read_at)
    at = None if draft.schedule is None else draft.schedule.at
    return at if at is not None and now - JUST_NOW <= at < asked_at else asked_at


def _find_edit_time(task: Task, changed: Task, now: datetime, asked_at: datetime) -> datetime:
    """Return the instant at which an edit's schedule is judged.

    A "now" that may have run must not run again.
    """
    if changed.schedule == task.schedule:
        return now
    at = changed.schedule.at
    last = changed.earlier_planned_to
    return now if at is not None and last is not None and at <= last else asked_at


def require_same_handler(task: Task, draft: TaskDraft, handlers: Container[str]) -> None:
    """Refuse a creation with the id of a task that does other work. A handler that is gone was renamed."""
    if draft.handler != task.handler and task.handler in handlers:
        raise InvalidInput(
            "id",
            f"is that of a task that runs {task.handler!r}, not {draft.handler!r}",
            "Choose another id, or change what that task runs: update(id, handler=…).",
        )


def edit_or_restart(
    task: Task, draft: TaskDraft, now: datetime, lead: timedelta, *, defined_by: Requesters | None
) -> Commit:
    """Return the edited task. `defined_by` is USERS if it counts as a user's from now on.

    An edit concerns later runs: those that have begun go on with the handler, payload, children or
    script, and author that they began with.

    The plan changes only if the schedule, `until` or `max_runs` does. Occurrences of the old plan that
    came due and have not started run if the new one has them as well. The others are recorded, as SKIPPED
    unless a policy had ruled them out. A task that has ended starts again if any of the three changes. A
    draft without changes changes nothing, not even the revision.
    """
    spec = dict(zip(_SPEC, _get_spec(draft), strict=True))
    asked_at = _find_request_time(draft, now)
    schedule = _choose_schedule(task, draft, asked_at, lead)
    kept_text = task.schedule_text if _has_same_rules(task.schedule, schedule) else None
    replanned = schedule != task.schedule or any(spec[name] != getattr(task, name) for name in ("until", "max_runs"))
    if not replanned and all(value == getattr(task, name) for name, value in spec.items()):
        return Commit(task)
    changed = task.model_copy(
        update={
            **spec,
            "schedule": schedule,
            "is_one_time": schedule.is_one_time,
            "timezone": schedule.timezone,
            "zone_plan": task.zone_plan if schedule == task.schedule else None,
            "schedule_text": draft.schedule_text or kept_text,
            "revision": task.revision + 1,
            "defined_by": defined_by,
            "message": "Edited." if task.message in SAID_OF_SPEC else task.message,
        }
    )
    changed = bind_open_runs(task, changed)
    require_payload_room(changed, "(body)")
    if changed.next_execution_time is not None:
        _require_room_after(changed, changed.next_execution_time)
    if not replanned:
        return Commit(with_changes(changed, now))
    if schedule != task.schedule:
        changed = changed.model_copy(update={"first_at": find_past_start(schedule, now)})
        if changed.hold is not None:
            hold = changed.hold.model_copy(update={"at": max(now, changed.hold.at)})
            changed = changed.model_copy(update={"hold": hold if task.present_hold else None})
        changed, records = reset_plan(task, changed, now)
    else:
        changed, records = shorten_plan(task, changed, now)
    if schedule == task.schedule and task.status is TaskStatus.ACTIVE:
        due = task.next_execution_time  # may be past: it waits for its jitter, an open run or its dispatch
        following = occurrence_after(changed, earliest(now, due) - _TICK)
        planned = changed.model_copy(update={"next_execution_time": following})
        return Commit(continue_or_complete(planned, now), executions=records)
    if task.status is TaskStatus.PAUSED and changed.backlog:
        return Commit(with_changes(changed, now), executions=records)
    if schedule != task.schedule and (changed.backlog or unstarted_runs(changed)):
        first = occurrence_from(changed, changed.backlog[0].next_at if changed.backlog else now)
    else:
        first = _first_occurrence_after_edit(
            task,
            changed,
            now,
            _find_edit_time(task, changed, now, asked_at),
            lead,
        )
    if task.status is TaskStatus.PAUSED:
        return Commit(with_changes(changed, now), executions=records)
    begun = {"next_execution_time": first, **begin_plan(changed, now + _TICK, first)}
    active = with_changes(changed, now, status=TaskStatus.ACTIVE, message="Rescheduled.", **begun)
    return Commit(active, executions=records)


SAID_OF_SPEC: Final = frozenset({"Created.", "Rescheduled."})
"""The messages that an edit makes untrue. Other messages describe the task's state."""


def anchor_schedule(schedule: Schedule | None, now: datetime, lead: timedelta = NO_LEAD) -> Schedule:
    """Return a schedule with its start. Without a schedule, the task runs once, now."""
    start = now + lead
    if schedule is None:
        return Schedule.once(start)
    try:
        if schedule.is_anchored:
            return schedule
        if schedule.is_now:
            return Schedule.once(start, schedule.timezone)
        if schedule.delay is not None:
            return schedule.anchor(now)
        return schedule.anchor(start)
    except InvalidSchedule as error:
        raise error.at(f"schedule.{error.field}") from error


def _choose_schedule(task: Task, draft: TaskDraft, now: datetime, lead: timedelta) -> Schedule:
    """Return the schedule after an edit.

    A missing one keeps the task's, and so does the same one without DTSTART.

    So does the same text, if it recurs: "every 90 minutes" counts from where it began. A single instant
    is another one each time: "in 2 hours". So a repeated creation, however late, does not run an ended
    task again.
    """
    if draft.schedule is None:
        return task.schedule
    is_same_text = draft.schedule_text is not None and draft.schedule_text == task.schedule_text
    if is_same_text and not task.schedule.is_single_time and _means_the_same(draft.schedule, task):
        return task.schedule
    # Before its start are the dates that were added because calendars move them.
    present, asked = task.schedule, draft.schedule
    dates = tuple(each for each in present.rdates if each in asked.rdates or each >= str(present.dtstart))
    if not asked.is_anchored and asked == present.copy_unchecked(dtstart=None, rdates=dates):
        return present
    schedule = anchor_schedule(asked, now, lead)
    text = draft.schedule_text
    has_no_start = not asked.is_anchored or (text is not None and is_notation(text) and "dtstart" not in text)
    # Words let what repeats in a rhythm, or a number of times, begin with its first time from now on.
    is_in_words = draft.read_at is not None and any("INTERVAL=" in rule or "COUNT=" in rule for rule in schedule.rules)
    return _begin_at_due(task, schedule, now) if has_no_start or is_in_words else schedule


def _begin_at_due(task: Task, schedule: Schedule, now: datetime) -> Schedule:
    """Return a schedule whose start nobody named with one at what came due, if nothing else changes by that.

    A rule of the clock, such as a cron expression, has the same times then, and those that came due may
    be among them.
    """
    due = [
        *(run.scheduled_for for run in unstarted_runs(task)),
        *(each.next_at for each in due_ranges(task, now)),
    ]
    if not due or schedule.is_one_time:
        return schedule
    start = min(due).astimezone(load_tzinfo(schedule.timezone)).replace(tzinfo=None, fold=0).isoformat()
    earlier = schedule.copy_unchecked(dtstart=start)
    endless, other = earlier.without_count(), schedule.without_count()
    return earlier if endless.upcoming(now, _COMPARED) == other.upcoming(now, _COMPARED) else schedule


def _means_the_same(read: Schedule, task: Task) -> bool:
    """Return whether a text that is read again means the schedule that it gave to a task.

    "tomorrow at 9 and 17" means other dates, and so does "every day next week" once that week's task has
    ended.
    """
    kept = task.schedule
    if (read.timezone, read.follows_owner) != (kept.timezone, kept.follows_owner):
        return False
    if kept.rules:
        return read.rules == kept.rules or not task.has_ended
    first = read.first()
    return first is not None and kept.occurs(first)


def _first_occurrence_after_edit(
    task: Task, changed: Task, now: datetime, asked_at: datetime, lead: timedelta
) -> datetime:
    try:
        return _first_occurrence(changed, now, asked_at, lead)
    except InvalidSchedule as error:
        if not task.has_ended or changed.schedule != task.schedule:
            raise
        problem = f"is over: the task is {task.status}, and this edit would start it again"
        raise InvalidSchedule("schedule", problem, "Give it a new schedule, too.") from error


def _first_occurrence(task: Task, now: datetime, asked_at: datetime, lead: timedelta) -> datetime:
    """Return the task's first occurrence, from the time of the request on.

    Raises InvalidInput if it is in the past or too near.
    """
    nearest = asked_at + lead
    before = nearest - _TICK
    first = occurrence_after(task, before)
    if first is not None:
        _require_room_after(task, first)
        return first
    unbounded = task.schedule.next_after(latest(before, task.planned_to))
    if unbounded is not None:
        problem = f"ends the task before its first run at {_format_instant(unbounded)}"
        raise InvalidInput("until", problem, "Give a later end.")
    if task.schedule.is_single_time:
        at = task.schedule.next_after(asked_at - _TICK)
        problem = "is the instant of an occurrence that was processed already"
        if at is None:
            problem = f"is in the past: it is {_format_instant(now)} now"
        elif at < nearest:
            problem = f"is nearer than the minimum lead of {lead}: it is {_format_instant(now)} now"
        field = "schedule.at" if task.schedule.dtstart is None else "schedule.dtstart"
        raise InvalidSchedule(field, problem, "Give a later instant, or none to run now.")
    problem = f"has no occurrence from {_format_instant(nearest)} on"
    raise InvalidSchedule("schedule", problem, "Give a later end or count.")


def _require_room_after(task: Task, occurrence: datetime) -> None:
    """Check that an occurrence plus its task's jitter and expiration stays within the calendar."""
    room = LAST_INSTANT - occurrence
    for name, duration in (("jitter", task.jitter), ("expiration", task.expiration or timedelta(0))):
        if duration > room:
            problem = f"leads from the run at {_format_instant(occurrence)} past the year {LAST_INSTANT.year}"
            raise InvalidInput(name, problem, "Give a shorter one, or an earlier schedule.")
        room -= duration


def _format_instant(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")
