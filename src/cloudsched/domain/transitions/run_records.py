"""Record runs that ended, note their effect on the task, and keep its document within its limits.

A task's document has room for its owner's fields, the events that wait for it, and its open runs. The
first two are refused when they are too large. Open runs are not refused, because occurrences come due
whatever a task's size. Their texts are shortened instead, if they would not fit beside the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import (
    FAILURE_STATUSES,
    NOT_RUN_STATUSES,
    Attempt,
    CalledBy,
    Execution,
    ExecutionError,
    ExecutionStatus,
    Run,
    Trigger,
)
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, MAX_STORED, stored_size, truncate
from cloudsched.domain.documents.task import HistoryEntry, Task, TaskSpec
from cloudsched.domain.documents.usage import RunUsage
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.definitions import describe_record
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

MAX_RECENT: Final = 12
"""The number of a task's latest executions whose final statuses its document has."""
_TIME_LENGTH: Final = len("20270101T090000")
"""The length of the time that begins the id of a scheduled execution, and by which these ids are sorted."""
_FOUND_BY: Final = ("title", "handler", "category", "labels")
"""The fields of a task that its records copy as they were then."""

MAX_SPEC_BYTES = 560 * 1024
"""The largest part of a task that its owner sets, as Firestore counts it."""
MAX_EVENTS_BYTES = 176 * 1024
"""The most bytes of events that may wait for a task."""
MAX_SIDE_EVENTS_BYTES = MAX_EVENTS_BYTES * 3 // 4
"""The most bytes of those that one side may have sent."""
MAX_AWAITED_EVENTS_BYTES = 224 * 1024
"""The most bytes of events if a run waits for one of them."""
MAX_HISTORY_BYTES = 8 * 1024
"""The most bytes that are kept of a task's history of actions by hand."""
_STATE_BYTES = 48 * 1024
"""The most of the scheduler's own fields, its history included, without the events and the open runs."""
MIN_RUNS_BYTES = MAX_DOCUMENT_BYTES - MAX_SPEC_BYTES - MAX_AWAITED_EVENTS_BYTES - _STATE_BYTES
"""The least room for the open runs."""

_AS_STORED: Final[dict[str, Any]] = {"mode": "python", "by_alias": True, "exclude_none": True}
"""The form in which a part of a task is written, to know its size."""
_SHORT_MESSAGE = 100
_NOT_RETRIED: Final = frozenset({ExecutionStatus.SUCCEEDED, ExecutionStatus.SKIPPED})
_RECENT_NOTES = 5
_RECENT_ATTEMPTS = 3


def last_run_fields(task: Task, run: Run, status: ExecutionStatus, now: datetime) -> dict[str, Any]:
    """Return the task's fields about a run that has finished. The run due last says if it is failing.

    A run that was due before it, such as a retry or a backfill, has its record and its place among the
    recent outcomes.
    """
    last: dict[str, Any] = {"recent_outcomes": keep_recent(drop_outcome(task, task.recent_outcomes, run), status)}
    is_latest = _is_latest(task, run)
    if is_latest or task.last_execution_id is None:
        last["last_execution_id"] = run.execution_id
    is_later = task.outcome is None or is_latest
    is_later = is_later or run.execution_id[:_TIME_LENGTH] >= (task.outcome_execution_id or "")[:_TIME_LENGTH]
    if run.trigger is Trigger.SCHEDULE and is_later:
        last |= {"outcome": status, "outcome_execution_id": run.execution_id}
    if is_latest and status not in NOT_RUN_STATUSES:  # as in `says_how_task_is`
        failures = 0
        since = None
        if status in FAILURE_STATUSES:
            is_another = task.latest_run_at != run.scheduled_for
            failures = max(1, task.consecutive_failures + is_another)
            since = task.failing_since or now
        last |= {"consecutive_failures": failures, "failing_since": since, "latest_run_at": run.scheduled_for}
    elif status is ExecutionStatus.SUCCEEDED and _has_failed_before(task, run):
        last["consecutive_failures"] = max(1, task.consecutive_failures - 1)
        if task.failing_since in {run.scheduled_for, *(each.finished_at for each in run.attempts)}:
            is_alone = last["consecutive_failures"] == 1  # the one that was due last
            following = None if is_alone else task.schedule.next_after(run.scheduled_for)
            last["failing_since"] = min(filter(None, [following, task.latest_run_at]), default=task.failing_since)
    is_failing = last.get("failing_since", task.failing_since)
    if task.failure_told_at is not None and status is ExecutionStatus.SUCCEEDED and not is_failing:
        last["failure_told_at"] = None
    return last


