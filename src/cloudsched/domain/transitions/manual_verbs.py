"""What callers do with a task by hand: the verbs that its state allows, and the runs that they ask for.

A verb is offered by the check that the change itself makes. `web.api.visibility` decides which callers
may use it. Each run that is asked for has an id of its own. `lifecycle` has the verbs that change the
status.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Run, Trigger
from cloudsched.domain.documents.task import Backfill, Task, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.finish import finish_run, with_finished_attempt
from cloudsched.domain.transitions.idempotency import RequestMark, choose_instant
from cloudsched.domain.transitions.lifecycle import (
    may_have_children,
    require_cancellable,
    require_free_run,
    require_future,
    require_pausable,
    require_status,
    start_next_backfill,
    with_changes,
)
from cloudsched.domain.transitions.overlap_and_catch_up import resume_plan
from cloudsched.domain.transitions.planning import find_sole_hold, requested_id
from cloudsched.domain.transitions.retry_execution import RETRYABLE_STATUSES, require_retryable
from cloudsched.domain.transitions.run_records import require_payload_room
from cloudsched.domain.transitions.suspend import find_addressee, list_awaited
from cloudsched.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.authority import EventSender, Requesters


def find_task_verbs(task: Task, now: Callable[[], datetime], sender: EventSender) -> list[Verb]:
    """Return the verbs that a task's state allows, and that would change it.

    Only some tasks need the clock.
    """
    return [verb for verb in Verb if _is_allowed(verb, task, now, sender)]


def _is_allowed(verb: Verb, task: Task, now: Callable[[], datetime], sender: EventSender) -> bool:  # noqa: C901, PLR0911 - a case a verb
    match verb:
        case Verb.EDIT | Verb.DELETE:
            return True
        case Verb.PAUSE:
            return _passes(require_pausable, task) or _can_take_over_pause(task)
        case Verb.RESUME:
            return task.status is TaskStatus.PAUSED and can_resume(task, now)
        case Verb.CANCEL:
            return _passes(require_cancellable, task)
        case Verb.TRIGGER:
            return _passes(require_triggerable, task)
        case Verb.SNOOZE:
            return _passes(require_snoozable, task)
        case Verb.SKIP | Verb.MOVE:
            return task.next_execution_time is not None and not (verb is Verb.SKIP and task.is_one_time)
        case Verb.BACKFILL:
            is_active = task.status is TaskStatus.ACTIVE
            return is_active and _passes(require_backfillable, task) and _has_past(task, now)
        case Verb.SEND_EVENT:
            return _takes_events(task, now, sender)
        case Verb.RETRY | Verb.CANCEL_RUN:
            return False  # of an execution, not of a task


def find_execution_verbs(
    task: Task, execution: Execution, now: Callable[[], datetime], sender: EventSender
) -> list[Verb]:
    """Return the verbs that an execution's state, and its task's, allow."""
    if task.find_run(execution.id) is not None:
        found = [Verb.SEND_EVENT] if _takes_events(task, now, sender, execution.id) else []
        return [*found, Verb.CANCEL_RUN]
    return [Verb.RETRY] if _passes(require_retryable, task, execution) else []


def _can_take_over_pause(task: Task) -> bool:
    """Return whether a pause by the declaration's absence, or a hold, could become the caller's."""
    ends = task.is_paused_as_gone or task.paused_until is not None or task.pause_id is not None
    return task.status is TaskStatus.PAUSED and (ends or find_sole_hold(task) is not None)


def can_resume(task: Task, now: Callable[[], datetime]) -> bool:
    """Return whether a paused task has anything left to run once it is resumed."""
    if not task.is_one_time or task.planned_to is not None or task.runs:
        return True
    hold = find_sole_hold(task)
    since = now() if hold is None else hold.at
    return _passes(require_future, task, resume_plan(task, since).next_execution_time)


def _has_past(task: Task, now: Callable[[], datetime]) -> bool:
    """Return whether any occurrence is past, so that there is a range to backfill.

    It takes no search, since lists ask for each task that they show.
    """
    following = task.next_execution_time
    if task.first_at is not None or following is None:
        return True
    has_processed = task.planned_to is not None and task.planned_to != task.earlier_planned_to
    return has_processed or following <= now()


def _takes_events(
    task: Task, now: Callable[[], datetime], sender: EventSender, execution_id: str | None = None
) -> bool:
    """Return whether an execution waits for an event of this sender."""
    if not any(run.wait_for_event for run in task.runs):
        return False
    at = now()
    return any(
        _passes(
            find_addressee,
            task,
            Event(name=each.name, at=at, sender=sender, execution_id=each.execution_id),
            at,
        )
        for each in list_awaited(task, at)
        if execution_id in {None, each.execution_id}
    )


def _passes(check: Callable[..., object], *what: object) -> bool:
    try:
        check(*what)
    except (NotAllowed, InvalidInput):
        return False
    return True


MAX_SNOOZE: Final = timedelta(days=30)
SAME_SNOOZE: Final = timedelta(minutes=1)
"""The longest time between two snoozes that are one: a second click."""


def find_triggered(task: Task, mark: RequestMark) -> str | None:
    """Return the execution that a trigger has asked for, if the task remembers it."""
    found = mark.find(task)
    return None if found is None or found.at is None else requested_id(found.at, Trigger.MANUAL, found.at)


def trigger(
    task: Task,
    now: datetime,
    payload: dict[str, Any] | None = None,
    *,
    author: Requesters | None,
) -> Commit:
    """Run the task now, once, without changing its plan. The payload is this run's own, if `author` gives one.

    Raises NotAllowed if the task is not active, or has too many open runs.
    """
    require_triggerable(task)
    at = choose_instant(task, now)
    run = Run(
        execution_id=requested_id(at, Trigger.MANUAL, at),
        scheduled_for=at,
        trigger=Trigger.MANUAL,
        due_at=now,
        payload=payload,
        defined_by=None if payload is None else author,
    )
    triggered = with_changes(task, now, runs=task.runs_with(run))
    require_payload_room(triggered)
    return Commit(triggered)


def snooze(task: Task, now: datetime, until: datetime) -> Commit:
    """Repeat the last run at `until`, without changing the plan: its occurrences until then run, too.

    A task has one snooze at most that waits: another one moves it, and one for the same minute changes
    nothing, so a second click does not run it twice. A task that has ended is active again until that run
    is over. Raises NotAllowed if nothing of it has run, it is paused or cancelled, or it has too many
    open runs.
    """
    require_snoozable(task)
    if not now < until <= now + MAX_SNOOZE:
        problem = "is not later than now" if until <= now else f"is longer than {MAX_SNOOZE.days} days"
        raise InvalidInput("duration", problem, "Give up to 30 days, such as PT10M or 10 minutes.")
    waiting = next((run for run in task.runs if run.is_waiting_repeat), None)
    if waiting is not None and abs(waiting.due_at - until) < SAME_SNOOZE:
        return Commit(task)
    begun = [run for run in task.runs if run.started_at is not None]
    latest = max(begun, key=lambda run: run.scheduled_for).execution_id if begun else task.last_execution_id
    fresh = Run(
        execution_id=requested_id(until, Trigger.SNOOZE, choose_instant(task, now)),
        scheduled_for=until,
        trigger=Trigger.SNOOZE,
        due_at=until,
        note=f"{latest} again, since it was snoozed.",
    )
    moved = {
        "scheduled_for": until,
        "due_at": until,
        "note": fresh.note,
        "waiting_for": None,
        "turn_until": None,
    }
    run = fresh if waiting is None else waiting.model_copy(update=moved)
    message = task.message if task.is_active else "Snoozed."
    return Commit(with_changes(task, now, runs=task.runs_with(run), status=TaskStatus.ACTIVE, message=message))


def backfill(task: Task, now: datetime, start: datetime, end: datetime) -> Commit:
    """Run the past occurrences from `start` to `end` (both included), one after the other."""
    require_backfillable(task)
    if end > now:
        raise InvalidInput("end", "lies in the future", "A backfill runs occurrences of the past.")
    if end < start:
        raise InvalidInput("end", "is before start", "Give the earlier instant as start.")
    first = task.schedule.next_after(start - timedelta(microseconds=1))
    if first is None or first > end:
        past = [each for each in (first, task.schedule.first()) if each and each <= now]
        hint = f"Widen the range to include {past[0].isoformat()}." if past else "None of its occurrences is past."
        raise InvalidInput("start", "has no occurrence up to end", hint)
    asked = Backfill(requested_at=choose_instant(task, now), next_at=first, until=end)
    return Commit(start_next_backfill(with_changes(task, now, backfill=asked), now))


def cancel_run(task: Task, now: datetime, run: Run, message: str) -> Commit:
    """End one open run as CANCELLED. Its task and the schedule go on, and the task's overlap policy decides as ever.

    A lease is revoked: whoever holds it can report nothing more. If the task has made calls, it is marked as deferred
    until those of the run are cancelled, too.
    """
    if run.lease is not None:
        revoked = run.lease.model_copy(update={"token_hash": ""})  # a late report is no repetition of this end
        run = with_finished_attempt(run.model_copy(update={"lease": revoked}), ExecutionStatus.CANCELLED, None, now)
    ended = finish_run(task, run, ExecutionStatus.CANCELLED, now, message=message)
    deferred = ended.task.deferred or may_have_children(task)
    return ended.having(task=with_changes(ended.task, now, deferred=deferred))


def require_triggerable(task: Task) -> None:
    """Check that a task may be run now."""
    require_status(task, "trigger", TaskStatus.ACTIVE)
    require_free_run(task, "trigger")


def require_snoozable(task: Task) -> None:
    """Check that the last run may be repeated later."""
    if task.parent is not None:
        raise NotAllowed("snooze", "a call", "Its caller says when it runs; snooze the task at the top.")
    require_status(task, "snooze", *RETRYABLE_STATUSES)
    if task.last_execution_id is None and not any(run.started_at for run in task.runs):
        raise NotAllowed("snooze", "yet to run", "There is nothing to snooze; give it a later schedule.")
    if not any(run.is_waiting_repeat for run in task.runs):
        require_free_run(task, "snooze")


def require_backfillable(task: Task) -> None:
    """Check that a range of past occurrences may be run."""
    require_status(task, "backfill", TaskStatus.ACTIVE)
    if task.backfill is not None:
        raise NotAllowed("backfill", "already backfilling", "Wait until that has ended.")
