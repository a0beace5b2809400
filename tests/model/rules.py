"""The rules, as functions of what a commit found and left, of what runs at one moment, and of how everything ended.

The numbers are those of ``docs/guarantees.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tests.engine.harness import DAY, MINUTE
from tests.model.replay import MOST_DRAWS, MOST_TOKENS, SECRET, Entry
from tests.model.values import Values, Writes, to_instant
from tests.simulation.schedules import covers
from tests.simulation.task_rules import find_broken_change, find_broken_future

from cloudsched.domain.documents.execution import ExecutionStatus, Trigger, lease_fingerprint
from cloudsched.domain.documents.journal import StepStatus
from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.transitions.commit import TaskWrite
from cloudsched.domain.transitions.planning import jittered_start, occurrence_after, occurrence_id, waits_for_open_run
from cloudsched.features.calendars.documents import Calendar

HORIZON = 30 * DAY
LATE = 3 * MINUTE
"""How late anything may be once nothing fails any more: the sweep's grace, its minute, and another sweep."""


class Handling(NamedTuple):
    task_id: str
    execution_id: str
    attempt: int
    until: int
    """The end of the lease, as its process knows it."""
    lock_key: str | None
    begins: bool
    """Whether it has done nothing yet."""
    step: str = ""
    """The step that a durable handler is at."""


@dataclass(frozen=True)
class Committing:
    """A commit that took effect."""

    values: Values
    before: int
    after: int
    writes: Writes
    entry: Entry
    """Whose it is."""
    decided_at: int
    """The time that its process saw."""


def check_commit(commit: Committing) -> str | None:
    return next(_find_broken(commit), None)


def _find_broken(commit: Committing) -> Iterator[str]:
    if any(SECRET in commit.values.texts[number] for _, number in commit.writes.documents if number is not None):
        yield "7: the secret is in a document"
    yield from _check_orders(commit)
    for each in commit.writes.tasks:
        before: Task | None = commit.values.find(commit.before, f"task/{each.task.id}")
        if before is not None and before.created_at != each.task.created_at and before.deleted_at is not None:
            before = None
        yield from _check_records(commit, each)
        yield from _check_calls(commit, each.task)
        yield from find_broken_future(each.task)
        if before is None:
            continue
        yield from find_broken_change(before, each.task, each.executions)
        if each.task.revision < before.revision:
            yield f"8: revision {before.revision}, of which its caller was told, became {each.task.revision}"
        yield from _check_claims(commit, before, each.task)
        yield from _check_holder(commit, before, each.task)
        yield from _check_attempts(before, each.task)
        yield from _check_overlap(before, each.task)
        yield from _check_backlog(before, each)
        yield from _check_journals(commit, each.task)
        yield from _check_nothing_lost(commit, before, each)


def _check_orders(commit: Committing) -> Iterator[str]:
    """Check that an order of a caller's own is there if, and only if, the task that joined it is."""
    stored = commit.values.snapshots[commit.after]
    orders, tasks = ({key.partition("/")[2] for key in stored if key.startswith(kind)} for kind in ("order/", "task/"))
    if orders and orders - {"stock"} != tasks:
        yield f"8: the orders are {sorted(orders - {'stock'})}, and their tasks {sorted(tasks)}"


def _check_records(commit: Committing, write: TaskWrite) -> Iterator[str]:
    for record in write.executions:
        key = f"record/{record.task_id}/{record.id}"
        known = commit.values.find(commit.before, key)
        if known is None or not known.status.is_final:
            continue
        is_retry = record.status is ExecutionStatus.RETRYING and commit.entry.kind == "client"
        if is_retry and known.status is not ExecutionStatus.SUCCEEDED:
            continue
        if commit.values.find(commit.after, key) != known:
            yield f"1: {record.id} was {known.status}, and is recorded again as {record.status}"
    for run in write.task.runs:
        record = commit.values.find(commit.after, f"record/{write.task.id}/{run.execution_id}")
        if record is not None and record.status.is_final and write.task.deleted_at is None:
            yield f"1: {run.execution_id} is open again although it is {record.status}"