def _has_failed_before(task: Task, run: Run) -> bool:
    """Return whether a run is among the failures of its task that count, and somebody has retried it since."""
    since = task.failing_since
    retried_at = min((each.at for each in task.history if _is_retry(each, run)), default=None)
    if since is None or retried_at is None:
        return False
    return any(each.status in FAILURE_STATUSES and since <= each.finished_at <= retried_at for each in run.attempts)


def says_how_task_is(task: Task, run: Run, status: ExecutionStatus) -> bool:
    """Return whether a run of this status decides if its task is failing: of those that ran, it was due last."""
    return _is_latest(task, run) and status not in NOT_RUN_STATUSES


def _is_latest(task: Task, run: Run) -> bool:
    """Return whether no run that has run was due later. A backfill is of the past, whenever it runs."""
    is_backfill = run.trigger is Trigger.BACKFILL
    return not is_backfill and (task.latest_run_at is None or run.scheduled_for >= task.latest_run_at)


def keep_recent(recent: Sequence[ExecutionStatus], *more: ExecutionStatus) -> tuple[ExecutionStatus, ...]:
    """Return the final statuses of the latest executions, with more of them."""
    return (*recent, *more)[-MAX_RECENT:]


def drop_outcome(task: Task, recent: Sequence[ExecutionStatus], run: Run) -> tuple[ExecutionStatus, ...]:
    """Return outcomes without the one that an open run of their task had before somebody retried it.

    It did not succeed. It is the latest such one, if its task ran it last, and else the earliest.
    """
    is_last = run.execution_id == task.last_execution_id
    was_retried = is_last
    for each in task.history:
        was_retried = was_retried or _is_retry(each, run)
    if not was_retried:
        return tuple(recent)
    places = [place for place, status in enumerate(recent) if status not in _NOT_RETRIED]
    gone = next(reversed(places) if is_last else iter(places), len(recent))
    return (*recent[:gone], *recent[gone + 1 :])


def _is_retry(entry: HistoryEntry, run: Run) -> bool:
    return entry.action is Action.RETRIED and entry.execution_id == run.execution_id


def execution_record(
    task: Task, run: Run, status: ExecutionStatus, now: datetime, *, message: str | None = None, **more: Any
) -> Execution:
    """Return the record of a run with this status. The record of a call is kept as long as its task.

    It has the fields by which lists across tasks find it. Records of deliveries do not, since they are in
    no such list.
    """
    usage = run.usage or RunUsage()
    payload = run.payload
    ran = task
    if run.definition is not None:
        ran = task.as_begun(run)
        if payload is None and ran.payload != task.payload:
            payload = ran.payload
    fields = _index_fields(task, ran, run)
    if payload is not None:
        fields |= _payload_fields(payload, more.get("content"))

    if run.attempts:
        fields["error"] = run.attempts[-1].error
    if status.is_final:
        fields["finished_at"] = now
        if task.parent is None and task.execution_retention is not None:
            fields["expire_at"] = add_duration(now, task.execution_retention)
        if status is not ExecutionStatus.SUCCEEDED:  # what a retry by hand needs
            if run.started_at is not None:
                fields["began_with"] = describe_record(task, run)
            if task.events:
                fields["events"] = tuple(each for each in task.events if each.execution_id == run.execution_id)
    return Execution.build(
        id=run.execution_id,
        task_id=task.id,
        owner=task.owner,
        scheduled_for=run.scheduled_for,
        started_at=run.started_at,
        attempts=run.attempts,
        omitted_attempts=run.omitted_attempts,
        attempt_started_at=run.attempt_started_at,
        status=status,
        message=message or run.note,
        progress=run.progress,
        trigger=run.trigger,
        defined_by=run.defined_by or ran.defined_by,
        log=run.log,
        calls_made=run.calls_made,
        queries=usage.queries,
        tokens=usage.tokens,
        estimated_queries=task.query_per_execution or None,
        estimated_tokens=task.tokens_per_execution or None,
        **{**fields, **more},
    )


def _index_fields(task: Task, ran: Task, run: Run) -> dict[str, Any]:
    """Return the fields by which lists across tasks find a record, and its chat."""
    fields: dict[str, Any] = {}
    if not task.delivery:
        for name in _FOUND_BY:
            fields[name] = getattr(task, name)
        fields["handler"] = ran.handler
        if task.parent is not None:
            fields["called_by"] = CalledBy(task_id=task.parent.task_id, execution_id=task.parent.execution_id)
    if task.source is not None and task.source.chat_id is not None:
        fields["chat_id"] = task.source.chat_id
        fields["message_id"] = derive_message_id(task.id, run.execution_id)
    return fields


