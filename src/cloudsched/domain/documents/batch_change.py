"""One change of all tasks that match a filter: the request, and the tasks that it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from cloudsched.domain.documents.category import Category, Label
from cloudsched.domain.documents.document import Duration, Instant, StoredEnum, WireModel, complete_table
from cloudsched.domain.documents.execution import FAILURE_STATUSES, ExecutionStatus
from cloudsched.domain.documents.filters import ErrorText
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.domain.documents.task import MAX_NAME, Owner, Task, TaskId, TaskStatus

if TYPE_CHECKING:
    from datetime import datetime

DELIVERIES_GO_ON: Final = (
    "Results that were made before are still delivered, and retried. To hold these as well, pause the dispatch queues."
)
"""What a pause of many tasks leaves going."""
MAX_IDS: Final = 500
"""The most tasks that a filter may name one by one."""


class BatchAction(StoredEnum):
    """The action on each task."""

    PAUSE = "PAUSE"
    RESUME = "RESUME"
    CANCEL = "CANCEL"
    RETRY_FAILED = "RETRY_FAILED"
    """Give the execution that finished last one more attempt, if it failed or timed out."""
    DELETE = "DELETE"

    @property
    def statuses(self) -> tuple[TaskStatus, ...] | None:
        """The statuses of the tasks that it changes, or None if it changes tasks of all statuses."""
        match self:
            case BatchAction.PAUSE:
                return (TaskStatus.ACTIVE, TaskStatus.PAUSED)
            case BatchAction.RESUME:
                return (TaskStatus.PAUSED,)
            case BatchAction.CANCEL:
                return (TaskStatus.ACTIVE, TaskStatus.PAUSED)
            case BatchAction.RETRY_FAILED | BatchAction.DELETE:
                return None

    @property
    def label(self) -> str:
        """Its name on buttons, such as ``Retry failed``."""
        return self.replace("_", " ").capitalize()

    @property
    def means(self) -> str:
        """What becomes of each task, in sentences."""
        return _MEANINGS[self]


_OF_RETRIES: Final = (
    "Recorded steps are kept. What failed runs again, and so does what a handler does outside steps. You cannot take "
    "that back. "
)
RETRY_MEANS: Final = (
    f"Each gets one more attempt. {_OF_RETRIES}Runs of paused or cancelled tasks, and calls that other runs made, are "
    "left alone."
)
"""What becomes of each failed execution that is retried, in sentences."""
_MEANINGS: Final = complete_table(
    BatchAction,
    {
        BatchAction.PAUSE: "They stay paused until you resume them, and you can restore exactly these. Tasks "
        "that a budget holds, or that are paused until a time, are counted, and stay paused, too. With an end they go "
        "on by themselves, and what is paused already stays as it is. "
        "A task whose only run is before that end is refused. " + DELIVERIES_GO_ON,
        BatchAction.RESUME: "They go on with their next run. Those that are restored keep an earlier pause of their "
        "own. Occurrences during a pause by hand are skipped, but not those while a budget or a limit holds "
        "a task, too. A budget that is used up refuses them, or pauses them again.",
        BatchAction.CANCEL: "They run no more, unless one gets a new schedule. Their records are kept. You cannot take "
        "that back.",
        BatchAction.RETRY_FAILED: "The last run of each gets one more attempt, if it failed. "
        + _OF_RETRIES
        + "Paused and cancelled tasks are left alone.",
        BatchAction.DELETE: "They and their runs are deleted. This cannot be undone.",
    },
)


class BatchState(StoredEnum):
    """What a change of many has come to in the end. One that was stopped or has failed has none."""

    DONE = "DONE"
    DONE_IN_PART = "DONE_IN_PART"
    """Some of what it concerned was refused."""


class TaskFilter(WireModel):
    """A filter of tasks. All given conditions must match."""

    owner: Owner | None = None
    status: TaskStatus | None = None
    handler: Annotated[str, StringConstraints(max_length=MAX_NAME)] | None = None
    label: Label | None = None
    """One of their labels, ``key=value``."""
    due_from: Instant | None = None
    """The next occurrence is not before this instant."""
    due_until: Instant | None = None
    """The next occurrence is before this instant."""
    pause_id: TaskId | None = None
    """The batch change that has paused it: resuming these restores what ran before. Or the one that has resumed it:
    pausing these takes that back. Tasks that were paused before, or paused or resumed by somebody else since, do not
    match. It is the only index that is used."""
    ids: Annotated[tuple[TaskId, ...], Field(min_length=1, max_length=MAX_IDS)] | None = None
    """Only these tasks. The other conditions must match as well."""

    def matches(self, task: Task) -> bool:
        """Return whether a task matches, whatever its id."""
        due = task.next_execution_time
        return (
            self.owner in {None, task.owner}
            and self.status in {None, task.status}
            and self.handler in {None, task.handler}
            and (self.label is None or self.label in task.labels)
            and self.pause_id in {None, task.pause_id}
            and (self.due_from is None or (due is not None and due >= self.due_from))
            and (self.due_until is None or (due is not None and due < self.due_until))
        )


class BatchChange(WireModel):
    """An action, and the tasks to apply it to.

    What is active is paused together with what a budget holds, or is paused until some time: it would start by itself.
    """

    action: BatchAction
    filter: TaskFilter
    until: Instant | None = None
    """The end of a pause, for each of the active tasks. Tasks that are paused already stay as they are."""
    outcome: dict[str, Any] | None = None
    """What it has come to so far: how many tasks were ``changed``, ``skipped`` and ``refused``, each a `Count`, and
    once it has ended the ``state``, a `BatchState`. None before it begins."""

    @property
    def statuses(self) -> tuple[TaskStatus, ...] | None:
        """The statuses of the tasks that it concerns, or None for all statuses."""
        chosen = None if self._is_pause_of_active else self.filter.status
        changed = self.action.statuses if self.until is None else (TaskStatus.ACTIVE,)
        if chosen is None:
            return changed
        if changed is None or chosen in changed:
            return (chosen,)
        return ()

    def concerns(self, task: Task, asked_at: datetime) -> bool:
        """Return whether a task, as it is now, already existed when the change was requested."""
        chosen = self.filter
        if self._is_pause_of_active:
            chosen = chosen.model_copy(update={"status": None})
        return (
            chosen.matches(task)
            and (self.statuses is None or task.status in self.statuses)
            and task.created_at <= asked_at
            and task.handler != BATCH_CHANGE_HANDLER
            and self.may_concern(task)
            and (self.action is not BatchAction.RETRY_FAILED or _has_failed(task))
        )

    def may_concern(self, task: Task) -> bool:
        """Return whether a task is none that a pause finds paused until somebody resumes it."""
        return self.action is not BatchAction.PAUSE or task.status is not TaskStatus.PAUSED or task.goes_on_by_itself

    @property
    def _is_pause_of_active(self) -> bool:
        return self.action is BatchAction.PAUSE and self.filter.status is TaskStatus.ACTIVE


class ExecutionName(WireModel):
    """One execution."""

    task_id: TaskId
    execution_id: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^/]+$")]


class RetryFilter(WireModel):
    """A filter of failed executions.

    All given conditions must match. It never matches the executions of calls.
    """

    owner: Owner | None = None
    status: Literal[ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT] | None = None
    handler: Annotated[str, StringConstraints(max_length=MAX_NAME)] | None = None
    label: Label | None = None
    category: Category | None = None
    since: Instant | None = Field(default=None, alias="from")
    """Scheduled for this instant or later."""
    until: Instant | None = None
    """Scheduled for an earlier instant than this."""
    error: ErrorText | None = None
    """The error's type or message has this text, in any case."""
    error_type: ErrorText | None = None
    """The error's type, whole."""
    min_duration: Duration | None = None
    min_lateness: Duration | None = None
    ids: Annotated[tuple[ExecutionName, ...], Field(min_length=1, max_length=MAX_IDS)] | None = None
    """These executions. Only ``owner`` goes with it."""

    @model_validator(mode="after")
    def _require_ids_alone(self) -> Self:
        others = self.model_fields_set - {"ids", "owner"}
        if self.ids is not None and any(getattr(self, name) is not None for name in others):
            raise ValueError("has ids and another filter: only owner goes with ids")
        return self


class BatchRetry(WireModel):
    """A retry of all failed executions that match."""

    executions: RetryFilter
    outcome: dict[str, Any] | None = None
    """As that of a `BatchChange`."""


def may_retry(task: Task) -> bool:
    """Return whether a change of many retries failed runs of a task: it is neither paused nor cancelled."""
    return task.deleted_at is None and task.status not in {TaskStatus.PAUSED, TaskStatus.CANCELLED}


def _has_failed(task: Task) -> bool:
    """Return whether a task may be retried, and its last run failed as far as it says itself, and is not open again."""
    has_failed = task.consecutive_failures > 0 or task.outcome in FAILURE_STATUSES
    return has_failed and may_retry(task) and task.find_run(task.last_execution_id or "") is None
