"""The task: what to run, when, for whom, and where that stands. ``tasks/{taskId}``.

The first part of `Task` is what its owner says, the second what the scheduler keeps. The document is the truth: the
queue only carries hints to look at it.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from cloudsched.domain.documents.authority import Authority, EventSender, SenderRole
from cloudsched.domain.documents.children import MAX_CHILDREN, Child, OnChildFailure
from cloudsched.domain.documents.document import Document, Duration, Instant, Integer, WireModel
from cloudsched.domain.documents.execution import ExecutionStatus, Run
from cloudsched.domain.documents.policy import CatchUp, Overlap, Priority, RetryPolicy
from cloudsched.domain.documents.pull import Offer, Pull
from cloudsched.domain.documents.script import Script
from cloudsched.domain.recurrence.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Container

MAX_RETENTION = timedelta(days=36_525)
"""The longest retention, expiration and the like: a hundred years."""
MAX_OPEN_RUNS = 20
"""How many runs of one task may be open at once: with all that they may carry, they fit Firestore's 1 MiB."""

MAX_NAME = 200
"""How many characters a handler's name may have."""
MAX_DURATION = timedelta(hours=1)
"""How long one attempt may take at most: a function in the cloud is stopped then."""
MAX_COUNT = 10**9
"""The largest number that a task may count to; no store keeps integers without a bound."""


def _reject_reserved(name: str) -> str:
    if name in {".", ".."} or (name.startswith("__") and name.endswith("__")):
        raise ValueError("is a name that Firestore reserves ('.', '..' and '__anything__')")
    return name


TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$"), AfterValidator(_reject_reserved)]
"""Letters, digits, hyphens and underscores: what both Firestore and Cloud Tasks take as part of a name."""
Owner = Annotated[str, StringConstraints(pattern=r"^[^/\x00-\x1f\x7f]{1,128}$"), AfterValidator(_reject_reserved)]
"""Whose task it is, as one segment of a Firestore path (no slash, no control character)."""
Text = Annotated[str, StringConstraints(max_length=500)]
LongText = Annotated[str, StringConstraints(max_length=10_000)]


class TaskStatus(StrEnum):
    """Where a task stands as a whole."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"


class Category(StrEnum):
    """What sort of thing a task does for its owner."""

    REMINDER = "REMINDER"
    REPORT = "REPORT"
    ANALYSIS = "ANALYSIS"
    OTHERS = "OTHERS"


class DeliveryChannel(StrEnum):
    """A way to deliver a result."""

    EMAIL = "EMAIL"
    WEB = "WEB"
    MOBILE = "MOBILE"


class Source(WireModel):
    """Where the request for a task came from."""

    chat_id: Text | None = None
    message_id: Text | None = None
    context: dict[str, Any] | None = None
    """A snapshot of the request's surroundings, kept as it was."""


class TaskSpec(WireModel):
    """What the owner says about a task; every field of it can be edited later."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    description: LongText = ""
    purpose: LongText = ""
    category: Category = Category.OTHERS
    handler: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
    """The registered name of the function to run."""
    payload: dict[str, Any] = Field(default_factory=dict)
    """What the handler is given; checked against its model."""
    children: tuple[Child, ...] = Field(default=(), max_length=MAX_CHILDREN)
    """What it runs in place of a handler of its own."""
    parallel: bool = Field(default=False, strict=True)
    """Whether its children run side by side, rather than in their order."""
    on_child_failure: OnChildFailure = OnChildFailure.FAIL
    """What a failed child does to those after it, and to the task."""
    script: Script | None = None
    """What it runs in place of a handler of its own: JavaScript that came with it."""
    delivery_channels: tuple[DeliveryChannel, ...] = Field(default=(), max_length=len(DeliveryChannel))
    delivery_title: Text | None = None
    """The headline of what is delivered; the task's title if there is none."""
    query_per_execution: float = Field(default=0, strict=True, ge=0, allow_inf_nan=False)
    """The estimated cost of one execution, in queries."""
    source: Source | None = None

    pull: Pull | None = None
    """Which workers run it, where they are not reached by a call but come for it. None: the executor runs it."""
    priority: Priority = Priority.NORMAL
    lock_key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """What the task works on: runs of one key take turns, in the order in which they came due."""
    lock_limit: Integer = Field(default=1, ge=1, le=100)
    """How many runs of that key may be under way at once."""
    retry: RetryPolicy = RetryPolicy()
    expected_duration: Duration = Field(default=timedelta(minutes=5), gt=timedelta(0), le=MAX_DURATION)
    """How long one attempt may take. It is the lease: past it, another executor may take over."""
    until: Instant | None = None
    """No occurrence after this instant is run."""
    max_runs: Integer | None = Field(default=None, ge=1, le=MAX_COUNT)
    """The task is complete after this many scheduled runs; what was skipped or has expired does not count."""
    jitter: Duration = Field(default=timedelta(0), ge=timedelta(0), le=timedelta(days=1))
    """Each run starts up to this much later, by a part that is fixed for the occurrence."""
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp()
    expiration: Duration | None = Field(default=None, gt=timedelta(0), le=MAX_RETENTION)
    """An occurrence that could not start within this time is recorded as EXPIRED and not run."""
    pause_after_failures: Integer | None = Field(default=None, ge=1, le=MAX_COUNT)
    """The task pauses itself after this many failed occurrences in a row."""
    execution_retention: Duration | None = Field(default=None, gt=timedelta(0), le=MAX_RETENTION)
    """How long each execution's record, and the messages it made, are kept. None: the record as long as the task, the
    messages for ever."""
    retention: Duration | None = Field(default=None, gt=timedelta(0), le=MAX_RETENTION)
    """How long after its end the task is kept, with its executions. None: for ever."""


