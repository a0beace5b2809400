"""Write tasks and their offers to SQLite, each with the columns by which lists find it."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from cloudsched.adapters.sqlite.queries import to_microseconds
from cloudsched.domain.documents.document import find_changes
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, MAX_EXPANSION, require_document_fits
from cloudsched.domain.documents.task import Task, find_list, find_open_position, find_trouble
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from cloudsched.adapters.sqlite.database import Row
    from cloudsched.domain.documents.document import Document
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.pull import OfferEntry
    from cloudsched.engine.ports.store import TaskWrite

_COPIED: Final = ("owner", "handler", "category", "status")
_INSTANTS: Final = {"created_at": "created_at", "next_at": "next_execution_time", "wake_at": "wake_at"}
_COLUMNS: Final = (
    *(*_COPIED, *_INSTANTS, "is_unlisted", "is_delivery", "parent", "labels", "open_status", "open_since"),
    *("trouble", "trouble_since"),
)
"""The columns that lists search."""
_ALL_FIELDS: Final = frozenset(Task.model_fields)
_INSERT = f"""INSERT INTO tasks ({", ".join(_COLUMNS)}, body, id, version)
    VALUES ({", ".join("?" * len(_COLUMNS))}, ?, ?, ?) ON CONFLICT DO NOTHING"""  # noqa: S608 - no input
_PUT_OFFER = "INSERT OR REPLACE INTO offers (task_id, owner, queue_key, offer_order, body) VALUES (?, ?, ?, ?, ?)"
_SURELY_SMALL: Final = MAX_DOCUMENT_BYTES // MAX_EXPANSION // 2
"""As JSON of so many characters, a document fits Firestore, whatever its name."""
DELETE_OFFER = "DELETE FROM offers WHERE task_id = ?"
_RECORD_COLUMNS = ("scheduled_for", "owner", "handler", "category", "status", "is_failure", "labels", "body")
PUT_EXECUTION = f"""INSERT INTO executions (task_id, id, {", ".join(_RECORD_COLUMNS)})
    VALUES (?, ?, {", ".join("?" * len(_RECORD_COLUMNS))})
    ON CONFLICT (task_id, id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _RECORD_COLUMNS)}"""  # noqa: S608 - no input


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as it is written."""

    write: TaskWrite
    columns: dict[str, object]
    """Those that change; all of a new task."""
    body: str
    offers: tuple[OfferEntry | None, OfferEntry | None]
    """The one that is stored, and the one that is to be."""


def to_task_row(write: TaskWrite) -> TaskRow:
    """Return what is written of a task.

    Raises:
        InvalidInput: It is too large.
    """
    task, stored = write.task, None if write.base is None else write.base.task
    changes = None if stored is None else find_changes(stored, task)
    columns = _list_columns(task, _ALL_FIELDS if changes is None else changes, stored)
    return TaskRow(write, columns, to_json(task, "tasks", task.id, changes=changes), write.find_offers())


def _list_columns(task: Task, changes: Collection[str], stored: Task | None = None) -> dict[str, object]:
    """Return the columns that change with some fields, and what they are then."""
    columns: dict[str, object] = {name: getattr(task, name) for name in _COPIED if name in changes}
    for column, name in _INSTANTS.items():
        if name in changes:
            instant = getattr(task, name)
            columns[column] = None if instant is None else to_microseconds(instant)
    is_moved = "deleted_at" in changes or "delivery" in changes
    if is_moved:
        is_deleted, is_delivery = task.deleted_at is not None, task.delivery is not None
        columns |= {"is_unlisted": is_deleted or is_delivery, "is_delivery": is_delivery and not is_deleted}
    if "parent" in changes:
        columns["parent"] = None if task.parent is None else task.parent.task_id
    if "labels" in changes:
        columns["labels"] = json.dumps(task.labels) if task.labels else None
    if is_moved or "runs" in changes:
        position = find_open_position(task) if task.runs else None
        before = find_open_position(stored) if stored is not None and stored.runs else None
        if stored is None or position != before:
            status, since = position or (None, None)
            columns |= {"open_status": status, "open_since": None if since is None else to_microseconds(since)}
    is_ill = [
        each
        for each in (task, stored)
        if each is not None
        and (
            each.consecutive_failures
            or each.budget_pause
            or each.delivery
            or [run for run in each.runs if run.suspension]
        )
    ]  # most writes concern no task that needs somebody, and ask no more
    if stored is None or is_ill:
        trouble = find_trouble(task) if is_ill else None
        if stored is None or trouble != find_trouble(stored):
            kind, since = trouble or (None, None)
            columns |= {"trouble": kind, "trouble_since": None if since is None else to_microseconds(since)}
    return columns


def write_task(connection: sqlite3.Connection, row: TaskRow) -> int:
    """Insert a task, or update it if it has the expected version, and write its offer; return the new version.

    An update names only columns that change: SQLite writes a page for every index of a column that is named.
    """
    task, values, base = row.write.task, row.columns.values(), row.write.base
    expected = None if base is None else base.version
    if expected is None:
        version = secrets.randbits(48)  # so a task created again under an id never has its old version
        done = connection.execute(_INSERT, (*values, row.body, task.id, version))
    else:
        version = cast("int", expected.value) + 1
        names = "".join([f", {name} = ?" for name in row.columns])
        statement = f"UPDATE tasks SET body = ?, version = ?{names} WHERE id = ? AND version = ?"  # noqa: S608
        done = connection.execute(statement, (row.body, version, *values, task.id, expected.value))
    if done.rowcount != 1:
        raise VersionConflict(f"task {task.id}")
    before, offer = row.offers
    if offer == before:
        return version
    if offer is None:
        connection.execute(DELETE_OFFER, (task.id,))
    else:
        connection.execute(_PUT_OFFER, (task.id, offer.owner, offer.queue_key, offer.order, to_json(offer)))
    return version


def to_execution_row(task_id: str, execution: Execution) -> Row:
    """Return the values that store a record."""
    return (
        task_id,
        execution.id,
        to_microseconds(execution.scheduled_for),
        execution.owner,
        execution.handler,
        execution.category,
        execution.status,
        find_list(execution),
        json.dumps(execution.labels) if execution.labels else None,
        to_json(execution, "tasks", task_id, "executions", execution.id),
    )


def to_json(document: Document, *path: str, changes: Collection[str] | None = None) -> str:
    """Return a document as JSON.

    Args:
        document: The document.
        path: The ids of its collections and documents.
        changes: The fields that differ from what was read; None for a new document.

    Raises:
        InvalidInput: It is larger than Firestore accepts: tests on this store must not pass with what fails there.
    """
    body = document.to_stored_json(changes)
    if len(body) > _SURELY_SMALL:
        require_document_fits(path, MAX_EXPANSION * len(body), document.to_stored)
    return body
