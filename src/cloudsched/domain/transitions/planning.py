"""When a task runs next, and which dispatches carry it there.

Three ideas:

* An **occurrence** has an id made from its instant, so every retry, duplicate and repair speaks of the same one.
* A **wake** is a moment at which a task wants to be looked at. `executor_wakeups` derives all of them from the task's document
  alone, so they can be made again after any crash.
* A **dispatch** is the message that the queue carries towards a wake. Where the wake lies beyond the horizon the
  dispatch is a *hop*: it comes early, and only sends the next one. Its name is derived from what it may run, so
  making it twice makes it once.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from cloudsched.domain.documents.execution import Trigger, WaitingFor
from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.offers import offer_expiry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task

HORIZON = timedelta(days=30) - timedelta(minutes=1)
"""The furthest that a dispatch lies ahead. Cloud Tasks refuses more than 30 days by its own clock
(cloud.google.com/tasks/docs/quotas); the minute allows for a clock here that is slow."""

_TICK = timedelta(microseconds=1)


def execution_id(
    scheduled_for: datetime, trigger: Trigger = Trigger.SCHEDULE, requested_at: datetime | None = None
) -> str:
    """Return the id of the execution of the occurrence at an instant.

    Runs that were asked for carry when that was, since the same instant may be asked for again.
    """
    stamp = _stamp(scheduled_for)
    if trigger is Trigger.SCHEDULE:
        return stamp
    if requested_at is None:
        raise ValueError(f"an execution by {trigger} is told apart by the instant at which it was asked for")
    return f"{stamp}-{trigger.lower()}" + ("" if requested_at == scheduled_for else f"-{_stamp(requested_at)}")


def _stamp(instant: datetime) -> str:
    instant = instant.astimezone(UTC)
    return instant.strftime("%Y%m%dT%H%M%S.%fZ" if instant.microsecond else "%Y%m%dT%H%M%SZ")


def start_time(task: Task, occurrence: datetime) -> datetime:
    """Return when the occurrence is to start: its instant, plus its own fixed part of the task's jitter."""
    if not task.jitter:
        return occurrence
    digest = hashlib.sha256(f"{task.id} {_stamp(occurrence)}".encode()).digest()
    return add_duration(occurrence, task.jitter * (int.from_bytes(digest[:8]) / 2**64))


def occurrence_after(task: Task, instant: datetime) -> datetime | None:
    """Return the task's first occurrence later than `instant`, or None where its schedule, end or run limit says no.

    What the plan has gone past is not among them, so that no edit at that very instant lets it run again.
    """
    if task.max_runs is not None and task.run_count >= task.max_runs:
        return None
    occurrence = task.schedule.after(instant if task.planned_to is None else max(instant, task.planned_to))
    if occurrence is None or (task.until is not None and occurrence > task.until):
        return None
    return occurrence


def occurrence_from(task: Task, instant: datetime) -> datetime | None:
    """Return the task's first occurrence at or after `instant`."""
    return occurrence_after(task, instant - _TICK)


def due_occurrences(task: Task, now: datetime) -> Iterator[datetime]:
    """Yield the occurrences that have not been claimed and whose start has come, oldest first."""
    occurrence = task.next_execution_time
    while occurrence is not None and start_time(task, occurrence) <= now:
        yield occurrence
        occurrence = occurrence_after(task, occurrence)


def upcoming_occurrences(task: Task, count: int) -> list[datetime]:
    """Return the task's next occurrences that have not been claimed, at most `count`."""
    found: list[datetime] = []
    occurrence = task.next_execution_time
    while occurrence is not None and len(found) < count:
        found.append(occurrence)
        occurrence = occurrence_after(task, occurrence)
    return found if task.max_runs is None else found[: max(0, task.max_runs - task.run_count)]


@dataclass(frozen=True, slots=True)
class WakeUp:
    """A moment at which a task wants to be looked at, and for what."""

    execution_id: str
    scheduled_for: datetime
    attempt: int
    due_at: datetime


def executor_wakeups(task: Task) -> tuple[WakeUp, ...]:
    """Return what an executor is to be woken for: waiting runs, and the next occurrence if nothing holds it back.

    For a run that waits for a worker it is woken only to give it up.
    """
    if not task.is_active:
        return ()
    waiting = tuple(wake for run in task.runs if run.lease is None for wake in _run_wakeups(task, run))
    if task.next_execution_time is None or (task.runs and task.overlap is not Overlap.ALLOW):
        return waiting
    occurrence = task.next_execution_time
    return (*waiting, WakeUp(execution_id(occurrence), occurrence, 1, start_time(task, occurrence)))


def _run_wakeups(task: Task, run: Run) -> tuple[WakeUp, ...]:
    if run.waiting_for is not WaitingFor.WORKER:
        return (_to_wakeup(run),)
    expiry = offer_expiry(task, run)
    return () if expiry is None else (WakeUp(run.execution_id, run.scheduled_for, run.attempt, expiry),)


def lease_expiries(task: Task) -> tuple[WakeUp, ...]:
    """Return when the leases of the task's running attempts end; whatever its status, somebody must close them."""
    return tuple(_to_wakeup(run) for run in task.runs if run.lease is not None)


def lock_turn_expiries(task: Task) -> tuple[WakeUp, ...]:
    """Return when the turns at a lock end that are kept for runs until a worker comes: then others are to have theirs.

    Only the sweep looks at them, since a worker comes sooner as a rule.
    """
    return tuple(
        WakeUp(run.execution_id, run.scheduled_for, run.attempt, run.lock_turn_until)
        for run in task.runs
        if run.lock_turn_until is not None and run.waiting_for is WaitingFor.WORKER and task.is_active
    )


