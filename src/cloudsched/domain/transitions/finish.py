"""Decide what happens to a run when its attempt ends, between the handler's result and the last commit.

Policies that are decided here, each visible in the executions:

* A failed attempt is repeated as the retry policy says (RETRYING), until no attempt is left (FAILED) or the
  task ends.
* An outcome that the handler chooses overrides the policy: `Retry`, `Snooze`, `Fail`, `Cancel`.
* An attempt that is lost with its process uses up no retry. The process may have been stopped, or ended by
  another handler. A run that is lost so three times in a row is FAILED. The caller lets it run apart from
  others that were lost, so none of these is what ended its process.
* ``overlap`` decides whether occurrences that came due while the run was open are skipped or one is kept.
  Those skipped have one record.
* A task that failed ``pauseAfterFailures`` times in a row pauses itself.

Only the holder of the lease may finish an attempt: for anyone else `on_outcome` returns None, and the
result is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.authority import EventSender, Requesters, SenderRole
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.execution import (
    Attempt,
    Execution,
    ExecutionError,
    ExecutionStatus,
    ProgressNote,
    Run,
)
from cloudsched.domain.documents.json_limits import truncate
from cloudsched.domain.documents.task import FINAL_STATUSES, Task, TaskStatus
from cloudsched.domain.documents.usage import RunUsage, add_usage
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.history import with_entry
from cloudsched.domain.transitions.lease import drop_lease
from cloudsched.domain.transitions.lifecycle import (
    continue_or_complete,
    drop_unstarted,
    may_have_children,
    with_changes,
)
from cloudsched.domain.transitions.notices import (
    InboxMessage,
    find_lateness,
    find_recovery,
    find_said,
    find_spoken,
    has_inbox,
    make_messages,
)
from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze, Suspend
from cloudsched.domain.transitions.overlap_and_catch_up import decide_overlap_at_end, pass_over, stop_plan
from cloudsched.domain.transitions.planning import occurrence_from
from cloudsched.domain.transitions.run_records import (
    execution_record,
    last_run_fields,
    says_how_task_is,
)
from cloudsched.domain.transitions.suspend import make_questions, on_suspend

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from random import Random

    from cloudsched.domain.documents.journal import FailureCause, JournalEntry

MIN_SNOOZE = timedelta(seconds=1)
"""The shortest snooze.

A snooze costs no attempt, so nothing else slows down a handler that always snoozes.
"""


MAX_EARLIER_MESSAGE = 300
"""The bytes of an attempt's error message that are kept once another attempt has followed."""
FIRST_ATTEMPTS = 5
LAST_ATTEMPTS = 20
"""The first and the last attempts of an execution that are kept.

One that lasts for years may have any number.
"""


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """The end of an attempt, with the handler's reports during it."""

    outcome: Outcome
    error: ExecutionError | None = None
    """The details of a failure that was an exception."""
    notices: Sequence[InboxMessage] = ()
    progress: Sequence[ProgressNote] = ()
    queries: int = 0
    """The queries that the handler reported in this attempt, with those of all steps of the journal."""
    tokens: int = 0
    step_queries: int = 0
    """The part of these queries that each later attempt reports again: all of a durable handler."""
    step_tokens: int = 0
    called_queries: int = 0
    """The queries of all calls that have ended, which are not among the others."""
    called_tokens: int = 0
    entries: Sequence[JournalEntry] = ()
    """The entries of a durable handler that are not yet in the stored journal."""
    journal: Sequence[JournalEntry] | None = None
    """Its whole journal, if that is known."""
    calls_made: int = 0
    """Every call up to this number in its journal has its task."""
    failure_cause: FailureCause | None = None
    """The entries in its journal that made it fail."""
    ended_by: str | None = None
    """The API caller that reported it, or None if it did not come through the API."""
    defined_by: Requesters | None = None
    """USERS if a user wrote a part of the run beside its task, such as a stored script."""


def on_outcome(
    task: Task,
    execution_id: str,
    token_hash: str,
    report: AttemptReport,
    now: datetime,
    random: Random,
    *,
    calls_in_progress: Container[int] = (),
) -> Commit | None:
    """Decide what the end of an attempt changes. Return None if the caller no longer holds the lease.

    `calls_in_progress` are some of the calls that a suspended handler waits for, and that are known to be
    under way.
    """
    run = task.find_run(execution_id)
    if run is None or run.lease is None or run.lease.token_hash != token_hash:  # guard: lease of outcome
        return None
    if report.entries and not task.has_children and may_have_children(task, report.entries):
        task = task.model_copy(update={"has_children": True})
    reported = _with_report(run, report)
    if reported.usage is not run.usage:
        task = _with_reported_usage(task, run, reported, now)
    step = _apply_outcome(task, reported, report, calls_in_progress, now, random)
    if report.ended_by is not None:
        step = step.having(task=_note_foreign_end(task, step.task, run, report, now))
    if report.entries:
        step = step.having(entries=tuple(report.entries))
    return step