def _check_claims(commit: Committing, before: Task, after: Task) -> Iterator[str]:
    now = to_instant(commit.decided_at)
    for run in after.runs:
        old = before.find_run(run.execution_id)
        if run.lease is None or (old and old.lease and old.lease.token_hash == run.lease.token_hash):
            continue
        if old and old.lease and old.lease.until > now:
            yield f"2: {run.execution_id} is claimed although it is leased until {old.lease.until:%H:%M:%S}"
        if before.status is not TaskStatus.ACTIVE or before.deleted_at:
            yield f"3: {run.execution_id} is claimed of a task that is {before.status}"
        if commit.entry.revision is not None and commit.entry.revision != before.revision:
            yield f"3: {run.execution_id} is claimed for revision {commit.entry.revision}, not {before.revision}"
        due_at = old.wake_at if old else jittered_start(before, run.scheduled_for)
        if due_at > now:
            yield f"{run.execution_id} is claimed before it is due, at {due_at:%H:%M:%S}"


def _check_journals(commit: Committing, task: Task) -> Iterator[str]:
    """Check that what a durable handler has done is stored: its run says how much that is."""
    stored = commit.values.snapshots[commit.after]
    for run in task.runs:
        if run.steps and f"step/{task.id}/{run.execution_id}/{run.steps:06}" not in stored:
            yield f"1: what {run.execution_id} has done is not stored, and would be done again"


def _check_holder(commit: Committing, before: Task, after: Task) -> Iterator[str]:
    """Check that only who holds a live lease ends it."""
    if commit.entry.kind not in {"deliver", "worker"}:
        return
    numbers = range(commit.entry.token, MOST_DRAWS * MOST_TOKENS, MOST_TOKENS)
    mine = {lease_fingerprint(commit.values.token(number)) for number in numbers}
    for run in before.runs:
        now = after.find_run(run.execution_id)
        kept = now is not None and now.lease is not None and run.lease is not None
        if run.lease is None or run.lease.until <= to_instant(commit.decided_at) or run.lease.token_hash in mine:
            continue
        if not kept:
            yield f"2: the attempt of {run.execution_id} is ended by another than the one that runs it"


def _check_calls(commit: Committing, task: Task) -> Iterator[str]:
    """Check that a cancel is complete only when the calls below are cancelled, too, and no more can be made."""
    for call in commit.values.tasks(commit.after):
        if call.parent is None or not call.is_active or task.id not in {call.id, call.parent.task_id}:
            continue
        caller: Task | None = commit.values.find(commit.after, f"task/{call.parent.task_id}")
        if caller is not None and caller.status is TaskStatus.CANCELLED and not caller.deferred:
            yield f"1: the cancel of {caller.id} counts as complete, and its call {call.id} goes on"


def _check_overlap(before: Task, after: Task) -> Iterator[str]:
    """Check that no occurrence starts while a run of its task is open, unless its overlap is allowed."""
    if after.overlap is Overlap.ALLOW:
        return
    runs = [run for run in after.runs if run.trigger is Trigger.SCHEDULE]
    new = [run.execution_id for run in runs if before.find_run(run.execution_id) is None]
    if new and not all(run.is_waiting_repeat for run in before.runs):
        yield f"the overlap policy: {new[0]} starts while another run of {after.id} is open"


def _check_backlog(before: Task, write: TaskWrite) -> Iterator[str]:
    """Check that what came due before a pause is still to run after it, or has its record."""
    after = write.task
    if before.status is not TaskStatus.PAUSED or not before.backlog or after.status is not TaskStatus.ACTIVE:
        return
    first, recorded = before.backlog[0].next_at, {one.id for one in write.executions}
    is_next = after.next_execution_time is not None and after.next_execution_time <= first
    is_covered = any(covers(each, first) for each in write.executions)
    if not (is_next or is_covered or occurrence_id(before, first) in recorded):
        yield f"1: occurrence {first:%H:%M} came due before the pause, and is forgotten"


