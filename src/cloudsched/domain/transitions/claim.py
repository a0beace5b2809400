"""What to do with a dispatch: the decision between its arrival and the handler's call.

The answer is one of three. `Drop`: nothing is to be run, because the dispatch is old, or what it asks for is done.
`Hop`: it is too early, or another executor holds the lease; come again then. `Begin`: commit this step, and call the
handler if the step claims a run.

Policies, each decided here and each leaving its trace in the executions:

* An occurrence later than the task's ``expiration`` is recorded as EXPIRED and not run.
* Several occurrences due at once are a backlog: ``catchUp`` says which run; the others are recorded as SKIPPED. A
  backlog is worked off in portions of `PORTION` records, so that no commit grows without bound.
* What came due while a run was open is skipped first, as ``overlap`` says, in portions too.
* An attempt whose lease ended without a result is recorded as TIMED_OUT and counts: the next one begins at once, as
  long as the retry policy has attempts left.
* What is for workers is not called but offered; a run that no worker took within the task's ``expiration`` is recorded
  as EXPIRED. `on_pull` is a worker's claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import Awaits, Execution, ExecutionStatus, Lease, Run
from cloudsched.domain.documents.policy import CatchUpMode, Overlap
from cloudsched.domain.documents.task import MAX_OPEN_RUNS
from cloudsched.domain.transitions.finish import PORTION, lease_lapsed, still_overlapped
from cloudsched.domain.transitions.lifecycle import Step, closed, ending, moved, pumped, settled, without_unbegun
from cloudsched.domain.transitions.locks import RESERVATION
from cloudsched.domain.transitions.offers import expires_at, offered_runs
from cloudsched.domain.transitions.planning import due_occurrences, execution_id, occurrence_after, start_of

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.planning import Dispatch

CROWDED = timedelta(minutes=1)
"""How long an occurrence waits at least that finds all places taken: those who hold them may be overdue themselves."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Run nothing, and say why."""

    why: str


@dataclass(frozen=True, slots=True)
class Hop:
    """Run nothing yet; send the dispatch again for then."""

    until: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Commit the step; then call the handler for `run`, if there is one."""

    step: Step
    run: Run | None
    why: str


def on_dispatch(task: Task, dispatch: Dispatch, now: datetime, lease_token: str) -> Drop | Hop | Begin:
    """Decide what a dispatch that arrived at `now` may do. `lease_token` is fresh and random."""
    if task.deleted_at is not None:
        return Drop("the task is being deleted")
    run = task.run(dispatch.execution_id)
    if run and run.lease and run.lease.until <= now:
        return _take_over(task, run, dispatch, now, lease_token)
    if dispatch.revision != task.revision:
        return Drop(f"its revision is {dispatch.revision}, the task's is {task.revision}")
    if not task.is_active:
        return Drop(f"the task is {task.status}")
    if run:
        return _on_open_run(task, run, dispatch, now, lease_token)
    return _on_occurrence(task, dispatch, now, lease_token)


def _on_open_run(task: Task, run: Run, dispatch: Dispatch, now: datetime, lease_token: str) -> Drop | Hop | Begin:
    if dispatch.resumption < run.resumption:
        return Drop("it has been suspended since")
    if dispatch.attempt < run.attempt:
        return Drop(f"attempt {dispatch.attempt} has ended; {run.attempt} is next")
    if run.lease:
        return _on_live_lease(run.lease)
    if run.awaits is Awaits.WORKER:
        return _on_offered(task, run, dispatch, now)
    if run.due_at > now:
        return Hop(run.due_at, "it is too early")
    return _begun(task, run, dispatch, now, lease_token)


def _on_offered(task: Task, run: Run, dispatch: Dispatch, now: datetime) -> Drop | Hop | Begin:
    """Give up a run that waits for a worker; or note that its turn at its lock begins, or has ended without one.

    That its turn begins is committed each time: whoever puts it back into the line at this moment has to look again.
    """
    decision = _given_up(task, run, dispatch, now)
    if not isinstance(decision, Drop):
        return decision
    if dispatch.lock_key:
        begun = run.model_copy(update={"turn_until": now + RESERVATION, "turns": run.turns + 1})
        return Begin(Step(moved(task, now, runs=task.with_run(begun))), None, "its turn at its lock has come")
    if run.turn_until is not None and run.turn_until <= now:
        ended = run.model_copy(update={"turn_until": None})
        return Begin(Step(moved(task, now, runs=task.with_run(ended))), None, "no worker came in its turn at its lock")
    return decision


def has_missed_its_turn(run: Run, dispatch: Dispatch) -> bool:
    """Whether a dispatch was sent at the end of a turn at the lock in which no worker came for the run."""
    return run.awaits is Awaits.WORKER and run.turn_until is None and dispatch.due_at > run.due_at


def _on_live_lease(lease: Lease) -> Drop | Hop:
    """Come again at the lease's end; a worker renews its lease all the time, so that is left to the sweep."""
    if lease.worker is not None:
        return Drop(f"worker {lease.worker!r} is running it")
    return Hop(lease.until, "another executor is running it")


