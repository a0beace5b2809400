"""Locks and their waiters in SQLite."""

from __future__ import annotations

import json
import secrets
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.sqlite.search import BODY
from cloudsched.domain.transitions.commit import Version
from cloudsched.engine.storage.pages import collect_readable
from cloudsched.errors import VersionConflict
from cloudsched.features.locks.lock import Lock, VersionedLock, Waiter

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from cloudsched.adapters.sqlite.database import Row, SqliteDatabase

TABLES = (
    "CREATE TABLE locks (key TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL)",
    """CREATE TABLE waiters (
        lock_key TEXT NOT NULL, id TEXT NOT NULL, task_id TEXT NOT NULL, worker_group TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (lock_key, id)) WITHOUT ROWID""",
    "CREATE INDEX waiters_of_task ON waiters (lock_key, task_id, id)",
    "CREATE INDEX waiters_of_group ON waiters (lock_key, worker_group, id)",
)
_LOAD_LOCK = f"SELECT version, {BODY} FROM locks WHERE key = ?"  # noqa: S608 - the same
_INSERT_LOCK = "INSERT INTO locks (body, key, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_UPDATE_LOCK = "UPDATE locks SET body = ?, version = version + 1 WHERE key = ? AND version = ?"
_DELETE_LOCK = "DELETE FROM locks WHERE key = ? AND version = ?"
_HAS_LOCK = "SELECT 1 FROM locks WHERE key = ? AND version = ?"
_PUT_WAITER = "INSERT OR REPLACE INTO waiters (lock_key, id, task_id, worker_group, body) VALUES (?, ?, ?, ?, ?)"
_DELETE_WAITER = "DELETE FROM waiters WHERE lock_key = ? AND id = ?"


class SqliteLocks:
    """A `LockStore` in the database of a `SqliteStore`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def load(self, key: str) -> VersionedLock:
        """Return the current lock of a key, or an empty one if there is none."""
        rows = self._database.read(_LOAD_LOCK, (key,))
        if not rows:
            return VersionedLock(Lock(key=key), None)
        version, body = rows[0]
        return VersionedLock(Lock.from_stored_json(key, body), Version(version))

    def commit(self, lock: VersionedLock) -> None:
        """Write a lock alone, if its version is still the one that was read."""
        self._database.write(lambda connection: self.write(connection, lock))

    def write(self, connection: sqlite3.Connection, lock: VersionedLock) -> None:
        """Write or delete a lock and its waiters, if it has the version that was read.

        A new one has a random one.
        """
        key = lock.lock.key
        version = lock.version
        document = lock.new_document
        if not lock.is_document_changed and version is not None:
            done = connection.execute(_HAS_LOCK, (key, version.value)).fetchone() is not None
        elif document.is_empty:
            done = version is None or connection.execute(_DELETE_LOCK, (key, version.value)).rowcount == 1
        elif version is None:
            done = (
                connection.execute(
                    _INSERT_LOCK,
                    (document.to_stored_json(), key, secrets.randbits(48)),
                ).rowcount
                == 1
            )
        else:
            done = connection.execute(_UPDATE_LOCK, (document.to_stored_json(), key, version.value)).rowcount == 1
        if not done:
            raise VersionConflict(f"lock {key}")
        for each in lock.left:
            connection.execute(_DELETE_WAITER, (key, each.entry_id))
        for each in lock.entered:
            connection.execute(
                _PUT_WAITER, (key, each.entry_id, each.task_id, each.worker_group, each.to_stored_json())
            )

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> Sequence[Waiter]:
        """Return the first waiters of a lock, in their order."""

        def read(last: Row | None, count: int) -> list[Row]:
            after = last[0] if last else ""
            return self._database.read(*_select_waiters(key, count, after, task_ids, worker_group))

        return collect_readable(read, lambda row: (row[0], partial(Waiter.from_stored_json, *row)), limit)

    def list_all(self, *, limit: int, begin: str = "", end: str | None = None, after: str = "") -> list[Lock]:
        """Return the first locks by their keys."""
        until, values = ("", ()) if end is None else (" AND key < ?", (end,))
        statement = f"SELECT key, {BODY} FROM locks WHERE key > ? AND key >= ?{until} ORDER BY key LIMIT ?"  # noqa: S608 - no input

        def read(last: Row | None, count: int) -> list[Row]:
            return self._database.read(statement, (last[0] if last else after, begin, *values, count))

        return collect_readable(read, lambda row: (row[0], partial(Lock.from_stored_json, *row)), limit)


def _select_waiters(
    key: str, limit: int, after: str, task_ids: Sequence[str] | None, worker_group: str | None
) -> tuple[str, list[object]]:
    """Return the statement for the waiters of a lock after an id (id, body), in their order, and its values."""
    conditions = ["lock_key = ?", "id > ?"]
    values = list[object]([key, after])
    if task_ids is not None:
        conditions.append("task_id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(task_ids)))
    if worker_group is not None:
        conditions.append("worker_group = ?")
        values.append(worker_group)
    statement = f"SELECT id, {BODY} FROM waiters WHERE {' AND '.join(conditions)} ORDER BY id LIMIT ?"  # noqa: S608 - no input
    return statement, [*values, limit]
