"""The API's responses about many tasks at once: upcoming runs, queues, workers, and usage."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import AwareDatetime, Field

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.name_words import NameMatch
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.task import HistoryEntry, NeedCause, TaskStatus
from cloudsched.domain.responses.api_responses import ApiResponse, Occurrence, PageResponse
from cloudsched.domain.responses.count import Count
from cloudsched.features.fields import LockScope

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
    """A page of upcoming runs, the soonest first."""

    occurrences: tuple[TaskOccurrence, ...]
    next_page_token: str | None = None
    """Fetches the next page."""
    complete_until: AwareDatetime | None = None
    """From this instant on, occurrences of further tasks are missing: too many tasks are due before it."""


class Queue(ApiResponse):
    """The runs that wait in a queue: all of them, or those that require one skill."""

    queue: str
    skill: str | None = None
    """The skill that the waiting runs require."""
    waiting: Count
    """The number of runs that wait. Behind a task after the twentieth there may be more than the one that is counted,
    and at most 1,000 tasks are counted."""
    first_since: AwareDatetime | None = None
    """The time since which the first in the queue has been waiting."""
    workers: int = Field(ge=0)
    """The number of workers that have asked for it in the last three minutes."""


class QueueList(ApiResponse):
    """The queues in which something waits or workers listen."""

    queues: tuple[Queue, ...]


class QueueState(StrEnum):
    """What a queue of Cloud Tasks does."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """It keeps its dispatches until it is resumed."""
    DISABLED = "DISABLED"
    """Cloud Tasks has stopped it."""


class DispatchQueue(ApiResponse):
    """A queue of Cloud Tasks that carries dispatches to the executor."""

    queue: str
    state: QueueState
    max_dispatches_per_second: float
    max_concurrent_dispatches: int
    depth: int = Field(ge=0)
    """The number of dispatches in it, also of those that lie ahead, as Cloud Tasks estimates it."""
    priorities: tuple[Priority, ...] = ()
    """The priorities of the tasks that it is for. Empty if it is for hops, or for the deliveries of a channel."""
    paused_by: str | None = None
    """Who paused it, if that was done here, as the log names them."""
    paused_at: AwareDatetime | None = None


class DispatchQueueList(ApiResponse):
    """The queues of the deployment in Cloud Tasks."""

    queues: tuple[DispatchQueue, ...]


class QueuedTask(ApiResponse):
    """A task that waits in a queue."""

    task_id: str
    owner: str
    handler: str
    title: str
    skill: str | None = None
    """The skill that it requires."""
    priority: Priority
    offered_at: AwareDatetime
    """The time since which it has been waiting."""
    runs: int = Field(default=1, ge=1)
    """The number of its runs that wait."""


class QueuedTaskPage(PageResponse):
    """A page of the tasks that wait in a queue, in its order."""

    tasks: tuple[QueuedTask, ...]


class WorkerNote(ApiResponse):
    """A worker at a queue."""

    worker: str
    queue: str
    skills: tuple[str, ...] = ()
    owner: str | None = None
    """The only owner whose tasks it runs."""
    claimed_by: str | None = None
    """The API caller that claims for it, or None for a worker at the store."""
    seen_at: AwareDatetime
    """The time at which it last asked for work. It is noted at most once a minute."""
    is_listening: bool
    """True if that was in the last three minutes."""


class WorkerList(ApiResponse):
    """The workers that have asked for work in the last day."""

    workers: tuple[WorkerNote, ...]


class LockParty(ApiResponse):
    """A run that holds a lock, or waits for it."""

    task_id: str
    execution_id: str
    title: str | None = None
    """None if the task is gone."""
    until: AwareDatetime | None = None
    """The time at which a holder's hold ends, unless it is renewed."""
    due_at: AwareDatetime | None = None
    """The time at which one that waits came due. The earliest is first."""
    notified_at: AwareDatetime | None = None
    """The time at which one that waits was given its turn."""


class LockDetails(ApiResponse):
    """A lock, its holders, and the runs that wait for it, in order."""

    key: str
    scope: LockScope
    owner: str | None = None
    """The owner whose tasks it is for, unless it is for those of all."""
    holders: tuple[LockParty, ...]
    waiters: tuple[LockParty, ...]
    """The first ten."""
    has_more_waiters: bool


class LockPage(PageResponse):
    """A page of the locks that are held or waited for, by their keys."""

    locks: tuple[LockDetails, ...]


