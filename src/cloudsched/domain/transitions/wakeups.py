"""The instants at which a task needs processing, and the dispatches that wake the executor for them.

* A **wake-up** is such an instant. `executor_wakeups` derives all of them from the task's document alone,
  each as the dispatch that is due then, so they can be computed again after any crash.
* A **dispatch** is the queue message for a wake-up. Where the wake-up lies beyond the horizon the dispatch
  is a *hop*: it is delivered early and only sends the next one. Its name is derived from the run that it
  may start, so creating it twice is harmless.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cloudsched.domain.documents.execution import Run, WaitingFor, is_orphaned
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.planning import jittered_start, occurrence_id, waits_for_open_run

TURN_TIMEOUT = timedelta(minutes=1)
"""The time for which a turn is kept for a run that was told of it."""
END_OF_PAUSE: Final = "end-of-pause"
"""What the dispatch that ends a pause has in place of an execution."""
HORIZON = timedelta(days=30) - timedelta(minutes=1)
"""The furthest ahead that a dispatch is created. Cloud Tasks refuses more than 30 days by its own clock
(cloud.google.com/tasks/docs/quotas). The minute allows for a slow clock on this side."""


def executor_wakeups(task: Task) -> tuple[Dispatch, ...]:
    """Return the executor's wake-ups: for waiting runs, and for the next occurrence unless a run blocks it.

    A run that waits for a worker wakes the executor only when its expiration ends. A paused task has the end of its
    pause, if that comes by itself.
    """
    if task.deleted_at is not None:
        return ()
    if task.status is not TaskStatus.ACTIVE:
        ends = task.paused_until
        return () if ends is None else (Dispatch(task.id, task.revision, END_OF_PAUSE, ends, 1, ends, ends),)
    wakeups = list[Dispatch]()
    for run in task.runs:
        if run.lease is None and (at := _waits_until(task, run)) is not None:  # guard: dispatch of run
            wakeups.append(dispatch_run(task, run, at))
    occurrence = task.next_execution_time
    start = _next_start(task)
    if occurrence is not None and start is not None:
        wakeups.append(
            Dispatch(task.id, task.revision, occurrence_id(task, occurrence), occurrence, 1, start, start),
        )
    return tuple(wakeups)


def _next_start(task: Task) -> datetime | None:
    """Return when the next occurrence starts, or None if there is none, or if an open run blocks it."""
    occurrence = task.next_execution_time
    if occurrence is None or (task.runs and waits_for_open_run(task)):
        return None
    return jittered_start(task, occurrence) if task.jitter or task.zone_change else occurrence


def _waits_until(task: Task, run: Run) -> datetime | None:
    """Return when the executor wakes for a run without a lease, or None if it waits for a worker for ever."""
    return offer_expiry(task, run) if run.waiting_for is WaitingFor.WORKER else run.due_at


def startable_since(task: Task, run: Run) -> datetime:
    """Return when a run could start: when it is due, or at the end of a pause that held it back then."""
    return max(run.due_at, task.status_changed_at)


def offer_expiry(task: Task, run: Run) -> datetime | None:
    """Return when a run that waits for a worker expires, or None if it may wait for ever."""
    if not task.expiration or run.started_at is not None:
        return None
    return add_duration(startable_since(task, run), task.expiration)


def lease_expiries(task: Task) -> tuple[Dispatch, ...]:
    """Return the ends of the leases of running attempts: a lapsed one is closed whatever the task's status."""
    return tuple(dispatch_run(task, run, run.lease.until) for run in task.runs if run.lease is not None)


def list_orphaned_attempts(task: Task, holder: str) -> tuple[Dispatch, ...]:
    """Return an overdue dispatch for each attempt whose process has ended: `holder` has taken its place."""
    return tuple(
        dispatch_run(task, run, run.lease.started_at)
        for run in task.runs
        if run.lease is not None and is_orphaned(run.lease, holder)
    )


