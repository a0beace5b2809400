"""The embedded store: tasks, executions and messages in one SQLite file, or in memory for tests.

A document is JSON text, beside the columns that lists and sweeps look for. Instants are whole microseconds since 1970.
Each task has a version number that every commit raises: the precondition of a commit is one ``UPDATE … WHERE``.

A list by one of owner, handler and status walks an index made for it, in the order of the list. Given several of them,
it walks the first one's and leaves out what does not fit the others.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import ValidationError

from cloudsched.adapters.sqlite_database import Database
from cloudsched.domain.document import SCHEMA_VERSION, STORED, Document
from cloudsched.domain.execution import Execution, Message
from cloudsched.domain.task import Task
from cloudsched.engine.paging import make_token, read_token
from cloudsched.engine.ports import Page, Stored, TaskQuery, Version
from cloudsched.errors import UnsupportedDocument, VersionConflict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

D = TypeVar("D", bound=Document)

LAYOUT_VERSION = 1
LAYOUT = (
    """CREATE TABLE tasks (
        id TEXT PRIMARY KEY, version INTEGER NOT NULL,
        owner TEXT NOT NULL, handler TEXT NOT NULL, status TEXT NOT NULL, is_deleted INTEGER NOT NULL,
        created_at INTEGER NOT NULL, next_at INTEGER, wake_at INTEGER, body TEXT NOT NULL)""",
    "CREATE INDEX tasks_newest ON tasks (created_at, id) WHERE NOT is_deleted",
    "CREATE INDEX tasks_newest_of_owner ON tasks (owner, created_at, id) WHERE NOT is_deleted",
    "CREATE INDEX tasks_newest_of_handler ON tasks (handler, created_at, id) WHERE NOT is_deleted",
    "CREATE INDEX tasks_newest_of_status ON tasks (status, created_at, id) WHERE NOT is_deleted",
    "CREATE INDEX tasks_next ON tasks (next_at, id) WHERE NOT is_deleted AND next_at IS NOT NULL",
    "CREATE INDEX tasks_next_of_owner ON tasks (owner, next_at, id) WHERE NOT is_deleted AND next_at IS NOT NULL",
    "CREATE INDEX tasks_next_of_handler ON tasks (handler, next_at, id) WHERE NOT is_deleted AND next_at IS NOT NULL",
    "CREATE INDEX tasks_next_of_status ON tasks (status, next_at, id) WHERE NOT is_deleted AND next_at IS NOT NULL",
    "CREATE INDEX tasks_waking ON tasks (wake_at, id) WHERE wake_at IS NOT NULL",
    """CREATE TABLE executions (
        task_id TEXT NOT NULL, id TEXT NOT NULL, scheduled_for INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (task_id, id))""",
    "CREATE INDEX executions_latest ON executions (task_id, scheduled_for, id)",
    """CREATE TABLE messages (
        owner TEXT NOT NULL, id TEXT NOT NULL, created_at INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (owner, id))""",
    "CREATE INDEX messages_newest ON messages (owner, created_at, id)",
)

_INSERT = """INSERT INTO tasks (owner, handler, status, is_deleted, created_at, next_at, wake_at, body, id, version)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_UPDATE = """UPDATE tasks SET owner = ?, handler = ?, status = ?, is_deleted = ?, created_at = ?, next_at = ?,
    wake_at = ?, body = ?, version = version + 1 WHERE id = ? AND version = ?"""
_PUT_EXECUTION = "INSERT OR REPLACE INTO executions (task_id, id, scheduled_for, body) VALUES (?, ?, ?, ?)"
_PUT_MESSAGE = "INSERT OR REPLACE INTO messages (owner, id, created_at, body) VALUES (?, ?, ?, ?)"
_PURGE_SOME = "DELETE FROM executions WHERE rowid IN (SELECT rowid FROM executions WHERE task_id = ? LIMIT ?)"

