"""Why one open run of a task runs, waits or is late."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from cloudsched.domain.documents.execution import Trigger, WaitingFor
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.explanation.findings import Finding, Reason
from cloudsched.domain.recurrence.time_zones import load_tzinfo

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Lease, Run, Suspension
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.explanation.findings import Evidence

_Found = tuple[Reason, str, "datetime | None"]
"""A reason, its sentence, and the instant that it is about."""


def explain_run(evidence: Evidence, run: Run) -> Finding:
    """Return why an open run is where it is."""
    reason, sentence, at = _find(evidence, run)
    if run.definition is not None:
        began = evidence.task.as_begun(run).handler
        sentence += f" It began before the latest edit, and goes on with what it began with: handler {began!r}."
    return Finding(reason=reason, sentence=sentence, at=at, execution_id=run.execution_id)


def _find(evidence: Evidence, run: Run) -> _Found:
    if run.lease is not None:
        return _explain_lease(evidence, run, run.lease)
    return _explain_wait(evidence, run) or _explain_time(evidence, run)


def _explain_lease(evidence: Evidence, run: Run, lease: Lease) -> _Found:
    task = evidence.task
    who = "an executor" if lease.worker is None else f"worker {lease.worker!r}"
    begun, until = say_instant(task, lease.started_at), say_instant(task, lease.until)
    if lease.until > evidence.now:
        since = begun.removeprefix("on ")
        return Reason.RUNNING, f"Attempt {run.attempt} is running on {who} since {since}.", lease.until
    sentence = f"Attempt {run.attempt}, which {who} began {begun}, has not reported, and its lease ended {until}. "
    return Reason.LEASE_ENDED, sentence + "The next dispatch or sweep records it as TIMED_OUT.", lease.until


def _explain_wait(evidence: Evidence, run: Run) -> _Found | None:
    if any(entry.execution_id == run.execution_id for entry in evidence.waiting) or (
        run.waiting_for is WaitingFor.LOCK
    ):
        return Reason.WAITING_FOR_LOCK, explain_lock(evidence), run.due_at
    if run.waiting_for is WaitingFor.WORKER:
        return Reason.WAITING_FOR_WORKER, _explain_offer(evidence, run), run.due_at
    if run.suspension is not None and run.suspension_count:
        return _explain_suspension(evidence, run, run.suspension)
    return None


def _explain_time(evidence: Evidence, run: Run) -> _Found:
    task = evidence.task
    if run.due_at <= evidence.now:
        return Reason.DUE, say_due(evidence, run.due_at), run.due_at
    if run.attempts and run.attempts[-1].number == run.attempt - 1:
        return Reason.RETRYING, _explain_retry(task, run), run.due_at
    if run.started_at is not None:
        sentence = f"Attempt {run.attempt} was put off by its handler or its worker, and starts "
        return Reason.PUT_OFF, f"{sentence}{say_instant(task, run.due_at)}.", run.due_at
    return Reason.SCHEDULED, f"{_name(task, run)} starts {say_instant(task, run.due_at)}.", run.due_at


def _name(task: Task, run: Run) -> str:
    match run.trigger:
        case Trigger.MANUAL:
            return "The run that was triggered"
        case Trigger.BACKFILL:
            return "The occurrence of a backfill"
        case Trigger.SCHEDULE:
            return f"The occurrence of {say_instant(task, run.scheduled_for).removeprefix('on ')}"
        case unknown:
            assert_never(unknown)


def explain_lock(evidence: Evidence) -> str:
    """Return the sentence of a run that waits for its task's lock."""
    task, lock = evidence.task, evidence.lock
    holders = [] if lock is None else [one for one in lock.holders if one.until > evidence.now]
    sentence = f"It waits for the lock {task.lock_key!r}, which at most {task.lock_limit} may hold at once"
    if not holders:
        return f"{sentence}. Nobody holds it now, so it is granted with the next dispatch or sweep."
    until = say_instant(task, max(one.until for one in holders))
    if evidence.shows_holders:
        who = ", ".join(f"task {one.task_id}" for one in holders)
        return f"{sentence}. Held by {who}, until {until.removeprefix('on ')} at the latest unless renewed."
    count = "one run holds" if len(holders) == 1 else f"{len(holders)} runs hold"
    return f"{sentence}. Now {count} it, until {until.removeprefix('on ')} at the latest unless renewed."


