"""Durable handlers between two calls of their function: what they wait for, and what lets them go on.

A suspended run has no lease and no function. It goes on at its `due_at`: the end of a sleep, a deadline, or at once
when the last of its calls has ended or one of its events has come. What could be lost on the way to it (the word of a
call whose process died, and whose dispatch the queue forgot) is found by the run itself, which looks again after as
long as it has waited already, and once a day at the least.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from cloudsched.domain.documents.execution import Run, Suspension
from cloudsched.domain.documents.json_limits import require_storable
from cloudsched.domain.documents.task import EventName
from cloudsched.domain.transitions.lifecycle import Transition, may_have_children, with_changes
from cloudsched.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.outcome import Suspend
    from cloudsched.domain.documents.task import Event, Task

MIN_POLL_INTERVAL = timedelta(minutes=1)
MAX_POLL_INTERVAL = timedelta(days=1)
"""How long a run that waits for a call or an event waits before it looks by itself, at the least and at the most."""

MAX_EVENTS = 20
MAX_EVENT_BYTES = 8 * 1024
"""How many events may wait for a task, and how many bytes one of them may have as JSON."""


_EVENT_NAME: TypeAdapter[str] = TypeAdapter(EventName)


def next_poll(since: datetime, now: datetime) -> datetime:
    """Return when a run that has waited since then looks again, if nothing wakes it."""
    return now + min(max(now - since, MIN_POLL_INTERVAL), MAX_POLL_INTERVAL)


def on_suspend(task: Task, run: Run, outcome: Suspend, calls_in_progress: Container[int], now: datetime) -> Run:
    """Return the run without its lease, waiting; for nothing if what it waits for has come meanwhile."""
    is_told = any(
        event.is_for(name, run.execution_id, outcome.senders) for event in task.events for name in outcome.events
    )
    have_ended = (
        run.call_finished_while_running
        and bool(outcome.calls)
        and not any(call in calls_in_progress for call in outcome.calls)
    )
    has_come = have_ended or is_told
    return run.model_copy(
        update={
            "lease": None,
            "due_at": now if has_come else outcome.until,
            "suspension": Suspension(
                at=now, reason=outcome.reason, calls=outcome.calls, events=outcome.events, senders=outcome.senders
            ),
            "suspension_count": run.suspension_count + 1,
            "attempts_before_suspension": run.attempt - 1,
            "call_finished_while_running": False,
        }
    )


def on_journal_append(
    task: Task, execution_id: str, token_hash: str, entries: Sequence[JournalEntry], calls_made: int, now: datetime
) -> Transition | None:
    """Keep what a handler did and renew its lease; None if the caller no longer holds it, or it has ended."""
    run = task.find_run(execution_id)
    if run is None or run.lease is None or run.lease.token_hash != token_hash or run.lease.until <= now:
        return None
    lease = run.lease.model_copy(update={"until": max(run.lease.until, now + task.expected_duration)})
    size = max((entry.number for entry in entries), default=0)
    changed = run.model_copy(
        update={
            "lease": lease,
            "steps": max(run.steps, size),
            "calls_made": max(run.calls_made, calls_made),
        }
    )
    going_on = with_changes(task, now, runs=task.runs_with(changed), has_children=may_have_children(task, entries))
    return Transition(going_on, entries=tuple(entries))


def can_still_call(task: Task, now: datetime) -> bool:
    """Whether a handler is at work that may make a call yet, if its task is cancelled or deleted at this moment."""
    return any(run.lease is not None and run.lease.until > now and run.steps > 0 for run in task.runs)


def consume_event(transition: Transition, event: Event, now: datetime) -> Transition:
    """Return the step with this very event taken off the task, and no other one of its name.

    Raises:
        LookupError: It is not there any more.
    """
    if event not in transition.task.events:
        raise LookupError(event.name)
    at = transition.task.events.index(event)
    rest = (*transition.task.events[:at], *transition.task.events[at + 1 :])
    return Transition(
        with_changes(transition.task, now, events=rest), transition.executions, transition.messages, transition.entries
    )


def on_call_finished(
    task: Task, execution_id: str, number: int, calls_in_progress: Container[int], now: datetime
) -> Transition:
    """Tell a task that one of its calls has ended; what changes is that it may go on, if that was the last one."""
    run = task.find_run(execution_id)
    if run is None:
        return Transition(task)
    if run.lease is not None:
        if run.call_finished_while_running:
            return Transition(task)
        return Transition(
            with_changes(task, now, runs=task.runs_with(run.model_copy(update={"call_finished_while_running": True})))
        )
    awaited = run.suspension.calls if run.suspension else ()
    if number not in awaited or any(other in calls_in_progress for other in awaited) or run.due_at <= now:
        return Transition(task)
    return Transition(with_changes(task, now, runs=task.runs_with(run.model_copy(update={"due_at": now}))))


def parse_event_name(name: object) -> str:
    """Return the name of an event.

    Raises:
        InvalidInput: No event has such a name.
    """
    try:
        return _EVENT_NAME.validate_python(name, strict=True)
    except ValidationError as error:
        hint = "Up to 128 letters, digits, dots, hyphens and underscores."
        raise InvalidInput("event", f"is {repr(name)[:200]}", hint) from error


def on_event(task: Task, event: Event, now: datetime) -> Transition:
    """Keep an event for the task's durable handler, and let a run that waits for it go on.

    One whose `token` was heard before changes nothing. One that somebody waits for is never too many.

    Raises:
        InvalidInput: Its payload is too large, or not JSON.
        NotAllowed: The task or the execution that it is for has ended, or too many events wait for the task.
    """
    if event.token in task.recent_event_tokens:
        return Transition(task)
    require_storable("payload", event.payload, MAX_EVENT_BYTES)
    if task.has_ended:
        raise NotAllowed("send an event to", task.status, "Its handler runs no more.")
    if event.execution_id is not None and task.find_run(event.execution_id) is None:
        hint = "Name one that has begun and has not ended, or none: then the first that asks takes it."
        raise NotAllowed("send an event to", f"without an open execution {event.execution_id!r}", hint)
    waiting = [run for run in task.runs if _is_waiting_for(run, event)]
    is_wanted = any(not _has_event(task, run, event.name) for run in waiting)
    if len(task.events) >= MAX_EVENTS and not is_wanted:
        hint = "Its handler has to take some first; what it waits for at the moment is always taken."
        raise NotAllowed("send an event to", f"full of {MAX_EVENTS} events", hint)
    runs = tuple(
        run.model_copy(update={"due_at": min(run.due_at, now)}) if run in waiting else run for run in task.runs
    )
    heard = (*task.recent_event_tokens, event.token)[-MAX_EVENTS:]
    return Transition(with_changes(task, now, events=(*task.events, event), recent_event_tokens=heard, runs=runs))


def _is_waiting_for(run: Run, event: Event) -> bool:
    if run.lease is not None or run.suspension is None:
        return False
    return any(event.is_for(name, run.execution_id, run.suspension.senders) for name in run.suspension.events)


def _has_event(task: Task, run: Run, name: str) -> bool:
    senders = run.suspension.senders if run.suspension else ()
    return any(event.is_for(name, run.execution_id, senders) for event in task.events)
