"""How a commit is written: the rows of its documents, and the statements that write them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self

from cloudsched.adapters.sqlite.records import make_record_write
from cloudsched.adapters.sqlite.tables import DELETE_OFFER, to_microseconds
from cloudsched.domain.documents.document import Document, find_changes
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, MAX_EXPANSION, require_document_fits
from cloudsched.domain.documents.name_words import fold_names
from cloudsched.domain.documents.run_counts import CountedAs, classify_run, has_started_late
from cloudsched.domain.documents.task import Task, find_list, find_open_position
from cloudsched.domain.transitions.needs import find_trouble
from cloudsched.engine.ports.search import fold_error
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Sequence

    from cloudsched.adapters.sqlite.database import Row
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.transitions.commit import Commit, DeliveryMark, TaskWrite, VersionedTask
    from cloudsched.features.fields import OfferEntry

_PUT_STEP = "INSERT OR REPLACE INTO steps (task_id, execution_id, number, body) VALUES (?, ?, ?, ?)"
_DELETE_STEPS = "DELETE FROM steps WHERE task_id = ? AND execution_id = ?"
_PUT_MESSAGE = "INSERT OR REPLACE INTO messages (owner, id, created_at, body) VALUES (?, ?, ?, ?)"
_PUT_EXPIRING = "INSERT OR IGNORE INTO expiring (kind, expire_at, parent, id) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class CommitWriter:
    """A commit with its rows, made before the transaction that writes them, which others wait for."""

    commit: Commit
    tasks: Sequence[TaskRow]
    executions: Sequence[Row]
    others: dict[str, list[Row]]
    """The rows of all else, by the statement that writes them."""
    linked: Sequence[Callable[[sqlite3.Connection], object]]
    """What writes the documents that the commit links to its task."""

    @classmethod
    def of(cls, commit: Commit, linked_store: Any) -> Self:  # noqa: ANN401, C901 - of a feature; one kind after the other
        """Return the writer of a commit. Raises InvalidInput if a document is too large."""
        task = commit.task
        tasks: list[TaskRow] = []
        executions: list[Row] = []
        expiring: list[Row] = []
        for write in (commit, *commit.others):
            tasks.append(_to_task_row(write))
            goes_at, task_id = write.task.expire_at, write.task.id
            for record in write.executions:
                executions.append(_to_execution_row(task_id, record))
                if record.expire_at and record.expire_at != goes_at:  # else it goes with its task
                    expiring.append(("execution", to_microseconds(record.expire_at), task_id, record.id))
            if goes_at:
                expiring.append(("task", to_microseconds(goes_at), write.task.owner, task_id))

        others: dict[str, list[Row]] = {}
        for message in commit.messages:
            place = message.owner, message.id
            body = _to_json(message, "inboxes", message.owner, "messages", message.id)
            others.setdefault(_PUT_MESSAGE, []).append((*place, to_microseconds(message.created_at), body))
            if message.expire_at:
                expiring.append(("message", to_microseconds(message.expire_at), *place))
        if commit.archived:
            others[_DELETE_STEPS] = [(task.id, each.execution_id) for each in commit.archived]
        for entry in commit.entries:
            body = _to_json(entry, "tasks", task.id, "executions", entry.execution_id, "steps", entry.id)
            others.setdefault(_PUT_STEP, []).append((task.id, entry.execution_id, entry.number, body))
        if expiring:
            others[_PUT_EXPIRING] = expiring
        linked = list(starmap(make_record_write, commit.records))
        if commit.linked is not None:
            linked.append(partial(linked_store.write, lock=commit.linked))
        return cls(commit, tasks, executions, others, linked)

    def write(self, connection: sqlite3.Connection) -> list[int]:
        """Write all of it, and return the new versions of its tasks. Raises VersionConflict."""
        commit = self.commit
        versions = list[int]()
        for row in self.tasks:
            versions.append(_write_task(connection, row))
        for write_linked in self.linked:
            write_linked(connection)
        for each in (commit, *commit.others):
            if each.kept_record is not None:
                _keep_record(connection, each.task.id, each.kept_record)
        if commit.unchanged:
            _require_unchanged(connection, commit.unchanged)
        if commit.delivered is not None:
            _mark_delivered(connection, commit.delivered)

        for record in self.executions:
            if not connection.execute(_INSERT_EXECUTION, record).rowcount:
                connection.execute(_UPDATE_EXECUTION, (*record[2:], *record[:2]))
        for statement, rows in self.others.items():
            connection.executemany(statement, rows)
        return versions


_COPIED: Final = ("owner", "handler", "category", "status", "pause_id")
_INSTANTS: Final = {"created_at": "created_at", "next_at": "next_execution_time", "wake_at": "wake_at"}
_COLUMNS: Final = (
    *_COPIED,
    *_INSTANTS,
    "is_unlisted",
    "is_delivery",
    "parent",
    "names",
    "acted_at",
    "used_at",
    "labels",
    "open_status",
    "open_since",
    "asks",
    "trouble",
    "trouble_since",
)
"""The columns that lists search."""
_NAMED: Final = frozenset({"title", "id", "handler", "owner", "labels"})
"""The fields whose texts are found by their fragments."""
_TROUBLED: Final = attrgetter("consecutive_failures", "hold", "delivery")
_USED: Final = frozenset({"usage", "deleted_at"})
_ALL_FIELDS: Final = frozenset(Task.model_fields)
_INSERT = f"""INSERT OR FAIL INTO tasks ({", ".join(_COLUMNS)}, body, id, version)
    VALUES ({", ".join("?" * len(_COLUMNS))}, ?, ?, ?) ON CONFLICT DO NOTHING"""
_PUT_OFFER = "INSERT OR REPLACE INTO offers (task_id, owner, queue_key, offer_order, body) VALUES (?, ?, ?, ?, ?)"
_SURELY_SMALL: Final = MAX_DOCUMENT_BYTES // MAX_EXPANSION // 2
"""A document with at most this many characters of JSON fits Firestore, whatever its name."""
_RECORD_COLUMNS = (
    "scheduled_for",
    "owner",
    "handler",
    "category",
    "status",
    "is_failure",
    "counted_as",
    "occurrences",
    "is_at_least",
    "is_late",
    "labels",
    "error",
    "body",
)
_INSERT_EXECUTION = f"""INSERT OR FAIL INTO executions (task_id, id, {", ".join(_RECORD_COLUMNS)})
    VALUES (?, ?, {", ".join("?" * len(_RECORD_COLUMNS))}) ON CONFLICT DO NOTHING"""
_UPDATE_EXECUTION = f"""UPDATE OR FAIL executions SET {", ".join(f"{name} = ?" for name in _RECORD_COLUMNS)}
    WHERE task_id = ? AND id = ?"""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as it is written."""

    write: TaskWrite
    columns: dict[str, object]
    """The columns that change, or all columns of a new task."""
    body: str
    offers: tuple[OfferEntry | None, OfferEntry | None]
    """The offer that is stored, and the one that is to be."""


