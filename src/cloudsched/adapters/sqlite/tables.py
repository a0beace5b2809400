"""The tables and indexes of a SQLite file, and how tasks and their offers are written to them.

A file of another layout is refused. Tasks and offers have the columns by which lists find them.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.document import Document, find_changes
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, MAX_EXPANSION, require_document_fits
from cloudsched.domain.documents.task import Task, find_list, find_open_position
from cloudsched.domain.transitions.needs import find_trouble
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    from cloudsched.adapters.sqlite.database import Row
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.pull import OfferEntry
    from cloudsched.domain.transitions.commit import TaskWrite

LAYOUT_VERSION: Final = 15

_LATEST = "scheduled_for, task_id, id"
_ADD_LABELS = "INSERT INTO labels SELECT value, NEW.created_at, NEW.id FROM json_each(NEW.labels)"
_REMOVE_LABELS = """DELETE FROM labels WHERE task_created_at = OLD.created_at AND task_id = OLD.id
    AND label IN (SELECT value FROM json_each(OLD.labels))"""

_BEGIN_COUNT = "INSERT INTO changes (owner, number) VALUES (NEW.owner, 0) ON CONFLICT DO NOTHING"
_COUNT_CHANGE = "UPDATE changes SET number = number + 1 WHERE owner = {0}.owner"
_IS_LABELLED = "({0}.labels IS NOT NULL AND {0}.is_failure IS NOT NULL)"
_ADD_EXECUTION_LABELS = """INSERT INTO execution_labels
    SELECT value, NEW.is_failure, NEW.scheduled_for, NEW.task_id, NEW.id FROM json_each(NEW.labels)
    WHERE NEW.is_failure IS NOT NULL"""
_REMOVE_EXECUTION_LABELS = """DELETE FROM execution_labels WHERE label IN (SELECT value FROM json_each(OLD.labels))
    AND is_failure = OLD.is_failure AND scheduled_for = OLD.scheduled_for AND task_id = OLD.task_id AND id = OLD.id"""

LAYOUT: Final[Sequence[str]] = (
    """CREATE TABLE tasks (
        id TEXT PRIMARY KEY, version INTEGER NOT NULL,
        owner TEXT NOT NULL, handler TEXT NOT NULL, category TEXT NOT NULL, status TEXT NOT NULL,
        is_unlisted INTEGER NOT NULL, created_at INTEGER NOT NULL, next_at INTEGER, wake_at INTEGER, parent TEXT,
        is_delivery INTEGER NOT NULL, labels TEXT, open_status TEXT, open_since INTEGER, trouble TEXT,
        trouble_since INTEGER, body TEXT NOT NULL)""",
    "CREATE INDEX tasks_newest ON tasks (created_at, id) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_newest_of_owner ON tasks (owner, created_at, id) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_newest_of_handler ON tasks (handler, created_at, id) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_newest_of_status ON tasks (status, created_at, id) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_next ON tasks (next_at, id) WHERE NOT is_unlisted AND next_at IS NOT NULL",
    "CREATE INDEX tasks_next_of_owner ON tasks (owner, next_at, id) WHERE NOT is_unlisted AND next_at IS NOT NULL",
    """CREATE INDEX tasks_newest_of_parent ON tasks (parent, created_at, id)
        WHERE NOT is_unlisted AND parent IS NOT NULL""",
    "CREATE INDEX deliveries_newest_of_owner ON tasks (owner, created_at, id) WHERE is_delivery",
    "CREATE INDEX tasks_waking ON tasks (wake_at, id) WHERE wake_at IS NOT NULL",
    "CREATE INDEX tasks_open ON tasks (open_status, open_since, id) WHERE open_status IS NOT NULL",
    "CREATE INDEX tasks_in_trouble ON tasks (trouble, trouble_since, id) WHERE trouble IS NOT NULL",
    "CREATE TABLE changes (owner TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
    f"CREATE TRIGGER change_by_new_task AFTER INSERT ON tasks BEGIN {_BEGIN_COUNT}; {_COUNT_CHANGE.format('NEW')}; END",
    f"CREATE TRIGGER change_by_changed_task AFTER UPDATE ON tasks BEGIN {_COUNT_CHANGE.format('NEW')}; END",
    f"CREATE TRIGGER change_by_deleted_task AFTER DELETE ON tasks BEGIN {_COUNT_CHANGE.format('OLD')}; END",
    """CREATE TABLE labels (
        label TEXT NOT NULL, task_created_at INTEGER NOT NULL, task_id TEXT NOT NULL,
        PRIMARY KEY (label, task_created_at, task_id)) WITHOUT ROWID""",
    f"""CREATE TRIGGER labels_of_new_task AFTER INSERT ON tasks WHEN NEW.labels IS NOT NULL
        BEGIN {_ADD_LABELS}; END""",
    f"""CREATE TRIGGER labels_of_changed_task AFTER UPDATE OF labels, created_at ON tasks
        BEGIN {_REMOVE_LABELS}; {_ADD_LABELS}; END""",
    f"""CREATE TRIGGER labels_of_deleted_task AFTER DELETE ON tasks WHEN OLD.labels IS NOT NULL
        BEGIN {_REMOVE_LABELS}; END""",
    """CREATE TABLE offers (
        task_id TEXT PRIMARY KEY, owner TEXT NOT NULL, queue_key TEXT NOT NULL, offer_order TEXT NOT NULL,
        body TEXT NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX offers_first ON offers (queue_key, offer_order, task_id)",
    "CREATE INDEX offers_first_of_owner ON offers (owner, queue_key, offer_order, task_id)",
    """CREATE TABLE executions (
        task_id TEXT NOT NULL, id TEXT NOT NULL, scheduled_for INTEGER NOT NULL, owner TEXT NOT NULL, handler TEXT,
        category TEXT, status TEXT NOT NULL, is_failure INTEGER, labels TEXT, body TEXT NOT NULL,
        PRIMARY KEY (task_id, id))""",
    "CREATE INDEX executions_latest ON executions (task_id, scheduled_for, id)",
    f"CREATE INDEX executions_finished ON executions (is_failure, {_LATEST}) WHERE is_failure IS NOT NULL",
    f"CREATE INDEX executions_of_owner ON executions (owner, is_failure, {_LATEST}) WHERE is_failure IS NOT NULL",
    f"CREATE INDEX executions_of_handler ON executions (handler, is_failure, {_LATEST}) WHERE is_failure IS NOT NULL",
    f"""CREATE INDEX executions_of_category ON executions (category, is_failure, {_LATEST})
        WHERE is_failure IS NOT NULL""",
    """CREATE TABLE execution_labels (
        label TEXT NOT NULL, is_failure INTEGER NOT NULL, scheduled_for INTEGER NOT NULL, task_id TEXT NOT NULL,
        id TEXT NOT NULL, PRIMARY KEY (label, is_failure, scheduled_for, task_id, id)) WITHOUT ROWID""",
    f"""CREATE TRIGGER labels_of_new_execution AFTER INSERT ON executions WHEN {_IS_LABELLED.format("NEW")}
        BEGIN {_ADD_EXECUTION_LABELS}; END""",
    f"""CREATE TRIGGER labels_of_changed_execution AFTER UPDATE OF labels, is_failure, scheduled_for ON executions
        WHEN {_IS_LABELLED.format("NEW")} OR {_IS_LABELLED.format("OLD")}
        BEGIN {_REMOVE_EXECUTION_LABELS}; {_ADD_EXECUTION_LABELS}; END""",
    f"""CREATE TRIGGER labels_of_deleted_execution AFTER DELETE ON executions WHEN {_IS_LABELLED.format("OLD")}
        BEGIN {_REMOVE_EXECUTION_LABELS}; END""",
    """CREATE TABLE messages (
        owner TEXT NOT NULL, id TEXT NOT NULL, created_at INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (owner, id))""",
    "CREATE INDEX messages_newest ON messages (owner, created_at, id)",
    """CREATE TABLE steps (
        task_id TEXT NOT NULL, execution_id TEXT NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (task_id, execution_id, number)) WITHOUT ROWID""",
    """CREATE TABLE expiring (
        kind TEXT NOT NULL, parent TEXT NOT NULL, id TEXT NOT NULL, expire_at INTEGER NOT NULL,
        PRIMARY KEY (kind, parent, id)) WITHOUT ROWID""",
    "CREATE INDEX expiring_first ON expiring (expire_at)",
    "CREATE TABLE locks (key TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL)",
    """CREATE TABLE waiters (
        lock_key TEXT NOT NULL, id TEXT NOT NULL, task_id TEXT NOT NULL, worker_group TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (lock_key, id)) WITHOUT ROWID""",
    """CREATE TABLE records (
        kind TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (kind, id))""",
    "CREATE INDEX records_of_owner ON records (kind, owner, id)",
    "CREATE INDEX waiters_of_task ON waiters (lock_key, task_id, id)",
    "CREATE INDEX waiters_of_group ON waiters (lock_key, worker_group, id)",
)