def _begun(task: Task, run: Run, dispatch: Dispatch, now: datetime, lease_token: str) -> Begin:
    """Claim an attempt that is due, or offer it if it is for workers."""
    if task.pull is not None:
        turn_until = now + RESERVATION if dispatch.lock_key else None
        offered = run.model_copy(update={"awaits": None, "turn_until": turn_until})
        step = Step(moved(task, now, runs=task.with_run(offered)))
        return Begin(step, None, f"attempt {run.attempt} is offered in {task.pull.lane!r}")
    claimed = _claimed(task, run, now, lease_token)
    return Begin(Step(moved(task, now, runs=task.with_run(claimed))), claimed, f"attempt {run.attempt}")


def _on_occurrence(task: Task, dispatch: Dispatch, now: datetime, lease_token: str) -> Drop | Hop | Begin:
    occurrence = task.next_execution_time
    if occurrence is None or dispatch.scheduled_for < occurrence:
        return Drop("the occurrence is done")
    if dispatch.execution_id != execution_id(occurrence):
        return Drop(f"the next occurrence is {execution_id(occurrence)}")
    start = start_of(task, occurrence)
    if start > now:
        return Hop(start, "it is too early")
    if task.runs and task.overlap is not Overlap.ALLOW:
        return Drop("a run of the task is open; its end decides")
    if len(task.runs) >= MAX_OPEN_RUNS:
        return _on_crowd(task, now)
    return _begin(task, now, lease_token)


def _on_crowd(task: Task, now: datetime) -> Drop | Hop:
    """Come again when a run may have ended; workers may take any time, and the end of a run sends it all the same."""
    if task.pull is not None:
        return Drop(f"{MAX_OPEN_RUNS} runs of the task are open; the end of one decides")
    soonest = min(run.wakes_at for run in task.runs)
    return Hop(max(soonest, now + CROWDED), f"{MAX_OPEN_RUNS} runs of the task are open")


def _begin(task: Task, now: datetime, lease_token: str) -> Begin:
    task, records = still_overlapped(task, now)
    chosen, passed = None, [record.scheduled_for for record in records]
    if not records:
        due = list(islice(due_occurrences(task, now), PORTION + 1))
        chosen, passed = _choose(task, due[:PORTION], now, more=len(due) > PORTION)
        records = tuple(_passed_over(task, occurrence, now, chosen) for occurrence in passed)
    if chosen is None:
        following = occurrence_after(task, passed[-1])
        fate = {"outcome": records[-1].status, "outcome_of": records[-1].id}
        planned = task.model_copy(update={"next_execution_time": following, "planned_to": passed[-1], **fate})
        return Begin(Step(settled(pumped(planned, now), now), records), None, f"{len(records)} passed over")
    counted = task.model_copy(update={"run_count": task.run_count + 1, "planned_to": chosen})
    start = start_of(task, chosen)
    waiting = Run(execution_id=execution_id(chosen), scheduled_for=chosen, due_at=start, is_counted=True)
    following = occurrence_after(counted, chosen)
    if task.pull is not None:
        offered = moved(counted, now, next_execution_time=following, runs=(*task.runs, waiting))
        return Begin(Step(offered, records), None, f"attempt 1 is offered in {task.pull.lane!r}")
    run = _claimed(task, waiting, now, lease_token)
    claimed = moved(counted, now, next_execution_time=following, runs=(*task.runs, run))
    return Begin(Step(claimed, records), run, "attempt 1")


def _choose(task: Task, due: list[datetime], now: datetime, *, more: bool) -> tuple[datetime | None, list[datetime]]:
    """Split what is due into the occurrence to run, if any, and those before it that are not."""
    tolerance = task.catch_up.tolerance()
    timely = [occurrence for occurrence in due if now - start_of(task, occurrence) <= tolerance]
    timely = [occurrence for occurrence in timely if not _is_expired(task, occurrence, now)]
    if not timely or (more and task.catch_up.mode is not CatchUpMode.ALL):
        return None, due
    chosen = timely[0] if task.catch_up.mode is CatchUpMode.ALL else timely[-1]
    return chosen, due[: due.index(chosen)]