def _to_task_row(write: TaskWrite) -> TaskRow:
    """Return the row to write of a task."""
    task = write.task
    if write.base is None:
        stored = None
        changes = None
        columns = _list_columns(task, _ALL_FIELDS)
    else:
        stored = write.base.task
        changes = find_changes(stored, task)
        columns = _list_columns(task, changes, stored)

    offers: tuple[OfferEntry | None, OfferEntry | None] = (None, None)
    if task.offer is not None or (stored is not None and stored.offer is not None):
        offers = write.find_offers()
    return TaskRow(write, columns, _to_json(task, "tasks", task.id, changes=changes), offers)


def _list_columns(  # noqa: C901, PLR0912 - one column after the other
    task: Task, changes: Collection[str], stored: Task | None = None
) -> dict[str, object]:
    columns: dict[str, object] = {}
    for name in _COPIED:
        if name in changes:
            columns[name] = getattr(task, name)
    for column, name in _INSTANTS.items():
        if name in changes:
            instant = getattr(task, name)
            columns[column] = None if instant is None else to_microseconds(instant)
    is_moved = "deleted_at" in changes or "delivery" in changes
    if is_moved:
        is_deleted = task.deleted_at is not None
        is_delivery = task.delivery is not None
        columns |= {"is_unlisted": is_deleted or is_delivery, "is_delivery": is_delivery and not is_deleted}
    if "parent" in changes:
        columns["parent"] = task.parent.task_id if task.parent else None
    if not _NAMED.isdisjoint(changes):
        columns["names"] = fold_names(task)
    if "history" in changes:
        columns["acted_at"] = to_microseconds(task.history[-1].at) if task.history else None
    if not _USED.isdisjoint(changes):
        columns["used_at"] = 0 if task.usage else None
    if "labels" in changes:
        columns["labels"] = json.dumps(task.labels) if task.labels else None
    if is_moved or "runs" in changes or "events" in changes:
        position = find_open_position(task) if task.runs else None
        before = find_open_position(stored) if stored is not None and stored.runs else None
        if stored is None or position != before:
            status, since, asks = position or (None, None, None)
            columns |= {"open_status": status, "open_since": since and to_microseconds(since), "asks": asks}
    # Most writes concern a task that needs no attention, before and after them: they skip the closer look.
    is_ill = any(_TROUBLED(task)) or (stored is not None and any(_TROUBLED(stored)))
    trouble = find_trouble(task) if is_ill else None
    if stored is None or (is_ill and trouble != find_trouble(stored)):
        kind, ill_since = trouble or (None, None)
        columns |= {"trouble": kind, "trouble_since": ill_since and to_microseconds(ill_since)}
    return columns


