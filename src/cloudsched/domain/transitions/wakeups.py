"""The instants at which a task needs processing, and the dispatches that wake the executor for them.

* A **wake-up** is such an instant. `executor_wakeups` derives all of them from the task's document alone, each as the
  dispatch that is due then, so they can be computed again after any crash.
* A **dispatch** is the queue message for a wake-up. Where the wake-up lies beyond the horizon the dispatch is a *hop*:
  it is delivered early and only sends the next one. Its name is derived from the run that it may start, so creating it
  twice is harmless.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from cloudsched.domain.documents.execution import Run, WaitingFor, is_orphaned
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.planning import jittered_start, occurrence_id, waits_for_open_run

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task

TURN_TIMEOUT = timedelta(minutes=1)
"""The time for which a turn is kept for a run that was told of it."""
HORIZON = timedelta(days=30) - timedelta(minutes=1)
"""The furthest ahead that a dispatch is created. Cloud Tasks refuses more than 30 days by its own clock
(cloud.google.com/tasks/docs/quotas). The minute allows for a slow clock on this side."""
HOP_MARGIN = timedelta(hours=1)
"""The least time from the last hop to its wake-up."""

_quote: Final = json.JSONEncoder().encode


def executor_wakeups(task: Task) -> tuple[Dispatch, ...]:
    """Return the wake-ups of the executor: for waiting runs, and for the next occurrence unless an open run blocks it.

    A run that waits for a worker wakes the executor only when its expiration ends.
    """
    if task.status is not TaskStatus.ACTIVE or task.deleted_at is not None:
        return ()
    wakeups = [
        dispatch_run(task, run, at)
        for run in task.runs
        if run.lease is None and (at := _waits_until(task, run)) is not None  # guard: dispatch of run
    ]
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
    """Return when the executor is to wake for a run without a lease.

    None if it waits for a worker for ever.
    """
    return offer_expiry(task, run) if run.waiting_for is WaitingFor.WORKER else run.due_at


def offer_expiry(task: Task, run: Run) -> datetime | None:
    """Return when a run that waits for a worker expires, or None if it may wait for ever."""
    return add_duration(run.due_at, task.expiration) if task.expiration and run.started_at is None else None


def lease_expiries(task: Task) -> tuple[Dispatch, ...]:
    """Return the ends of the leases of running attempts: lapsed ones are closed whatever the task's status."""
    return tuple(dispatch_run(task, run, run.lease.until) for run in task.runs if run.lease is not None)


def list_orphaned_attempts(task: Task, holder: str) -> tuple[Dispatch, ...]:
    """Return the running attempts whose process has ended, as `holder` has taken its place.

    Each is overdue.
    """
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


