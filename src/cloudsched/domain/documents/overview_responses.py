"""The API's responses about many tasks at once: what is going to run, what waits, who works, and what was used."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import AwareDatetime, Field

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.policy import LockScope, Priority
from cloudsched.domain.documents.responses import ApiResponse, Occurrence, Page
from cloudsched.domain.documents.task import TaskStatus

if TYPE_CHECKING:
    from cloudsched.domain.documents.usage import UsageCounts


class TaskOccurrence(Occurrence):
    """An instant at which a task is going to run."""

    task_id: str
    owner: str
    title: str
    handler: str
    timezone: str
    """The zone of `local`."""


class OccurrencePage(ApiResponse):
    """Some of what is going to run, the soonest first."""

    occurrences: tuple[TaskOccurrence, ...]
    next_page_token: str | None = None
    """Fetches the next page."""
    complete_until: AwareDatetime | None = None
    """From this instant on, occurrences of further tasks are missing: too many tasks are due before it."""


class Queue(ApiResponse):
    """What waits in a queue: all of it, or what requires one skill."""

    queue: str
    skill: str | None = None
    """The skill that what waits requires."""
    waiting: int = Field(ge=0, le=1000)
    """How many runs wait. At most 1000 are counted."""
    first_since: AwareDatetime | None = None
    """Since when the first in the queue has been waiting."""
    workers: int = Field(ge=0)
    """How many workers have asked for it in the last three minutes."""


class QueueList(ApiResponse):
    """The queues in which something waits or workers listen."""

    queues: tuple[Queue, ...]


class QueuedTask(ApiResponse):
    """A task that waits in a queue."""

    task_id: str
    owner: str
    handler: str
    title: str | None = None
    """None if the task has left the queue meanwhile."""
    skill: str | None = None
    """The skill that it requires."""
    priority: Priority
    offered_at: AwareDatetime
    """Since when it has been waiting."""


class QueuedTaskPage(Page):
    """Some of what waits in a queue, in its order."""

    tasks: tuple[QueuedTask, ...]


class WorkerNote(ApiResponse):
    """A worker at a queue."""

    worker: str
    queue: str
    skills: tuple[str, ...] = ()
    owner: str | None = None
    """The only owner whose tasks it runs."""
    claimed_by: str | None = None
    """The API caller that claims for it; None for a worker at the store."""
    seen_at: AwareDatetime
    """When it last asked for work; noted at most once a minute."""
    is_listening: bool
    """Whether that was in the last three minutes."""


class WorkerList(ApiResponse):
    """The workers that were there in the last day."""

    workers: tuple[WorkerNote, ...]


class LockParty(ApiResponse):
    """A run that holds a lock, or waits for it."""

    task_id: str
    execution_id: str
    title: str | None = None
    """None if the task is gone."""
    until: AwareDatetime | None = None
    """When its hold ends, unless it is renewed; only of a holder."""
    due_at: AwareDatetime | None = None
    """When it came due; only of one that waits: the earliest is first."""
    notified_at: AwareDatetime | None = None
    """When it was given its turn; only of one that waits."""


class LockDetails(ApiResponse):
    """A lock, who holds it, and who waits for it, in order."""

    key: str
    scope: LockScope
    owner: str | None = None
    """Whose tasks it is for, if it is not for those of all."""
    holders: tuple[LockParty, ...]
    waiters: tuple[LockParty, ...]
    """The first ten."""
    has_more_waiters: bool


class LockPage(Page):
    """Some of the locks that are held or waited for, by their keys."""

    locks: tuple[LockDetails, ...]


class HourCounts(ApiResponse):
    """What was scheduled for one hour and has ended."""

    start: AwareDatetime
    failed: int = Field(ge=0, le=10000)
    """How many failed or timed out."""
    others: int = Field(ge=0, le=10000)
    """How many ended in another way."""


class RecentStart(ApiResponse):
    """How late an occurrence started."""

    scheduled_for: AwareDatetime
    lateness: float = Field(ge=0)
    """In seconds, with jitter, and with what it waited for a lock or a worker."""


class SweepState(ApiResponse):
    """The last sweep, which repairs what was lost."""

    finished_at: AwareDatetime
    lag: float = Field(ge=0)
    """How many seconds ago that was; it should come every minute."""
    examined: int
    """How many tasks were overdue then."""
    dispatched: int
    """How many dispatches it sent again."""
    unsent: int
    """Of how many tasks the queue did not accept the dispatches."""
    failed: int
    """How many tasks could not be repaired."""


class NeedCause(StrEnum):
    """Why tasks need somebody; each task counts once, for the first of these that it has."""

    BUDGET = "BUDGET"
    """Their owner's budget is used up, and has paused them."""
    PAUSED = "PAUSED"
    """They are paused, and their last run had failed."""
    FAILED = "FAILED"
    """Their last run has failed."""
    WAITING = "WAITING"
    """A run waits for an event, and gives up within seven days, or should have."""
    DELIVERY = "DELIVERY"
    """They deliver a result, and have failed to."""
    OVERDUE = "OVERDUE"
    """Their next occurrence is more than three minutes late, and no open run of theirs holds it back. Such a task
    counts for this beside another cause."""


