"""The filters of lists and of changes of many tasks, for type checkers and editors. None leaves a filter out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from pydantic.alias_generators import to_camel

from cloudsched.domain.call_arguments import require_instant, show_value
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.domain.documents.run_counts import RunOutcome
    from cloudsched.domain.documents.task import TaskStatus
    from cloudsched.domain.documents.verbs import Action

    TaskState = TaskStatus | Literal["ACTIVE", "PAUSED", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED"]
    RunState = ExecutionStatus | str
    Instant = datetime | str
    Group = Category | Literal["REMINDER", "REPORT", "ANALYSIS", "OTHERS"]
    Duration = timedelta | str
    """A `timedelta`, or ISO 8601, such as ``PT30S``."""


class ChosenTasks(TypedDict, total=False):
    """The tasks to search."""

    owner: str | None
    status: TaskState | None
    handler: str | None
    label: str | None
    """One of their labels, ``key=value``."""
    due_from: Instant | None
    due_until: Instant | None
    order_by: Literal["createdAt desc", "nextExecutionTime"] | None
    payloads: bool | Literal["true", "false"] | None
    calls: bool | Literal["true", "false"] | None
    """False leaves out the tasks that other tasks have made."""
    page_size: int | None
    """How many are requested at a time."""


class TaskFilters(ChosenTasks, total=False):
    """The tasks to list."""

    search: str | None
    """Words in their title, id, handler, labels or payload."""
    trouble: str | None
    """Only tasks with this problem. Besides, only `owner`, `trouble_until` and `search` may be given."""
    trouble_until: Instant | None


class KindOfExecution(TypedDict, total=False):
    """The executions to count: one of these."""

    owner: str | None
    handler: str | None
    label: str | None
    category: Group | None


class ExecutionFilters(KindOfExecution, total=False):
    """The executions to list."""

    page_size: int | None
    status: RunState | None
    outcome: RunOutcome | Literal["RAN", "FAILED", "SKIPPED"] | None
    since: Instant | None
    until: Instant | None
    calls: bool | Literal["true", "false"] | None
    error: str | None
    error_type: str | None
    min_duration: Duration | None
    min_lateness: Duration | None


class AuditFilters(TypedDict, total=False):
    """The actions on tasks to list."""

    page_size: int | None
    owner: str | None
    by: str | None
    action: Action | str | None
    since: Instant | None
    until: Instant | None


class OccurrenceFilters(KindOfExecution, total=False):
    """The occurrences to list."""

    since: Instant | None


class BatchFilters(TypedDict, total=False):
    """The tasks to change together."""

    owner: str | None
    status: TaskState | None
    handler: str | None
    label: str | None
    due_from: Instant | None
    due_until: Instant | None
    pause_id: str | None
    """The change of many tasks that has paused them. See `pause_all`."""
    ids: Sequence[str] | None


class RetryFilters(KindOfExecution, total=False):
    """The failed executions to retry."""

    status: RunState | None
    since: Instant | None
    until: Instant | None
    error: str | None
    error_type: str | None
    min_duration: Duration | None
    min_lateness: Duration | None
    ids: Sequence[tuple[str, str]] | None
    """The ids of a task and of its execution, each. Only `owner` goes with it."""


def to_query(filters: Mapping[str, Any]) -> dict[str, str | int | None]:
    """Return the query parameters of a list. `since` becomes ``from``, which is a keyword in Python."""
    return {"from" if key == "since" else to_camel(key): _to_parameter(key, value) for key, value in filters.items()}


_SWITCHES: Final = frozenset({"calls", "payloads"})


def _to_parameter(name: str, value: Any) -> str | int | None:  # noqa: ANN401 - any filter
    """Return a filter as text, which the API then reads. Raises InvalidInput for what no text says."""
    match value:
        case bool() if name in _SWITCHES:
            return "true" if value else "false"
        case int() if name == "page_size" and not isinstance(value, bool):
            return value
        case datetime() if name.endswith(("since", "from", "until")):
            return require_instant(name, value).isoformat()
        case timedelta() if name.startswith("min_"):
            return f"PT{value.total_seconds()}S"
        case str() | None:
            return value
    hint = "Give text, such as the name of a handler, or an aware datetime for an instant."
    raise InvalidInput(name, f"is {show_value(value)}", hint)
