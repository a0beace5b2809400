"""The outbox's table: what a row holds, its progress, and how the relay claims, records and removes rows.

The statements are the same for SQLite and PostgreSQL, except that PostgreSQL locks the rows that it
claims and skips those that another relay has locked. SQLite has one writer at a time. A claim ends by
itself, so that a dead relay's rows are handed over by another.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from cloudsched.errors import Misconfigured, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    Execute = Callable[[str, dict[str, Any]], list[Any]]
    """Executes a statement with ``:named`` parameters, and returns its rows."""

TABLE = "cloudsched_outbox"
ID_LENGTH = 36
TASK_ID_LENGTH = 128
WORD_LENGTH = 10
"""The longest action or state."""
INSTANT_LENGTH = 32


class RowAction(StrEnum):
    """The action that a row asks for."""

    CREATE = "CREATE"
    """Create a task, or edit the one of the same id."""
    CANCEL = "CANCEL"


class State(StrEnum):
    """The progress of a row."""

    PENDING = "PENDING"
    DONE = "DONE"
    """It was handed over. The row is deleted after a while."""
    FAILED = "FAILED"
    """It was refused, and stays so until somebody retries or discards it. `OutboxEntry.error` says why."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One row."""

    number: int
    """Rows are handed over in the order of their numbers, those of one task strictly so."""
    id: str
    """The id that makes handing over safe to repeat."""
    task_id: str
    action: RowAction
    content: str
    """The task's draft as JSON, as the API takes it. Empty for a cancellation."""
    written_at: datetime
    """The instant from which the draft's relative times count."""
    state: State
    attempts: int
    """The number of times that handing over was begun."""
    error: str
    """The reason why the last attempt failed, empty if none has."""


def new_row(action: RowAction, task_id: str, content: str, now: datetime) -> dict[str, str | int]:
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


BATCH = 50
"""The number of rows that a relay claims at a time."""
CLAIM = timedelta(minutes=1)
"""The duration of a claim."""
PURGE = 1000
"""The number of rows that are deleted at a time."""

_CLAIM = f"""
WITH due AS (
    SELECT number FROM {TABLE} AS waiting
    WHERE state = 'PENDING' AND due_at <= :now AND NOT EXISTS (
        SELECT 1 FROM {TABLE} AS earlier
        WHERE earlier.task_id = waiting.task_id AND earlier.state = 'PENDING' AND earlier.number < waiting.number
    )
    ORDER BY attempts, number LIMIT :limit {{lock}}
)
UPDATE {TABLE} SET claim = :claim, due_at = :until, attempts = attempts + 1
WHERE number IN (SELECT number FROM due)
"""  # noqa: S608 - constants of this package
_LOCK = "FOR UPDATE OF waiting SKIP LOCKED"
_COLUMNS = "number, id, task_id, action, content, written_at, state, attempts, error"
_CLAIMED = f"SELECT {_COLUMNS} FROM {TABLE} WHERE claim = :claim AND state = 'PENDING' ORDER BY number"  # noqa: S608
_SETTLE = f"""
UPDATE {TABLE} SET state = :state, due_at = :due_at, claim = '', error = :error
WHERE number = :number AND claim = :claim
"""  # noqa: S608
_RELEASE = f"""
UPDATE {TABLE} SET claim = '', due_at = :now, attempts = attempts - 1 WHERE claim = :claim AND state = 'PENDING'
"""  # noqa: S608
_PURGE = f"""
DELETE FROM {TABLE} WHERE number IN (
    SELECT number FROM {TABLE} WHERE state = 'DONE' AND due_at <= :now ORDER BY due_at LIMIT :limit
)
"""  # noqa: S608
_LIST = f"SELECT {_COLUMNS} FROM {TABLE} WHERE state = :state ORDER BY number LIMIT :limit"  # noqa: S608
_FIND = f"SELECT {_COLUMNS} FROM {TABLE} WHERE id = :id AND state = 'FAILED'"  # noqa: S608
_RETRY = f"""
UPDATE {TABLE} SET state = 'PENDING', due_at = :now, attempts = 0 WHERE id = :id AND state = 'FAILED'
"""  # noqa: S608
_DISCARD = f"DELETE FROM {TABLE} WHERE id = :id AND state = 'FAILED'"  # noqa: S608
INSERT = f"""
INSERT INTO {TABLE} (id, task_id, action, content, written_at, state, due_at, attempts, claim, error)
VALUES (:id, :task_id, :action, :content, :written_at, :state, :due_at, :attempts, :claim, :error)
"""  # noqa: S608


