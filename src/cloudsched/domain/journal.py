"""The journal of a durable handler: what it has done so far, so that it can go on where it stopped.

A durable handler is replayed from its beginning each time it goes on. What it asks of its context is numbered from 1,
and what came of it is an entry of the journal: a replay is given the recorded result and does nothing again. While the
execution is open the entries lie at ``tasks/{taskId}/executions/{executionId}/steps/{number}``, each written in the
same commit as the task that holds the lease. When it ends they become the ``steps`` of its record, and are removed.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cloudsched.domain.document import Document, Instant, Value
from cloudsched.errors import JournalMismatch

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_STEPS = 5_000
"""How many entries one journal may have: each time the handler goes on, all of them are read."""
MAX_CALLS = 500
"""How many calls of one execution may be under way at once."""
MAX_NESTING = 10
"""How deep calls may be nested: the task that a caller created is at depth 0."""
MAX_INLINE = 16 * 1024
"""How many bytes of a result, as JSON, are kept in its entry; a larger one goes by reference."""
MAX_FOLDED = 256 * 1024
"""How many bytes of results, as JSON, are kept in an execution's record; beyond that all of them go by reference."""


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


class StepError(Value):
    """Why a step, or what it called, failed."""

    type: str
    message: str
    status: str | None = None
    """How a call ended: its execution's status, or DELETED."""


class StepRecord(Value):
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
    result: Any = None
    reference: str | None = None
    """Where the result is kept, if it is too large for this place."""
    error: StepError | None = None

    @property
    def what(self) -> str:
        """Say what it is in an error: ``step 'collect'``."""
        return f"{self.kind.lower()} {self.name!r}" if self.name else self.kind.lower()

    def require(self, kind: StepKind, name: str) -> None:
        """Check that a replay asks for what was recorded.

        Raises:
            JournalMismatch: It asks for something else.
        """
        if (self.kind, self.name) != (kind, name):
            asked = StepRecord(number=self.number, kind=kind, name=name, started_at=self.started_at)
            raise JournalMismatch(self.number, self.what, asked.what)


class JournalEntry(Document, StepRecord):
    """A step's record with a place of its own. ``tasks/{taskId}/executions/{executionId}/steps/{id}``."""

    execution_id: str

    @property
    def id(self) -> str:
        """The number, in a form that sorts."""
        return entry_id(self.number)

    def folded(self) -> StepRecord:
        """Return what the execution's record keeps of it."""
        return StepRecord.model_construct(**{name: getattr(self, name) for name in StepRecord.model_fields})

    @classmethod
    def of(cls, record: StepRecord, execution_id: str) -> JournalEntry:
        """Return a record with a place of its own again."""
        fields = {name: getattr(record, name) for name in StepRecord.model_fields}
        return cls(execution_id=execution_id, **fields)


def entry_id(number: int) -> str:
    """Return the document id of a journal's entry."""
    return f"{number:06}"


def call_id(task_id: str, execution_id: str, number: int, attempt: int) -> str:
    """Return the id of the task that a call is: the same whenever that call is made, and evenly spread."""
    digest = hashlib.sha256(f"{task_id} {execution_id} {number} {attempt}".encode()).hexdigest()
    return f"call-{digest[:32]}"


def restored(steps: Iterable[StepRecord], execution_id: str) -> tuple[JournalEntry, ...]:
    """Return the journal that an execution goes on from when it is retried by hand: up to what made it fail.

    That is the last step that failed; all before it is done, and is not done again.
    """
    ordered = sorted(steps, key=lambda step: step.number)
    failed = [n for n, step in enumerate(ordered) if step.status in {StepStatus.FAILED, StepStatus.TIMED_OUT}]
    kept = ordered[: failed[-1]] if failed else ordered
    return tuple(JournalEntry.of(step, execution_id) for step in kept)
