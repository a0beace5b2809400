"""Suspended durable handlers: the calls and events that they wait for, and the ways in which they resume.

A suspended run has no lease and no running function. It resumes at its `due_at`: the end of a sleep, a
deadline, or at once when the last of its calls has finished or one of its events has arrived. A
notification can be lost (a call whose process died, and whose dispatch the queue lost), so the run also
polls: after as long as it has waited already, and at least once a day.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cloudsched.domain.documents.authority import SenderRole, list_people
from cloudsched.domain.documents.event import Event, EventName
from cloudsched.domain.documents.execution import ExecutionStatus, Message, Run, Suspension
from cloudsched.domain.documents.json_limits import require_storable, stored_size, truncate
from cloudsched.domain.documents.task import RecentRequest, Task
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.lease import renew_lease
from cloudsched.domain.transitions.lifecycle import may_have_children, with_changes
from cloudsched.domain.transitions.run_records import (
    MAX_AWAITED_EVENTS_BYTES,
    MAX_EVENTS_BYTES,
    MAX_RECENT,
    MAX_SIDE_EVENTS_BYTES,
    expiry_after,
)
from cloudsched.errors import AwaitedEvent, InvalidInput, NotAllowed, NotAwaited

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.transitions.outcome import Suspend

MIN_POLL_INTERVAL = timedelta(minutes=1)
MAX_POLL_INTERVAL = timedelta(days=1)
"""The shortest and the longest time between two polls of a run that waits for a call or an event."""

MAX_EVENTS = 20
MAX_EVENT_BYTES = 8 * 1024
"""The number of each side's events that may wait for a task, and the size limit of an event's payload."""

MAX_TITLE = 200
"""The most bytes of the title of a question. Its body has the whole."""
_MAX_REASON = 2_000
"""The most bytes that are stored of the reason for a suspension."""

_EVENT_NAME: TypeAdapter[str] = TypeAdapter(EventName, config=ConfigDict(defer_build=True))


def next_poll(since: datetime, now: datetime) -> datetime:
    """Return when a run that has waited since then polls next, if nothing wakes it."""
    return now + min(max(now - since, MIN_POLL_INTERVAL), MAX_POLL_INTERVAL)


def on_suspend(
    task: Task,
    run: Run,
    outcome: Suspend,
    calls_in_progress: Container[int],
    now: datetime,
) -> Run:
    """Return the run without its lease, waiting, or due at once if its call or event has arrived."""
    has_event = task.has_event(run.execution_id, outcome.events, outcome.senders)
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
                question=outcome.question,
                asked_at=outcome.asked_at,
                channels=outcome.channels,
                quota_refusal=outcome.quota_refusal,
                deadline=outcome.deadline,
            ),
            "resumed_from": run.resumed_from if outcome.is_interrupted else None,
            "suspension_count": run.suspension_count + 1,
            "uncounted_attempts": run.attempt - 1,
            "call_finished_while_running": False,
        }
    )


def make_questions(task: Task, run: Run, outcome: Suspend, now: datetime) -> tuple[Message, ...]:
    """Return the messages for the users whom a run begins to ask by name, each with what the answer needs."""
    earlier = run.resumed_from
    if earlier is not None and (earlier.events, earlier.senders) == (outcome.events, outcome.senders):
        return ()  # it has only looked whether they have answered
    return tuple(
        Message(
            id=f"{task.id}-{run.execution_id}-asks-{run.steps}",
            owner=person,
            task_id=task.id,
            execution_id=run.execution_id,
            title=truncate(outcome.question or f"Your answer is awaited: {event}", MAX_TITLE),
            body=outcome.question or "",
            event=event,
            until=outcome.deadline,
            created_at=outcome.asked_at or now,
            expire_at=expiry_after(outcome.deadline or now, task.execution_retention),
        )
        for person in list_people(outcome.senders)
        for event in outcome.events
    )


def on_journal_append(
    task: Task,
    execution_id: str,
    token_hash: str,
    entries: Sequence[JournalEntry],
    calls_made: int,
    now: datetime,
) -> Commit | None:
    """Record journal entries and renew the lease.

    Return None if the caller does not hold it, or it has lapsed.
    """
    run = renew_lease(task, execution_id, token_hash, now)
    if run is None:
        return None
    size = max((entry.number for entry in entries), default=0)
    changes = {"steps": max(run.steps, size), "calls_made": max(run.calls_made, calls_made)}
    if entries:
        changes["losses"] = 0
    updated = with_changes(
        task,
        now,
        runs=task.runs_with(run.model_copy(update=changes)),
        has_children=may_have_children(task, entries),
    )
    return Commit(updated, entries=tuple(entries))  # guard: journal entries


def consume_event(event: Event, execution_id: str, transition: Commit) -> Commit:
    """Return the transition with this event taken by an execution. Other events of the same name stay.

    From then on a user is an author of the execution, if a user has sent it. Raises LookupError if it is
    gone.
    """
    events = transition.task.events
    if event not in events:
        raise LookupError(event.name)
    at = events.index(event)
    author = {}
    if event.sender.author is not None:
        author["defined_by"] = event.sender.author
    return _end_wait(transition, execution_id, author, events=(*events[:at], *events[at + 1 :]))


def give_up_event(name: str, senders: Container[str], execution_id: str, transition: Commit) -> Commit:
    """End an execution's wait for an event: none that comes later is accepted.

    Raises LookupError if one was accepted before.
    """
    if any(event.is_for(name, execution_id, senders) for event in transition.task.events):
        raise LookupError(name)
    return _end_wait(transition, execution_id, {})


def _end_wait(transition: Commit, execution_id: str, of_run: dict[str, Any], **changes: Any) -> Commit:
    task = transition.task
    run = task.find_run(execution_id)
    if run is not None:
        changes["runs"] = task.runs_with(run.model_copy(update={"resumed_from": None, **of_run}))
    return transition.having(task=with_changes(task, task.updated_at, **changes))


def on_call_finished(
    task: Task, execution_id: str, number: int, calls_in_progress: Container[int], now: datetime
) -> Commit:
    """Record that a call has finished.

    The run becomes due if it awaited that call and no other, or any call.
    """
    run = task.find_run(execution_id)
    if run is None:
        return Commit(task)
    if run.lease is not None:
        if run.call_finished_while_running:
            return Commit(task)
        noted = run.model_copy(update={"call_finished_while_running": True})
        return Commit(with_changes(task, now, runs=task.runs_with(noted)))

    wait = run.suspension
    if wait is None or run.due_at <= now:
        return Commit(task)
    is_last = wait.any_call or not any(other in calls_in_progress for other in wait.calls)
    if wait.quota_refusal is None and not (number in wait.calls and is_last):
        return Commit(task)
    return Commit(with_changes(task, now, runs=task.runs_with(run.model_copy(update={"due_at": now}))))


def parse_event_name(name: object) -> str:
    """Validate the name of an event."""
    try:
        return _EVENT_NAME.validate_python(name, strict=True)
    except ValidationError:
        hint = "Up to 128 letters, digits, dots, hyphens and underscores."
        raise InvalidInput("event", f"is {repr(name)[:200]}", hint) from None


def is_asked(task: Task, event: Event) -> bool:
    """Return whether an execution asks the sender of an event for it by name, or has been sent it already."""
    person = event.sender.person
    if person is None:
        return False
    waits = [run.wait_for_event for run in task.runs if event.execution_id in {None, run.execution_id}]
    is_named = any(wait is not None and event.name in wait.events and person in wait.senders for wait in waits)
    return is_named or (event.sender.role is SenderRole.PERSON and _is_repeated(task, event))


def on_event(
    task: Task,
    event: Event,
    now: datetime,
    *,
    early: bool = False,
    is_for_any: bool = False,
) -> Commit:
    """Store an event for the execution that waits for it, and make that due.

    It belongs to that execution, and ends with it. An event that the execution has been sent already
    changes nothing, as a second click. With `early`, it is kept when none waits for it: for the open
    execution, or for the next one. With `is_for_any`, its sender means whichever execution is open when
    it comes. Raises NotAwaited if no execution waits for it, or if it names none and several may be
    meant.
    """
    require_storable("payload", event.payload, MAX_EVENT_BYTES)
    run = find_addressee(task, event, now, early=early)
    if isinstance(run, Repeated):
        return Commit(task)
    if event.execution_id is None and not is_for_any and _has_other_runs(task, run):
        raise NotAwaited(event.name, list_awaited(task, now), _NAME_ONE)
    if run is None:
        require_event_room(task, event, is_wanted=False)
        return Commit(with_changes(task, now, events=(*task.events, event)))

    bound = event.model_copy(update={"execution_id": run.execution_id})
    is_wanted = _waits_for(run, event, now) and not _has_event(task, run, event.name)
    require_event_room(task, bound, is_wanted=is_wanted)
    runs = task.runs
    if is_wanted and run.lease is None:
        runs = task.runs_with(run.model_copy(update={"due_at": min(run.due_at, now)}))
    marks = task.requests_with(RecentRequest.of_event(event, run.execution_id))
    return Commit(with_changes(task, now, runs=runs, events=(*task.events, bound), recent_requests=marks))


class Repeated:
    """An event is a repetition of one that its execution has been sent."""


def find_addressee(task: Task, event: Event, now: datetime, *, early: bool = False) -> Run | Repeated | None:
    """Return the execution that an event is for, or None if it is for the next one.

    Raises NotAwaited as `on_event` does.
    """
    only = event.execution_id
    named = [run for run in task.runs if only in {None, run.execution_id}]
    waiting = [run for run in named if _waits_for(run, event, now) and not _has_event(task, run, event.name)]
    if len(waiting) == 1:
        return waiting[0]
    if not waiting and _is_repeated(task, event):
        return Repeated()
    if not waiting and early and not task.has_ended and (only is None or named):
        if len(named) <= 1:
            return next(iter(named), None)
        waiting = named
    raise NotAwaited(event.name, list_awaited(task, now), _explain_refusal(task, event, len(waiting), now))


_NAME_ONE: Final = "Its task has, or had, more than one execution: name the one that is answered (executionId)."


def _has_other_runs(task: Task, run: Run | None) -> bool:
    """Return whether a task has had another execution, which an event's sender may mean."""
    own = None if run is None else run.execution_id
    if any(each.execution_id != own for each in task.runs) or task.last_execution_id not in {None, own}:
        return True
    is_again = task.last_execution_id is not None  # the last of its executions has been retried
    ended = [each for each in task.recent_outcomes if each not in {ExecutionStatus.SKIPPED, ExecutionStatus.EXPIRED}]
    return is_again and (len(ended) > 1 or len(task.recent_outcomes) >= MAX_RECENT)


