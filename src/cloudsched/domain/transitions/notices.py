"""What the end of a run says to its owner. All channels and the inbox follow from what is found here.

A success says its handler's notices, or else its result. One that says nothing is not delivered: there is
neither a notice with a text, nor a result with a value. No channel has anything to add to that.

A failure is told like a notice, in the inbox and by the task's channels, as `tellFailures` says: the
first of a row, and that it works again. Whoever waits for a call gets its failure instead, and a failed
delivery is told in the record of what it delivers. Nobody reads the inbox of the owner `system`, so its
tasks tell only the channels that they name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.execution import (
    FAILURE_STATUSES,
    Execution,
    ExecutionStatus,
    Message,
    Run,
    Trigger,
)
from cloudsched.domain.documents.json_limits import truncate
from cloudsched.domain.documents.policy import TellFailures
from cloudsched.domain.documents.run_counts import LATE
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.in_words import say_clock
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.planning import jittered_start
from cloudsched.domain.transitions.run_records import derive_message_id, expiry_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.transitions.outcome import Done

MAX_BODY: Final = 100_000
"""The most bytes of text of one message that a result becomes. The whole result is in its execution."""


_LATENESS_UNITS: Final = (
    ("days", timedelta(days=1)),
    ("hours", timedelta(hours=1)),
    ("minutes", timedelta(minutes=1)),
)


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message for the owner's inbox, sent when the attempt ends."""

    title: str
    body: str


def says_nothing(content: object) -> bool:
    """Return whether a result holds no value: null, a blank text, or lists and objects of nothing else.

    0 and False are values. The result of children that all said nothing is a list of nulls.
    """
    match content:
        case None:
            return True
        case str():
            return not content.strip()
        case dict():
            return all(map(says_nothing, content.values()))
        case list():
            return all(map(says_nothing, content))
        case _:
            return False


def find_spoken(notices: Sequence[InboxMessage]) -> tuple[InboxMessage, ...]:
    """Return those of a handler's notices that have a text."""
    return tuple(each for each in notices if each.title.strip() or each.body.strip())


def find_said(task: Task, done: Done, notices: Sequence[InboxMessage]) -> tuple[InboxMessage, ...]:
    """Return what a success says: its handler's notices, or else its result as a message, or nothing."""
    spoken = find_spoken(notices)
    if spoken or done.silent or says_nothing(done.content):
        return spoken
    text = done.content
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, indent=2)
    return (InboxMessage(task.delivery_title or task.title, truncate(text, MAX_BODY)),)


def find_untold(before: Task, after: Task, ended: Sequence[Execution]) -> tuple[Execution, ...]:
    """Return which of the executions that a commit ends its owner is to be told of, as failures.

    A one-time task that did not run at all has failed them, too. The first of a row is told, again once
    somebody has resumed or rescheduled the task, and the one after which it pauses itself.
    """
    policy = after.tell_failures
    is_missed = after.status is TaskStatus.EXPIRED
    failed = tuple(
        each
        for each in ended
        if each.status in {*FAILURE_STATUSES, ExecutionStatus.EXPIRED}
        or (is_missed and each.status is ExecutionStatus.SKIPPED and not each.is_left_out)
    )
    has_nobody = not has_inbox(after) and not after.delivery_channels
    is_elsewhere = after.parent is not None or after.deleted_at is not None or after.status is TaskStatus.CANCELLED
    if not failed or policy is TellFailures.NEVER or has_nobody or is_elsewhere:
        return ()
    if policy is TellFailures.EACH:
        return failed
    begins = before.failure_told_at is None or (before.failing_since is None and after.failing_since is not None)
    has_paused = before.is_active and after.status is TaskStatus.PAUSED and failed[0].status in FAILURE_STATUSES
    return failed[:1] if begins or has_paused else ()


def explain_untold(task: Task, record: Execution) -> str | None:
    """Return why nobody was told of a failure, as its task is now, or None if it is none. See `find_untold`."""
    if record.status not in {*FAILURE_STATUSES, ExecutionStatus.EXPIRED}:
        return None
    if task.parent is not None:
        return f"It is a call of task {task.parent.task_id}, which gets the failure instead."
    if task.tell_failures is TellFailures.NEVER:
        return "The task tells of no failures: its tellFailures is NEVER."
    if not has_inbox(task) and not task.delivery_channels:
        return "The task names no channel, and nobody reads the inbox of its owner."
    if task.tell_failures is TellFailures.EACH:
        return "No message about it has arrived."
    told_at = task.failure_told_at
    if told_at is not None and record.finished_at is not None and told_at < record.finished_at:
        how = f"was told {say_instant(task, told_at)} that it fails, and not of each failure since"
    else:
        how = "is told of the first of failures in a row, and not of each"
    return f"Its owner {how}: its tellFailures is FIRST."