def list_grant_expiries(task: Task) -> tuple[Dispatch, ...]:
    """Return when the lock grants of runs that wait for a worker end. The lock then goes to the next waiter.

    Only the sweep checks them, since a worker usually claims the run earlier.
    """
    return tuple(
        dispatch_run(task, run, run.turn_until)
        for run in task.runs
        if run.turn_until is not None and run.waiting_for is WaitingFor.WORKER and task.is_active
    )


def wake_instant(task: Task) -> datetime | None:  # noqa: C901 - one wake-up after the other
    """Return when the sweep must process the task if nothing else has: its earliest wake-up.

    It is never before the task's last change, which has just dispatched overdue runs. So nothing new
    appears among the instants that a sweep has left behind, and the next one need not search them again.
    """
    if task.deleted_at is not None or task.deferred:  # guard: unfinished work
        return task.updated_at
    is_active = task.status is TaskStatus.ACTIVE
    if not is_active and task.has_ended:
        due = [add_duration(task.status_changed_at, task.retention)] if task.retention is not None else []
    else:
        due = list[datetime]()
        for run in task.runs:
            if run.lease is not None:
                due.append(run.lease.until)  # guard: lease wakes
            elif is_active and (at := _waits_until(task, run)) is not None:
                due.append(at)  # guard: waiting wakes
        if task.paused_until is not None:
            due.append(task.paused_until)
        if is_active:
            if (start := _next_start(task)) is not None:
                due.append(start)  # guard: start wakes
            if task.zone_plan is not None and task.zone_plan.is_stale:
                due.append(task.updated_at)
        if task.workers is not None:
            due += [wake.due_at for wake in list_grant_expiries(task)]
    return max(min(due), task.updated_at) if due else None


SWEEP_PREFIX: Final = b'{"sweep":'
"""The first bytes of a dispatch that sweeps a part of a shard. The body of no `Dispatch` begins so."""


class Dispatch(NamedTuple):
    """One message in the queue: wake the executor at `at` for this attempt of this occurrence.

    `dispatch_or_hop` makes of one that is to be sent, as `executor_wakeups` lists them, the one that is
    sent now.
    """

    task_id: str
    revision: int
    execution_id: str
    scheduled_for: datetime
    attempt: int
    due_at: datetime
    """The instant of the wake-up.

    It distinguishes the dispatch of an attempt that was put off from the one before.
    """
    at: datetime
    """The time at which the queue delivers it, by its own clock.

    It is not part of the identity, nor of the name.
    """
    after: str = ""
    """The execution whose end let an overdue occurrence start: its first dispatch came while that was open."""
    hop: int = 0
    """The number of dispatches that preceded it for the same wake-up."""
    repair: int = 0
    """The number of the sweep's repair that sent it, or 0 for none."""
    suspension_count: int = 0
    """The number of times that the run had been suspended when this was sent."""
    turn_key: str = ""
    """What the run waited for and has a turn at, if that is why this was sent: a lock's key."""
    turn: int = 0
    """The number of that turn: dispatches for several turns of a run differ by it."""
    trace: str = ""
    """The trace to continue, as a ``traceparent``. It is not part of the identity, nor of the name."""


def dispatch_run(task: Task, run: Run, due_at: datetime) -> Dispatch:
    """Return the dispatch that wakes the executor for a run at this instant, however far it is."""
    return Dispatch(task.id, task.revision, run.execution_id, run.scheduled_for, run.attempt, due_at, due_at)


def repair_number(overdue: timedelta) -> int:
    """Return the number of the sweep's repair of a wake-up that is overdue by this much.

    It changes when the time overdue doubles, and every ten minutes from the sixteenth minute on. So
    simultaneous sweeps send the same dispatch, a dispatch that waits in a long queue is not repeated
    every minute, and one that was lost twice is sent a third time.
    """
    minutes = int(overdue / timedelta(minutes=1))
    # guard: repair number
    return minutes.bit_length() + 1 if minutes < 16 else 4 + minutes // 10  # noqa: PLR2004 - explained above