_random: Final = random.Random()  # noqa: S311 - to tell versions apart


def _write_task(connection: sqlite3.Connection, row: TaskRow) -> int:
    """Insert a task, or update it if it has the expected version.

    Write its offer, and return the new version.

    An update names only columns that change: SQLite writes a page for every index of a column that is named.
    It says ``OR FAIL``, since the whole commit is undone anyway: else SQLite copies each page that it changes
    to undo it alone.
    """
    task = row.write.task
    if row.columns.get("used_at") is not None:
        ((row.columns["used_at"],),) = connection.execute("SELECT number FROM changes WHERE owner = ''")
    values = row.columns.values()
    base = row.write.base
    version = _random.getrandbits(48)  # no version comes again, be a task created again or a backup restored
    if base is None:
        done = connection.execute(_INSERT, (*values, row.body, task.id, version))
    else:
        names = "".join(map(", {} = ?".format, row.columns))
        statement = f"UPDATE OR FAIL tasks SET body = ?, version = ?{names} WHERE id = ? AND version = ?"
        done = connection.execute(statement, (row.body, version, *values, task.id, base.version.value))
    if done.rowcount != 1:
        raise VersionConflict(f"task {task.id}")
    before, offer = row.offers
    if offer == before:
        return version
    if offer is None:
        connection.execute(DELETE_OFFER, (task.id,))
    else:
        connection.execute(_PUT_OFFER, (task.id, offer.owner, offer.queue_key, offer.order, _to_json(offer)))
    return version


def _to_execution_row(task_id: str, execution: Execution) -> Row:
    """Return the values that store a record."""
    counted_as = classify_run(execution)
    covers = execution.covers if counted_as is CountedAs.SKIPPED else None
    return (
        task_id,
        execution.id,
        to_microseconds(execution.scheduled_for),
        execution.owner,
        execution.handler,
        execution.category,
        execution.status,
        find_list(execution),
        counted_as,
        1 if covers is None else covers.count,
        covers is not None and covers.is_at_least,
        has_started_late(execution),
        json.dumps(execution.labels) if execution.labels else None,
        None if execution.error is None else fold_error(execution.error),
        _to_json(execution, "tasks", task_id, "executions", execution.id),
    )


def _to_json(document: Document, *path: str, changes: Collection[str] | None = None) -> str:
    """Return a document as JSON.

    One too large for Firestore is refused, so that tests here do not pass what fails there.
    """
    body = document.to_stored_json(changes)
    if len(body) > _SURELY_SMALL:
        require_document_fits(path, MAX_EXPANSION * len(body), document.to_stored)
    return body


_HAS_TASK: Final = "SELECT 1 FROM tasks WHERE id = ? AND version = ?"
_KEEP: Final = "UPDATE executions SET body = json_remove(body, '$.expireAt') WHERE task_id = ? AND id = ?"
_MARK_DELIVERED: Final = (
    "UPDATE executions SET body = json_set(body, '$.isDelivered', json('true')) WHERE task_id = ? AND id = ?"
)


def _require_unchanged(connection: sqlite3.Connection, tasks: Sequence[VersionedTask]) -> None:
    """Check that tasks are as they were read. Raises VersionConflict."""
    for each in tasks:
        if connection.execute(_HAS_TASK, (each.task.id, each.version.value)).fetchone() is None:
            raise VersionConflict(f"task {each.task.id}")


def _keep_record(connection: sqlite3.Connection, task_id: str, execution_id: str) -> None:
    """Remove `expire_at` of a record. Raises VersionConflict if there is none."""
    if connection.execute(_KEEP, (task_id, execution_id)).rowcount != 1:
        raise VersionConflict(f"execution {execution_id} of {task_id}")


def _mark_delivered(connection: sqlite3.Connection, mark: DeliveryMark) -> None:
    """Set `is_delivered` of a record. Raises VersionConflict if there is none."""
    if connection.execute(_MARK_DELIVERED, (mark.task_id, mark.execution_id)).rowcount != 1:
        raise VersionConflict(f"execution {mark.execution_id} of {mark.task_id}")
