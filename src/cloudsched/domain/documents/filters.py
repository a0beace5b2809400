"""The filters of tasks and executions. Requests over HTTP and queries in Python are read by these models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.category import Category, Label
from cloudsched.domain.documents.document import InputInstant, WireModel
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.documents.task import MAX_NAME, Owner, TaskStatus, Trouble

ErrorText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
_Mark = Annotated[bool, Field(strict=True)]


class TaskConditions(WireModel):
    """The filters of tasks."""

    owner: Owner | None = None
    """Only items of this owner."""
    status: TaskStatus | None = None
    handler: str | None = None
    label: Label | None = None
    """One of their labels, ``key=value``."""
    due_from: InputInstant | None = None
    """The next occurrence is not before this instant."""
    due_until: InputInstant | None = None
    """The next occurrence is before this instant."""
    trouble: Trouble | None = None
    """Only tasks with this problem, the latest first. It goes with neither ``dueFrom`` nor ``dueUntil``. With
    ``OVERDUE`` the soonest come first, and ``troubleUntil`` is needed."""


class TaskQueryFields(TaskConditions):
    """Those of a `TaskQuery`."""

    parent: str | None = None
    pause_id: str | None = None
    category: Category | None = None
    channel: str | None = None
    is_delivery: _Mark = False
    ends_by_itself: _Mark = False


class RunConditions(WireModel):
    """The filters of a task's executions."""

    status: ExecutionStatus | None = None
    """Only executions with this status."""
    since: InputInstant | None = Field(default=None, alias="from")
    """Only executions that are scheduled for this instant or later."""
    until: InputInstant | None = None
    """Only executions that are scheduled for an earlier instant than this."""


class ExecutionFields(RunConditions):
    """The filters of the executions of all tasks."""

    owner: Owner | None = None
    """Only items of this owner."""
    outcome: RunOutcome | None = None
    """Only ended executions that count as this: skipped are also those that were cancelled or expired, and failed those
    that timed out."""
    handler: str | None = None
    """Only executions of this handler."""
    label: Label | None = None
    """Only executions whose task had this label."""
    category: Category | None = None
    """Only executions whose task had this category."""
    error: ErrorText | None = None
    """Only executions whose error has this text in its type or message, in any case."""
    error_type: ErrorText | None = None
    """Only executions whose error is exactly of this type."""


class ExecutionQueryFields(ExecutionFields):
    """Those of an `ExecutionQuery`."""

    is_late: _Mark = False