def _to_wakeup(run: Run) -> WakeUp:
    return WakeUp(run.execution_id, run.scheduled_for, run.attempt, run.wake_at)


def wake_instant(task: Task) -> datetime | None:
    """Return when the sweep must look at the task if nobody else has: the earliest moment that it waits for."""
    if task.deleted_at is not None or task.deferred:
        return task.updated_at
    if task.has_ended:
        return None if task.retention is None else add_duration(task.status_changed_at, task.retention)
    return min(
        (wake.due_at for wake in (*executor_wakeups(task), *lease_expiries(task), *lock_turn_expiries(task))),
        default=None,
    )


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One message in the queue: wake the executor at `at`, for this attempt at this occurrence."""

    task_id: str
    revision: int
    execution_id: str
    scheduled_for: datetime
    attempt: int
    due_at: datetime
    """When the wake is. It tells a snoozed attempt's dispatch from the one before."""
    at: datetime
    """When the queue delivers it."""
    after: str = ""
    """The execution whose end lets an overdue occurrence begin: its first dispatch came while that was open."""
    hop: int = 0
    """How many dispatches came before it on the way to the same wake."""
    repair: int = 0
    """Which of the sweep's repairs sent it; 0 for none."""
    suspension_count: int = 0
    """How often the run had been suspended when it was sent."""
    lock_key: str = ""
    """At which lock it is the run's turn, if that is why it was sent."""
    trace: str = ""
    """The trace that it goes on with, as a ``traceparent``. It is no part of what may run, nor of the name."""

    def to_wire(self) -> dict[str, Any]:
        """Return what the message says."""
        return {**self._identity(), **({"trace": self.trace} if self.trace else {})}

    def _identity(self) -> dict[str, Any]:
        """Return what, together with nothing else, identifies what may run."""
        return {
            "taskId": self.task_id,
            "revision": self.revision,
            "executionId": self.execution_id,
            "scheduledFor": self.scheduled_for.isoformat().replace("+00:00", "Z"),
            "attempt": self.attempt,
            "dueAt": self.due_at.isoformat().replace("+00:00", "Z"),
            "after": self.after,
            "hop": self.hop,
            "repair": self.repair,
            **({"suspensionCount": self.suspension_count} if self.suspension_count else {}),
            **({"lockKey": self.lock_key} if self.lock_key else {}),
        }

    @property
    def body(self) -> bytes:
        """The message as it lies in the queue."""
        return _json(self.to_wire())

    @property
    def name(self) -> str:
        """A Cloud Tasks task id: the same for the same content, and evenly spread, which Cloud Tasks asks for.

        Sequential names raise latency and errors (cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.
        queues.tasks/create), so it begins with a hash.
        """
        return f"{hashlib.sha256(_json(self._identity())).hexdigest()[:32]}-{self.task_id}"

    @classmethod
    def from_wire(cls, data: dict[str, Any], at: datetime) -> Self:
        """Read a message that was delivered at `at`.

        Raises:
            ValueError: It is not a message of this form.
        """
        try:
            text = {key: data[key] for key in ("taskId", "executionId", "scheduledFor", "dueAt", "after")}
            text |= {key: data.get(key, "") for key in ("trace", "lockKey")}
            numbers = {key: data[key] for key in ("revision", "attempt", "hop", "repair")}
            numbers["suspensionCount"] = data.get("suspensionCount", 0)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a dispatch has a field {error}") from error
        if not all(isinstance(value, str) for value in text.values()):
            raise ValueError("taskId, executionId, scheduledFor, dueAt, after and lockKey are strings")
        if not all(type(value) is int and value >= 0 for value in numbers.values()):
            raise ValueError("revision, attempt, hop, repair and suspensionCount are whole numbers")
        scheduled_for, due_at = (datetime.fromisoformat(text[key]) for key in ("scheduledFor", "dueAt"))
        if scheduled_for.tzinfo is None or due_at.tzinfo is None:
            raise ValueError("scheduledFor and dueAt name their offset from UTC")
        return cls(
            task_id=text["taskId"],
            revision=numbers["revision"],
            execution_id=text["executionId"],
            scheduled_for=scheduled_for,
            attempt=numbers["attempt"],
            due_at=due_at,
            at=at,
            after=text["after"],
            hop=numbers["hop"],
            repair=numbers["repair"],
            suspension_count=numbers["suspensionCount"],
            trace=text["trace"],
            lock_key=text["lockKey"],
        )


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def dispatch_for(task: Task, wakeup: WakeUp, now: datetime, *, hop: int = 0, repair: int = 0) -> Dispatch:
    """Return the dispatch that carries a task towards a wake: all the way, or as far as the horizon."""
    run = task.find_run(wakeup.execution_id)
    was_held_back = wakeup.due_at <= now and run is None
    return Dispatch(
        task_id=task.id,
        revision=task.revision,
        execution_id=wakeup.execution_id,
        scheduled_for=wakeup.scheduled_for,
        attempt=wakeup.attempt,
        due_at=wakeup.due_at,
        after=(task.last_execution_id or "") if was_held_back else "",
        at=max(now, min(wakeup.due_at, now + HORIZON)),
        hop=hop,
        repair=repair,
        suspension_count=run.suspension_count if run else 0,
    )


def repair_number(overdue: timedelta) -> int:
    """Return which repair a sweep makes of something that is overdue by so much.

    It changes when the time overdue doubles, and every ten minutes from the sixteenth minute on. Sweeps that meet
    send the same dispatch; what is merely waiting in a long queue is not sent again every minute; and what was lost
    twice is sent a third time.
    """
    minutes = int(overdue / timedelta(minutes=1))
    return minutes.bit_length() + 1 if minutes < 16 else 4 + minutes // 10  # noqa: PLR2004 - explained above
