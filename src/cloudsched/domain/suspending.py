"""Durable handlers between two calls of their function: what they wait for, and what lets them go on.

A suspended run has no lease and no function. It goes on at its `due_at`: the end of a sleep, a deadline, or at once
when the last of its calls has ended or one of its events has come. What could be lost on the way to it (the word of a
call whose process died, and whose dispatch the queue forgot) is found by the run itself, which looks again after as
long as it has waited already, and once a day at the least.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cloudsched.domain.execution import Run, Suspension
from cloudsched.domain.lifecycle import Step, moved
from cloudsched.domain.storable import require_storable
from cloudsched.domain.task import Event
from cloudsched.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from typing import Any

    from cloudsched.domain.journal import JournalEntry
    from cloudsched.domain.outcome import Suspend
    from cloudsched.domain.task import Task

SOONEST_LOOK = timedelta(minutes=1)
LATEST_LOOK = timedelta(days=1)
"""How long a run that waits for a call or an event waits before it looks by itself, at the least and at the most."""

MAX_EVENTS = 20
MAX_EVENT = 8 * 1024
"""How many events may wait for a task, and how many bytes one of them may have as JSON."""


def next_look(since: datetime, now: datetime) -> datetime:
    """Return when a run that has waited since then looks again, if nothing wakes it."""
    return now + min(max(now - since, SOONEST_LOOK), LATEST_LOOK)


def suspended(task: Task, run: Run, wish: Suspend, now: datetime) -> Run:
    """Return the run without its lease, waiting; for nothing if what it waits for has come meanwhile."""
    has_come = (run.is_nudged and bool(wish.calls)) or any(event.name in wish.events for event in task.events)
    return run.model_copy(
        update={
            "lease": None,
            "due_at": now if has_come else wish.until,
            "suspension": Suspension(at=now, reason=wish.reason, calls=wish.calls, events=wish.events),
            "resumption": run.resumption + 1,
            "forgiven": run.attempt - 1,
            "is_nudged": False,
        }
    )


def recorded(
    task: Task, execution_id: str, lease_token: str, entries: Sequence[JournalEntry], calls_made: int, now: datetime
) -> Step | None:
    """Keep what a handler did and renew its lease; None if the caller no longer holds it, or it has ended."""
    run = task.run(execution_id)
    if run is None or run.lease is None or run.lease.token != lease_token or run.lease.until <= now:
        return None
    lease = run.lease.model_copy(update={"until": now + task.expected_duration})
    size = max((entry.number for entry in entries), default=0)
    changed = run.model_copy(
        update={
            "lease": lease,
            "steps": max(run.steps, size),
            "calls_made": max(run.calls_made, calls_made),
        }
    )
    return Step(moved(task, now, runs=task.with_run(changed)), entries=tuple(entries))


def event_taken(step: Step, name: str, now: datetime) -> Step:
    """Return the step with the earliest event of that name taken off the task.

    Raises:
        LookupError: There is none.
    """
    at = next((place for place, event in enumerate(step.task.events) if event.name == name), None)
    if at is None:
        raise LookupError(name)
    rest = (*step.task.events[:at], *step.task.events[at + 1 :])
    return Step(moved(step.task, now, events=rest), step.executions, step.messages, step.entries)


def call_ended(task: Task, execution_id: str, number: int, still_running: Container[int], now: datetime) -> Step:
    """Tell a task that one of its calls has ended; what changes is that it may go on, if that was the last one."""
    run = task.run(execution_id)
    if run is None:
        return Step(task)
    if run.lease is not None:
        if run.is_nudged:
            return Step(task)
        return Step(moved(task, now, runs=task.with_run(run.model_copy(update={"is_nudged": True}))))
    awaited = run.suspension.calls if run.suspension else ()
    if number not in awaited or any(other in still_running for other in awaited) or run.due_at <= now:
        return Step(task)
    return Step(moved(task, now, runs=task.with_run(run.model_copy(update={"due_at": now}))))


def event_received(task: Task, name: str, payload: Any, now: datetime) -> Step:  # noqa: ANN401 - any JSON
    """Keep an event for the task's durable handler, and let a run that waits for it go on.

    Raises:
        InvalidInput: The name is no event's, or the payload is too large, or not JSON.
        NotAllowed: The task has ended, or too many events wait for it.
    """
    require_storable("payload", payload, MAX_EVENT)
    try:
        event = Event(name=name, payload=payload, at=now)
    except ValidationError as error:
        hint = "Up to 128 letters, digits, dots, hyphens and underscores."
        raise InvalidInput("event", f"is {name[:200]!r}", hint) from error
    if task.has_ended:
        raise NotAllowed("send an event to", task.status, "Its handler runs no more.")
    if len(task.events) >= MAX_EVENTS:
        raise NotAllowed("send an event to", f"full of {MAX_EVENTS} events", "Its handler has to take some first.")
    runs = tuple(
        run.model_copy(update={"due_at": min(run.due_at, now)})
        if run.lease is None and run.suspension and name in run.suspension.events
        else run
        for run in task.runs
    )
    return Step(moved(task, now, events=(*task.events, event), runs=runs))
