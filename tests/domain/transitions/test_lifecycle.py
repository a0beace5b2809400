"""The table of statuses: what it allows happens, and nothing else can."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from cloudsched import ExecutionStatus, Task, TaskDraft, TaskStatus
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.drafts import LeadTimes, apply_edit, new_task
from cloudsched.domain.transitions.lifecycle import ALLOWED, FINAL_STATUSES, with_changes
from cloudsched.errors import NotAllowed
from cloudsched.testing import START

LEAD = LeadTimes()
DRAFT = TaskDraft.of(id="t", owner="ada", title="T", handler="h")
VERBS = {
    "pause": lambda task: lifecycle.pause(task, START),
    "resume": lambda task: lifecycle.resume(task, START),
    "cancel": lambda task: lifecycle.cancel(task, START),
    "trigger": lambda task: lifecycle.trigger(task, START, "request"),
}


def task_in(status: TaskStatus) -> Task:
    """Return a task of this status; only an ACTIVE one has a next occurrence."""
    task = new_task(DRAFT, START, LEAD).task
    following = task.next_execution_time if status is TaskStatus.ACTIVE else None
    return task.model_copy(update={"status": status, "next_execution_time": following})


@pytest.mark.parametrize(("before", "after"), list(product(TaskStatus, TaskStatus)))
def test_a_status_becomes_what_the_table_allows_and_nothing_else(before: TaskStatus, after: TaskStatus) -> None:
    """Of all pairs, exactly those in the table can be made; staying is no change, and keeps its timestamp."""
    later = START + timedelta(hours=1)
    if after is before:
        assert with_changes(task_in(before), later, status=after).status_changed_at == START
    elif after in ALLOWED[before]:
        assert with_changes(task_in(before), later, status=after).status_changed_at == later
    else:
        with pytest.raises(NotAllowed):
            with_changes(task_in(before), later, status=after)


def test_every_status_is_in_the_table() -> None:
    """No status is forgotten, and each of them can be left: an ended task by a new schedule."""
    assert set(ALLOWED) == set(TaskStatus)
    assert all(ALLOWED.values())
    assert all(ALLOWED[status] == {TaskStatus.ACTIVE} for status in FINAL_STATUSES)


@pytest.mark.parametrize(("verb", "status"), list(product(VERBS, TaskStatus)))
def test_a_verb_does_what_it_says_or_is_refused(verb: str, status: TaskStatus) -> None:
    """Each verb on each status: it leads where it should, changes nothing where that is so already, or is refused."""
    leads_to: dict[str, dict[str, str]] = {
        "pause": {"ACTIVE": "PAUSED", "PAUSED": "PAUSED"},
        "resume": {"PAUSED": "ACTIVE", "ACTIVE": "ACTIVE"},
        "cancel": {"ACTIVE": "CANCELLED", "PAUSED": "CANCELLED", "CANCELLED": "CANCELLED"},
        "trigger": {"ACTIVE": "ACTIVE"},
    }
    allowed = leads_to[verb]
    task = task_in(status)
    if status not in allowed:
        with pytest.raises(NotAllowed):
            VERBS[verb](task)
        return
    step = VERBS[verb](task)
    assert step.task.status == allowed[status]
    if step.task is not task:
        assert step.task.revision == task.revision + (verb != "trigger")
    assert (step.task is task) == (allowed[status] == status and verb != "trigger")


@pytest.mark.parametrize("status", sorted(FINAL_STATUSES))
def test_an_ended_task_begins_again_with_a_new_schedule_only(status: TaskStatus) -> None:
    """Any other edit of it leaves it ended."""
    task = task_in(status)
    titled = apply_edit(task, TaskDraft.of(**_said(task, title="New")), START, LEAD).task
    assert (titled.status, titled.title) == (status, "New")
    again = apply_edit(task, TaskDraft.of(**_said(task, schedule=START + timedelta(days=1))), START, LEAD).task
    assert (again.status, again.next_execution_time) == (TaskStatus.ACTIVE, START + timedelta(days=1))


def _said(task: Task, **changes: object) -> dict[str, object]:
    said = {"id": "t", "owner": "ada", "title": task.title, "handler": task.handler, "schedule": task.schedule}
    return {**said, **changes}


def test_an_execution_that_is_open_is_not_final() -> None:
    """RUNNING, RETRYING and SUSPENDED have something to come; all others are the end."""
    is_open = {status for status in ExecutionStatus if not status.is_final}
    assert is_open == {ExecutionStatus.RUNNING, ExecutionStatus.RETRYING, ExecutionStatus.SUSPENDED}


def test_a_task_that_was_deleted_waits_only_for_its_removal() -> None:
    """Nothing of it is woken, and the sweep finds it at once."""
    gone = lifecycle.delete(task_in(TaskStatus.ACTIVE), START).task
    assert not gone.is_active
    assert gone.wake_at == START


def test_resume_goes_on_from_now() -> None:
    """Occurrences that passed during a pause are not made up for, and failures are forgiven."""
    daily = TaskDraft.of(**{**_said(task_in(TaskStatus.ACTIVE)), "schedule": {"rrule": "FREQ=HOURLY"}})
    task = lifecycle.pause(new_task(daily, START, LEAD).task, START).task.model_copy(update={"consecutive_failures": 2})
    later = START + timedelta(hours=10)
    found = lifecycle.resume(task, later).task
    assert found.next_execution_time == START + timedelta(hours=10, minutes=5)
    assert found.consecutive_failures == 0
    assert found.revision == 3


def test_a_one_time_task_cannot_be_resumed_past_its_instant() -> None:
    """It would be ACTIVE with nothing to do; its owner is told to give it a new schedule."""
    paused = lifecycle.pause(task_in(TaskStatus.ACTIVE), START).task
    with pytest.raises(NotAllowed, match="new schedule"):
        lifecycle.resume(paused, START + timedelta(hours=1))