class PartCounts(ApiResponse):
    """The ended runs that were scheduled for one part of the time: an hour or a day, for example."""

    start: AwareDatetime
    end: AwareDatetime
    """The part ends before this instant."""
    ran: int = Field(ge=0)
    """The number that succeeded."""
    failed: int = Field(ge=0)
    """The number that failed or timed out."""
    skipped: Count
    """The occurrences that were skipped, cancelled or expired. One record may cover many."""
    calls: int = Field(ge=0)
    """The runs that other runs made. None of the other numbers has them, because the caller's record has their end."""
    late: int = Field(ge=0)
    """The number of those that ran or failed, and started late, after three minutes or more. It is counted for
    all runs and by owner: with another filter it is 0."""


class SeenDeployment(ApiResponse):
    """A version that began to serve."""

    version: str
    """The revision of the service, or the version of cloudsched where there is none."""
    at: AwareDatetime
    """The time at which it swept first."""


class SweepState(ApiResponse):
    """The last sweep, which repairs lost work."""

    finished_at: AwareDatetime
    lag: float = Field(ge=0)
    """The seconds since that sweep. One should come every minute."""
    is_late: bool = False
    """True if it seems not to run, or not to keep up."""
    examined: int
    """The number of tasks that were overdue then."""
    dispatched: int
    """The number of dispatches that it sent again."""
    unsent: int
    """The number of tasks whose dispatches the queue did not accept."""
    failed: int
    """The number of tasks that could not be repaired."""
    hanging: str | None = None
    """How many handlers hang now, which, and since when. None if none does."""
    deployments: tuple[SeenDeployment, ...] = ()
    """The latest versions that have swept, the latest last."""


class NeedAct(ApiResponse):
    """What resolves a need. The caller may do it."""

    label: str
    """A verb, such as ``Retry``."""
    path: str
    """Where that is done, below the address of the dashboard."""
    query: dict[str, str] = Field(default_factory=dict)


class Need(ApiResponse):
    """Something that needs attention: one task, the tasks of a handler, or what keeps many from running."""

    cause: NeedCause
    sentence: str
    """What it is about, and what is wrong."""
    detail: str = ""
    """The error of the first of them, for example."""
    count: Count | None = None
    """The number that the sentence has, of what is at `path`. None if it has none."""
    since: AwareDatetime | None = None
    """The time since which the first of them has been so."""
    until: AwareDatetime | None = None
    """The time at which the first of those that wait gives up."""
    subject: str | None = None
    """The handler, queue, owner or service that it is about. Only callers who see all tasks learn which queue."""
    path: str
    """Where it is, below the address of the dashboard. Below ``/v1/`` the API has a list of tasks at the same path."""
    query: dict[str, str] = Field(default_factory=dict)
    """The filters of that list."""
    act: NeedAct | None = None


class OverviewCounts(ApiResponse):
    """Counts of tasks and executions for an overview. On Firestore each count of tasks ends at 10,000."""

    counted_at: AwareDatetime
    """The time of the count, up to ten seconds ago."""
    tasks: dict[TaskStatus, Count]
    """The number of tasks of each status."""
    open: dict[ExecutionStatus, Count]
    """The number of tasks with an open execution, by the status of the most active one."""
    hours: tuple[PartCounts, ...]
    """The last twelve hours, the earliest first. The last one has just begun."""
    due_soon: Count
    """The number of tasks that are due within an hour, or overdue."""
    overdue_since: AwareDatetime | None = None
    """The earliest next occurrence that is in the past and not claimed, and that no open run of its task
    holds back."""
    needs: tuple[Need, ...] = ()
    """What needs attention, the most urgent first. What another of them explains is left out."""
    sweep: SweepState | None = None
    """The last sweep, for callers who see the tasks of all owners."""


class ConcernedTask(ApiResponse):
    """A task that would be changed."""

    id: str
    title: str
    owner: str


class TaskCount(ApiResponse):
    """The tasks that a change would concern now."""

    count: Count
    """At most some 500 tasks are read for it."""
    first: tuple[ConcernedTask, ...] = ()
    """Up to ten of them."""


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
    """The failed executions that a retry would concern now, without those of paused and cancelled tasks."""

    count: Count
    """At most 500 failures are read for it."""
    first: tuple[FailedExecution, ...] = ()
    """The first ten, the latest first."""


class FoundTask(ApiResponse):
    """A task that a text names."""

    id: str
    title: str
    owner: str
    handler: str
    status: TaskStatus
    labels: tuple[str, ...]


class FoundRun(ApiResponse):
    """The execution with an id."""

    task_id: str
    execution_id: str
    title: str
    """The title of its task."""