class NeedCount(ApiResponse):
    """How many tasks need somebody for one cause. A call counts with the task that made it, by how that ends."""

    cause: NeedCause
    count: int = Field(ge=0, le=10000)
    is_at_least: bool = False
    """Whether there may be more: counting stopped at a bound."""
    oldest: AwareDatetime | None = None
    """Since when the first of them does, or when the first of those that wait gives up."""
    is_oldest_at_least: bool = False
    """Whether there may be an older one: only the latest hundred were looked at."""


class OverviewCounts(ApiResponse):
    """How much there is of what. Each count ends at 10,000."""

    counted_at: AwareDatetime
    """When it was counted: up to ten seconds ago."""
    tasks: dict[TaskStatus, int]
    """How many tasks have each status."""
    open: dict[ExecutionStatus, int]
    """How many tasks have an open execution, by the status of the most active one."""
    hours: tuple[HourCounts, ...]
    """The last twelve hours, the earliest first; the last one has just begun."""
    due_soon: int = Field(ge=0, le=10000)
    """How many tasks are due within an hour, or overdue."""
    overdue_since: AwareDatetime | None = None
    """The earliest next occurrence that is in the past and not claimed, and that no open run of its task holds back."""
    needs: tuple[NeedCount, ...]
    """What needs somebody: each cause once, also those of which there is nothing."""
    starts: tuple[RecentStart, ...]
    """How late the latest executions of schedules that have ended started, at most 20, the earliest first."""
    sweep: SweepState | None = None
    """The last sweep, for callers who see the tasks of all owners."""


class TaskCount(ApiResponse):
    """How many tasks match a filter."""

    count: int = Field(ge=0, le=10000)
    """At most 10,000 are counted; where they have to be read for it, the matching ones of some 1,000."""
    is_at_least: bool = False
    """Whether there may be more: counting stopped at a bound."""


class FailedExecution(ApiResponse):
    """An execution that failed."""

    task_id: str
    execution_id: str
    title: str | None = None
    owner: str
    scheduled_for: AwareDatetime
    error: str
    """Its error's type and message, or its status if it has none."""


class RetryCount(ApiResponse):
    """How many failed executions match a filter."""

    count: int = Field(ge=0)
    """At most some 1,000: each is read for it."""
    is_at_least: bool = False
    """Whether there may be more: counting stopped at a bound."""
    first: tuple[FailedExecution, ...] = ()
    """The first ten, the latest first."""


class FailureGroup(ApiResponse):
    """Executions that failed with the same type of error at the same place."""

    type: str
    """The error's type; the status of what has no error."""
    place: str
    """The innermost line of the traceback, as ``file.py:12 in name``; empty if there is none."""
    count: int = Field(ge=1)
    tasks: int = Field(ge=1)
    """Of how many tasks."""
    first: AwareDatetime
    """When the earliest was scheduled for."""
    last: AwareDatetime
    sample: FailedExecution
    """The latest of them."""