class Database(Protocol):
    """The database that has the table.

    * The statements of a transaction are committed when its block ends, and rolled back if the block raises.
    * It may be used by several threads.
    """

    @property
    def locks_rows(self) -> bool:
        """True if rows can be locked, and locked ones skipped. Raises Misconfigured for an unknown database."""
        ...

    def transaction(self) -> AbstractContextManager[Execute]:
        """Begin a transaction of the relay's own."""
        ...


def can_lock_rows(kind: str) -> bool:
    """Return whether a kind of database can lock rows and skip locked ones.

    Raises:
        Misconfigured: It is neither PostgreSQL nor SQLite.
    """
    if kind not in {"postgresql", "sqlite"}:
        raise Misconfigured(f"The outbox works in PostgreSQL and SQLite, and not in {kind}.")
    return kind == "postgresql"


class Rows:
    """The rows of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, now: datetime) -> tuple[str, list[OutboxEntry]]:
        """Claim rows that are due, in their order. Return the claim and the rows.

        Of one task only the first that waits is claimed. Rows that were tried before come after the
        others, so that one that ends its relay's process does not keep the others waiting.
        """
        claim = str(uuid.uuid4())
        until = to_text(now + CLAIM)
        lock = _LOCK if self._database.locks_rows else ""
        statement = _CLAIM.format(lock=lock)
        with self._database.transaction() as execute:
            execute(statement, {"now": to_text(now), "limit": BATCH, "claim": claim, "until": until})
            return claim, [_to_entry(row) for row in execute(_CLAIMED, {"claim": claim})]

    def settle(
        self,
        claim: str,
        results: Iterable[tuple[OutboxEntry, State, datetime, str]],
        now: datetime,
    ) -> None:
        """Record each claimed row's state, next time and error. Release the rest of the claim."""
        with self._database.transaction() as execute:
            for entry, state, due_at, error in results:
                values = {"state": state.value, "due_at": to_text(due_at), "error": error}
                execute(_SETTLE, {**values, "number": entry.number, "claim": claim})
            execute(_RELEASE, {"now": to_text(now), "claim": claim})

    def purge(self, now: datetime) -> None:
        """Delete rows that were handed over long enough ago."""
        with self._database.transaction() as execute:
            execute(_PURGE, {"now": to_text(now), "limit": PURGE})

    def list(self, state: State, limit: int) -> list[OutboxEntry]:
        """Return the first rows of a state."""
        with self._database.transaction() as execute:
            return [_to_entry(row) for row in execute(_LIST, {"state": state.value, "limit": limit})]

    def retry(self, row_id: str, now: datetime) -> None:
        """Let a failed row be handed over again. Raises NotFound."""
        self._change_failed(_RETRY, {"id": row_id, "now": to_text(now)})

    def discard(self, row_id: str) -> None:
        """Delete a failed row. Raises NotFound."""
        self._change_failed(_DISCARD, {"id": row_id})

    def _change_failed(self, statement: str, values: dict[str, Any]) -> None:
        with self._database.transaction() as execute:
            if not execute(_FIND, {"id": values["id"]}):
                raise NotFound("failed row", str(values["id"]))
            execute(statement, values)


def _to_entry(row: Any) -> OutboxEntry:  # noqa: ANN401 - each database's own kind of row
    number, row_id, task_id, action, content, written_at, state, attempts, error = row
    written = datetime.fromisoformat(written_at)
    return OutboxEntry(number, row_id, task_id, RowAction(action), content, written, State(state), attempts, error)
