"""What a row of the outbox holds, and how far it has come."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

TABLE = "cloudsched_outbox"
ID_LENGTH = 36
TASK_ID_LENGTH = 128
WORD_LENGTH = 10
"""The longest action or state."""
INSTANT_LENGTH = 32


class Action(StrEnum):
    """What a row asks for."""

    CREATE = "CREATE"
    """Create a task, or edit the one of the same id."""
    CANCEL = "CANCEL"


class State(StrEnum):
    """How far a row has come."""

    PENDING = "PENDING"
    DONE = "DONE"
    """It was handed over; the row is deleted after a while."""
    FAILED = "FAILED"
    """It was refused, and stays so until somebody retries or discards it; `Entry.error` says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row."""

    number: int
    """Rows are handed over in the order of their numbers, those of one task strictly so."""
    id: str
    """What makes handing over safe to repeat."""
    task_id: str
    action: Action
    content: str
    """The task's draft as JSON, as the API takes it; empty for a cancellation."""
    written_at: datetime
    """The instant from which the draft's relative times count."""
    state: State
    attempts: int
    """How often handing over was begun."""
    error: str
    """Why the last attempt failed; empty if none has."""


def new_row(action: Action, task_id: str, content: str, now: datetime) -> dict[str, str | int]:
    """Return the columns of a new row."""
    return {
        "id": str(uuid.uuid4()),
        "task_id": task_id,
        "action": action.value,
        "content": content,
        "written_at": to_text(now),
        "state": State.PENDING.value,
        "due_at": to_text(now),
        "attempts": 0,
        "claim": "",
        "error": "",
    }


def to_text(instant: datetime) -> str:
    """Return an instant as a text that sorts as instants do, and is the same in every database."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds")
