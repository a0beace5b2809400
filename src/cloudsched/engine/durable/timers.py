"""Time and change in a durable handler: instants that a replay repeats, sleeps that outlive the process, versions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import MAX_STEPS, StepKind, StepStatus
from cloudsched.domain.transitions.suspend import MIN_POLL_INTERVAL
from cloudsched.engine.durable.step_attempt import require_not_timed_out

if TYPE_CHECKING:
    from cloudsched.engine.durable.journal_cursor import JournalCursor


def record_now(cursor: JournalCursor) -> datetime:
    """Return the current time, the same in every replay; inside a step, whose result is recorded, just the time."""
    require_not_timed_out()
    if cursor.is_in_step or (cursor.position >= MAX_STEPS and not cursor.is_durable):
        return cursor.clock.now()
    number, entry = cursor.next_entry(StepKind.NOW, "")
    if entry is None:
        entry = cursor.put(cursor.new_entry(number, StepKind.NOW, ""), status=StepStatus.SUCCEEDED)
    return entry.started_at


def sleep_until(cursor: JournalCursor, until: Callable[[datetime], datetime]) -> None:
    """Suspend the handler until an instant that is computed once, from when the sleep started, and recorded."""
    number, entry = cursor.next_entry(StepKind.SLEEP, "")
    cursor.is_durable = True
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

    One that began with a later version than this code has waits for that code: another process may have it, or it was
    rolled back.
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
