"""The table of statuses: what it allows happens, and nothing else can."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest
from tests.cases import try_each

from cloudsched import Task, TaskDraft, TaskStatus
from cloudsched.domain.documents.task import FINAL_STATUSES
from cloudsched.domain.transitions import lifecycle, manual_verbs
from cloudsched.domain.transitions.edits import NO_LEAD, edit_or_restart, new_task
from cloudsched.domain.transitions.lifecycle import ALLOWED, with_changes
from cloudsched.errors import NotAllowed
from cloudsched.testing import START

LEAD = NO_LEAD
DRAFT = TaskDraft.of(id="t", owner="ada", title="T", handler="h")
VERBS = {
    "pause": lambda task: lifecycle.pause(task, START, paused_by=None),
    "resume": lambda task: lifecycle.resume(task, START),
    "cancel": lambda task: lifecycle.cancel(task, START),
    "trigger": lambda task: manual_verbs.trigger(task, START, author=None),
}


def make_task_with(status: TaskStatus) -> Task:
    """Return a task of this status; only an ACTIVE one has a next occurrence."""
    task = new_task(DRAFT, START, LEAD)
    following = task.next_execution_time if status is TaskStatus.ACTIVE else None
    return task.model_copy(update={"status": status, "next_execution_time": following})


@try_each("before, after", list(product(TaskStatus, TaskStatus)))
def test_exactly_the_status_changes_of_the_table_are_allowed(before: TaskStatus, after: TaskStatus) -> None:
    """Keeping a status is not a change, and keeps its timestamp."""
    later = START + timedelta(hours=1)
    if after is before:
        assert with_changes(make_task_with(before), later, status=after).status_changed_at == START
    elif after in ALLOWED[before]:
        assert with_changes(make_task_with(before), later, status=after).status_changed_at == later
    else:
        with pytest.raises(NotAllowed):
            with_changes(make_task_with(before), later, status=after)


@try_each("verb, status", list(product(VERBS, TaskStatus)))
def test_each_verb_leads_to_its_status_or_is_refused(verb: str, status: TaskStatus) -> None:
    """On each status, a verb leads to its own status, changes nothing where that is so already, or is refused."""
    leads_to: dict[str, dict[str, str]] = {
        "pause": {"ACTIVE": "PAUSED", "PAUSED": "PAUSED"},
        "resume": {"PAUSED": "ACTIVE", "ACTIVE": "ACTIVE"},
        "cancel": {"ACTIVE": "CANCELLED", "PAUSED": "CANCELLED", "CANCELLED": "CANCELLED"},
        "trigger": {"ACTIVE": "ACTIVE"},
    }
    allowed = leads_to[verb]
    task = make_task_with(status)
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
def test_only_a_new_schedule_restarts_an_ended_task(status: TaskStatus) -> None:
    """Any other edit leaves it ended."""
    task = make_task_with(status)
    titled = edit_or_restart(task, TaskDraft.of(**_make_fields(task, title="New")), START, LEAD, defined_by=None).task
    assert (titled.status, titled.title) == (status, "New")
    again = edit_or_restart(
        task, TaskDraft.of(**_make_fields(task, schedule=START + timedelta(days=1))), START, LEAD, defined_by=None
    ).task
    assert (again.status, again.next_execution_time) == (TaskStatus.ACTIVE, START + timedelta(days=1))


def _make_fields(task: Task | TaskDraft, **changes: object) -> dict[str, object]:
    fields = {"id": "t", "owner": "ada", "title": task.title, "handler": task.handler, "schedule": task.schedule}
    return {**fields, **changes}


@pytest.mark.parametrize(("limit", "counted"), [(None, 2), (3, 2), (2, 0)])
def test_resume_continues_from_now(limit: int | None, counted: int) -> None:
    """Occurrences that passed during the pause are not run. Failures no longer count if they had paused the task."""
    daily = TaskDraft.of(**{**_make_fields(make_task_with(TaskStatus.ACTIVE)), "schedule": {"rrule": "FREQ=HOURLY"}})
    created = new_task(daily, START + timedelta(minutes=5), LEAD)
    task = lifecycle.pause(created, START, paused_by=None).task
    task = task.model_copy(update={"consecutive_failures": 2, "pause_after_failures": limit})
    later = START + timedelta(hours=10)
    found = lifecycle.resume(task, later).task
    assert found.next_execution_time == START + timedelta(hours=10, minutes=5)
    assert found.consecutive_failures == counted
    assert found.revision == 3