class SearchResults(ApiResponse):
    """What a text names."""

    tasks: tuple[FoundTask, ...]
    """The newest first, without calls."""
    owners: tuple[str, ...]
    handlers: tuple[str, ...]
    labels: tuple[str, ...]
    """Those of the tasks that were found."""
    task: FoundTask | None = None
    """The task whose id is exactly the text."""
    execution: FoundRun | None = None
    """The execution whose task and id are exactly the text, as ``TASK/EXECUTION``."""
    is_complete: bool
    """False if only the newest tasks, or not everybody's profiles, were looked at."""
    matched_by: NameMatch = NameMatch.FRAGMENTS
    """How tasks are found by their names."""


class AuditEntry(HistoryEntry):
    """An action on a task, a budget or a queue."""

    task_id: str | None = None
    """The task. None for budgets and queues."""
    title: str
    """The title of the task as it is now, or was when it was deleted."""
    owner: str
    """The owner of the task or of the budget."""
    queue: str | None = None
    """The queue in Cloud Tasks."""


class AuditPage(ApiResponse):
    """A page of the actions on tasks, the latest first."""

    entries: tuple[AuditEntry, ...]
    next_page_token: str | None = None
    """Fetches the next page."""
    is_complete: bool
    """False if older actions are missing: more than 1,000 tasks were acted on since."""


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
    """The group of callers that may name it."""
    is_tool: bool
    """True if scripts may call it."""
    queue: str | None = None
    """The queue of the workers that run its tasks, unless a task says otherwise."""
    query_per_execution: float | None = None
    """The queries that one run uses as a rule, if the handler declares it and unless a task says
    otherwise."""
    tokens_per_execution: float | None = None
    """The tokens that one run uses as a rule, likewise."""
    payload_schema: dict[str, Any] | None = None
    """The JSON schema of its payload, or None if it takes any object."""
    event_schemas: dict[str, dict[str, Any]] | None = None
    """The JSON schemas of the payloads of the events that it has declared, by the events' names."""


class HandlerList(ApiResponse):
    """The handlers that the caller may name in a task."""

    handlers: tuple[HandlerInfo, ...]


class UsageAmounts(ApiResponse):
    """Amounts of usage."""

    executions: int = Field(ge=0)
    """Executions that started and ended. One that is retried by hand counts once more."""
    queries: int = Field(ge=0)
    """The queries that the handlers have reported."""
    estimated_queries: float = Field(ge=0)
    """The queries that the tasks had estimated for these executions."""
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
    """The cost of all this, by the deployment's prices."""


class UsageRow(UsageAmounts):
    """The usage of a handler for an owner in a month."""

    owner: str
    handler: str
    month: str


class UsageSum(UsageAmounts):
    """The usage of an owner, of a handler, or of a value of a label, in a month."""

    name: str
    """Empty for what was used without the label."""


class UsagePage(ApiResponse):
    """The usage in a month."""

    month: str
    """In UTC, such as ``2026-11``."""
    usage: tuple[UsageRow, ...]
    """By owner and handler."""
    sums: tuple[UsageSum, ...] | None = None
    """One for each owner or handler, in place of the rows, if they were asked for with `by`."""
    total: UsageAmounts
    """The sum of these rows."""
    summed_until: AwareDatetime
    """Everything that was counted before this instant is included."""
    is_complete: bool
    """True if all changes were read. If not, there were too many: ask again."""
    prices: dict[str, float]
    """US dollars for a million of each."""
    next_page_token: str | None = None
    """Fetches the usage of further owners."""


class BudgetDetails(ApiResponse):
    """An owner's budget: the queries, tokens or both that the owner's tasks may use in a month."""

    owner: str
    max_queries_per_month: int = Field(ge=0)
    """10^12: any number."""
    max_tokens_per_month: int = Field(default=10**12, ge=0)
    month: str
    """The month of `queries` and `tokens`, in UTC."""
    queries: int = Field(ge=0)
    """The number of queries that were used in that month."""
    tokens: int = Field(default=0, ge=0)
    """The number of tokens, likewise."""
    is_used_up: bool
    """True if the owner's tasks are paused because of it."""
    summed_until: AwareDatetime | None = None
    """The time until which the usage is counted."""


class BudgetPage(PageResponse):
    """A page of a list of budgets."""

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


class OccurrencePart(ApiResponse):
    """The number of upcoming occurrences in one part of a time."""

    start: AwareDatetime
    """Its first instant."""
    end: AwareDatetime
    """The first instant after it."""
    due: Count
    """The number of occurrences in it that have not been claimed yet."""


class OccurrenceCounts(ApiResponse):
    """The numbers of upcoming occurrences."""

    parts: tuple[OccurrencePart, ...]
    """The earliest first."""


class ExecutionCounts(ApiResponse):
    """The numbers of executions that ended, part by part."""

    parts: tuple[PartCounts, ...]
    """The earliest first."""
    complete_from: AwareDatetime | None = None
    """The start of the first part, if those before it are left out: too many had to be looked through."""