class FailureSummary(ApiResponse):
    """What of the matching executions failed."""

    count: int = Field(ge=0, le=500)
    is_at_least: bool = False
    """Whether there may be more: only the latest were looked at."""
    groups: tuple[FailureGroup, ...]
    """Those with the most first, at most 50."""


class ChangeCursor(ApiResponse):
    """Tells whether anything has changed."""

    cursor: str
    """Compare it with the last one: if it is the same, no task has changed since."""


class HandlerInfo(ApiResponse):
    """A handler that the caller may name in a task."""

    name: str
    description: str | None = None
    """The first paragraph of its docstring."""
    access: Requesters
    """Who may name it."""
    is_tool: bool
    """Whether scripts may call it."""
    queue: str | None = None
    """The queue of the workers that run its tasks, unless a task says otherwise."""
    payload_schema: dict[str, Any] | None = None
    """The JSON schema of its payload; None if it takes any object."""
    event_schemas: dict[str, dict[str, Any]] | None = None
    """The JSON schemas of the payloads of the events that it has declared, by the events' names."""


class HandlerList(ApiResponse):
    """The handlers that the caller may name in a task."""

    handlers: tuple[HandlerInfo, ...]


class UsageAmounts(ApiResponse):
    """How much was used."""

    executions: int = Field(ge=0)
    """Executions that ended and had started; one that is retried by hand ends once more."""
    queries: int = Field(ge=0)
    """What the handlers have reported."""
    estimated_queries: float = Field(ge=0)
    """What the tasks had estimated for these executions."""
    tokens: int = Field(ge=0)
    """Tokens of a language model, as the handlers have reported them."""
    estimated_tokens: float = Field(ge=0)
    reads: int = Field(ge=0)
    """Documents read in Firestore to run the tasks."""
    writes: int = Field(ge=0)
    """Documents written."""
    deletes: int = Field(ge=0)
    """Documents deleted."""
    queue_operations: int = Field(ge=0)
    """Cloud Tasks operations: creations and deliveries."""
    requests: int = Field(ge=0)
    """Requests to the executor."""
    dollars: float = Field(ge=0)
    """What all this costs, by the deployment's prices."""


class UsageRow(UsageAmounts):
    """What a handler used for an owner in a month."""

    owner: str
    handler: str
    month: str


class UsagePage(ApiResponse):
    """What was used in a month."""

    month: str
    """In UTC, such as ``2026-11``."""
    usage: tuple[UsageRow, ...]
    """By owner and handler."""
    total: UsageAmounts
    """The sum of these rows."""
    summed_until: AwareDatetime
    """Everything that was counted before this instant is in it."""
    is_complete: bool
    """Whether all that has changed was read: if not, there was too much; ask again."""
    prices: dict[str, float]
    """US dollars for a million of each."""
    next_page_token: str | None = None
    """Fetches the usage of further owners."""


class BudgetDetails(ApiResponse):
    """How many queries an owner's tasks may use in a month."""

    owner: str
    max_queries_per_month: int = Field(ge=0)
    month: str
    """The month of `queries`, in UTC."""
    queries: int = Field(ge=0)
    """What was used in that month."""
    is_used_up: bool
    """Whether the owner's tasks are paused because of it."""
    summed_until: AwareDatetime | None = None
    """When that was summed up last."""


class BudgetPage(Page):
    """Some of a list of budgets."""

    budgets: tuple[BudgetDetails, ...]


def to_amounts(counts: UsageCounts) -> dict[str, float]:
    """Return counts by the names of their prices."""
    return {
        "read": counts.reads,
        "write": counts.writes,
        "delete": counts.deletes,
        "queueOperation": 2 * counts.dispatches,
        "request": counts.dispatches,
        "query": counts.queries,
        "token": counts.tokens,
    }


class DayCounts(ApiResponse):
    """What was scheduled for one day and has ended. Each count ends at 10,000."""

    start: AwareDatetime
    """Its first instant."""
    failed: int = Field(ge=0, le=10000)
    """How many failed or timed out."""
    others: int = Field(ge=0, le=10000)
    """How many ended in another way, those that were skipped or cancelled among them."""


class ExecutionCounts(ApiResponse):
    """How many executions ended, by day."""

    days: tuple[DayCounts, ...]
    """The earliest first."""
