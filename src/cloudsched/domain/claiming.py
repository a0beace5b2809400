"""What to do with a dispatch: the decision between its arrival and the handler's call.

The answer is one of three. `Drop`: nothing is to be run, because the dispatch is old, or what it asks for is done.
`Hop`: it is too early, or another executor holds the lease; come again then. `Begin`: commit this step, and call the
handler if the step claims a run.

Policies, each decided here and each leaving its trace in the executions:

* An occurrence later than the task's ``expiration`` is recorded as EXPIRED and not run.
* Several occurrences due at once are a backlog: ``catchUp`` says which run; the others are recorded as SKIPPED. A
  backlog is worked off in portions of `PORTION` records, so that no commit grows without bound.
* An attempt whose lease ended without a result is recorded as TIMED_OUT and counts: the next one begins at once, as
  long as the retry policy has attempts left.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from cloudsched.domain.execution import Execution, ExecutionStatus, Lease, Run
from cloudsched.domain.finishing import PORTION, lease_lapsed
from cloudsched.domain.lifecycle import Step, closed, moved, pumped, settled
from cloudsched.domain.planning import due_occurrences, execution_id, occurrence_after, start_of
from cloudsched.domain.policy import CatchUpMode, Overlap
from cloudsched.domain.task import MAX_OPEN_RUNS

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.planning import Dispatch
    from cloudsched.domain.task import Task

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
        return Hop(run.lease.until, "another executor is running it")
    if run.due_at > now:
        return Hop(run.due_at, "it is too early")
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
        soonest = min(run.wakes_at for run in task.runs)
        return Hop(max(soonest, now + CROWDED), f"{MAX_OPEN_RUNS} runs of the task are open")
    return _begin(task, now, lease_token)


def _begin(task: Task, now: datetime, lease_token: str) -> Begin:
    due = list(islice(due_occurrences(task, now), PORTION + 1))
    chosen, passed = _choose(task, due[:PORTION], now, more=len(due) > PORTION)
    records = tuple(_passed_over(task, occurrence, now, chosen) for occurrence in passed)
    if chosen is None:
        following = occurrence_after(task, passed[-1])
        planned = task.model_copy(update={"next_execution_time": following, "outcome": records[-1].status})
        return Begin(Step(settled(pumped(planned, now), now), records), None, f"{len(records)} passed over")
    counted = task.model_copy(update={"run_count": task.run_count + 1})
    waiting = Run(execution_id=execution_id(chosen), scheduled_for=chosen, due_at=start_of(task, chosen))
    run = _claimed(task, waiting, now, lease_token)
    claimed = moved(counted, now, next_execution_time=occurrence_after(counted, chosen), runs=(*task.runs, run))
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


def _claimed(task: Task, run: Run, now: datetime, lease_token: str) -> Run:
    lease = Lease(token=lease_token, started_at=now, until=now + task.expected_duration)
    began = run.started_at or now
    return run.model_copy(
        update={
            "lease": lease,
            "started_at": began,
            "lock_key": task.lock_key,
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
    if dispatch.revision != task.revision:
        return Begin(lapsed, None, "its lease had ended; the next attempt is the task's newer revision's")
    claimed = _claimed(task, waiting, now, lease_token)
    step = Step(moved(lapsed.task, now, runs=lapsed.task.with_run(claimed)), lapsed.executions)
    return Begin(step, claimed, f"attempt {claimed.attempt}, since the lease of attempt {run.attempt} had ended")