def wake_instant(task: Task) -> datetime | None:
    """Return when the sweep must process the task if nothing else has: its earliest wake-up.

    It is never before the task's last change, which has just dispatched overdue runs. So nothing new
    appears among the instants that a sweep has left behind, and the next one need not search them again.
    """
    if task.deleted_at is not None or task.deferred:  # guard: unfinished work
        return task.updated_at
    is_active = task.status is TaskStatus.ACTIVE
    if not is_active and task.has_ended:
        earliest = None if task.retention is None else add_duration(task.status_changed_at, task.retention)
    else:
        due = [run.lease.until for run in task.runs if run.lease is not None]  # guard: lease wakes
        if is_active:
            # guard: waiting wakes
            waiting = (
                _next_start(task),
                *[_waits_until(task, run) for run in task.runs if run.lease is None],
            )
            due += [at for at in waiting if at is not None]
        due += [wake.due_at for wake in list_grant_expiries(task)] if task.workers is not None else []
        due += [task.updated_at] if task.zone_plan is not None and task.zone_plan.is_stale and is_active else []
        earliest = min(due, default=None)
    return None if earliest is None else max(earliest, task.updated_at)


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
    """The execution whose end allowed an overdue occurrence to start: its first dispatch came while that was open."""
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

    def encode(self, trace: str = "") -> tuple[str, bytes]:
        """Return the name and the body, a JSON object, as a part of that trace.

        The body begins with the identity of the run that this dispatch may start. The name is derived
        from that.
        """
        identity = (
            f'{{"taskId":{_quote(self.task_id)},"revision":{self.revision},"executionId":{_quote(self.execution_id)}'
            f',"scheduledFor":"{_to_text(self.scheduled_for)}","attempt":{self.attempt}'
            f',"dueAt":"{_to_text(self.due_at)}","after":{_quote(self.after)},"hop":{self.hop},"repair":{self.repair}'
        )
        if self.suspension_count:
            identity += f',"suspensionCount":{self.suspension_count}'
        if self.turn_key:
            identity += f',"lockKey":{_quote(self.turn_key)}'
        if self.turn:
            identity += f',"lockGrant":{self.turn}'
        delivery = f',"at":"{_to_text(self.at)}"' + (f',"trace":{_quote(trace)}' if trace else "")
        digest = hashlib.sha256(f"{identity}}}".encode()).hexdigest()
        return f"{digest[:32]}-{self.task_id}", f"{identity}{delivery}}}".encode()

    @property
    def body(self) -> bytes:
        """The message as bytes, as the queue carries it."""
        return self.encode(self.trace)[1]

    @property
    def name(self) -> str:
        """A Cloud Tasks task id: the same for the same content, and evenly spread, which Cloud Tasks asks for.

        Sequential names raise latency and errors
        (cloud.google.com/tasks/docs/reference/rest/v2/projects.locations. queues.tasks/create), so it
        begins with a hash.
        """
        return self.encode()[0]

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> Self:
        """Read a message that was delivered. Raises ValueError if it is none."""
        try:
            task_id = data["taskId"]
            execution_id = data["executionId"]
            after = data["after"]
            trace = data.get("trace", "")
            turn_key = data.get("lockKey", "")
            instants = data["scheduledFor"], data["dueAt"], data["at"]
            revision = data["revision"]
            attempt = data["attempt"]
            hop = data["hop"]
            repair = data["repair"]
            suspension_count = data.get("suspensionCount", 0)
            turn = data.get("lockGrant", 0)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a dispatch has a field {error}") from error
        if not {*map(type, (task_id, execution_id, after, trace, turn_key, *instants))} <= {str}:
            raise ValueError("taskId, executionId, scheduledFor, dueAt, at, after and lockKey are strings")
        numbers = revision, attempt, hop, repair, suspension_count, turn
        if not {*map(type, numbers)} <= {int} or min(numbers) < 0:
            raise ValueError(
                "revision, attempt, hop, repair, suspensionCount and lockGrant are whole numbers",
            )
        scheduled_for, due_at, delivered_at = map(datetime.fromisoformat, instants)
        if scheduled_for.tzinfo is None or due_at.tzinfo is None or delivered_at.tzinfo is None:
            raise ValueError("scheduledFor, dueAt and at name their offset from UTC")
        return cls(
            task_id=task_id,
            revision=revision,
            execution_id=execution_id,
            scheduled_for=scheduled_for,
            attempt=attempt,
            due_at=due_at,
            at=delivered_at,
            after=after,
            hop=hop,
            repair=repair,
            suspension_count=suspension_count,
            turn_key=turn_key,
            turn=turn,
            trace=trace,
        )


@lru_cache(maxsize=100)  # a dispatch has most of its instants three times
def _to_text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def dispatch_run(task: Task, run: Run, due_at: datetime) -> Dispatch:
    """Return the dispatch that wakes the executor for a run at this instant, however far it is."""
    return Dispatch(task.id, task.revision, run.execution_id, run.scheduled_for, run.attempt, due_at, due_at)


def dispatch_or_hop(
    task: Task,
    wakeup: Dispatch,
    now: datetime,
    *,
    hop: int = 0,
    repair: int = 0,
    clock_lag: timedelta = timedelta(0),
) -> Dispatch:
    """Return the dispatch to send now for a wake-up, or a hop at the horizon if it lies beyond.

    A hop comes at least `HOP_MARGIN` before the wake-up: one that waits in a long queue for less does not
    delay it. If this clock is behind the queue's by `clock_lag`, it is delivered that much later: it is
    due by this one then.
    """
    horizon = now + HORIZON
    # guard: hop horizon
    at = max(now, wakeup.due_at if wakeup.due_at <= horizon else min(wakeup.due_at - HOP_MARGIN, horizon))
    run = task.find_run(wakeup.execution_id) if task.runs else None
    was_held_back = wakeup.due_at <= now and run is None
    return wakeup._replace(
        revision=task.revision,
        after=(task.last_execution_id or "") if was_held_back else "",
        at=at + clock_lag,
        hop=hop,
        repair=repair,
        suspension_count=run.suspension_count if run else 0,
        turn_key="",
        turn=0,
    )


def repair_number(overdue: timedelta) -> int:
    """Return the number of the sweep's repair of a wake-up that is overdue by this much.

    It changes when the time overdue doubles, and every ten minutes from the sixteenth minute on. So
    simultaneous sweeps send the same dispatch, a dispatch that waits in a long queue is not repeated
    every minute, and one that was lost twice is sent a third time.
    """
    minutes = int(overdue / timedelta(minutes=1))
    # guard: repair number
    return minutes.bit_length() + 1 if minutes < 16 else 4 + minutes // 10  # noqa: PLR2004 - explained above
