"""Runs that a caller asks for: one now, or those of a past range again. Each request has ids of its own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import Run, Trigger
from cloudsched.domain.documents.task import Backfill, KeyedTrigger, ManualRequest, TaskStatus
from cloudsched.domain.transitions.growth import require_payload_room
from cloudsched.domain.transitions.lifecycle import Transition, start_next_backfill, with_changes
from cloudsched.domain.transitions.planning import requested_id
from cloudsched.domain.transitions.requirements import require_backfillable, require_snoozable, require_triggerable
from cloudsched.errors import InvalidInput, KeyReused, NotAllowed

if TYPE_CHECKING:
    from cloudsched.domain.documents.authority import Requesters
    from cloudsched.domain.documents.task import Task


MAX_SNOOZE: Final = timedelta(days=30)
SAME_SNOOZE: Final = timedelta(minutes=1)
"""How close two snoozes are that are one: a second click."""
MAX_KEYED_TRIGGERS: Final = 50
"""How many of the latest keys a task remembers: about 7 KB."""


@dataclass(frozen=True, slots=True)
class TriggerMark:
    """The idempotency key of a trigger."""

    key: str
    """A hash of the key and of who uses it."""
    fingerprint: str
    """A hash of what is asked for."""

    @classmethod
    def of(cls, key: str, caller: str, payload: dict[str, Any] | None) -> TriggerMark:
        """Return the mark of a key that a caller gives with a payload; None means the task's."""
        return cls(_hash([caller, key]), _hash(payload))

    def find(self, task: Task) -> str | None:
        """Return the execution that this very request has asked for before, if the task remembers it.

        Raises:
            KeyReused: The key was used for another request.
        """
        found = next((each for each in task.keyed_triggers if each.key == self.key), None)
        if found is not None and found.fingerprint != self.fingerprint:
            hint = "A key identifies one request; use a new key for a different request."
            raise KeyReused("Idempotency-Key", "was already used for a different request", hint)
        return None if found is None else found.execution_id

    def add_to(self, task: Task, execution: str) -> tuple[KeyedTrigger, ...]:
        """Return the triggers that the task remembers once this one has asked for an execution."""
        kept = task.keyed_triggers[-MAX_KEYED_TRIGGERS + 1 :]
        return (*kept, KeyedTrigger(key=self.key, fingerprint=self.fingerprint, execution_id=execution))


def find_triggered(task: Task, mark: TriggerMark | None) -> str | None:
    """Return the execution that a trigger has asked for, of the task that the trigger returned."""
    if mark is not None:
        return mark.find(task)
    manual = task.last_manual_request
    return None if manual is None else requested_id(manual.at, Trigger.MANUAL, manual.at)


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def trigger(
    task: Task,
    now: datetime,
    request: str,
    payload: dict[str, Any] | None = None,
    mark: TriggerMark | None = None,
    *,
    author: Requesters | None,
) -> Transition:
    """Run the task now, once, without changing its plan. A `request` that was processed before changes nothing.

    Args:
        task: The task.
        now: The current time.
        request: Identifies the request, also after a lost answer.
        payload: What this run gets in place of the task's payload.
        mark: The caller's idempotency key, if there is one.
        author: Whose payload it is; None for a server's.

    Raises:
        KeyReused: The key was used for another request.
        NotAllowed: The task is not active, or has too many open runs.
        InvalidInput: There is no room for the payload.
    """
    if task.last_manual_request and task.last_manual_request.token == request:
        return Transition(task)
    if mark is not None and mark.find(task) is not None:
        return Transition(task)
    require_triggerable(task)
    manual = _next_manual_request(task, now, request)
    identity = requested_id(manual.at, Trigger.MANUAL, manual.at)
    run = Run(
        execution_id=identity,
        scheduled_for=manual.at,
        trigger=Trigger.MANUAL,
        due_at=now,
        payload=payload,
        defined_by=None if payload is None else author,
    )
    marks = {} if mark is None else {"keyed_triggers": mark.add_to(task, identity)}
    triggered = with_changes(task, now, runs=task.runs_with(run), last_manual_request=manual, **marks)
    require_payload_room(triggered)
    return Transition(triggered)