def has_inbox(task: Task) -> bool:
    """Return whether somebody reads the inbox of the task's owner."""
    return task.owner != SYSTEM_OWNER or DeliveryChannel.WEB in task.delivery_channels


def describe_failure(task: Task, record: Execution, *, tells_error: bool) -> InboxMessage:
    """Return the message about a failure, with the text of its error only if that is told.

    An error's text is meant for developers, and may have what no owner should read.
    """
    what, verb = "Missed", "did not run"
    why = (record.message or "").rstrip(".")
    if record.status in FAILURE_STATUSES:
        what, verb = "Failed", "has failed"
        if record.status is ExecutionStatus.TIMED_OUT:
            verb = "did not end in time"
        why = ""
        if tells_error and record.error is not None:
            why = f"{record.error.type}: {record.error.message}"

    body = f"What was due {say_instant(task, record.scheduled_for)} {verb}{why and f': {why}'}."
    if task.status is TaskStatus.PAUSED:
        body += f"\n\n{task.message}"
    elif task.next_execution_time is not None:
        body += f"\n\nIt runs next {say_instant(task, task.next_execution_time)}."
    else:
        body += "\n\nIt does not run again by itself."
    return InboxMessage(f"{what}: {task.delivery_title or task.title}", body)


def find_recovery(before: Task, after: Task) -> tuple[InboxMessage, ...]:
    """Return the message that a task works again, if its owner was told of its failure."""
    told_at = before.failure_told_at
    if told_at is None or after.failure_told_at is not None or after.tell_failures is TellFailures.NEVER:
        return ()
    body = f"It has succeeded. You were told {say_instant(before, told_at)} that it had not."
    if before.consecutive_failures > 1:
        body += f" It had failed {before.consecutive_failures:,} times in a row."
    return (InboxMessage(f"Works again: {after.delivery_title or after.title}", body),)


def find_lateness(task: Task, run: Run) -> timedelta | None:
    """Return how much later than due an attempt of a run began, if it is late.

    A failed attempt makes the next one late. The time for which a handler runs, sleeps or waits does not
    count, and a backfill is of the past.
    """
    if run.trigger is Trigger.BACKFILL or run.started_at is None:
        return None
    began = run.started_at
    if run.lease is not None and run.attempts and not run.suspension_count:
        began = run.lease.started_at
    due = run.scheduled_for
    if run.trigger is Trigger.SCHEDULE:
        due = jittered_start(task, due)
    return began - due if began - due > LATE else None


def say_late(late: timedelta, body: str) -> str:
    """Return a message's text that begins with how late it is."""
    unit, length = next((unit, length) for unit, length in _LATENESS_UNITS if late // length > 1)
    return f"{late // length} {unit} late.\n\n{body}"


def make_messages(
    task: Task,
    execution_id: str,
    notices: Sequence[InboxMessage],
    now: datetime,
    *,
    late: timedelta | None = None,
    first: int = 1,
) -> tuple[Message, ...]:
    """Return the messages for the owner's inbox, numbered from `first`."""
    return tuple(
        Message(
            id=derive_message_id(task.id, execution_id, number),
            owner=task.owner,
            task_id=task.id,
            execution_id=execution_id,
            title=notice.title,
            body=notice.body if late is None else say_late(late, notice.body),
            created_at=now,
            late=late,
            expire_at=expiry_after(now, task.execution_retention),
        )
        for number, notice in enumerate(notices, first)
    )


def say_instant(task: Task, at: datetime) -> str:
    """Return when something is, in the task's time zone, as in "on Mon 4 Jan 2027 at 09:00 (Europe/Paris)"."""
    return f"on {name_instant(task, at)}"


def name_instant(task: Task, at: datetime) -> str:
    """Return an instant in the task's time zone, as in "Mon 4 Jan 2027 at 09:00 (Europe/Paris)"."""
    zone = task.timezone if time_zones.in_use.knows(task.timezone) else "UTC"
    return f"{say_clock(at.astimezone(time_zones.in_use.tzinfo(zone)))} ({zone})"
