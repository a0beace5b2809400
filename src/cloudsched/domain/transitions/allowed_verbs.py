"""The verbs that the state of a task or an execution allows, by the checks that the changes themselves make.

`web.api.visibility` decides which callers may use them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from cloudsched.domain.documents.task import Event, Task, TaskStatus
from cloudsched.domain.transitions.backlog import resume_plan
from cloudsched.domain.transitions.planning import find_budget_pause
from cloudsched.domain.transitions.requirements import (
    require_backfillable,
    require_cancellable,
    require_future,
    require_pausable,
    require_retryable,
    require_snoozable,
    require_triggerable,
)
from cloudsched.domain.transitions.suspend import find_addressee, list_awaited
from cloudsched.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.execution import Execution


class Verb(StrEnum):
    """An action of a caller on a task or an execution, by its name in the API's paths."""

    EDIT = "edit"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    DELETE = "delete"
    TRIGGER = "trigger"
    SNOOZE = "snooze"
    BACKFILL = "backfill"
    SEND_EVENT = "sendEvent"
    RETRY = "retry"


STARTING_VERBS = frozenset({Verb.RESUME, Verb.TRIGGER, Verb.SNOOZE, Verb.BACKFILL, Verb.RETRY})
"""The verbs that make a task run."""


def find_task_verbs(task: Task, now: Callable[[], datetime], sender: EventSender) -> list[Verb]:
    """Return the verbs that a task's state allows, and that would change it. Only some tasks need the clock."""
    return [verb for verb in Verb if _is_allowed(verb, task, now, sender)]


def _is_allowed(verb: Verb, task: Task, now: Callable[[], datetime], sender: EventSender) -> bool:  # noqa: PLR0911 - a case a verb
    match verb:
        case Verb.EDIT | Verb.DELETE:
            return True
        case Verb.PAUSE:
            return _passes(require_pausable, task) or _can_take_over_pause(task)
        case Verb.RESUME:
            return task.status is TaskStatus.PAUSED and _can_resume(task, now)
        case Verb.CANCEL:
            return _passes(require_cancellable, task)
        case Verb.TRIGGER:
            return _passes(require_triggerable, task)
        case Verb.SNOOZE:
            return _passes(require_snoozable, task)
        case Verb.BACKFILL:
            is_active = task.status is TaskStatus.ACTIVE
            return is_active and _passes(require_backfillable, task) and _has_past(task, now)
        case Verb.SEND_EVENT:
            return _takes_events(task, now, sender)
        case Verb.RETRY:
            return False  # of an execution, not of a task
        case unknown:
            assert_never(unknown)


def find_execution_verbs(
    task: Task, execution: Execution, now: Callable[[], datetime], sender: EventSender
) -> list[Verb]:
    """Return the verbs that an execution's state, and its task's, allow."""
    if task.find_run(execution.id) is not None:
        return [Verb.SEND_EVENT] if _takes_events(task, now, sender, execution.id) else []
    return [Verb.RETRY] if _passes(require_retryable, task, execution) else []


def _can_take_over_pause(task: Task) -> bool:
    """Return whether a pause by the declaration's absence, or by the owner's budget, could become the caller's."""
    held = find_budget_pause(task)
    return task.status is TaskStatus.PAUSED and (task.is_paused_as_gone or (held is not None and held.is_alone))


def _can_resume(task: Task, now: Callable[[], datetime]) -> bool:
    if not task.is_one_time or task.planned_to is not None or task.runs:
        return True
    held = find_budget_pause(task)
    since = held.at if held is not None and held.is_alone else now()
    return _passes(require_future, task, resume_plan(task, since).next_execution_time)


def _has_past(task: Task, now: Callable[[], datetime]) -> bool:
    """Return whether any occurrence is past, so that there is a range to backfill.

    It takes no search, since lists ask for each task that they show.
    """
    following = task.next_execution_time
    if task.first_at is not None or following is None:
        return True
    has_processed = task.planned_to is not None and task.planned_to != task.earlier_planned_to
    return has_processed or following <= now()


def _takes_events(
    task: Task, now: Callable[[], datetime], sender: EventSender, execution_id: str | None = None
) -> bool:
    """Return whether an execution waits for an event of this sender."""
    if not any(run.wait_for_event for run in task.runs):
        return False
    at = now()
    return any(
        _passes(find_addressee, task, Event(name=each.name, at=at, sender=sender, execution_id=each.execution_id), at)
        for each in list_awaited(task, at)
        if execution_id in {None, each.execution_id}
    )


def _passes(check: Callable[..., object], *what: object) -> bool:
    try:
        check(*what)
    except (NotAllowed, InvalidInput):
        return False
    return True