def _is_expired(task: Task, occurrence: datetime, now: datetime) -> bool:
    return task.expiration is not None and now - start_of(task, occurrence) > task.expiration


def _passed_over(task: Task, occurrence: datetime, now: datetime, chosen: datetime | None) -> Execution:
    run = Run(execution_id=execution_id(occurrence), scheduled_for=occurrence, due_at=occurrence)
    late = f"It was {now - start_of(task, occurrence)} late"
    if _is_expired(task, occurrence, now):
        return closed(task, run, ExecutionStatus.EXPIRED, now, message=f"{late}; its task allows {task.expiration}.")
    instead = f"; {execution_id(chosen)} runs in its place" if chosen else ""
    return closed(
        task, run, ExecutionStatus.SKIPPED, now, message=f"{late}{instead} (catchUp is {task.catch_up.mode})."
    )


def on_pull(task: Task, now: datetime, lease_token: str, worker: str) -> tuple[Step, Run] | None:
    """Claim a run that a task offers for a worker; None if it offers none but such as are to be given up."""
    run = next((each for each in offered_runs(task) if not _has_expired(task, each, now)), None)
    if run is None:
        return None
    claimed = _claimed(task, run, now, lease_token, worker)
    return Step(moved(task, now, runs=task.with_run(claimed))), claimed


def on_lock_taken(task: Task, offered: Run, now: datetime) -> Step:
    """Take an offered run off its queue until it has its turn at the lock; the dispatch that wakes it offers it."""
    blocked = offered.model_copy(update={"awaits": Awaits.LOCK, "turns": offered.turns + 1, "turn_until": None})
    return Step(moved(task, now, runs=task.with_run(blocked)))


def _has_expired(task: Task, run: Run, now: datetime) -> bool:
    expiry = expires_at(task, run)
    return expiry is not None and expiry <= now


def _given_up(task: Task, run: Run, dispatch: Dispatch, now: datetime) -> Drop | Hop | Begin:
    """Record a run that waited for a worker for too long; any other dispatch of it has done its work."""
    expiry = expires_at(task, run)
    if expiry is None or dispatch.due_at < expiry:
        return Drop("it waits for a worker")
    if expiry > now:
        return Hop(expiry, "it may still wait for a worker")
    why = f"No worker took it within {task.expiration}."
    ended = without_unbegun(task, run).model_copy(update=ending(run, ExecutionStatus.EXPIRED))
    record = closed(task, run, ExecutionStatus.EXPIRED, now, message=why)
    return Begin(Step(settled(pumped(ended, now), now), (record,)), None, "no worker took it in time")


def _claimed(task: Task, run: Run, now: datetime, lease_token: str, worker: str | None = None) -> Run:
    queue = task.pull.queue if worker is not None and task.pull is not None else None
    lease = Lease(token=lease_token, started_at=now, until=now + task.expected_duration, worker=worker, queue=queue)
    began = run.started_at or now
    return run.model_copy(
        update={
            "lease": lease,
            "started_at": began,
            "lock_key": task.lock_key,
            "awaits": None,
            "turn_until": None,
            "released": None,
            "suspension": None,
            "is_nudged": False,
        }
    )


def _take_over(task: Task, run: Run, dispatch: Dispatch, now: datetime, lease_token: str) -> Begin:
    """Close the attempt whose lease has ended, and begin the next one if there may be one.

    A dispatch of an older revision closes it too, but begins nothing: what follows is sent with the task's own.
    """
    lapsed = lease_lapsed(task, run, now)
    waiting = lapsed.task.run(run.execution_id)
    if waiting is None or not task.is_active:
        return Begin(lapsed, None, "its lease had ended, and no attempt follows")
    if task.pull is not None:
        return Begin(lapsed, None, "its lease had ended; the next attempt waits for a worker")
    if dispatch.revision != task.revision:
        return Begin(lapsed, None, "its lease had ended; the next attempt is the task's newer revision's")
    claimed = _claimed(task, waiting, now, lease_token)
    step = Step(moved(lapsed.task, now, runs=lapsed.task.with_run(claimed)), lapsed.executions)
    return Begin(step, claimed, f"attempt {claimed.attempt}, since the lease of attempt {run.attempt} had ended")
