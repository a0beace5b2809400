"""Decide what a delivered dispatch does, before the handler is called.

The decision is one of three. `DeliveryResult`: run nothing, because the dispatch is stale or its work is
done. `Hop`: it is too early, or another executor holds the lease, so dispatch again later. `Commit`: commit
it, and call the handler if its effects name a run.

Policies that are decided here, each visible in the executions:

* An occurrence later than the task's ``expiration`` is recorded as EXPIRED and not run.
* Several occurrences due at once are a backlog: ``catchUp`` says which run. The others are recorded as
  SKIPPED, by one record however many they are.
* An attempt whose lease ended without a result is recorded as TIMED_OUT and counts: the next one begins at
  once, as long as the retry policy has attempts left.
* An attempt whose process has ended, as the next process with the store for itself knows, is recorded so at
  once. It does not count, nor does one whose worker no longer renews its lease.
* A task for workers is offered to them instead of run here. A run that no worker claimed within the task's
  ``expiration`` is recorded as EXPIRED.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from cloudsched.domain.documents.execution import (
    Execution,
    ExecutionStatus,
    Lease,
    Run,
    WaitingFor,
)
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, DueRange, Task, TaskStatus
from cloudsched.domain.transitions.commit import Commit, Effects
from cloudsched.domain.transitions.lease import drop_lease
from cloudsched.domain.transitions.lifecycle import (
    continue_or_complete,
    drop_unstarted,
    end_pause,
    with_changes,
)
from cloudsched.domain.transitions.lost_attempts import (
    on_lease_expired,
)
from cloudsched.domain.transitions.notices import name_instant
from cloudsched.domain.transitions.overlap_and_catch_up import (
    BacklogDecision,
    decide_backlog,
    note_left_out,
    record_missed,
)
from cloudsched.domain.transitions.planning import (
    find_tolerance,
    jittered_start,
    occurrence_after,
    occurrence_id,
    waits_for_open_run,
)
from cloudsched.domain.transitions.run_records import execution_record, last_run_fields
from cloudsched.domain.transitions.wakeups import TURN_TIMEOUT, Dispatch, offer_expiry
from cloudsched.errors import InvalidSchedule

FULL_RETRY_DELAY = timedelta(minutes=1)
"""The least wait of an occurrence whose task has `MAX_OPEN_RUNS` open runs: those may be overdue themselves."""


class DeliveryAction(StrEnum):
    """The effect of a delivery."""

    DROPPED = "dropped"
    HOPPED = "hopped"
    RECORDED = "recorded"
    """No handler was called, but skipped or expired runs, or ones whose lease expired, were recorded."""
    WAITING = "waiting"
    """Others hold its lock. It is dispatched again when there is a place."""
    RAN = "ran"
    SWEPT = "swept"
    """It was no dispatch of a task, but one that sweeps a part of the store."""
    SUPERSEDED = "superseded"
    """The run's lease was lost, or its task was deleted: any result was dropped."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The effect of a delivery, and its reason.

    The queue counts each of these as a success, and does not redeliver.
    """

    action: DeliveryAction
    reason: str


def drop(reason: str) -> DeliveryResult:
    """Return the decision to run nothing."""
    return DeliveryResult(DeliveryAction.DROPPED, reason)


@dataclass(frozen=True, slots=True)
class Hop:
    """Run nothing yet. Dispatch again at `until`."""

    until: datetime
    reason: str


def may_claim_early(task: Task, dispatch: Dispatch) -> bool:
    """Return whether a run may be claimed a moment before it is due. Not if a lease or a lock would end first."""
    run = task.find_run(dispatch.execution_id) if task.runs else None
    return not task.has_lock and (run is None or run.lease is None)


def on_dispatch(
    task: Task, dispatch: Dispatch, now: datetime, token_hash: str, *, holder: str | None = None
) -> DeliveryResult | Hop | Commit:
    """Decide what a dispatch that arrived at `now` may do.

    The claim gets the hash of a new random lease token.

    `holder` is the name of this process, if no other executes the store's tasks while it lives.
    """
    if task.deleted_at is not None:  # guard: deleted task
        return drop("the task is being deleted")
    run = task.find_run(dispatch.execution_id) if task.runs else None
    if run and run.lease and run.lease.until <= now:  # guard: ended lease
        return _on_expired_lease(task, run, dispatch, now, make_lease(task, now, token_hash, holder=holder))
    if dispatch.revision != task.revision:  # guard: older revision
        return drop(f"its revision is {dispatch.revision}, the task's is {task.revision}")
    if task.status is not TaskStatus.ACTIVE:  # guard: inactive task
        return _on_inactive(task, now)
    lease = make_lease(task, now, token_hash, holder=holder)
    if run:
        return _on_open_run(task, run, dispatch, now, lease)
    return _on_occurrence(task, dispatch, now, lease)


def _on_inactive(task: Task, now: datetime) -> DeliveryResult | Hop | Commit:
    if task.paused_until is None:
        return drop(f"the task is {task.status}")
    if task.paused_until > now:
        return Hop(task.paused_until, "its pause has not ended")
    return end_pause(task, now).because("its pause has ended")


def _on_open_run(
    task: Task, run: Run, dispatch: Dispatch, now: datetime, lease: Lease
) -> DeliveryResult | Hop | Commit:
    if dispatch.suspension_count < run.suspension_count:
        return drop("it has been suspended since")
    if dispatch.attempt < run.attempt:  # guard: earlier attempt
        return drop(f"attempt {dispatch.attempt} has ended; {run.attempt} is next")
    if run.lease:  # guard: live lease
        return _on_live_lease(run.lease)
    if run.waiting_for is WaitingFor.WORKER:
        return _on_offered(task, run, dispatch, now)
    if run.due_at > now:  # guard: early retry
        return Hop(run.due_at, "it is too early")
    return _claim_or_offer(task, run, dispatch, now, lease)


def _on_offered(task: Task, run: Run, dispatch: Dispatch, now: datetime) -> DeliveryResult | Hop | Commit:
    """Expire a run that waits for a worker, or record that its turn begins, or has ended without a worker.

    The beginning is committed each time, so that anyone who requeues the run at this moment gets a
    version conflict.
    """
    decision = _expire_unclaimed(task, run, dispatch, now)
    if not isinstance(decision, DeliveryResult):
        return decision
    if dispatch.turn_key:
        granted = _with_turn(run, dispatch, now + TURN_TIMEOUT)
        begun = Commit(with_changes(task, now, runs=task.runs_with(granted)))
        return begun.because("it has its turn")
    if run.turn_until is not None and run.turn_until <= now:
        ended = run.model_copy(update={"turn_until": None})
        over = Commit(with_changes(task, now, runs=task.runs_with(ended)))
        return over.because("no worker came while it had its turn")
    return decision


def put_off(claim: Commit, run: Run, now: datetime, until: datetime, why: str) -> Commit:
    """Return what a claim changes, but without the lease: the attempt of the claimed run starts later."""
    is_new = run.lease is not None and run.started_at == run.lease.started_at
    waiting = drop_lease(run, due_at=until, started_at=None if is_new else run.started_at)
    return claim.having(task=with_changes(claim.task, now, runs=claim.task.runs_with(waiting))).because(why)


def _on_live_lease(lease: Lease) -> DeliveryResult | Hop:
    """Dispatch again at the lease's end.

    A worker renews its lease all the time, so leave that one to the sweep.
    """
    if lease.worker is not None:
        return drop(f"worker {lease.worker!r} is running it")
    return Hop(lease.until, "another executor is running it")


def _claim_or_offer(task: Task, run: Run, dispatch: Dispatch, now: datetime, lease: Lease) -> Commit:
    """Claim an attempt that is due, or offer it if it is for workers."""
    if task.workers is not None:
        granted = _with_turn(run, dispatch, now + TURN_TIMEOUT if dispatch.turn_key else None)
        offered = granted.model_copy(update={"waiting_for": None})
        step = Commit(with_changes(task, now, runs=task.runs_with(offered)))
        return step.because(f"attempt {run.attempt} is offered in {task.workers.queue_key!r}")
    claimed = with_lease(run, lease, had_turn=bool(dispatch.turn_key))
    return Commit(
        with_changes(task, now, runs=task.runs_with(claimed)),
        effects=Effects(claimed, f"attempt {run.attempt}"),
    )


def _with_turn(run: Run, dispatch: Dispatch, until: datetime | None) -> Run:
    """Return an offered run with the turn that a dispatch brings. The turn lasts until `until`."""
    return run.model_copy(update={"turn": max(run.turn, dispatch.turn), "turn_until": until})


def _on_occurrence(
    task: Task,
    dispatch: Dispatch,
    now: datetime,
    lease: Lease,
) -> DeliveryResult | Hop | Commit:
    occurrence = task.next_execution_time
    if occurrence is None:
        return drop("the occurrence is done")
    name = occurrence_id(task, occurrence)
    # guard: other occurrence
    if dispatch.execution_id != name:
        return drop(
            "the occurrence is done" if dispatch.scheduled_for < occurrence else f"the next occurrence is {name}"
        )

    start = jittered_start(task, occurrence) if task.jitter or task.zone_change else occurrence
    if start > now:  # guard: early occurrence
        return Hop(start, "it is too early")
    if task.runs and waits_for_open_run(task):  # guard: open run
        return drop("a run of the task is open; its end decides")
    if len(task.runs) >= MAX_OPEN_RUNS:
        return _on_too_many_runs(task, now)
    return _claim_occurrence(task, name, start, now, lease, had_turn=bool(dispatch.turn_key))


def _on_too_many_runs(task: Task, now: datetime) -> DeliveryResult | Hop:
    """Dispatch again when a run may have finished. For slow workers, leave that to the end of a run."""
    if task.workers is not None:
        return drop(f"{MAX_OPEN_RUNS} runs of the task are open; the end of one decides")
    soonest = min(run.wake_at for run in task.runs)
    return Hop(max(soonest, now + FULL_RETRY_DELAY), f"{MAX_OPEN_RUNS} runs of the task are open")


def _claim_occurrence(
    task: Task,
    name: str,
    start: datetime,
    now: datetime,
    lease: Lease,
    *,
    had_turn: bool,
) -> Commit:
    """Claim the task's next occurrence, or what its policies run instead."""
    at = task.next_execution_time
    assert at is not None  # noqa: S101 - it has come
    noted = task
    following, lost = _find_following(task, at)
    chosen: datetime | None = at
    last = at
    missed: tuple[Execution, ...] = ()
    is_alone = _is_alone(task, start, following, now)  # guard: due now
    if not is_alone:
        decision = _decide_due(task, at, now)
        noted, missed = record_missed(task, decision.decided, now)
        if decision.kept:
            chosen = last = decision.kept[0].next_at
        else:
            chosen = None
            last = decision.decided[-1].until
        following, lost = _find_following(noted, last)

    records = missed
    note = None
    if task.schedule.is_adjusted:
        note = task.schedule.adjustment_note(last)
        noted, left_out = note_left_out(noted, last, now)
        records = (*left_out, *missed)

    run_count = task.run_count + (chosen is not None)
    is_last = task.max_runs is not None and run_count >= task.max_runs
    changes: dict[str, Any] = {
        "run_count": run_count,
        "planned_to": last,
        "next_execution_time": None if is_last else following,  # guard: next occurrence
    }
    if lost is not None and not is_last:
        # A rule that was accepted may become too sparse to search. A dispatch that failed would be delivered
        # again and again, and search each time.
        why = f"Paused, since its next occurrence was not found: {lost.problem}. Give it another schedule."
        changes |= {"status": TaskStatus.PAUSED, "message": why}
    if chosen is None:
        changes |= {"outcome": missed[-1].status, "outcome_execution_id": missed[-1].id}
        passed = with_changes(noted, now, **changes)
        if lost is not None:
            return Commit(passed, executions=records).because("passed over, and paused")
        return Commit(continue_or_complete(passed, now), executions=records).because("passed over")

    if chosen != at:
        name = occurrence_id(task, chosen)
        start = jittered_start(task, chosen)
    if had_turn:
        lease = _after_turn(lease, start)
    is_claimed = task.workers is None
    run = Run.build(
        execution_id=name,
        scheduled_for=chosen,
        due_at=start,
        is_counted=True,
        lease=lease if is_claimed else None,
        started_at=now if is_claimed else None,
        note=note,
    )
    claimed = with_changes(noted, now, runs=(*task.runs, run), **changes)
    if task.workers is not None:
        return Commit(claimed, executions=records).because(
            f"attempt 1 is offered in {task.workers.queue_key!r}",
        )
    return Commit(claimed, executions=records, effects=Effects(run, "attempt 1"))


