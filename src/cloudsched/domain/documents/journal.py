"""The journal of a durable handler: its work so far, so that it can continue where it stopped.

A durable handler is replayed from its beginning each time it resumes. Its requests to the context are
numbered from 1, and each result is recorded as a journal entry: a replay gets the recorded result and repeats
nothing. While the execution is open the entries are stored at
``tasks/{taskId}/executions/{executionId}/steps/{number}``, each written in the same commit as the task that
holds the lease. When it ends they become the ``steps`` of its record, and are removed.
"""

from __future__ import annotations

import hashlib
from typing import Any

from cloudsched.domain.documents.authority import EventSender
from cloudsched.domain.documents.document import Document, Instant, StoredEnum, WireModel
from cloudsched.errors import JournalMismatch

MAX_STEPS = 5_000
"""The most entries of one journal: all of them are read each time the handler resumes."""
MAX_CALLS = 500
"""The most calls of one execution in progress at once."""
MAX_NESTING = 10
"""The deepest nesting of calls. A task without a parent is at depth 0."""
MAX_INLINE_RESULT_BYTES = 16 * 1024
"""The largest result that is stored in its entry, in bytes as JSON and as Firestore counts them. A larger one
is stored as a blob, by reference."""
MAX_PENDING_BYTES = 2 * 1024 * 1024
"""The most bytes of entries that may wait to be written in one commit. Firestore takes 10 MiB in one
request."""
MAX_COMMIT_ENTRIES = 300
"""The most entries that are written in one commit, which has other documents as well: fewer than 500
together. Firestore limits only the size of a request by now, but a small commit is retried cheaply."""
ENTRY_OVERHEAD_BYTES = 1024
"""The size that is assumed of an entry without its result and its error: more than it ever has."""
MAX_INLINE_STEPS_BYTES = 256 * 1024
"""The most bytes of steps that are stored in a record, or restored by one commit. Larger journals go by
reference."""
MAX_RECORD_BYTES = 900 * 1024
"""The most bytes that an execution's record may have with its steps. Firestore takes 1 MiB."""


class StepKind(StoredEnum):
    """The kind of request that a durable handler made."""

    STEP = "STEP"
    CALL = "CALL"
    SLEEP = "SLEEP"
    EVENT = "EVENT"
    NOW = "NOW"
    VERSION = "VERSION"
    RACE = "RACE"


class StepStatus(StoredEnum):
    """The state of a journal entry."""

    WAITING = "WAITING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    """Its run ended before it did. It is stored as WAITING, since a retry of the run goes on with it."""


class StepError(WireModel):
    """The error of a step, or of the handler that it called."""

    type: str
    message: str
    status: str | None = None
    """The final status of a call's execution, or DELETED."""


MAX_TRIES = 8
"""The number of tries of a step that are kept: the latest."""


class StepTry(WireModel):
    """One call of a step's function."""

    started_at: Instant
    finished_at: Instant


class AskedWords(WireModel):
    """What a wait for an event asks, and whom, in their order."""

    text: str | None = None
    by: tuple[str, ...]


class StepRecord(WireModel):
    """One request of a durable handler, and its result."""

    number: int
    """Its position in the order of the handler's requests, from 1."""
    kind: StepKind
    name: str = ""
    """The step's or the event's name, or the handler that was called."""
    status: StepStatus = StepStatus.WAITING
    started_at: Instant
    finished_at: Instant | None = None
    noticed_at: Instant | None = None
    """The time at which its handler, going on, found that a call had ended. Until then it waits or is
    paused."""
    attempts: int = 0
    """The number of times that a step was tried."""
    tries: tuple[StepTry, ...] = ()
    """The latest eight tries, if one has failed. Only the last may have succeeded. A first success is not
    stored."""
    due_at: Instant | None = None
    """The time at which a sleep is over, a wait is given up, or a failed step is tried again."""
    child: str | None = None
    """The id of the task that a call created."""
    is_made: bool | None = None
    """True if that task is known to exist, if the run's `calls_made` does not cover it. False: a retry
    creates it."""
    result: Any = None
    reference: str | None = None
    """The place where the result is stored, if it is too large for the entry."""
    is_owners: bool | None = None
    """True if the task's owner wrote its request (children or a script). No handler's code may rely on it."""
    error: StepError | None = None
    asked: AskedWords | None = None
    """The question of a wait for an event: an answer counts only for what was asked."""
    sender: EventSender | None = None
    """The sender of the event that was taken."""
    queries: int | None = None
    tokens: int | None = None
    """The usage that its function reported, over all its attempts: a replay does not call it again.

    Of a call, what its task has used.
    """

    @property
    def description(self) -> str:
        """The text for error messages, such as ``step 'collect'``."""
        return describe_step(self.kind, self.name)

    def require(self, kind: StepKind, name: str, *, is_owners: bool = False) -> None:
        """Check that a replay repeats the recorded request, and that the same kind of author made it.

        The owner of a task may edit it from children or a script to a handler, and may have claimed its calls
        before: their results must not become those of the handler's calls.
        """
        asked = describe_step(kind, name)
        if (self.kind, self.name) != (kind, name):
            raise JournalMismatch(self.number, self.description, asked)
        if bool(self.is_owners) != is_owners:
            by = {True: "of the owner's children or script", False: "of a handler"}
            raise JournalMismatch(
                self.number, f"{self.description} {by[bool(self.is_owners)]}", f"{asked} {by[is_owners]}"
            )


class FailureCause(WireModel):
    """The failed entries whose error made the execution fail."""

    steps: tuple[int, ...]
    """The numbers of the failed entries: one, or all those of one gather."""
    position: int
    """The length of the journal when the handler received the error. Later entries follow from the
    failure."""


class JournalEntry(Document, StepRecord):
    """A step's record as a document of its own. ``tasks/{taskId}/executions/{executionId}/steps/{id}``."""

    execution_id: str

    @property
    def id(self) -> str:
        """The number, as text that sorts."""
        return entry_id(self.number)

    def to_record(self) -> StepRecord:
        """Return the part that the execution's record keeps."""
        return StepRecord.build(**{name: getattr(self, name) for name in StepRecord.model_fields})

    @classmethod
    def from_record(cls, record: StepRecord, execution_id: str) -> JournalEntry:
        """Return the journal entry of a record."""
        fields = {name: getattr(record, name) for name in StepRecord.model_fields}
        return cls(execution_id=execution_id, **fields)


def describe_step(kind: StepKind, name: str) -> str:
    """Return the text for error messages about a handler's request."""
    return f"{kind.lower()} {name!r}" if name else kind.lower()


def entry_id(number: int) -> str:
    """Return the document id of a journal's entry."""
    return f"{number:06}"


def call_id(task_id: str, execution_id: str, number: int, attempt: int) -> str:
    """Return the id of a call's task: the same whenever that call is made, and evenly distributed."""
    digest = hashlib.sha256(f"{task_id} {execution_id} {number} {attempt}".encode()).hexdigest()
    return f"call-{digest[:32]}"