class Backfill(WireModel):
    """A past range whose occurrences are being run again."""

    requested_at: Instant
    next_at: Instant
    """The next occurrence to run."""
    until: Instant
    """The last instant of the range."""


class PendingSkips(WireModel):
    """That more occurrences came due while a run was open than one commit records."""

    until: Instant
    """Those that had come due by then are the policy's to skip."""
    execution_id: str
    """The run that was open."""


class ManualRequest(WireModel):
    """When runs were last asked for by hand, and by which request."""

    at: Instant
    """No two requests of one task have the same instant: the ids of their runs are made of it."""
    token: str
    """Tells a request that is made again, since its answer was lost, from another one."""


class Parent(WireModel):
    """Whose call a task is."""

    task_id: str
    execution_id: str
    step: int
    """Which entry of that execution's journal."""
    depth: int
    """How deep the call is nested: 1 for one by a task that nobody called."""
    is_owners: bool = False
    """Whether the task's owner wrote the call, as one of a task's children or in a script: then the owner may claim it
    as a worker, but not change it. A call that a handler's code made the owner may neither claim nor change."""

    def is_same_call(self, other: Parent | None) -> bool:
        """Return whether both are one entry of one execution's journal."""
        return other is not None and (self.task_id, self.execution_id, self.step) == (
            other.task_id,
            other.execution_id,
            other.step,
        )


EventName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
"""Letters, digits, dots, hyphens and underscores: a segment of a URL."""


class Event(WireModel):
    """Something that a durable handler was told from outside, and has not taken yet."""

    name: EventName
    payload: Any = None
    at: Instant
    token: str = ""
    """Tells an event that is sent again, since its answer was lost, from another one."""
    execution_id: str | None = None
    """The only execution that it is for, and with which it goes; None if the first that asks may take it."""
    sender: EventSender
    """Who sent it: whether it counts is decided when it is taken, by the handler that waits."""

    def is_for(self, name: str, execution_id: str, senders: Container[SenderRole]) -> bool:
        """Whether an execution that waits for an event of that name, from one of these senders, may take this one."""
        return self.name == name and self.execution_id in {None, execution_id} and self.sender.role in senders


class Task(Document, TaskSpec):
    """One task, whole."""

    id: TaskId
    owner: Owner
    schedule: Schedule
    is_one_time: bool
    timezone: str
    status: TaskStatus = TaskStatus.ACTIVE
    revision: int = 1
    """Grows with every edit. A dispatch of an older revision runs nothing."""
    message: str = ""
    """Why the task is in this status."""
    next_execution_time: Instant | None = None
    """The next occurrence that has not been claimed; None if there is none, or while the task is not ACTIVE."""
    created_at: Instant
    updated_at: Instant
    status_changed_at: Instant

    runs: tuple[Run, ...] = ()
    """The occurrences that have begun, or were asked for by hand, and have no final record yet."""
    outcome: ExecutionStatus | None = None
    """How the last scheduled occurrence ended; runs that were asked for by hand do not count."""
    outcome_execution_id: str | None = None
    """Which execution that was: it answers a call's parent. None also in what an earlier version wrote."""
    planned_to: Instant | None = None
    """The latest occurrence of the schedule that the plan has gone past: whatever is edited, it is not run again."""
    run_count: int = 0
    """How many scheduled occurrences have been run, or wait for a worker."""
    consecutive_failures: int = 0
    """How many occurrences in a row have failed."""
    last_execution_id: str | None = None
    offer: Offer | None = None
    """Where workers find it, while one of its runs waits for one of them."""
    backfill: Backfill | None = None
    pending_skips: PendingSkips | None = None
    """What is still to be skipped, before anything else runs."""
    last_manual_request: ManualRequest | None = None
    defined_by: Authority | None = None
    """USERS if a user wrote or edited it, which limits what its script may call; None if only servers did."""
    parent: Parent | None = None
    """Whose call this task is; None if it was created by itself."""
    has_children: bool = False
    """Whether it has made calls, in any of its executions: only then can there be tasks below it."""
    events: tuple[Event, ...] = ()
    """What has come for its durable handler, the earliest first."""
    recent_event_tokens: tuple[str, ...] = ()
    """The tokens of the latest events, also of those that are taken: who sends one again is not heard twice."""
    deferred: bool = False
    """A dispatch could not be created; the sweep does it."""
    request_fingerprint: str | None = None
    """What the request that made it said, as a hash, if it is to be safe to repeat by its idempotency key."""
    deleted_at: Instant | None = None
    """The task is being deleted; to everybody it is gone."""
    wake_at: Instant | None = None
    """When the sweep must look at this task if nothing else has. None: there is nothing to wait for."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs, and only a new schedule could change that."""
        return self.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED} and not self.runs

    @property
    def is_made_by_code(self) -> bool:
        """Whether it is a call that a handler's code made: what it is and how it ends is not for its owner to say."""
        return self.parent is not None and not self.parent.is_owners

    @property
    def is_active(self) -> bool:
        """Whether its dispatches may run anything."""
        return self.status is TaskStatus.ACTIVE and self.deleted_at is None

    def find_run(self, execution_id: str) -> Run | None:
        """Return the open run of that execution, if there is one."""
        return next((run for run in self.runs if run.execution_id == execution_id), None)

    def runs_with(self, run: Run) -> tuple[Run, ...]:
        """Return the open runs with this one added or put in place of its older self."""
        others = tuple(other for other in self.runs if other.execution_id != run.execution_id)
        return (*others, run)

    def runs_without(self, execution_id: str) -> tuple[Run, ...]:
        """Return the open runs but this one."""
        return tuple(run for run in self.runs if run.execution_id != execution_id)
