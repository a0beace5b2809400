"""The journal of a durable handler: what it has done so far, so that it can go on where it stopped.

A durable handler is replayed from its beginning each time it goes on. What it asks of its context is numbered from 1,
and what came of it is an entry of the journal: a replay is given the recorded result and does nothing again. While the
execution is open the entries lie at ``tasks/{taskId}/executions/{executionId}/steps/{number}``, each written in the
same commit as the task that holds the lease. When it ends they become the ``steps`` of its record, and are removed.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

from cloudsched.domain.documents.authority import EventSender
from cloudsched.domain.documents.document import Document, Instant, WireModel
from cloudsched.errors import JournalMismatch

MAX_STEPS = 5_000
"""How many entries one journal may have: each time the handler goes on, all of them are read."""
MAX_CALLS = 500
"""How many calls of one execution may be under way at once."""
MAX_NESTING = 10
"""How deep calls may be nested: the task that a caller created is at depth 0."""
MAX_INLINE_RESULT_BYTES = 16 * 1024
"""How many bytes of a result are kept in its entry, as JSON and as Firestore counts them; a larger one goes by
reference."""
MAX_PENDING_BYTES = 2 * 1024 * 1024
"""How many bytes of entries wait for a commit that they can share. Firestore takes 10 MiB in one request."""
ENTRY_OVERHEAD_BYTES = 1024
"""How many bytes of it an entry counts for besides its result and its error: more than the rest of it has."""
MAX_INLINE_STEPS_BYTES = 256 * 1024
"""How many bytes of steps are kept in a record, or restored by one commit; more of them go by reference."""
MAX_RECORD_BYTES = 900 * 1024
"""How many bytes an execution's record may have with its steps. Firestore takes 1 MiB."""


class StepKind(StrEnum):
    """What a durable handler asked for."""

    STEP = "STEP"
    CALL = "CALL"
    SLEEP = "SLEEP"
    EVENT = "EVENT"
    NOW = "NOW"
    VERSION = "VERSION"


class StepStatus(StrEnum):
    """What came of it."""

    WAITING = "WAITING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"


class StepError(WireModel):
    """Why a step, or what it called, failed."""

    type: str
    message: str
    status: str | None = None
    """How a call ended: its execution's status, or DELETED."""


class StepRecord(WireModel):
    """One thing that a durable handler asked for, and what came of it."""

    number: int
    """Its place in the order in which the handler asks, from 1."""
    kind: StepKind
    name: str = ""
    """The step's or the event's name, or the handler that was called."""
    status: StepStatus = StepStatus.WAITING
    started_at: Instant
    finished_at: Instant | None = None
    attempts: int = 0
    """How often a step was tried."""
    due_at: Instant | None = None
    """When a sleep is over, a wait is given up, or a failed step is tried again."""
    child: str | None = None
    """The task that a call is."""
    is_made: bool | None = None
    """Whether that task is known to have been made, where the run does not say so. False: a retry asks for it anew."""
    result: Any = None
    reference: str | None = None
    """Where the result is kept, if it is too large for this place."""
    is_by_name: bool | None = None
    """Whether models in a step's result are kept by the names of their fields: their aliases do not go both ways."""
    error: StepError | None = None
    sender: EventSender | None = None
    """Who sent the event that was taken."""
    queries: int | None = None
    tokens: int | None = None
    """What its function reported to have used, in all its tries: a replay does not call it again."""

    @property
    def description(self) -> str:
        """Say what it is in an error: ``step 'collect'``."""
        return describe_step(self.kind, self.name)

    def require(self, kind: StepKind, name: str) -> None:
        """Check that a replay asks for what was recorded.

        Raises:
            JournalMismatch: It asks for something else.
        """
        if (self.kind, self.name) != (kind, name):
            raise JournalMismatch(self.number, self.description, describe_step(kind, name))


class FailureCause(WireModel):
    """What a durable handler was told of that made its execution fail."""

    steps: tuple[int, ...]
    """The entries that had failed, by their numbers: one, or all those of one gather."""
    position: int
    """How many entries the handler had asked for when it was told. What it asked for later follows from the failure."""


class JournalEntry(Document, StepRecord):
    """A step's record with a place of its own. ``tasks/{taskId}/executions/{executionId}/steps/{id}``."""

    execution_id: str

    @property
    def id(self) -> str:
        """The number, in a form that sorts."""
        return entry_id(self.number)

    def to_record(self) -> StepRecord:
        """Return what the execution's record keeps of it."""
        return StepRecord.model_construct(**{name: getattr(self, name) for name in StepRecord.model_fields})

    @classmethod
    def from_record(cls, record: StepRecord, execution_id: str) -> JournalEntry:
        """Return a record with a place of its own again."""
        fields = {name: getattr(record, name) for name in StepRecord.model_fields}
        return cls(execution_id=execution_id, **fields)


def describe_step(kind: StepKind, name: str) -> str:
    """Say in an error what a handler asks for."""
    return f"{kind.lower()} {name!r}" if name else kind.lower()


def entry_id(number: int) -> str:
    """Return the document id of a journal's entry."""
    return f"{number:06}"


def call_id(task_id: str, execution_id: str, number: int, attempt: int) -> str:
    """Return the id of the task that a call is: the same whenever that call is made, and evenly spread."""
    digest = hashlib.sha256(f"{task_id} {execution_id} {number} {attempt}".encode()).hexdigest()
    return f"call-{digest[:32]}"
