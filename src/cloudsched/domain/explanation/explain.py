"""Find why a task runs when it does, or does not run: first its open runs' reasons, then its own."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, assert_never

from cloudsched.domain.documents.authority import DEFAULT_SENDERS, SenderRole
from cloudsched.domain.documents.execution import (
    FAILURE_STATUSES,
    Execution,
    Lease,
    Run,
    Suspension,
    Trigger,
    WaitingFor,
)
from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.documents.run_counts import LATE, is_late
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, Task, TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.explanation.findings import (
    DEFERRED,
    NO_OCCURRENCE,
    SEEMS_DEAD,
    Evidence,
    Explanation,
    Finding,
    Reason,
    Undelivered,
    drop_policy,
    say_no_worker,
    say_status,
)
from cloudsched.domain.in_words import say_duration
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.lifecycle import OWN_PAUSE_GOES_ON
from cloudsched.domain.transitions.manual_verbs import can_resume
from cloudsched.domain.transitions.notices import name_instant, say_instant
from cloudsched.domain.transitions.overlap_and_catch_up import is_for_overlap
from cloudsched.domain.transitions.planning import (
    find_sole_hold,
    find_tolerance,
    jittered_start,
    latest,
    waits_for_open_run,
)
from cloudsched.domain.transitions.wakeups import offer_expiry
from cloudsched.errors import UnknownHandler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule

_Found = tuple[Reason, str, "datetime | None"]
"""A reason, its sentence, and the instant that it is about."""


def explain_run(evidence: Evidence, run: Run) -> Finding:
    """Return the reason why an open run waits or runs."""
    if run.lease is not None:
        reason, sentence, at = _explain_lease(evidence, run, run.lease)
    else:
        reason, sentence, at = _explain_wait(evidence, run) or _explain_time(evidence, run)
    if run.definition is not None:
        began = evidence.task.as_begun(run).handler
        sentence += f" It began before the latest edit, and goes on with what it began with: handler {began!r}."
    return Finding(reason=reason, sentence=sentence, at=at, execution_id=run.execution_id)


def _explain_lease(evidence: Evidence, run: Run, lease: Lease) -> _Found:
    task = evidence.task
    who = "an executor" if lease.worker is None else f"worker {lease.worker!r}"
    if lease.until > evidence.now:
        since = name_instant(task, lease.started_at)
        return Reason.RUNNING, f"Attempt {run.attempt} is running on {who} since {since}.", lease.started_at
    sentence = f"Attempt {run.attempt}, which {who} began {say_instant(task, lease.started_at)}, has not reported, "
    sentence += f"and its lease ended {say_instant(task, lease.until)}. "
    return Reason.LEASE_ENDED, sentence + "The next dispatch or sweep records it as TIMED_OUT.", lease.until


def _explain_wait(evidence: Evidence, run: Run) -> _Found | None:
    turns = evidence.turns
    if run.waiting_for is WaitingFor.LOCK or (turns is not None and run.execution_id in turns.waiting):
        sentence = turns.sentence if turns else "It waits for its turn."
        return Reason.WAITING_FOR_LOCK, sentence, run.due_at
    if run.waiting_for is WaitingFor.WORKER:
        return _explain_offer(evidence, run)
    if run.suspension is not None and run.suspension_count:
        return _explain_suspension(evidence, run, run.suspension)
    return None


def _explain_time(evidence: Evidence, run: Run) -> _Found:
    task = evidence.task
    if run.due_at <= evidence.now:
        sentence = say_due(evidence, run.due_at, f"Attempt {run.attempt}" if run.attempts else "It")
        sentence += _say_last_attempt(run)
        if run.losses and task.is_active:  # such runs take turns, in case they are what ends the process
            sentence += " It was lost with its process, and waits while another such run is running."
        return Reason.DUE, sentence, run.due_at
    if run.attempts and run.attempts[-1].number == run.attempt - 1:
        return Reason.RETRYING, _explain_retry(evidence, run), run.due_at
    if run.started_at is not None:
        sentence = f"Attempt {run.attempt} was put off by its handler or its worker, and starts "
        return Reason.PUT_OFF, f"{sentence}{_say_start(evidence, run)}.", run.due_at
    return Reason.SCHEDULED, f"{_name(task, run)} starts {_say_start(evidence, run)}.", run.due_at


def _say_start(evidence: Evidence, run: Run) -> str:
    """Return when a run begins or goes on, which a pause may put off."""
    at = say_instant(evidence.task, run.due_at)
    if evidence.task.status is TaskStatus.PAUSED or evidence.is_queue_paused:
        at += ", or when the pause ends, if that is later"
    return at


def _name(task: Task, run: Run) -> str:
    match run.trigger:
        case Trigger.MANUAL:
            return "The run that was triggered"
        case Trigger.BACKFILL:
            return "The occurrence of a backfill"
        case Trigger.SNOOZE:
            return "The snoozed run"
        case Trigger.SCHEDULE:
            return f"The occurrence of {name_instant(task, run.scheduled_for)}"


def say_due(evidence: Evidence, at: datetime, what: str = "It") -> str:
    """Return the sentence of an occurrence or an attempt that is due and has not begun, as far as the store says."""
    task = evidence.task
    swept_at = evidence.swept_at
    was_due = f"{what} was due {say_instant(task, at)}, and"
    if task.status is TaskStatus.PAUSED:
        return f"{was_due} waits until its task is resumed."
    if evidence.is_queue_paused:
        return f"{was_due} its queue is paused."
    if swept_at is not None and is_late(at, swept_at) and not evidence.sweep_is_late:
        why = evidence.hanging or "Perhaps all threads of that process are busy"
        sent = name_instant(task, swept_at)
        return f"{was_due} has not started, although the process that runs tasks swept at {sent}. {why}."
    if _has_no_sweep(evidence):
        return f"{was_due} its dispatch has not arrived. The sweep would send another: {SEEMS_DEAD}."
    return f"{was_due} its dispatch has not arrived yet. If that was lost, the sweep sends another."


def _has_no_sweep(evidence: Evidence) -> bool:
    """Return whether the sweep should have repaired a task, and no sweep came in the last minutes."""
    wake_at = evidence.task.wake_at
    return wake_at is not None and is_late(wake_at, evidence.now) and evidence.sweep_is_late


def _explain_offer(evidence: Evidence, run: Run) -> _Found:
    workers = evidence.workers
    needed = "worker" if workers is None else workers.needed
    expiry = offer_expiry(evidence.task, run)
    since = name_instant(evidence.task, run.due_at)
    until = expiry and name_instant(evidence.task, expiry)
    if evidence.task.status is TaskStatus.PAUSED:
        sentence = f"It waits for a {needed} once its task is resumed."
    elif expiry and expiry <= evidence.now:
        return Reason.DUE, f"No worker took it by {until}. The next dispatch or sweep records it as EXPIRED.", expiry
    else:
        rest = "and none listens" if workers is not None and not workers.listeners else "none has claimed it"
        sentence = f"It waits for a {needed}, since {since}; {rest}."
        sentence += f" It can be claimed until {until}." if until else ""
    return Reason.WAITING_FOR_WORKER, sentence, run.due_at


def _explain_retry(evidence: Evidence, run: Run) -> str:
    failure = f"Attempt {run.attempt} starts {_say_start(evidence, run)}.{_say_last_attempt(run)}"
    error = run.attempts[-1].error
    if error is None or error.type != UnknownHandler.__name__:
        return failure
    final = run.uncounted_attempts + evidence.task.retry.max_retries + 1
    return f"{failure} Deploy code that has this handler: attempt {final} is the last one."


def _say_last_attempt(run: Run) -> str:
    """Return how the last attempt of a run has ended, to follow a sentence. Empty if none has failed."""
    last = run.attempts[-1] if run.attempts else None
    if last is None or last.error is None:
        return ""
    return f" Attempt {last.number} {say_status(last.status)}: {last.error.brief}"


def _explain_suspension(evidence: Evidence, run: Run, suspension: Suspension) -> _Found:
    """Return what a durable handler waits for. Its next poll is an internal matter."""
    task = evidence.task
    if suspension.quota_refusal is not None:
        sentence = f"Its calls wait until its owner's quota has room: {suspension.quota_refusal}"
        return Reason.WAITING_FOR_QUOTA, sentence, None
    if suspension.events:
        names = " or ".join(repr(name) for name in suspension.events)
        if suspension.senders != DEFAULT_SENDERS:
            names += f" from {' or '.join(suspension.senders)}"
        sentence = f"Its handler waits for the event {names}, "
        if suspension.deadline is None:
            return (
                Reason.WAITING_FOR_EVENT,
                f"{sentence}however long that takes.{_explain_standstill(task)}",
                None,
            )
        if suspension.deadline <= evidence.now:
            said = say_due(evidence, suspension.deadline, f"The end of its wait for the event {names}")
            return Reason.DUE, f"{said} If none has come, it times out.", suspension.deadline
        sentence += f"until {name_instant(task, suspension.deadline)} at the latest."
        return Reason.WAITING_FOR_EVENT, sentence, suspension.deadline
    if suspension.calls:
        calls = f"its {len(suspension.calls)} calls"
        if len(suspension.calls) == 1:
            calls = "its call"
        if suspension.any_call:
            calls = f"one of {calls}"
        return Reason.WAITING_FOR_CALLS, f"Its handler waits for {calls}.", None

    return _explain_sleep(evidence, run, suspension.reason.rstrip("."))


def _explain_standstill(task: Task) -> str:
    """Return what happens to the schedule while a run waits without an end, which few notice."""
    if task.is_one_time or task.overlap is Overlap.ALLOW or not task.is_active:
        return ""
    return " Until then its schedule stands still. Give the wait a timeout, or the task overlap: allow."


def _explain_sleep(evidence: Evidence, run: Run, reason: str) -> _Found:
    """Return why a durable handler goes on at an instant: it sleeps, retries a step, or was interrupted."""
    if run.due_at <= evidence.now:
        return Reason.DUE, say_due(evidence, run.due_at), run.due_at
    if reason.startswith("sleeps"):
        return Reason.SLEEPING, f"Its handler sleeps, and goes on {_say_start(evidence, run)}.", run.due_at
    if not reason[:1].islower():
        reason = f"was interrupted ({reason})"
    return Reason.SUSPENDED, f"Its handler {reason}, and goes on {_say_start(evidence, run)}.", run.due_at


_WAITING: Final = {Reason.DUE, Reason.RETRYING, Reason.PUT_OFF, Reason.SCHEDULED, Reason.SLEEPING, Reason.SUSPENDED}
"""The reasons of open runs that wait for a dispatch."""
BLOCKING: Final = frozenset(
    {
        Reason.QUEUE_PAUSED,
        Reason.UNKNOWN_HANDLER,
        Reason.BUDGET_USED_UP,
        Reason.NO_WORKER_LISTENS,
        Reason.OVERLAP,
        Reason.TOO_MANY_RUNS,
    },
)
"""The reasons that matter more than the plan, which comes to nothing as long as they hold."""


def explain(evidence: Evidence) -> Explanation:
    """Return why a task runs when it does, or does not run, the most important reason first."""
    task = evidence.task
    findings = tuple(_find(evidence))
    told = {each.reason for each in findings}
    findings += tuple(each for each in evidence.conditions if each.reason not in told)
    return Explanation(task_id=task.id, status=task.status, summary=findings[0].sentence, findings=findings)


def _find(evidence: Evidence) -> Iterator[Finding]:
    task = evidence.task
    runs = sorted(task.runs, key=lambda run: (run.lease is None, run.due_at))
    open_runs = [explain_run(evidence, run) for run in runs]
    last = [_explain_last(evidence, each) for each in (evidence.last,) if each]
    has_failed = evidence.last is not None and evidence.last.status in FAILURE_STATUSES
    is_idle = task.status is TaskStatus.ACTIVE and not runs
    is_failing = has_failed and is_idle and bool(task.consecutive_failures)
    blocking = [each for each in evidence.conditions if each.reason in BLOCKING]
    is_busy = any(each.reason not in _WAITING for each in open_runs)
    if evidence.is_queue_paused and task.status is TaskStatus.ACTIVE and not is_busy:
        yield from (each for each in blocking if each.reason is Reason.QUEUE_PAUSED)
        blocking = [each for each in blocking if each.reason is not Reason.QUEUE_PAUSED]
    if is_failing:  # this comes first, the next run after it
        yield from last
    yield from (explain_delivery(task, each) for each in evidence.undelivered)

    match task.status:
        case TaskStatus.ACTIVE:
            yield from open_runs
            waits = [*_explain_listeners(evidence)]
            yield from waits
            yield from (each for each in blocking if each not in waits)
            yield from _explain_plan(evidence)
        case TaskStatus.PAUSED:
            yield explain_status(evidence)
            if find_sole_hold(task) is not None:
                yield Finding(
                    reason=Reason.BUDGET_USED_UP,
                    sentence="As long as that is used up, it would be paused again at its next start.",
                )
            yield from open_runs
            yield from _explain_listeners(evidence)
        case TaskStatus.COMPLETED | TaskStatus.FAILED | TaskStatus.CANCELLED | TaskStatus.EXPIRED:
            yield explain_status(evidence)
            yield from open_runs
        case unknown:
            assert_never(unknown)

    if not time_zones.in_use.knows(task.timezone):
        sentence = f"The time zone data {time_zones.in_use.release} have no zone {task.timezone!r}. "
        sentence += "Its plan goes on at the offset that was known last; give it another zone."
        yield Finding(reason=Reason.UNKNOWN_ZONE, sentence=sentence)
    yield from _explain_events(task)
    yield from _explain_repairs(evidence)
    if not is_failing:
        yield from last


def explain_delivery(task: Task, delivery: Undelivered) -> Finding:
    """Return the reason why a message has not arrived, though its run is over."""
    sentence = f"What the run of {name_instant(task, delivery.scheduled_for)} has to say"
    sentence += f" has not arrived by {delivery.channel}, since {name_instant(task, delivery.since)}"
    sentence = with_message(sentence, (delivery.reason or "").rstrip("."))
    sentence = f"{sentence.rstrip('.')}. It is {delivery.status}"
    if delivery.next_attempt_at is not None:
        sentence += f", and tried again {say_instant(task, delivery.next_attempt_at)}"
    sentence += "."
    return Finding(
        reason=Reason.NOT_DELIVERED, sentence=sentence, at=delivery.since, execution_id=delivery.execution_id
    )


def _explain_events(task: Task) -> Iterator[Finding]:
    for event in task.events:
        who = event.sender.person or event.sender.subject
        if not who and event.sender.role is SenderRole.ADMIN:
            who = "the app's own code"
        who = who or event.sender.role.value
        what = f"The event {event.name!r} from {who} came {say_instant(task, event.at)}"
        sentence = f"{what}, and waits for its handler to take it."
        yield Finding(
            reason=Reason.EVENT_ARRIVED,
            sentence=sentence,
            at=event.at,
            execution_id=event.execution_id,
        )


def explain_status(evidence: Evidence) -> Finding:
    """Return why a task that is not active starts nothing: it is paused, or has ended."""
    task = evidence.task
    if task.status is not TaskStatus.PAUSED:
        sentence = f"It {say_status(task.status)} {say_instant(task, task.status_changed_at)}, and will not run again"
        ended = with_message(sentence, task.message)
        return Finding(reason=Reason.ENDED, sentence=ended, at=task.status_changed_at)

    pauses = (each.at for each in task.history if each.action is Action.PAUSED and each.reason != OWN_PAUSE_GOES_ON)
    paused = f"It was paused {say_instant(task, max([task.status_changed_at, *pauses]))}"
    message = task.message
    if message == "Paused." or message.startswith("Paused by "):  # that it was paused is said already
        paused, message = paused + message.removeprefix("Paused").rstrip("."), ""
    until = "it is resumed"
    if task.paused_until is not None:
        until = name_instant(task, task.paused_until)
    elif find_sole_hold(task) is not None:
        until = "its owner has a budget again"
    elif not can_resume(task, lambda: evidence.now):
        until = "it has a new schedule, since its only instant is over"
    if task.inner_pause_id is not None:
        until += " and the tasks that were paused meanwhile are restored"
    sentence = with_message(f"{paused}, and starts nothing until {until}", message)
    return Finding(reason=Reason.PAUSED, sentence=sentence, at=task.status_changed_at)


def _explain_listeners(evidence: Evidence) -> Iterator[Finding]:
    if evidence.workers is not None and not evidence.workers.listeners:
        yield say_no_worker(evidence.workers)


def _say_overlap(evidence: Evidence, occurrence: datetime) -> str:
    task = evidence.task
    if occurrence > evidence.now:
        does = "waits for the end of the open run if it comes due before that"
        if task.overlap is Overlap.SKIP and is_for_overlap(task, occurrence):
            does = "is skipped if it comes due before the open run has ended"
        return f"The next occurrence, {say_instant(task, occurrence)}, {does}."
    since = name_instant(task, occurrence)
    return f"It has come due again since {since}: when the open run has ended, {say_missed(evidence, occurrence)}."


def say_missed(evidence: Evidence, occurrence: datetime) -> str:
    """Return what becomes of an occurrence that has come due while a run is open, and of those like it.

    ``overlap`` decides about those that came due after an open run had begun, and ``catchUp`` about all others.
    """
    task = evidence.task
    if not is_for_overlap(task, occurrence):
        return say_caught_up(task)
    if task.overlap is Overlap.SKIP:
        return "what came due is skipped"
    return f"the latest runs{_say_tolerance(task)}, and what else came due is skipped"


def say_caught_up(task: Task) -> str:
    """Return what decides which of several occurrences that have come due run."""
    return f"catchUp ({task.catch_up.mode}) decides which run{_say_tolerance(task)}"


def _say_tolerance(task: Task) -> str:
    most = find_tolerance(task)
    return f", none over {say_duration(most)} late" if most < timedelta.max else ""


def _explain_plan(evidence: Evidence) -> Iterator[Finding]:
    task = evidence.task
    occurrence = task.next_execution_time
    if occurrence is not None:
        yield explain_next(evidence, occurrence)
        yield from _explain_adjustments(evidence, occurrence)
        yield from _explain_zone_change(task, occurrence)
    elif not task.runs:
        yield NO_OCCURRENCE

    for due in task.backlog:
        began = name_instant(task, latest(due.next_at, occurrence))
        sentence = f"Of what came due from {began} on, {say_caught_up(task)}."
        yield Finding(reason=Reason.BACKLOG, sentence=sentence, at=due.next_at)
    if task.backfill is not None:
        until = name_instant(task, task.backfill.until)
        sentence = f"A backfill runs past occurrences again, up to that of {until}."
        yield Finding(reason=Reason.BACKLOG, sentence=sentence, at=task.backfill.next_at)


def explain_next(evidence: Evidence, occurrence: datetime) -> Finding:
    """Return when the next occurrence starts, or what it waits for."""
    task = evidence.task
    start = jittered_start(task, occurrence)
    if waits_for_open_run(task):
        return Finding(reason=Reason.OVERLAP, sentence=_say_overlap(evidence, occurrence), at=occurrence)
    if len(task.runs) >= MAX_OPEN_RUNS:
        sentence = f"{MAX_OPEN_RUNS} of its runs are open, as many as may be. None starts until one of them has ended."
        return Finding(reason=Reason.TOO_MANY_RUNS, sentence=sentence, at=start)
    if start > evidence.now:
        since = task.zone_change.due_since(occurrence) if task.zone_change else occurrence
        verb = "would run" if any(each.reason in BLOCKING for each in evidence.conditions) else "runs"
        sentence = f"It {verb} next {say_instant(task, occurrence)}"
        if start != since:
            sentence += f", {(start - since).total_seconds():,.1f} s later by its jitter"
        return Finding(reason=Reason.SCHEDULED, sentence=f"{sentence}.", at=start)
    if evidence.turns is not None and evidence.turns.waiting:
        return Finding(reason=Reason.WAITING_FOR_LOCK, sentence=evidence.turns.sentence, at=start)
    sentence = say_due(evidence, start)
    if evidence.now - start > (most := find_tolerance(task)):
        sentence += f" It is too late for that one: it had {say_duration(most)} to begin."
    return Finding(reason=Reason.DUE, sentence=sentence, at=start)


def _explain_zone_change(task: Task, occurrence: datetime) -> Iterator[Finding]:
    if not task.schedule.follows_owner:
        return
    sentence = f"It follows {task.owner} from one time zone to another, and is in {task.timezone}."
    if task.zone_change is not None and (due := task.zone_change.due_since(occurrence)) != occurrence:
        sentence += f" Its next occurrence is due since {name_instant(task, due)}, by a change of that zone."
    yield Finding(reason=Reason.FOLLOWS_OWNER, sentence=sentence, at=occurrence)


def _explain_adjustments(evidence: Evidence, occurrence: datetime) -> Iterator[Finding]:
    task = evidence.task
    schedule = task.schedule
    if (note := schedule.adjustment_note(occurrence)) is not None:
        sentence = f"A calendar decides on the day of the next occurrence. {note}"
        yield Finding(reason=Reason.ADJUSTED, sentence=sentence, at=occurrence)
    if (skipped := schedule.find_skipped(evidence.now, occurrence)) is not None:
        yield explain_skipped(task, schedule, skipped)


def explain_skipped(task: Task, schedule: Schedule, at: datetime) -> Finding:
    """Return why an occurrence of a schedule does not run, which its calendars leave out."""
    sentence = f"What would be due {say_instant(task, at)} does not run. "
    sentence += schedule.adjustment_note(at) or "A calendar leaves it out."
    return Finding(reason=Reason.ADJUSTED, sentence=sentence, at=at)


def _explain_repairs(evidence: Evidence) -> Iterator[Finding]:
    task = evidence.task
    if task.deferred:
        yield DEFERRED
    if evidence.is_queue_paused:  # the sweep is not to blame
        return
    if task.wake_at is not None and _has_no_sweep(evidence):
        since = say_instant(task, task.wake_at)
        sentence = f"The sweep should have repaired it {since}: {SEEMS_DEAD}."
        yield Finding(reason=Reason.SWEEP_IS_LATE, sentence=sentence, at=task.wake_at)


def _explain_last(evidence: Evidence, last: Execution) -> Finding:
    task = evidence.task
    due = say_instant(task, last.scheduled_for)
    sentence = f"The latest run that has ended, due {due}, {say_status(last.status)}"
    if task.consecutive_failures > 1 and last.status in FAILURE_STATUSES:
        sentence += f", and {task.consecutive_failures - 1:,} before it failed, too"
    sentence = say_end(sentence, last)
    if last.events:
        kept = " and ".join(repr(each.name) for each in last.events)
        sentence += f" It has accepted {kept}, which a retry by hand takes."
    if last.finished_at is not None and last.finished_at - evidence.now > LATE:
        sentence += (
            f" It ended {say_instant(task, last.finished_at)}, which is still to come: a clock was ahead, and came"
        )
        sentence += " back. What was due until then does not run again."
    return Finding(
        reason=Reason.LAST_OUTCOME,
        sentence=sentence,
        at=last.finished_at or last.scheduled_for,
        execution_id=last.id,
    )


def say_end(sentence: str, record: Execution) -> str:
    """Return a sentence with the error or else the message with which an execution ended."""
    why = record.message or ""
    if record.status in FAILURE_STATUSES and record.error is not None:
        why = record.error.brief
    return with_message(sentence, why)


def with_message(sentence: str, message: str) -> str:
    """Return a sentence with a message, if there is one, and with its end."""
    if message:
        return f"{sentence}: {drop_policy(message)}"
    return f"{sentence}."
