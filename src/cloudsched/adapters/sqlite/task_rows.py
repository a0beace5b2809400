"""Write tasks and their offers to SQLite, each with the columns by which lists find it."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from cloudsched.adapters.sqlite.queries import to_microseconds
from cloudsched.domain.documents.document_size import require_document_fits
from cloudsched.domain.documents.json_limits import MAX_EXPANSION
from cloudsched.domain.documents.open_runs import find_open_position
from cloudsched.domain.transitions.offers import offer_entry
from cloudsched.engine.ports.version import Version
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3

    from cloudsched.adapters.sqlite.database import Row
    from cloudsched.domain.documents.document import Document
    from cloudsched.domain.documents.pull import OfferEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import TaskWrite

COLUMNS = (
    *(
        "owner",
        "handler",
        "category",
        "status",
        "is_unlisted",
        "created_at",
        "next_at",
        "wake_at",
        "parent",
        "is_delivery",
    ),
    *("labels", "open_status", "open_since"),
)
"""The columns that lists search."""
_INSERT = f"""INSERT INTO tasks ({", ".join(COLUMNS)}, body, id, version)
    VALUES ({", ".join("?" * len(COLUMNS))}, ?, ?, ?) ON CONFLICT DO NOTHING"""  # noqa: S608 - no input
_FIND = f"SELECT {', '.join(COLUMNS)} FROM tasks WHERE id = ? AND version = ?"  # noqa: S608 - the same
_PUT_OFFER = "INSERT OR REPLACE INTO offers (task_id, owner, queue_key, offer_order, body) VALUES (?, ?, ?, ?, ?)"
DELETE_OFFER = "DELETE FROM offers WHERE task_id = ?"


@dataclass(frozen=True, slots=True)
class TaskVersion(Version):
    """The version of a task, with what a commit on it need not read again."""

    columns: Row | None = field(default=None, compare=False, repr=False)
    """The row's columns at this version, if they were read or written with it."""


def _new_version() -> int:
    """Return a first version: random, so that a task created again under an id never has its old version."""
    return secrets.randbits(48)


def write_task(connection: sqlite3.Connection, write: TaskWrite, columns: Row, body: str) -> int:
    """Insert a task, or update it if it has the expected version, and write its offer; return the new version."""
    task, expected = write.task, None if write.base is None else write.base.version
    version = _new_version() if expected is None else cast("int", expected.value)
    if expected is None:
        done = connection.execute(_INSERT, (*columns, body, task.id, version)).rowcount == 1
    else:
        known = expected.columns if isinstance(expected, TaskVersion) else None
        done = _update(connection, columns, body, task.id, version, known)
    if not done:
        raise VersionConflict(f"task {task.id}")
    offer = offer_entry(task)
    if offer != (None if expected is None else expected.offer):
        _write_offer(connection, task.id, offer)
    return version if expected is None else version + 1


def _update(
    connection: sqlite3.Connection, columns: Row, body: str, task_id: str, version: int, known: Row | None
) -> bool:
    """Write a task if it has this version; return whether it has.

    The statement names only columns that change: SQLite writes a page for every index of a column that is named.
    """
    found = known or connection.execute(_FIND, (task_id, version)).fetchone()
    if found is None:
        return False
    changes = [(name, new) for name, old, new in zip(COLUMNS, found, columns, strict=True) if old != new]
    names = "".join(f", {name} = ?" for name, _ in changes)
    statement = f"UPDATE tasks SET body = ?, version = version + 1{names} WHERE id = ? AND version = ?"  # noqa: S608
    values = (body, *(value for _, value in changes), task_id, version)
    return connection.execute(statement, values).rowcount == 1


def _write_offer(connection: sqlite3.Connection, task_id: str, offer: OfferEntry | None) -> None:
    if offer is None:
        connection.execute(DELETE_OFFER, (task_id,))
        return
    values = (task_id, offer.owner, offer.queue_key, offer.order, to_json(offer))
    connection.execute(_PUT_OFFER, values)


def to_columns(task: Task) -> Row:
    """Return the values of the columns that lists search."""
    open_status, open_since = find_open_position(task) or (None, None)
    return (
        task.owner,
        task.handler,
        task.category,
        task.status,
        task.deleted_at is not None or task.delivery is not None,
        to_microseconds(task.created_at),
        None if task.next_execution_time is None else to_microseconds(task.next_execution_time),
        None if task.wake_at is None else to_microseconds(task.wake_at),
        None if task.parent is None else task.parent.task_id,
        task.delivery is not None and task.deleted_at is None,
        json.dumps(task.labels) if task.labels else None,
        open_status,
        None if open_since is None else to_microseconds(open_since),
    )


def to_json(document: Document, *path: str) -> str:
    """Return a document as JSON.

    Raises:
        InvalidInput: It is larger than Firestore accepts: tests on this store must not pass with what fails there.
    """
    body = document.to_stored_json()
    require_document_fits(path, MAX_EXPANSION * len(body), document.to_stored)
    return body