def _is_alone(task: Task, start: datetime, following: datetime | None, now: datetime) -> bool:
    """Return whether a due occurrence is the only one, and in time. Nearly all are."""
    if task.backlog:
        return False
    # Jitter only delays a start. A change of zone may have made it earlier.
    if following is not None and (following <= now or task.zone_change) and jittered_start(task, following) <= now:
        return False
    return start == now or now - start <= find_tolerance(task)


def _decide_due(task: Task, at: datetime, now: datetime) -> BacklogDecision:
    """Decide which of the due occurrences run. If the search for others gives up, the next one alone runs."""
    try:
        return decide_backlog(task, now)
    except InvalidSchedule:
        return BacklogDecision(kept=(DueRange(next_at=at, until=at),))


def _find_following(task: Task, last: datetime) -> tuple[datetime | None, InvalidSchedule | None]:
    """Return the occurrence after one. If it is not found although there may be one, the error says why."""
    try:
        return occurrence_after(task, last), None
    except InvalidSchedule as error:
        return None, error


def _expire_unclaimed(
    task: Task,
    run: Run,
    dispatch: Dispatch,
    now: datetime,
) -> DeliveryResult | Hop | Commit:
    """Record a run that waited too long for a worker as EXPIRED. Drop any other dispatch of it."""
    expiry = offer_expiry(task, run)
    if expiry is None or dispatch.due_at < expiry:
        return drop("it waits for a worker")
    if expiry > now:
        return Hop(expiry, "it may still wait for a worker")
    why = f"No worker took it by {name_instant(task, expiry)}."
    ended = drop_unstarted(task, run).model_copy(
        update=last_run_fields(task, run, ExecutionStatus.EXPIRED, now),
    )
    record = execution_record(task, run, ExecutionStatus.EXPIRED, now, message=why)
    expired = Commit(continue_or_complete(ended, now), executions=(record,))
    return expired.because("no worker took it in time")