def find_latest(task: Task) -> str | None:
    """Return the execution that a snooze is of: the latest one that has begun, or else the one that finished last."""
    begun = [run for run in task.runs if run.started_at is not None]
    return max(begun, key=lambda run: run.scheduled_for).execution_id if begun else task.last_execution_id


def require_latest(task: Task, execution_id: str) -> None:
    """Check that an execution is the one that a snooze would be of. Raises NotAllowed."""
    if find_latest(task) != execution_id:
        raise NotAllowed("snooze", "past that run", "It has run again since; snooze what has run last.")


def snooze(task: Task, now: datetime, until: datetime, request: str, latest: str | None = None) -> Transition:
    """Run again at `until` what has run last, without changing the plan: its occurrences until then run, too.

    A task has one snooze at most that waits: another one moves it, and one for the same minute changes nothing, so a
    second click does not run it twice. A task that has ended is active again until that run is over.

    Raises:
        InvalidInput: It is in the past, or too far.
        NotAllowed: Nothing of the task has run, something else than `latest` has run last, it is paused or cancelled,
            or it has too many open runs.
    """
    if task.last_manual_request and task.last_manual_request.token == request:
        return Transition(task)
    require_snoozable(task)
    if latest is not None:
        require_latest(task, latest)
    if not now < until <= now + MAX_SNOOZE:
        problem = "is not later than now" if until <= now else f"is longer than {MAX_SNOOZE.days} days"
        raise InvalidInput("duration", problem, "Give up to 30 days, such as PT10M or 10 minutes.")
    waiting = next((run for run in task.runs if run.is_waiting_snooze), None)
    if waiting is not None and abs(waiting.due_at - until) < SAME_SNOOZE:
        return Transition(task)
    manual = _next_manual_request(task, now, request)
    fresh = Run(
        execution_id=requested_id(until, Trigger.SNOOZE, manual.at),
        scheduled_for=until,
        trigger=Trigger.SNOOZE,
        due_at=until,
        note=f"{find_latest(task)} again, since it was snoozed.",
    )
    moved = {"scheduled_for": until, "due_at": until, "note": fresh.note, "waiting_for": None, "lock_turn_until": None}
    run = fresh if waiting is None else waiting.model_copy(update=moved)
    message = task.message if task.is_active else "Snoozed."
    changes = {"status": TaskStatus.ACTIVE, "message": message, "last_manual_request": manual}
    return Transition(with_changes(task, now, runs=task.runs_with(run), **changes))


def _next_manual_request(task: Task, now: datetime, request: str) -> ManualRequest:
    last = task.last_manual_request
    return ManualRequest(at=now if last is None else max(now, last.at + timedelta(microseconds=1)), token=request)


def backfill(task: Task, start: datetime, end: datetime, now: datetime, request: str) -> Transition:
    """Run the past occurrences from `start` to `end` (both included), one after the other.

    A `request` that was processed before changes nothing.
    """
    if task.last_manual_request and task.last_manual_request.token == request:
        return Transition(task)
    require_backfillable(task)
    if end > now:
        raise InvalidInput("end", "lies in the future", "A backfill runs occurrences of the past.")
    if end < start:
        raise InvalidInput("end", "is before start", "Give the earlier instant as start.")
    first = task.schedule.next_after(start - timedelta(microseconds=1))
    if first is None or first > end:
        raise InvalidInput("start", "has no occurrence up to end", "Widen the range.")
    manual = _next_manual_request(task, now, request)
    requested = with_changes(
        task, now, backfill=Backfill(requested_at=manual.at, next_at=first, until=end), last_manual_request=manual
    )
    return Transition(start_next_backfill(requested, now))