def _check_attempts(before: Task, after: Task) -> Iterator[str]:
    for run in after.runs:
        old = before.find_run(run.execution_id)
        if old is None or run.losses > old.losses:
            continue
        if run.attempt > old.attempt > before.retry.max_retries + old.uncounted_attempts:
            yield f"the retry policy: {run.execution_id} gets attempt {run.attempt}"


def _check_nothing_lost(commit: Committing, before: Task, write: TaskWrite) -> Iterator[str]:
    """Check that every occurrence that the plan went past was claimed or recorded."""
    after = write.task
    if before.status is not TaskStatus.ACTIVE or before.deleted_at or after.deleted_at:
        return
    if before.next_execution_time == after.next_execution_time:
        return
    handled = {one.id for one in write.executions} | {run.execution_id for run in after.runs}
    ranges = [(each.next_at, each.until) for each in after.backlog]
    ranges += [(each.scheduled_for, each.covers.until) for each in write.executions if each.covers]
    occurrence, limit = before.next_execution_time, after.next_execution_time
    unlimited = before.model_copy(update={"max_runs": None, "until": None})
    while occurrence is not None and (limit is None or occurrence < limit):
        if occurrence > max(to_instant(commit.decided_at), after.updated_at):
            return
        if after.until and occurrence > after.until:
            return
        if (
            after.max_runs is not None
            and after.run_count >= after.max_runs
            and occurrence_id(before, occurrence) not in handled
        ):
            return
        if occurrence_id(before, occurrence) not in handled and not any(a <= occurrence <= b for a, b in ranges):
            yield f"1: occurrence {occurrence:%H:%M} was passed over without a record"
        occurrence = occurrence_after(unlimited, occurrence)
    for record in write.executions:
        is_rescheduled = record.trigger is Trigger.SCHEDULE and "rescheduled" in (record.message or "")
        if is_rescheduled and after.schedule.occurs(record.scheduled_for) and after.until is None:
            yield f"1: {record.id} is skipped, though the new schedule has it as well"


def check_handlers(running: list[Handling], now: int) -> str | None:
    """Return the rule that handlers break which run at one moment, or None."""
    live = [each for each in running if each.until > now]
    for number, one in enumerate(live):
        for other in live[:number]:
            is_same = (one.task_id, one.execution_id) == (other.task_id, other.execution_id)
            if is_same:
                return f"2: two executors run {one.execution_id} at the same time, each under a lease"
            if one.lock_key is not None and one.lock_key == other.lock_key and not is_same:
                return f"5: runs of {other.task_id} and {one.task_id} go on together, and both hold {one.lock_key!r}"
    return None


def check_begin(values: Values, snapshot: int, handling: Handling, now: int) -> str | None:
    """Return the rule that the beginning of a handler breaks, or None."""
    if handling.step and handling.until > now:
        prefix = f"step/{handling.task_id}/{handling.execution_id}/"
        for key, number in values.snapshots[snapshot].items():
            entry = values.documents[number]
            if key.startswith(prefix) and entry.name == handling.step and entry.status is StepStatus.SUCCEEDED:
                return (
                    f"1: step {handling.step!r} of {handling.execution_id} is run again although its result is stored"
                )
    if not handling.begins:
        return None
    if handling.until <= now:
        return f"2: {handling.execution_id} is begun although its lease has ended"
    record = values.find(snapshot, f"record/{handling.task_id}/{handling.execution_id}")
    if record is not None and record.status is ExecutionStatus.SUCCEEDED:
        return f"1: {handling.execution_id} is run again although it has succeeded"
    return None


def check_told(values: Values, snapshot: int, told: object) -> str | None:
    """Return the rule that is broken if a caller was told of a task that is not stored; or None."""
    if not isinstance(told, Task):
        return None
    stored = values.find(snapshot, f"task/{told.id}")
    if stored is None:
        return f"8: {told.id} is gone, though its caller was told that it is stored"
    if stored.created_at == told.created_at and stored.revision < told.revision:
        return f"8: {told.id} has revision {stored.revision}; its caller was told of {told.revision}"
    return None