def _note_foreign_end(task: Task, changed: Task, run: Run, report: AttemptReport, now: datetime) -> Task:
    """Return the changed task, with a note if another caller than the claimant ended the attempt."""
    claimed_by = None if run.lease is None else run.lease.claimed_by
    if claimed_by is None or report.ended_by in {None, claimed_by}:
        return changed
    admin = EventSender(role=SenderRole.ADMIN, subject=report.ended_by)
    return with_entry(task, changed, Action.ENDED, admin, now, execution_id=run.execution_id)


def _with_report(run: Run, report: AttemptReport) -> Run:
    """Return the run with what its handler has reported. Most handlers report nothing but their outcome."""
    reported: dict[str, Any] = {
        "progress": tuple(report.progress),
        "steps": max(run.steps, *map(attrgetter("number"), report.entries), 0),
        "calls_made": max(run.calls_made, report.calls_made),
        "usage": run.usage,
        "defined_by": report.defined_by or run.defined_by,
        "losses": 0,
    }
    if report.queries or report.tokens or report.called_queries or report.called_tokens:
        used = RunUsage.build(**{name: getattr(report, name) for name in RunUsage.model_fields})
        reported["usage"] = (run.usage or RunUsage()).add(used)
    changes = dict[str, Any]()
    for name, value in reported.items():
        if value != getattr(run, name):
            changes[name] = value
    return run.model_copy(update=changes) if changes else run


def _with_reported_usage(task: Task, before: Run, after: Run, now: datetime) -> Task:
    if after.usage == before.usage or after.usage is None:
        return task
    known = before.usage or RunUsage()
    used = {"queries": after.usage.queries - known.queries, "tokens": after.usage.tokens - known.tokens}
    called = {
        "queries": after.usage.called_queries - known.called_queries,
        "tokens": after.usage.called_tokens - known.called_tokens,
    }
    handler = task.as_begun(after).handler
    changes = {"usage": add_usage(task.usage, handler, now, used)} if any(used.values()) else {}
    if any(called.values()):
        changes["used_by_calls"] = add_usage(task.used_by_calls, handler, now, called)
    return task.model_copy(update=changes)


def _apply_outcome(  # noqa: PLR0911 - one return for each outcome of the closed set
    task: Task,
    run: Run,
    report: AttemptReport,
    calls_in_progress: Container[int],
    now: datetime,
    random: Random,
) -> Commit:
    record_fields = {"failure_cause": report.failure_cause}
    match report.outcome:
        case Done() as done:
            return _succeed(task, run, done, report, now)
        case Retry(reason, after):
            error = report.error or ExecutionError(type="Retry", message=reason)
            failed = with_finished_attempt(run, ExecutionStatus.FAILED, error, now, report.ended_by)
            wait = task.retry.delay(run.attempt - run.uncounted_attempts, random) if after is None else after
            return retry_or_finish(task, failed, wait, now, ExecutionStatus.FAILED, **record_fields)
        case Snooze(until, reason):
            due_at = add_duration(now, until) if isinstance(until, timedelta) else until
            waiting = drop_lease(run, report.ended_by, due_at=max(due_at, now + MIN_SNOOZE))
            return wait_for_retry(task, waiting, now, message=reason, **record_fields)
        case Suspend() as suspend:
            if task.status in FINAL_STATUSES:
                return wait_for_retry(task, drop_lease(run), now, **record_fields)
            waiting = on_suspend(
                task, drop_lease(run, first_lease_at=run.attempt_started_at), suspend, calls_in_progress, now
            )
            questions = make_questions(task, run, suspend, now)
            return Commit(with_changes(task, now, runs=task.runs_with(waiting)), messages=questions)
        case Fail(reason):
            error = report.error or ExecutionError(type="Fail", message=reason)
            return finish_run(
                task,
                with_finished_attempt(run, ExecutionStatus.FAILED, error, now, report.ended_by),
                ExecutionStatus.FAILED,
                now,
                **record_fields,
            )
        case Cancel(reason):
            ended = with_finished_attempt(run, ExecutionStatus.CANCELLED, None, now, report.ended_by)
            return finish_run(task, ended, ExecutionStatus.CANCELLED, now, message=reason, **record_fields)


def _succeed(task: Task, run: Run, done: Done, report: AttemptReport, now: datetime) -> Commit:
    """Return the end of a run that has succeeded, with what that says to the owner's inbox."""
    said: tuple[InboxMessage, ...] = ()
    if DeliveryChannel.WEB in task.delivery_channels:
        said = find_said(task, done, report.notices)
    elif report.notices:
        said = find_spoken(report.notices)

    ended = with_finished_attempt(run, ExecutionStatus.SUCCEEDED, None, now, report.ended_by)
    step = finish_run(
        task,
        ended,
        ExecutionStatus.SUCCEEDED,
        now,
        content=done.content,
        is_delivered=bool(said) and set(task.delivery_channels) <= {DeliveryChannel.WEB},
        failure_cause=report.failure_cause,
    )
    if task.failure_told_at is not None and has_inbox(task):
        said += find_recovery(task, step.task)
    if not said:
        return step
    late = find_lateness(task, run)
    return step.having(messages=make_messages(task, run.execution_id, said, now, late=late))