_COPIED: Final = ("owner", "handler", "category", "status")
_INSTANTS: Final = {"created_at": "created_at", "next_at": "next_execution_time", "wake_at": "wake_at"}
_COLUMNS: Final = (
    *(*_COPIED, *_INSTANTS, "is_unlisted", "is_delivery", "parent", "labels", "open_status", "open_since"),
    *("trouble", "trouble_since"),
)
"""The columns that lists search."""
_ALL_FIELDS: Final = frozenset(Task.model_fields)
_INSERT = f"""INSERT OR FAIL INTO tasks ({", ".join(_COLUMNS)}, body, id, version)
    VALUES ({", ".join("?" * len(_COLUMNS))}, ?, ?, ?) ON CONFLICT DO NOTHING"""  # noqa: S608 - no input
_PUT_OFFER = "INSERT OR REPLACE INTO offers (task_id, owner, queue_key, offer_order, body) VALUES (?, ?, ?, ?, ?)"
_SURELY_SMALL: Final = MAX_DOCUMENT_BYTES // MAX_EXPANSION // 2
"""A document with at most this many characters of JSON fits Firestore, whatever its name."""
DELETE_OFFER = "DELETE FROM offers WHERE task_id = ?"
_RECORD_COLUMNS = ("scheduled_for", "owner", "handler", "category", "status", "is_failure", "labels", "body")
INSERT_EXECUTION = f"""INSERT OR FAIL INTO executions (task_id, id, {", ".join(_RECORD_COLUMNS)})
    VALUES (?, ?, {", ".join("?" * len(_RECORD_COLUMNS))}) ON CONFLICT DO NOTHING"""  # noqa: S608 - no input