def _explain_refusal(task: Task, event: Event, count: int, now: datetime) -> str:
    if count > 1:
        return f"{count} executions may be meant: name one (executionId)."
    if task.has_ended:
        return f"The task is {task.status}: its handler will not run again."
    if event.execution_id is not None and task.find_run(event.execution_id) is None:
        return f"There is no open execution {event.execution_id!r}."
    if any(_has_event(task, run, event.name) for run in task.runs):
        return "It has been answered already."
    asked = [each for each in list_awaited(task, now) if each.name == event.name]
    if asked:
        others = " and ".join(sorted({sender for each in asked for sender in each.by}))
        sender = event.sender
        known = sender.person or sender.subject or "the code of the app"
        return f"It is awaited from {others}, and this one's sender is {sender.role}, as {known}."
    return ""


def list_awaited(task: Task, now: datetime) -> list[AwaitedEvent]:
    """Return the events for which executions of a task wait, and that have not come yet."""
    found = []
    for run in task.runs:
        wait = run.wait_for_event
        if wait is not None and (wait.deadline is None or wait.deadline > now):
            names = (name for name in wait.events if not _has_event(task, run, name))
            found += [AwaitedEvent(name, run.execution_id, wait.deadline, wait.senders) for name in names]
    return found


def find_wait(task: Task, message: Message) -> Suspension | None:
    """Return the wait of an execution that a message asks about, if it still is the present one."""
    run = task.find_run(message.execution_id)
    wait = None if run is None else run.wait_for_event
    if wait is None or wait.asked_at != message.created_at or message.event not in wait.events:
        return None
    return wait