def check_done(values: Values, snapshot: int, fingerprint: str, result: object, now: int) -> str | None:
    """Return the rule that is broken if an executor that has this lease is done with its delivery; or None."""
    if isinstance(result, Exception):
        return None  # the queue delivers it again
    for task in values.tasks(snapshot):
        for run in task.runs:
            if run.lease is not None and run.lease.token_hash == fingerprint and run.lease.until > to_instant(now):
                return f"4: an executor says that it is done, and still holds {run.execution_id}"
    return None


def check_end(values: Values, snapshot: int, now: int) -> str | None:
    """Return the rule that is broken if everything stays as it is, long after the last fault; or None."""
    return next(_find_left_over(values, snapshot, now), None)


def _find_left_over(values: Values, snapshot: int, now: int) -> Iterator[str]:
    overdue = to_instant(now) - LATE
    for task in values.tasks(snapshot):
        if task.deleted_at is not None:
            yield f"4: {task.id} is still being deleted"
        if task.deferred:
            yield f"4: nobody does what is left to do for {task.id}"
        yield from _find_open_runs(task, overdue)
        following = task.next_execution_time
        is_held_back = waits_for_open_run(task)
        if task.is_active and following is not None and not is_held_back and jittered_start(task, following) < overdue:
            yield f"4: nobody runs the occurrence {following:%H:%M}"
        yield from _check_every_record(values, snapshot, task)
        yield from _check_followed(values, snapshot, task)


def _find_open_runs(task: Task, overdue: datetime) -> Iterator[str]:
    for run in task.runs:
        if run.lease and run.lease.until < overdue:
            yield f"4: nobody closes the attempt of {run.execution_id}, leased until {run.lease.until:%H:%M:%S}"
        if task.status is TaskStatus.ACTIVE and not run.lease and run.due_at < overdue and run.waiting_for is None:
            yield f"4: nobody runs {run.execution_id}, due at {run.due_at:%H:%M:%S}"
        if task.status is TaskStatus.ACTIVE and run.waiting_for is not None:
            yield f"4: {run.execution_id} waits for ever: {run.waiting_for}"
        if task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED} and not run.lease:
            yield f"1: {task.id} is {task.status}, and {run.execution_id} waits for ever"


def _check_followed(values: Values, snapshot: int, task: Task) -> Iterator[str]:
    """Check that a task has the days that its calendars have."""
    if task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
        return
    for rule in task.schedule.calendars:
        calendar = values.find(snapshot, f"{Calendar.collection}/{rule.id}")
        if calendar is not None and calendar.content != rule.content:
            yield f"the calendars: {task.id} has the days {rule.content!r} of {rule.id}, which has {calendar.content!r}"


def _check_every_record(values: Values, snapshot: int, task: Task) -> Iterator[str]:
    """Check that each record is final, but for open runs, and that a task that was left alone has one for each."""
    open_runs = {run.execution_id for run in task.runs}
    prefix = f"record/{task.id}/"
    records = {
        key.removeprefix(prefix): values.documents[number]
        for key, number in values.snapshots[snapshot].items()
        if key.startswith(prefix)
    }
    for name, record in records.items():
        sent_as = record.content.get("messageId") if task.delivery and isinstance(record.content, dict) else None
        if sent_as is not None and f"sent/{sent_as}" not in values.snapshots[snapshot]:
            yield f"the deliveries: {task.id} is recorded as {sent_as}, which nobody sent"
        if not record.status.is_final and name not in open_runs:
            yield f"1: {name} ended without a final record: it is {record.status}"
    if task.revision != 1 or task.status is not TaskStatus.COMPLETED:
        return
    occurrence, end = task.schedule.first(), task.until
    if task.max_runs is not None:  # nothing comes due behind its last run
        end = max(each.scheduled_for for each in records.values())
    while occurrence is not None and (end is None or occurrence <= end):
        if occurrence_id(task, occurrence) not in records and not any(
            covers(each, occurrence) for each in records.values()
        ):
            yield f"1: occurrence {occurrence:%H:%M} has no record"
        occurrence = task.schedule.next_after(occurrence)