def say_due(evidence: Evidence, at: datetime) -> str:
    """Return the sentence of what is due and has not begun, as far as the store says."""
    was_due = f"It was due {say_instant(evidence.task, at)}, and"
    if evidence.task.status is TaskStatus.PAUSED:
        return f"{was_due} starts once its task is resumed."
    if evidence.is_quick:
        return f"{was_due} has no result yet. Its handler is quick: until its end nothing says that it is running."
    return f"{was_due} its dispatch has not arrived yet. If that was lost, the sweep sends another."


def say_instant(task: Task, at: datetime) -> str:
    """Return an instant in the task's time zone, to stand in a sentence: "on 2027-01-04 at 09:00:00 (Europe/Paris)"."""
    return f"on {at.astimezone(load_tzinfo(task.timezone)):%Y-%m-%d at %H:%M:%S} ({task.timezone})"


def say_worker(task: Task) -> str:
    """Return which worker a task needs, to stand in a sentence: "worker with the skill 'cuda' on the queue 'gpu'"."""
    queue = task.pull.queue if task.pull else ""
    skill = f" with the skill {task.pull.skill!r}" if task.pull and task.pull.skill else ""
    return f"worker{skill} on the queue {queue!r}"


def _explain_offer(evidence: Evidence, run: Run) -> str:
    since = say_instant(evidence.task, run.due_at).removeprefix("on ")
    rest = "and none listens" if evidence.listeners == 0 else "none has claimed it"
    return f"It waits for a {say_worker(evidence.task)}, since {since}; {rest}."


def _explain_retry(task: Task, run: Run) -> str:
    sentence = f"Attempt {run.attempt} starts {say_instant(task, run.due_at)}."
    last = run.attempts[-1] if run.attempts else None
    if last is None or last.error is None:
        return sentence
    return f"{sentence} Attempt {last.number} was {last.status}: {last.error.type}: {last.error.message}"


def _explain_suspension(evidence: Evidence, run: Run, suspension: Suspension) -> _Found:
    """Return what a durable handler waits for. When it looks for that again is no instant that matters to anybody."""
    task = evidence.task
    if suspension.quota_refusal is not None:
        sentence = f"Its calls wait until its owner's quota has room: {suspension.quota_refusal}"
        return Reason.WAITING_FOR_QUOTA, sentence, None
    if suspension.events:
        names = " or ".join(repr(name) for name in suspension.events)
        sentence = f"Its handler waits for the event {names}, "
        if suspension.deadline is None:
            return Reason.WAITING_FOR_EVENT, f"{sentence}however long that takes.", None
        until = say_instant(task, suspension.deadline).removeprefix("on ")
        return Reason.WAITING_FOR_EVENT, f"{sentence}until {until} at the latest.", suspension.deadline
    if suspension.calls:
        which = "one of its" if suspension.any_call else "its"
        calls = "call" if len(suspension.calls) == 1 else f"{len(suspension.calls)} calls"
        return Reason.WAITING_FOR_CALLS, f"Its handler waits for {which} {calls}.", None
    return _explain_sleep(evidence, run, suspension.reason.rstrip("."))


def _explain_sleep(evidence: Evidence, run: Run, reason: str) -> _Found:
    """Return why a durable handler goes on at an instant: it sleeps, tries a step again, or was interrupted."""
    if run.due_at <= evidence.now:
        return Reason.DUE, say_due(evidence, run.due_at), run.due_at
    until = say_instant(evidence.task, run.due_at).removeprefix("on ")
    if reason.startswith("sleeps"):
        return Reason.SLEEPING, f"Its handler sleeps until {until}.", run.due_at
    what = f"Its handler {reason}" if reason[:1].islower() else f"Its handler was interrupted ({reason})"
    return Reason.SUSPENDED, f"{what}, and goes on at {until}.", run.due_at