def with_lease(run: Run, lease: Lease, *, had_turn: bool = False) -> Run:
    """Return a run whose attempt begins with a lease."""
    return run.model_copy(
        update={
            "lease": _after_turn(lease, run.due_at) if had_turn else lease,
            "started_at": run.started_at or lease.started_at,
            "waiting_for": None,
            "turn_until": None,
            "released_claim": None,
            "released_by": None,
            "suspension": None,
            "resumed_from": run.wait_for_event,
            "call_finished_while_running": False,
        }
    )


def _after_turn(lease: Lease, since: datetime) -> Lease:
    """Return the lease of a run that waited for its turn since then."""
    return lease.model_copy(update={"lock_waited_since": since})


def make_lease(
    task: Task, now: datetime, token_hash: str, *, worker: str | None = None, **claimant: str | None
) -> Lease:
    """Return a lease that begins now. `claimant` is what else is known of whoever holds it."""
    return Lease.build(
        token_hash=token_hash,
        started_at=now,
        until=now + task.expected_duration,
        worker=worker,
        queue=task.workers.queue if worker is not None and task.workers is not None else None,
        **claimant,
    )


def _on_expired_lease(task: Task, run: Run, dispatch: Dispatch, now: datetime, lease: Lease) -> Commit:
    """Close the attempt whose lease has ended, and start the next one if the retry policy allows one.

    A dispatch of an older revision closes it too, but starts nothing: the current revision has a dispatch
    of its own.
    """
    lapsed = on_lease_expired(task, run, now)
    waiting = lapsed.task.find_run(run.execution_id)
    if waiting is None or not task.is_active:  # guard: paused meanwhile
        return lapsed.because("its lease had ended, and no attempt follows")
    if task.workers is not None:
        return lapsed.because("its lease had ended; the next attempt waits for a worker")
    if dispatch.revision != task.revision:  # guard: revision of retry
        return lapsed.because("its lease had ended; the next attempt is the task's newer revision's")
    claimed = with_lease(waiting, lease)
    step = Commit(
        with_changes(lapsed.task, now, runs=lapsed.task.runs_with(claimed)),
        executions=lapsed.executions,
    )
    return step.because(
        f"attempt {claimed.attempt}, since the lease of attempt {run.attempt} had ended",
        claimed,
    )
