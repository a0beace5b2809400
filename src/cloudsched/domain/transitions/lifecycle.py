"""The status changes that a task allows, and the effects of pause, resume, cancel and delete.

`ALLOWED` is the only definition of the status changes. The diagram in ``docs/start/concepts.md`` is
tested against it. Every decision is pure: it takes a task and the current time and returns the commit.
`manual_verbs` runs the same checks, so an interface shows exactly the verbs that would be accepted.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import PERSON, SenderRole, say_subject
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import ExecutionStatus, Run, Trigger
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.documents.task import (
    FINAL_STATUSES,
    MAX_OPEN_RUNS,
    Hold,
    RecentRequest,
    Task,
    TaskStatus,
)
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.definitions import drop_unused
from cloudsched.domain.transitions.history import with_entry
from cloudsched.domain.transitions.needs import is_paused_by_failures
from cloudsched.domain.transitions.notices import name_instant
from cloudsched.domain.transitions.overlap_and_catch_up import (
    end_plan,
    forget_backlog,
    list_remaining,
    resume_plan,
    stop_plan,
)
from cloudsched.domain.transitions.planning import (
    find_sole_hold,
    jittered_start,
    note_zone,
    occurrence_after,
    occurrence_from,
    planned_schedule,
    requested_id,
    upcoming_occurrences,
)
from cloudsched.domain.transitions.run_records import drop_outcome, execution_record, keep_recent
from cloudsched.domain.transitions.wakeups import wake_instant
from cloudsched.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.domain.documents.authority import EventSender, Requesters

_S = TaskStatus
PAUSE_HAS_ENDED: Final = "Its pause has ended."
OWN_PAUSE_GOES_ON: Final = "Its own pause goes on."
"""The reason of an entry for a pause or a resume of many that left a task paused as it was."""
_ALONE: Final = {"pause_id": None, "inner_pause_id": None}

ALLOWED = complete_table(
    TaskStatus,
    {
        _S.ACTIVE: frozenset({_S.PAUSED, _S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.EXPIRED}),
        _S.PAUSED: frozenset({_S.ACTIVE, _S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.EXPIRED}),
        _S.COMPLETED: frozenset({_S.ACTIVE}),
        _S.FAILED: frozenset({_S.ACTIVE}),
        _S.CANCELLED: frozenset({_S.ACTIVE}),
        _S.EXPIRED: frozenset({_S.ACTIVE}),
    },
)
"""The statuses that may follow each.