UPDATE_EXECUTION = f"""UPDATE OR FAIL executions SET {", ".join(f"{name} = ?" for name in _RECORD_COLUMNS)}
    WHERE task_id = ? AND id = ?"""  # noqa: S608 - the same


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as it is written."""

    write: TaskWrite
    columns: dict[str, object]
    """The columns that change, or all columns of a new task."""
    body: str
    offers: tuple[OfferEntry | None, OfferEntry | None]
    """The offer that is stored, and the one that is to be."""


def to_task_row(write: TaskWrite) -> TaskRow:
    """Return the row to write of a task."""
    task, stored = write.task, None if write.base is None else write.base.task
    changes = None if stored is None else find_changes(stored, task)
    columns = _list_columns(task, _ALL_FIELDS if changes is None else changes, stored)
    has_offers = task.offer is not None or (stored is not None and stored.offer is not None)
    offers = write.find_offers() if has_offers else (None, None)
    return TaskRow(write, columns, to_json(task, "tasks", task.id, changes=changes), offers)


def _list_columns(task: Task, changes: Collection[str], stored: Task | None = None) -> dict[str, object]:
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
    # Most writes concern no task that needs somebody: it has nothing of what `find_trouble` looks at.
    may_need = [
        each
        for each in (task, stored)
        if each is not None
        and (
            each.consecutive_failures
            or each.budget_pause
            or each.delivery
            or [run for run in each.runs if run.suspension]
        )
    ]
    if stored is None or may_need:
        trouble = find_trouble(task) if may_need else None
        if stored is None or trouble != find_trouble(stored):
            kind, since = trouble or (None, None)
            columns |= {"trouble": kind, "trouble_since": None if since is None else to_microseconds(since)}
    return columns


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@lru_cache(maxsize=100)  # most tasks wake at their next occurrence, and are written several times
def to_microseconds(instant: datetime) -> int:
    """Convert an instant to the stored form: whole microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(ticks: int) -> datetime:
    """Convert stored microseconds to an instant."""
    return _EPOCH + ticks * _MICROSECOND


_random: Final = random.Random()  # noqa: S311 - to tell versions apart


def write_task(connection: sqlite3.Connection, row: TaskRow) -> int:
    """Insert a task, or update it if it has the expected version. Write its offer, and return the new version.

    An update names only columns that change: SQLite writes a page for every index of a column that is named. It says
    ``OR FAIL``, since the whole commit is undone anyway: else SQLite copies each page that it changes to undo it alone.
    """
    task, values, base = row.write.task, row.columns.values(), row.write.base
    version = _random.getrandbits(48)  # no version comes again, be a task created again or a backup restored
    if base is None:
        done = connection.execute(_INSERT, (*values, row.body, task.id, version))
    else:
        names = "".join([f", {name} = ?" for name in row.columns])
        statement = f"UPDATE OR FAIL tasks SET body = ?, version = ?{names} WHERE id = ? AND version = ?"  # noqa: S608
        done = connection.execute(statement, (row.body, version, *values, task.id, base.version.value))
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

    One too large for Firestore is refused, so that tests here do not pass what fails there.
    """
    body = document.to_stored_json(changes)
    if len(body) > _SURELY_SMALL:
        require_document_fits(path, MAX_EXPANSION * len(body), document.to_stored)
    return body