_PURGE_SIZE = 1000
"""How many executions one transaction removes, so that no other writer waits long for it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


class SqliteStore:
    """A `Store` in a SQLite file that several threads and processes may use, or in memory."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the store, and make it if it is not there.

        Args:
            path: The file; None keeps everything in memory, as long as this object lives.

        Raises:
            UnsupportedDocument: The file was laid out by another cloudsched.
            Misconfigured: The file is something else.
            StoreUnavailable: The file cannot be opened.
        """
        self._database = Database(path, LAYOUT, LAYOUT_VERSION)

    def load(self, task_id: str) -> Stored | None:
        """Return the task as it is now, or None."""
        rows = self._database.read("SELECT version, body FROM tasks WHERE id = ?", (task_id,))
        if not rows:
            return None
        version, body = rows[0]
        return Stored(_read(Task, task_id, body), Version(version))

    def commit(
        self,
        task: Task,
        expect: Version | None,
        executions: Sequence[Execution] = (),
        messages: Sequence[Message] = (),
    ) -> Version:
        """Write a task and its records in one transaction, if the task still has the expected version."""
        # A first version is random, so that a task that was deleted and made again is not taken for its older self.
        before = secrets.randbits(48) if expect is None else cast("int", expect.value)
        row = (*_columns(task), task.id, before)
        statement = _INSERT if expect is None else _UPDATE
        execution_rows = [(task.id, e.id, _ticks(e.scheduled_for), _text(e)) for e in executions]
        message_rows = [(m.owner, m.id, _ticks(m.created_at), _text(m)) for m in messages]

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(statement, row).rowcount != 1:
                return False
            if execution_rows:
                connection.executemany(_PUT_EXECUTION, execution_rows)
            if message_rows:
                connection.executemany(_PUT_MESSAGE, message_rows)
            return True

        if not self._database.write(work):
            raise VersionConflict(f"task {task.id}")
        return Version(before if expect is None else before + 1)

    def purge(self, task_id: str) -> None:
        """Remove a task's executions, some at a time, then the task."""

        def some(connection: sqlite3.Connection) -> int:
            return connection.execute(_PURGE_SOME, (task_id, _PURGE_SIZE)).rowcount

        def task(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM tasks WHERE id = ?", (task_id,))

        while self._database.write(some):
            pass
        self._database.write(task)

    def tasks(self, query: TaskQuery, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks that fit."""
        return self._page(Task, query, list_of_tasks(query), limit, page_token)

    def due(self, before: datetime, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks whose `wake_at` is not later than `before`, the earliest first."""
        wanted = List("tasks", "wake_at", conditions=("wake_at <= ?",), values=(_ticks(before),))
        return self._page(Task, "due", wanted, limit, page_token)

    def next_wake(self) -> datetime | None:
        """Return the earliest `wake_at` of all tasks."""
        rows = self._database.read("SELECT wake_at FROM tasks WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1")
        return _instant(rows[0][0]) if rows else None

    def execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        rows = self._database.read("SELECT body FROM executions WHERE task_id = ? AND id = ?", (task_id, execution_id))
        return _read(Execution, execution_id, rows[0][0]) if rows else None

    def executions(self, task_id: str, *, limit: int, page_token: str | None = None) -> Page[Execution]:
        """Return a page of a task's executions, the latest first."""
        wanted = List("executions", "scheduled_for", is_descending=True, conditions=("task_id = ?",), values=(task_id,))
        return self._page(Execution, ("executions", task_id), wanted, limit, page_token)

    def inbox(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first."""
        wanted = List("messages", "created_at", is_descending=True, conditions=("owner = ?",), values=(owner,))
        return self._page(Message, ("inbox", owner), wanted, limit, page_token)

    def check(self) -> None:
        """Look whether the database answers."""
        self._database.read("SELECT count(*) FROM sqlite_schema")

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _page(self, kind: type[D], query: object, wanted: List, limit: int, page_token: str | None) -> Page[D]:
        after = read_token(query, page_token) if page_token else None
        rows = self._database.read(*wanted.statement(after, limit + 1))
        items = [_read(kind, key, body) for key, _, body in rows[:limit]]
        if len(rows) <= limit:
            return Page(items)
        key, at, _ = rows[limit - 1]
        return Page(items, make_token(query, _instant(at), key))


@dataclass(frozen=True, slots=True)
class List:
    """Rows in the order of one instant, then of their id."""

    table: str
    order: str
    is_descending: bool = False
    conditions: Sequence[str] = ()
    values: Sequence[object] = ()

    def statement(self, after: tuple[datetime, str] | None, limit: int) -> tuple[str, list[object]]:
        """Return the statement for one part of the list (id, instant, body), and its values."""
        conditions, values = [f"{self.order} IS NOT NULL", *self.conditions], list(self.values)
        if after is not None:
            conditions.append(f"({self.order}, id) {'<' if self.is_descending else '>'} (?, ?)")
            values += [_ticks(after[0]), after[1]]
        direction = "DESC" if self.is_descending else "ASC"
        statement = (
            f"SELECT id, {self.order}, body FROM {self.table} WHERE {' AND '.join(conditions)} "  # noqa: S608 - no input
            f"ORDER BY {self.order} {direction}, id {direction} LIMIT ?"
        )
        return statement, [*values, limit]


def list_of_tasks(query: TaskQuery) -> List:
    """Return how to list the tasks that fit a query."""
    conditions, values = ["NOT is_deleted"], list[object]()
    for column, value in (("owner", query.owner), ("handler", query.handler), ("status", query.status)):
        if value is not None:
            # A plus keeps a column from choosing the index (sqlite.org/optoverview.html): the first one chooses.
            conditions.append(f"{'+' if values else ''}{column} = ?")
            values.append(value)
    if query.due_from is not None:
        conditions.append("next_at >= ?")
        values.append(_ticks(query.due_from))
    if query.due_until is not None:
        conditions.append("next_at < ?")
        values.append(_ticks(query.due_until))
    order = "next_at" if query.is_by_due else "created_at"
    return List("tasks", order, not query.is_by_due, conditions, values)


def _columns(task: Task) -> tuple[object, ...]:
    return (
        task.owner,
        task.handler,
        task.status,
        task.deleted_at is not None,
        _ticks(task.created_at),
        None if task.next_execution_time is None else _ticks(task.next_execution_time),
        None if task.wake_at is None else _ticks(task.wake_at),
        _text(task),
    )


def _text(document: Document) -> str:
    return document.model_dump_json(by_alias=True, exclude_none=True)


def _read(kind: type[D], key: str, body: str) -> D:
    try:
        document = kind.model_validate_json(body, context=STORED)
    except ValidationError:
        return kind.from_stored(key, json.loads(body))  # says so if the document is of a newer schema
    if document.schema_version > SCHEMA_VERSION:
        raise UnsupportedDocument(key, document.schema_version, SCHEMA_VERSION)
    return document


def _ticks(instant: datetime) -> int:
    return (instant - _EPOCH) // _TICK


def _instant(ticks: int) -> datetime:
    return _EPOCH + ticks * _TICK