def expiry_after(now: datetime, retention: timedelta | None) -> datetime | None:
    """Return when a document that is kept that long expires, or None if it is kept as long as its task."""
    return None if retention is None else add_duration(now, retention)


def _payload_fields(payload: dict[str, Any], content: object) -> dict[str, Any]:
    """Return the record's fields for the payload of a trigger.

    A result that leaves no room for it matters more.
    """
    if content is not None and stored_size(payload) + stored_size(content) > MAX_STORED:
        return {"has_unrecorded_payload": True}
    return {"payload": payload}


def derive_message_id(task_id: str, execution_id: str, number: int = 1) -> str:
    """Return the id of a message that an execution makes, the same in every attempt."""
    return f"{task_id}-{execution_id}-{number}"


def fit_runs(task: Task) -> Task:
    """Return the task with open runs that fit its document. Nearly all tasks stay unchanged."""
    most = 0
    for run in task.runs:
        most += 8_000 + 1_500 * len(run.attempts) + 300 * len(run.progress) + len(run.log or "")
        most += 8 * (0 if run.suspension is None else len(run.suspension.calls))
        most += 0 if run.payload is None else stored_size(run.payload)
    if most <= MIN_RUNS_BYTES:
        return task
    stored = task.to_stored()
    runs_bytes = stored_size(stored["runs"])
    room = MAX_DOCUMENT_BYTES - _STATE_BYTES - (stored_size(stored) - runs_bytes)
    if runs_bytes <= room:
        return task
    share = (room - payloads_size(task)) // len(task.runs)
    return task.model_copy(update={"runs": tuple(_shorten(run, share) for run in task.runs)})


def payloads_size(task: Task) -> int:
    """Return the bytes of the payloads that open runs were triggered with, as Firestore counts them."""
    return sum(stored_size(run.payload) for run in task.runs if run.payload is not None)


def require_payload_room(task: Task, field: str = "payload", *, added: object = None) -> None:
    """Check that the payloads of open runs have room beside the owner's fields: they share one limit.

    The earlier definitions that open runs began with share it, too, and so does the payload of one more
    run, `added`.
    """
    payloads = payloads_size(task) + (0 if added is None else stored_size(added))
    payloads += sum(stored_size(each.model_dump(**_AS_STORED)) for each in task.earlier_definitions or ())
    if not payloads:
        return
    spec = task.model_dump(**_AS_STORED, include={*TaskSpec.model_fields})
    if stored_size(spec) + payloads > MAX_SPEC_BYTES:
        hint = (
            f"The task and the payloads of its open runs may have {MAX_SPEC_BYTES} together: wait until some of these "
            "have ended, or store large data elsewhere and pass a reference to it."
        )
        raise InvalidInput(field, f"has no room: the payloads of open runs would have {payloads} bytes", hint)


def _shorten(run: Run, max_bytes: int) -> Run:
    """Return a run of at most that many bytes, if its texts can be shortened that far.

    Recent texts are kept.
    """
    changes: list[dict[str, object]] = [
        {},
        {"log": None},
        {"log": None, "progress": run.progress[-_RECENT_NOTES:]},
        {
            "log": None,
            "progress": run.progress[-_RECENT_NOTES:],
            "attempts": tuple(map(_shorten_error, run.attempts)),
        },
        {"log": None, "progress": run.progress[-1:], **_keep_recent_attempts(run, _RECENT_ATTEMPTS)},
        {"log": None, "progress": (), **_keep_recent_attempts(run, 1)},
    ]
    for change in changes:
        shortened = run.model_copy(update=change)
        texts = shortened.model_dump(**_AS_STORED, exclude={"payload"})
        if stored_size(texts) <= max_bytes:
            break
    return shortened


def _keep_recent_attempts(run: Run, count: int) -> dict[str, object]:
    """Return the changes that leave out attempts. The first stays, because it says how the run began."""
    recent = run.attempts[:1] + run.attempts[1:][-count:]
    omitted = run.omitted_attempts + len(run.attempts) - len(recent)
    return {"attempts": tuple(map(_shorten_error, recent)), "omitted_attempts": omitted}


def _shorten_error(attempt: Attempt) -> Attempt:
    if attempt.error is None:
        return attempt
    message = truncate(attempt.error.message, _SHORT_MESSAGE)
    return attempt.model_copy(update={"error": ExecutionError(type=attempt.error.type, message=message)})