def with_finished_attempt(
    run: Run,
    status: ExecutionStatus,
    error: ExecutionError | None,
    now: datetime,
    ended_by: str | None = None,
) -> Run:
    """Return a run whose attempt under way has ended now. Raises ValueError if it has none."""
    if run.lease is None:
        raise ValueError(f"execution {run.execution_id} has no attempt under way")
    attempt = Attempt.build(
        number=run.attempt,
        started_at=run.first_lease_at or run.lease.started_at,
        finished_at=now,
        status=status,
        error=error,
        worker=run.lease.worker,
        claim=run.lease.token_hash if run.lease.worker else None,
        ended_by=ended_by,
        lock_waited_since=run.lease.lock_waited_since,
    )
    return with_attempt(run, attempt)


def with_attempt(run: Run, attempt: Attempt) -> Run:
    """Return a run without its lease and with one more finished attempt. Drop the middle ones of too many."""
    attempts = (*map(_drop_traceback, run.attempts), attempt)
    too_many = max(0, len(attempts) - FIRST_ATTEMPTS - LAST_ATTEMPTS)
    shown = attempts[:FIRST_ATTEMPTS] + attempts[FIRST_ATTEMPTS + too_many :]
    omitted = run.omitted_attempts + too_many
    ended = {"lease": None, "first_lease_at": None}
    return run.model_copy(update={"attempts": shown, "omitted_attempts": omitted, **ended})


def _drop_traceback(attempt: Attempt) -> Attempt:
    """Return an earlier attempt without its traceback, so that many of them fit one document."""
    if attempt.error is None or attempt.error.traceback is None:
        return attempt
    error = ExecutionError(
        type=attempt.error.type,
        message=truncate(attempt.error.message, MAX_EARLIER_MESSAGE),
    )
    return attempt.model_copy(update={"error": error})


def retry_or_finish(
    task: Task, run: Run, wait: timedelta, now: datetime, final: ExecutionStatus, **record_fields: Any
) -> Commit:
    """Return the run waiting `wait` for its next attempt, or ended as `final` if that was the last one."""
    # guard: last attempt
    if task.status not in FINAL_STATUSES and run.attempt - run.uncounted_attempts > task.retry.max_retries:
        return finish_run(task, run, final, now, **record_fields)
    return wait_for_retry(
        task,
        run.model_copy(update={"attempt": run.attempt + 1, "losses": 0, "due_at": add_duration(now, wait)}),
        now,
        **record_fields,
    )


def wait_for_retry(task: Task, run: Run, now: datetime, **record_fields: Any) -> Commit:
    """Return the run waiting for its next attempt, or cancelled if its task has ended and nothing would wake it."""
    if task.status in FINAL_STATUSES:  # guard: final task
        ended = {**record_fields, "message": f"The task is {task.status}."}
        return finish_run(task, run, ExecutionStatus.CANCELLED, now, **ended)
    record = execution_record(
        task,
        run,
        ExecutionStatus.RETRYING,
        now,
        next_attempt_at=run.due_at,
        **record_fields,
    )
    return Commit(with_changes(task, now, runs=task.runs_with(run)), executions=(record,))


def finish_run(task: Task, run: Run, status: ExecutionStatus, now: datetime, **record: Any) -> Commit:
    """End a run with its record, and decide what becomes of its task and of the occurrences that waited for it."""
    rest = drop_unstarted(task, run) if run.started_at is None else task
    rest = rest.model_copy(
        update={
            # guard: ended run
            "runs": tuple([each for each in task.runs if each.execution_id != run.execution_id]),
            **last_run_fields(task, run, status, now),
        }
    )
    passed: tuple[Execution, ...] = ()
    following = rest.next_execution_time
    if following is not None and following <= now:
        decision = decide_overlap_at_end(rest, run, now)
        if decision.decided:
            rest, passed = pass_over(rest, decision.decided, now, decision.kept)  # guard: overlap record
            rest = rest.model_copy(update={"next_execution_time": occurrence_from(rest, following)})

    failures = rest.consecutive_failures
    limit = task.pause_after_failures
    is_failing = limit and failures >= limit and says_how_task_is(task, run, status)
    if is_failing and task.is_active and not rest.is_one_time:
        why = f"Paused itself after {failures} failures in a row."
        stopped, missed = stop_plan(rest, now)
        passed = (*passed, *missed)
        ended = with_changes(
            stopped, now, status=TaskStatus.PAUSED, message=why, paused_by=None, revision=task.revision + 1
        )
        ended = with_entry(task, ended, Action.PAUSED, None, now, reason=why)
    else:
        ended = continue_or_complete(rest, now)
    return Commit(ended, executions=(execution_record(task, run, status, now, **record), *passed))