Only another plan (schedule, `until`, `max_runs`) or a retry ends a final one.
"""


def with_changes(task: Task, now: datetime, **changes: Any) -> Task:
    """Return the task with these changes, and with the fields that follow from them, such as `wake_at`.

    An offer is the entry by which workers find a task. If the store was to remove the task by itself
    (`transitions.expiry`), it still does only if that instant has not moved. Events for an execution are
    removed with its run. Raises NotAllowed if `ALLOWED` does not permit the change of status.
    """
    status = changes.get("status", task.status)
    if status is not task.status:
        if status not in ALLOWED[task.status]:
            raise NotAllowed(f"make {status}", task.status)
        changes = {"paused_until": None, **_ALONE, **changes, "status_changed_at": now}
    changed = task.model_copy(update={**changes, "updated_at": now, "wake_at": None})
    may_be_offered = (
        changed.workers is not None
        or changed.offer is not None
        or not {None}.issuperset(map(attrgetter("waiting_for"), changed.runs))
    )
    derived = changed.refresh_offer(now) if may_be_offered else {}
    if changed.backlog or changed.plan_from:
        derived |= forget_backlog(changed)
    if changed.events:
        derived |= _bind_events(changed)
    if changed.timezone != "UTC" or changed.zone_plan is not None:
        derived["zone_plan"] = note_zone(changed.model_copy(update=derived))
    if changed.earlier_definitions:
        derived["earlier_definitions"] = drop_unused(changed)
    if derived:
        changed = changed.model_copy(update=derived)
    wake_at = wake_instant(changed)
    if task.expire_at is not None and not (changed.waits_for_removal and wake_at == task.expire_at):
        vars(changed)["expire_at"] = None
    if changed.expire_at is None:
        vars(changed)["wake_at"] = wake_at  # nobody else has seen this copy yet
    return changed


def _bind_events(task: Task) -> dict[str, Any]:
    """Return the events that remain, and bind those without an execution to the first open one."""
    ids = {None, *(run.execution_id for run in task.runs)}
    kept = tuple(each for each in task.events if each.execution_id in ids)
    if not task.runs or all(each.execution_id for each in kept):
        return {"events": kept}
    first = task.runs[0].execution_id
    marks = (RecentRequest.of_event(each, first) for each in kept if each.execution_id is None)
    bound = tuple(each if each.execution_id else each.model_copy(update={"execution_id": first}) for each in kept)
    return {"events": bound, "recent_requests": task.requests_with(*marks)}


def continue_or_complete(task: Task, now: datetime) -> Task:
    """Start the next occurrence of its backfill, or end the task if nothing is left for it to do.

    A one-time task ends as its only scheduled occurrence did. A recurring one whose schedule has ended is
    COMPLETED.
    """
    if task.backfill is not None:
        task = start_next_backfill(task, now)
    if task.status is not _S.ACTIVE or task.next_execution_time or task.runs or task.backfill:
        return with_changes(task, now)
    if task.is_one_time and task.outcome in _FINAL_STATUS_BY_OUTCOME:
        status, message = _FINAL_STATUS_BY_OUTCOME[task.outcome]
        return with_changes(task, now, status=status, message=message)
    message = "Its schedule has ended."
    if task.max_runs and task.run_count >= task.max_runs:
        message = f"It has reached its maxRuns of {task.max_runs}."
    elif task.until is not None:
        message = f"Its schedule has no later occurrence up to its until, {name_instant(task, task.until)}."
    return with_changes(task, now, status=_S.COMPLETED, message=message)


_FINAL_STATUS_BY_OUTCOME: Mapping[ExecutionStatus | None, tuple[TaskStatus, str]] = {
    ExecutionStatus.SUCCEEDED: (_S.COMPLETED, "It has run."),
    ExecutionStatus.FAILED: (_S.FAILED, "Its last attempt failed."),
    ExecutionStatus.TIMED_OUT: (_S.FAILED, "Its last attempt gave no result within its time."),
    ExecutionStatus.CANCELLED: (_S.CANCELLED, "Its run was cancelled."),
    ExecutionStatus.EXPIRED: (_S.EXPIRED, "Its time had passed before it could run."),
    ExecutionStatus.SKIPPED: (_S.EXPIRED, "Its only run was skipped."),
}


def require_status(task: Task, action: str, *statuses: TaskStatus) -> None:
    """Check that the task has one of these statuses."""
    if task.status not in statuses:
        raise NotAllowed(
            action,
            task.status,
            "Give it a new schedule to start it again." if task.status in FINAL_STATUSES else "",
        )


def require_not_held(task: Task) -> None:
    """Check that a task that a user starts is not paused because its owner may use no more."""
    hold = task.present_hold
    if hold is not None:
        raise NotAllowed(
            "start",
            "paused: it may use no more for now",
            task.message if hold.is_alone else "An admin may raise what its owner may use.",
        )


def require_end_ahead(until: datetime, now: datetime) -> None:
    """Check that a pause ends after now."""
    if until <= now:
        raise InvalidInput("until", "is in the past", "Give the time at which it goes on.")


def require_end_of_pause(task: Task, now: datetime, until: datetime) -> None:
    """Check that a pause can end then, and leaves the task something to do."""
    require_end_ahead(until, now)
    goes_on = resume_plan(task.model_copy(update={"next_execution_time": None}), until)
    if task.is_one_time and not task.runs and goes_on.next_execution_time is None:
        hint = "Move it to a later time, or pause it without an end."
        raise InvalidInput("until", "is after the only time at which the task runs", hint)


def require_pausable(task: Task) -> None:
    """Check that an ACTIVE task may be paused."""
    require_status(task, "pause", _S.ACTIVE)


def require_future(task: Task, following: datetime | None) -> None:
    """Check that a paused task would have something to do. `following` is its next occurrence if resumed."""
    require_status(task, "resume", _S.PAUSED)
    if following is None and task.is_one_time and task.planned_to is None and not task.runs:
        raise NotAllowed("resume", "PAUSED past its only instant", "Give it a new schedule.")


def require_cancellable(task: Task) -> None:
    """Check that a task may be cancelled."""
    require_status(task, "cancel", _S.ACTIVE, _S.PAUSED)


def require_free_run(task: Task, action: str) -> None:
    """Check that the task has room for one more open run."""
    if len(task.runs) >= MAX_OPEN_RUNS:
        raise NotAllowed(
            action,
            f"busy with {MAX_OPEN_RUNS} open runs",
            "Wait until some of them have ended.",
        )


def pause(
    task: Task,
    now: datetime,
    message: str = "",
    *,
    paused_by: Requesters | None,
    is_gone: bool = False,
    until: datetime | None = None,
    pause_id: str | None = None,
) -> Commit:
    """Pause the task: nothing of it starts until it is resumed, or until an instant. A running handler may finish.

    The policies decide now about the occurrences that came due before. Those that would run wait for the end
    of the pause. `is_gone` says that the task's declaration has left the code. Any other pause replaces
    this one, but a user's does not shorten another's. It also replaces a hold, and decides about what has come
    due since that began. `pause_id` says that it is one of many that are paused together. That replaces no pause
    and no hold, but one that ends by itself then ends no longer while the others are paused.
    """
    if until is not None:
        require_end_of_pause(task, now, until)
    if pause_id is not None and task.goes_on_by_itself:
        return Commit(with_changes(task, now, pause_id=pause_id, inner_pause_id=task.pause_id or ""))
    if find_sole_hold(task) is not None:
        resumed = resume(task, now)
        if resumed.task.status is not _S.ACTIVE:
            return resumed
        taken = pause(resumed.task, now, message, paused_by=paused_by, is_gone=is_gone, until=until, pause_id=pause_id)
        # One that would end by itself needs no part in it: the next start makes it again.
        remains = Hold(at=now, is_alone=False) if task.paused_until is None else None
        return taken.having(task=taken.task.model_copy(update={"hold": remains}))

    message = message or ("Its declaration is gone from the code." if is_gone else "Paused.")
    ends = {**_ALONE, "paused_until": until, "pause_id": pause_id}
    if task.status is _S.PAUSED:
        is_same = until == task.paused_until and task.pause_id is None and not task.is_paused_as_gone
        if is_gone or is_same or pause_id is not None:
            return Commit(task)
        if paused_by is not None and task.paused_by is None and not task.is_paused_as_gone:
            if until is not None:
                raise NotAllowed("pause", "paused by somebody else already", "Only an admin may end that pause.")
            paused_by = None
        changes = {"message": message, "paused_by": paused_by, "is_paused_as_gone": False, **ends}
        return Commit(with_changes(task, now, **changes))
    require_pausable(task)
    stopped, records = stop_plan(task, now)  # guard: stopped plan
    paused = with_changes(
        stopped,
        now,
        status=_S.PAUSED,
        message=message,
        paused_by=paused_by,
        is_paused_as_gone=is_gone,
        revision=task.revision + 1,
        **ends,
    )
    return Commit(paused, executions=records)


def end_pause(task: Task, now: datetime) -> Commit:
    """Resume a task whose pause ends by itself. If nothing is left for it to do, it stays paused without an end.

    So does one that others have paused meanwhile together with many.
    """
    if task.inner_pause_id is not None:
        return _stay_paused(task, now)
    hold = find_sole_hold(task)
    try:
        resumed = resume(task, now, since=task.paused_until if hold is None else hold.at)
    except NotAllowed as error:
        return Commit(with_changes(task, now, paused_until=None, message=str(error)))
    again = resumed.task.model_copy(update={"message": PAUSE_HAS_ENDED}) if resumed.task.is_active else resumed.task
    return resumed.having(task=with_entry(task, again, Action.RESUMED, None, now, reason=PAUSE_HAS_ENDED))


def _stay_paused(task: Task, now: datetime) -> Commit:
    """End what would end by itself of a task that others have paused meanwhile. What a hold left is decided first."""
    why = "Its own pause has ended, but it was paused meanwhile together with others."
    left = Commit(with_changes(task, now, message=why, paused_until=None, inner_pause_id=None))
    if find_sole_hold(task) is not None:
        resumed = resume(task, now)
        if resumed.task.status is not _S.ACTIVE:
            return resumed
        left = pause(resumed.task, now, why, paused_by=None, pause_id=task.pause_id)
        left = left.having(task=left.task.model_copy(update={"hold": None}))
    return left.having(task=with_entry(task, left.task, Action.PAUSED, None, now, reason=why))


def is_only_marked(before: Task, after: Task) -> bool:
    """Return whether a pause or a resume of many has left a task paused, by whom and until when it was."""
    if before.status is not _S.PAUSED or before.pause_id == after.pause_id:
        return False
    kept = attrgetter("message", "paused_by", "paused_until", "status_changed_at")
    return bool(kept(before) == kept(after))


def end_pause_if_over(task: Task, now: datetime) -> Task:
    """Return the task as it should be by now, also if the dispatch that ends its pause is late or lost.

    Else a change would count what has come due since the end as part of the pause, and leave it out.
    """
    if task.status is not _S.PAUSED or task.paused_until is None or task.paused_until > now:
        return task
    return end_pause(task, now).task


def list_to_come(task: Task, now: datetime, count: int) -> list[datetime]:
    """Return the next occurrences, at most `count`, without what the policies leave out by now.

    Those of a pause that ends by itself are those from its end on. What a limit holds is caught up on then.
    """
    ends = task.paused_until
    if ends is None or find_sole_hold(task) is not None:
        return list_remaining(task, now, count)
    resumed = end_pause(task, ends).task
    first = occurrence_from(resumed, ends) if resumed.is_active else None
    return upcoming_occurrences(resumed.model_copy(update={"next_execution_time": first}), count)


def restore(task: Task, now: datetime, *, by: EventSender | None = None) -> Commit:
    """Take back a pause of many tasks. One that this has found, and that has not ended yet, goes on."""
    if task.inner_pause_id is None:
        return resume(task, now, by=by)
    return Commit(with_changes(task, now, pause_id=task.inner_pause_id or None, inner_pause_id=None))


def name_author(task: Task, by: EventSender | None) -> str:
    """Return who does something with a task, as its history names them. Empty for the scheduler itself."""
    if by is None:
        return ""
    if by.role is SenderRole.OWNER or f"{PERSON}{task.owner}" in {by.subject, by.user}:
        return " by its owner"
    return f" by {say_subject(by.subject)}"


def resume(task: Task, now: datetime, *, since: datetime | None = None, by: EventSender | None = None) -> Commit:
    """Resume a paused task: first its occurrences from before the pause, then those from now, or `since`, on.

    Occurrences during the pause do not run. Raises NotAllowed if the task's only instant is one of them.
    """
    if task.status is _S.ACTIVE:
        return Commit(task)
    require_status(task, "resume", _S.PAUSED)
    hold = find_sole_hold(task)
    # guard: resumed plan
    resumed = resume_plan(task, since or (now if hold is None else hold.at))
    following = resumed.next_execution_time
    require_future(task, following)
    passed = now - timedelta(microseconds=1)
    is_answered = is_paused_by_failures(task)  # whoever resumes it has seen to them; another pause has mended nothing
    active = with_changes(
        resumed,
        now,
        status=_S.ACTIVE,
        message=f"Resumed{name_author(task, by)}.",
        planned_to=max(passed, task.planned_to) if task.planned_to and following is None else task.planned_to,
        consecutive_failures=0 if is_answered else task.consecutive_failures,
        failing_since=None if is_answered else task.failing_since,
        paused_by=None,
        is_paused_as_gone=False,
        revision=task.revision + 1,
    )
    return Commit(continue_or_complete(active, now))


def cancel(task: Task, now: datetime, message: str = "Cancelled.") -> Commit:
    """End the task.

    Waiting runs are recorded as CANCELLED. A running handler can check for it, and may finish.

    So are the occurrences that came due and would still have run. A task that has made calls is marked as
    deferred until its descendants are cancelled, too.
    """
    if task.status is _S.CANCELLED:
        return Commit(task)
    require_cancellable(task)
    waiting = tuple(run for run in task.runs if run.lease is None)
    newest = max(waiting, key=lambda run: run.scheduled_for, default=None)
    cancelled = tuple(execution_record(task, run, ExecutionStatus.CANCELLED, now, message=message) for run in waiting)
    recent = task.recent_outcomes
    for run in waiting:
        recent = keep_recent(drop_outcome(task, recent, run), ExecutionStatus.CANCELLED)
    noted = task.model_copy(update={"recent_outcomes": recent})
    stopped, records = end_plan(noted, now, ExecutionStatus.CANCELLED, message)
    ended = with_changes(
        drop_unstarted(stopped, *unstarted_runs(task)),
        now,
        status=_S.CANCELLED,
        message=message,
        next_execution_time=None,
        backfill=None,
        runs=tuple(run for run in task.runs if run.lease is not None),
        last_execution_id=task.last_execution_id if newest is None else newest.execution_id,
        revision=task.revision + 1,
        has_children=may_have_children(task),
        deferred=task.deferred or may_have_children(task),  # guard: deferred cancel
    )
    return Commit(ended, executions=(*cancelled, *records))  # guard: cancelled runs


def cancel_for_caller(task: Task, now: datetime, *, by: EventSender | None = None) -> Commit:
    """Cancel the task as a caller asks. What has come due since it is held is decided first, and CANCELLED too."""
    message = f"Cancelled{name_author(task, by)}."
    if find_sole_hold(task) is None:
        return cancel(task, now, message)
    resumed = resume(task, now)
    return cancel(resumed.task, now, message) if resumed.task.status is _S.ACTIVE else resumed


def may_have_children(task: Task, entries: Iterable[JournalEntry] = ()) -> bool:
    """Return whether a task may have made calls, given these new journal entries."""
    return task.has_children or any(entry.kind is StepKind.CALL for entry in entries)


def delete(task: Task, now: datetime) -> Commit:
    """Mark the task as deleted.

    The store then removes it and its executions. The sweep finishes that after a crash.
    """
    return Commit(
        with_changes(task, now, deleted_at=now, next_execution_time=None, revision=task.revision + 1),
    )


def was_recreated(task: Task, current: Task) -> bool:
    """Return whether a deleted or cancelled task has since been created again or rescheduled."""
    if current.created_at != task.created_at or (task.deleted_at is not None and current.deleted_at is None):
        return True
    return task.status is _S.CANCELLED and current.status is not _S.CANCELLED and current.deleted_at is None


def start_next_backfill(task: Task, now: datetime) -> Task:
    """Start the next occurrence of the task's backfill as a waiting run, unless other work comes first."""
    current = task.backfill
    scheduled = task.next_execution_time
    if (
        current is None
        or not all(run.is_waiting_repeat for run in task.runs)
        or not task.is_active
        or (scheduled and jittered_start(task, scheduled) <= now)
    ):
        return task

    run = Run(
        execution_id=requested_id(current.next_at, Trigger.BACKFILL, current.requested_at),
        scheduled_for=current.next_at,
        trigger=Trigger.BACKFILL,
        due_at=now,
        note=task.schedule.adjustment_note(current.next_at) if task.schedule.occurs(current.next_at) else None,
    )
    following = planned_schedule(task).next_after(current.next_at)
    rest = current.model_copy(update={"next_at": following}) if following and following <= current.until else None
    return with_changes(task, now, runs=task.runs_with(run), backfill=rest)


def unstarted_runs(task: Task) -> list[Run]:
    """Return the scheduled runs that wait for a worker and have not started, in the order of their occurrences."""
    waiting = [run for run in task.runs if run.is_counted and run.lease is None and run.started_at is None]
    return sorted(waiting, key=lambda run: run.scheduled_for)


def drop_unstarted(task: Task, *gone: Run) -> Task:
    """Return the task without runs that never started. `max_runs` no longer counts them.

    If the run limit had ended the plan, the plan continues.
    """
    ids = {run.execution_id for run in gone}
    rest = task.model_copy(
        update={
            "runs": tuple(run for run in task.runs if run.execution_id not in ids),
            "run_count": task.run_count - sum(run.is_counted for run in gone),
        }
    )
    was_full = task.max_runs is not None and task.run_count >= task.max_runs
    if not was_full or task.next_execution_time or not task.is_active or task.planned_to is None:
        return rest
    return rest.model_copy(update={"next_execution_time": occurrence_after(rest, task.planned_to)})
