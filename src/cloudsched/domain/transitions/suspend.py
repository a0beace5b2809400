"""Suspended durable handlers: what they wait for, and what resumes them.

A suspended run has no lease and no running function. It resumes at its `due_at`: the end of a sleep, a deadline, or at
once when the last of its calls has finished or one of its events has arrived. A notification can be lost (a call whose
process died, and whose dispatch the queue lost), so the run also polls: after as long as it has waited already, and at
least once a day.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cloudsched.domain.documents.execution import Run, Suspension
from cloudsched.domain.documents.json_limits import require_storable, stored_size, truncate
from cloudsched.domain.documents.task import EventName
from cloudsched.domain.transitions.growth import MAX_AWAITED_EVENTS_BYTES, MAX_EVENTS_BYTES
from cloudsched.domain.transitions.lifecycle import Transition, may_have_children, with_changes
from cloudsched.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.domain.transitions.outcome import Suspend

MIN_POLL_INTERVAL = timedelta(minutes=1)
MAX_POLL_INTERVAL = timedelta(days=1)
"""The shortest and the longest time between two polls of a run that waits for a call or an event."""

MAX_EVENTS = 20
MAX_EVENT_BYTES = 8 * 1024
"""How many events may wait for a task, and the size limit of one event's payload as JSON."""


_MAX_REASON = 2_000
"""How many bytes are stored of why a run is suspended."""

_EVENT_NAME: TypeAdapter[str] = TypeAdapter(EventName, config=ConfigDict(defer_build=True))


def next_poll(since: datetime, now: datetime) -> datetime:
    """Return when a run that has waited since then polls next, if nothing wakes it."""
    return now + min(max(now - since, MIN_POLL_INTERVAL), MAX_POLL_INTERVAL)


def on_suspend(task: Task, run: Run, outcome: Suspend, calls_in_progress: Container[int], now: datetime) -> Run:
    """Return the run without its lease, waiting; for nothing if what it waits for has already arrived."""
    has_event = any(
        event.is_for(name, run.execution_id, outcome.senders) for event in task.events for name in outcome.events
    )
    calls_finished = (
        run.call_finished_while_running
        and bool(outcome.calls)
        and (outcome.any_call or not any(call in calls_in_progress for call in outcome.calls))
    )
    has_room = run.call_finished_while_running and outcome.quota_refusal is not None
    is_ready = calls_finished or has_event or has_room
    return run.model_copy(
        update={
            "lease": None,  # guard: suspended lease
            "due_at": now if is_ready else outcome.until,
            "suspension": Suspension(
                at=now,
                reason=truncate(outcome.reason, _MAX_REASON),
                calls=outcome.calls,
                any_call=outcome.any_call or None,
                events=outcome.events,
                senders=outcome.senders,
                quota_refusal=outcome.quota_refusal,
                deadline=outcome.deadline,
            ),
            "suspension_count": run.suspension_count + 1,
            "attempts_before_suspension": run.attempt - 1,
            "call_finished_while_running": False,
        }
    )


def on_journal_append(
    task: Task, execution_id: str, token_hash: str, entries: Sequence[JournalEntry], calls_made: int, now: datetime
) -> Transition | None:
    """Record journal entries and renew the lease; None if the caller does not hold the lease, or it has lapsed."""
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
    updated = with_changes(task, now, runs=task.runs_with(changed), has_children=may_have_children(task, entries))
    return Transition(updated, entries=tuple(entries))


def can_still_call(task: Task, now: datetime) -> bool:
    """Return whether a running handler could still make calls if its task were cancelled or deleted now."""
    return any(run.lease is not None and run.lease.until > now and run.steps > 0 for run in task.runs)


def consume_event(transition: Transition, event: Event, now: datetime) -> Transition:
    """Return the transition with this event removed from the task; other events of the same name stay.

    Raises:
        LookupError: The event is no longer there.
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
    """Record that a call has finished; the run becomes due if it awaited that call and no other, or any call."""
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
    any_call = run.suspension is not None and bool(run.suspension.any_call)
    is_last = number in awaited and (any_call or not any(other in calls_in_progress for other in awaited))
    makes_room = run.suspension is not None and run.suspension.quota_refusal is not None
    if not (is_last or makes_room) or run.due_at <= now:
        return Transition(task)
    return Transition(with_changes(task, now, runs=task.runs_with(run.model_copy(update={"due_at": now}))))


def parse_event_name(name: object) -> str:
    """Validate the name of an event.

    Raises:
        InvalidInput: It is not a valid name.
    """
    try:
        return _EVENT_NAME.validate_python(name, strict=True)
    except ValidationError as error:
        hint = "Up to 128 letters, digits, dots, hyphens and underscores."
        raise InvalidInput("event", f"is {repr(name)[:200]}", hint) from error


def on_event(task: Task, event: Event, now: datetime) -> Transition:
    """Store an event for the task's durable handler, and make a run that waits for it due.

    An event whose `token` was seen before changes nothing. An event that a run waits for is accepted above the limit.

    Raises:
        InvalidInput: Its payload is too large, or not JSON.
        NotAllowed: The task or the execution that it is for has ended, or too many or too large events wait for the
            task.
    """
    if event.token in task.recent_event_tokens:
        return Transition(task)
    require_storable("payload", event.payload, MAX_EVENT_BYTES)
    waiting = require_event_room(task, event)
    runs = tuple(
        run.model_copy(update={"due_at": min(run.due_at, now)}) if run in waiting else run for run in task.runs
    )
    tokens = (*task.recent_event_tokens, event.token)[-MAX_EVENTS:]
    return Transition(with_changes(task, now, events=(*task.events, event), recent_event_tokens=tokens, runs=runs))


def require_event_room(task: Task, event: Event) -> list[Run]:
    """Check that a task takes an event, and return the runs that wait for it.

    Raises:
        NotAllowed: As `on_event`.
    """
    if task.has_ended:
        raise NotAllowed("send an event to", task.status, "Its handler will not run again.")
    if event.execution_id is not None and task.find_run(event.execution_id) is None:
        hint = "Name an open execution, or none: then the first execution that waits for it takes it."
        raise NotAllowed("send an event to", f"without an open execution {event.execution_id!r}", hint)
    waiting = [run for run in task.runs if _is_waiting_for(run, event)]
    is_wanted = any(not _has_event(task, run, event.name) for run in waiting)
    if len(task.events) >= MAX_EVENTS and not is_wanted:
        hint = "Its handler must take some first; an event that it is waiting for is always accepted."
        raise NotAllowed("send an event to", f"full of {MAX_EVENTS} events", hint)
    waiting_bytes = sum(stored_size(each.payload) for each in (*task.events, event))
    if waiting_bytes > (MAX_AWAITED_EVENTS_BYTES if is_wanted else MAX_EVENTS_BYTES):
        hint = "Its handler must take some first. Store large data elsewhere and send a reference to it."
        raise NotAllowed("send an event to", f"full of {waiting_bytes} bytes of events", hint)
    return waiting


def _is_waiting_for(run: Run, event: Event) -> bool:
    if run.lease is not None or run.suspension is None:
        return False
    return any(event.is_for(name, run.execution_id, run.suspension.senders) for name in run.suspension.events)


def _has_event(task: Task, run: Run, name: str) -> bool:
    senders = run.suspension.senders if run.suspension else ()
    return any(event.is_for(name, run.execution_id, senders) for event in task.events)