def is_awaited(stored: VersionedTask | None, message: Message, now: datetime) -> bool:
    """Return whether what a message asks for can still be answered."""
    if stored is None or find_wait(stored.task, message) is None:
        return False
    asked = (message.event, message.execution_id)
    return asked in [(each.name, each.execution_id) for each in list_awaited(stored.task, now)]


def require_event_room(task: Task, *events: Event, is_wanted: bool, action: str = "send an event to") -> None:
    """Check that a task has room for events. There is more for those that an execution waits for.

    No side can take all of the room.
    """
    sides = {each.sender.side for each in events}
    beside = [each for each in (*task.events, *events) if each.sender.side in sides]
    if len(beside) > MAX_EVENTS and not is_wanted:
        hint = "Its handler must take some first; an event that it is waiting for is always accepted."
        raise NotAllowed(action, f"full of {MAX_EVENTS} events", hint)
    waiting_bytes = sum(stored_size(each.payload) for each in (*task.events, *events))
    is_full = waiting_bytes > (MAX_AWAITED_EVENTS_BYTES if is_wanted else MAX_EVENTS_BYTES)
    own_bytes = sum(stored_size(each.payload) for each in beside)
    if is_full or (own_bytes > MAX_SIDE_EVENTS_BYTES and not is_wanted):
        hint = "Its handler must take some first. Store large data elsewhere and send a reference to it."
        raise NotAllowed(action, f"full of {waiting_bytes} bytes of events", hint)


def _waits_for(run: Run, event: Event, now: datetime) -> bool:
    wait = run.wait_for_event
    if wait is None or (wait.deadline is not None and wait.deadline <= now):
        return False
    return any(event.is_for(name, run.execution_id, wait.senders) for name in wait.events)


def _has_event(task: Task, run: Run, name: str) -> bool:
    senders = run.wait_for_event.senders if run.wait_for_event else ()
    return any(event.is_for(name, run.execution_id, senders) for event in task.events)


def _is_repeated(task: Task, event: Event) -> bool:
    """Return whether the same event was sent to an open execution, or if none is open, to the latest one."""
    answered = {each.key.partition(" ")[0] for each in task.recent_requests if each.key.endswith(event.mark(""))}
    if event.execution_id is not None:
        return event.execution_id in answered
    if not task.runs:
        waits_for_next = any(each.mark("") == event.mark("") for each in task.events)
        return waits_for_next or task.last_execution_id in answered
    return any(run.execution_id in answered for run in task.runs)
