"""Time, events and versions in a durable handler: recorded for replays. Waits outlive the process.

The end of a wait for an event, with or without it, is a single commit with its record.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.journal import MAX_STEPS, AskedWords, JournalEntry, StepKind, StepStatus
from cloudsched.domain.transitions.suspend import MIN_POLL_INTERVAL, consume_event, give_up_event, next_poll
from cloudsched.engine.durable.arguments import deadline
from cloudsched.engine.durable.step_attempt import require_not_timed_out
from cloudsched.engine.durable.suspension import Suspended
from cloudsched.errors import EventTimedOut, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.documents.event import Event
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.engine.durable.journal_cursor import JournalCursor


def wait_for_event(
    cursor: JournalCursor,
    name: str,
    timeout: timedelta | None,
    senders: tuple[str, ...],
    question: str | None,
    channels: tuple[DeliveryChannel, ...] = (),
) -> tuple[Any, EventSender | None]:
    """Return the payload and the sender of the earliest event of that name from one of `senders`."""
    number, entry = cursor.next_entry(StepKind.EVENT, name)
    cursor.require_replayable()
    if entry is None:
        entry = cursor.new_entry(number, StepKind.EVENT, name)
        entry = cursor.put(entry, due_at=_wait_deadline(timeout, entry), asked=AskedWords(text=question, by=senders))
    cursor.require_same(number, entry.description, entry.due_at, _wait_deadline(timeout, entry))
    cursor.require_same(number, entry.description, entry.asked, AskedWords(text=question, by=senders), always=True)
    if entry.status is StepStatus.WAITING:
        entry = _wait_for_event(cursor, entry, senders, question, channels)

    if entry.status is StepStatus.TIMED_OUT:
        raise cursor.note_failure(EventTimedOut(name))
    return cursor.results.read(entry), entry.sender


def _wait_for_event(
    cursor: JournalCursor,
    entry: JournalEntry,
    senders: tuple[str, ...],
    question: str | None,
    channels: tuple[DeliveryChannel, ...],
) -> JournalEntry:
    while True:
        now = cursor.clock.now()
        event = _find_event(cursor, entry.name, senders)
        if event is not None:
            changes = {"status": StepStatus.SUCCEEDED, "result": event.payload, "sender": event.sender}
            end_wait = partial(consume_event, event, cursor.execution_id)
        elif entry.due_at is not None and entry.due_at <= now:
            changes = {"status": StepStatus.TIMED_OUT}
            end_wait = partial(give_up_event, entry.name, senders, cursor.execution_id)
        else:
            break
        ended = _end_wait(cursor, entry, {**changes, "finished_at": now}, end_wait)
        if ended is not None:
            return ended

    poll_at = next_poll(entry.started_at, now)
    if entry.due_at is None:
        until = poll_at
    else:
        until = min(poll_at, entry.due_at)

    what = f"has asked for the event {entry.name!r}"
    names = (entry.name,)
    return cursor.suspend(
        what,
        until,
        events=names,
        senders=senders,
        question=question,
        asked_at=entry.started_at,
        channels=channels,
        deadline=entry.due_at,
    )


def _find_event(cursor: JournalCursor, name: str, senders: tuple[str, ...]) -> Event | None:
    events = cursor.attempt.task.events
    return next((each for each in events if each.is_for(name, cursor.execution_id, senders)), None)


def _end_wait(
    cursor: JournalCursor, entry: JournalEntry, changes: dict[str, Any], end_wait: Callable[[Commit], Commit]
) -> JournalEntry | None:
    """Record how a wait has ended, in one commit with that.

    Return None if its task's events have changed meanwhile.

    An event that was accepted before the commit counts, also if its time is over by now. Afterwards, none is
    accepted.
    """
    ended = cursor.put(entry, **changes)
    try:
        cursor.commit(end_wait)
    except LookupError:  # by this commit, whose first response was lost, or by another run or a sender
        stored = {each.number: each for each in cursor.surroundings.load()}.get(entry.number)
        if stored is not None and stored.status is not StepStatus.WAITING:
            cursor.pending.clear()
            return stored
        cursor.put(entry)
        return None
    except (Unavailable, Suspended):
        if cursor.pending.pop(entry.number, None):  # the next replay reads how it has ended
            cursor.is_complete = False
        raise
    return ended


def _wait_deadline(timeout: timedelta | None, entry: JournalEntry) -> datetime | None:
    if timeout is None:
        return None
    return deadline(timeout, entry.started_at)


def record_now(cursor: JournalCursor) -> datetime:
    """Return the current time, the same in every replay. Inside a step, just read the clock."""
    require_not_timed_out()
    if cursor.is_in_step or (cursor.position >= MAX_STEPS and not cursor.is_durable):
        return cursor.clock.now()
    number, entry = cursor.next_entry(StepKind.NOW, "")
    if entry is None:
        entry = cursor.put(cursor.new_entry(number, StepKind.NOW, ""), status=StepStatus.SUCCEEDED)
    return entry.started_at


def sleep_until(cursor: JournalCursor, until: Callable[[datetime], datetime]) -> None:
    """Suspend the handler until an instant, which is computed once, when the sleep starts, and recorded."""
    number, entry = cursor.next_entry(StepKind.SLEEP, "")
    cursor.require_replayable()
    if entry is None:
        new_entry = cursor.new_entry(number, StepKind.SLEEP, "")
        entry = cursor.put(new_entry, due_at=until(new_entry.started_at))
    cursor.require_same(number, "sleep", entry.due_at, until(entry.started_at))
    if entry.status is StepStatus.WAITING and entry.due_at is not None:
        if entry.due_at > cursor.clock.now():
            cursor.suspend(f"sleeps until {entry.due_at.isoformat()}", entry.due_at)
        cursor.put(entry, status=StepStatus.SUCCEEDED, finished_at=cursor.clock.now())


def choose_version(cursor: JournalCursor, name: str, newest: int) -> int:
    """Return which version of the code this execution follows.

    One that began with a later version than this code has waits for that code: another process may have it,
    or it was rolled back.
    """
    cursor.require_may_record(StepKind.VERSION, name)
    if name not in cursor.versions:
        recorded = cursor.journal.get(cursor.position + 1)
        if recorded is None or (recorded.kind, recorded.name) == (StepKind.VERSION, name):
            number, entry = cursor.next_entry(StepKind.VERSION, name)
            if entry is None:
                new_entry = cursor.new_entry(number, StepKind.VERSION, name)
                entry = cursor.put(new_entry, status=StepStatus.SUCCEEDED, result=newest)
            if entry.result > newest:
                reason = f"waits for code with version {entry.result} of {name!r}, with which it began"
                cursor.suspend(f"{reason}: this process has {newest}", cursor.clock.now() + MIN_POLL_INTERVAL)
            cursor.versions[name] = entry.result
        else:
            cursor.versions[name] = 1
    return cursor.versions[name]
