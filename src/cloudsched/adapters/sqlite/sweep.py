"""What is due in SQLite, and the removal of what nobody keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.adapters.sqlite.search import SqliteListing, fetch_page
from cloudsched.adapters.sqlite.tables import DELETE_OFFER, from_microseconds, to_microseconds
from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.commit import Version

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from cloudsched.adapters.sqlite.database import SqliteDatabase
    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.storage.known_tasks import KnownTasks
    from cloudsched.engine.storage.pages import Page

log: Final = own_logger(__name__)

_TASK_EXISTS = "SELECT 1 FROM tasks WHERE id = ? AND body ->> '$.deletedAt' IS NULL"
_PURGE_SOME = "DELETE FROM executions WHERE rowid IN (SELECT rowid FROM executions WHERE task_id = ? LIMIT ?)"
_KINDS = {"execution": ("executions", "task_id"), "task": ("tasks", "owner"), "message": ("messages", "owner")}
_KINDS["record"] = ("records", "kind")
_EXPIRED = f"""SELECT kind, expire_at, parent, id FROM expiring
    WHERE kind IN ({", ".join(f"'{kind}'" for kind in _KINDS)}) AND expire_at <= ? LIMIT ?"""
_EXPIRE = {  # what was kept since then has no expireAt or a later one, in ISO 8601: its seconds are compared as text
    kind: f"DELETE FROM {table} WHERE {parent} = ? AND id = ? AND substr(body ->> '$.expireAt', 1, 19) <= ?"
    for kind, (table, parent) in _KINDS.items()
}
_WAITS_FOR_REMOVAL = f"""(status IN ({", ".join(f"'{each}'" for each in sorted(FINAL_STATUSES))})
    AND (body ->> '$.runs', body ->> '$.deletedAt', body ->> '$.deferred') IS (NULL, NULL, NULL))"""
_NEXT_WAKEUP = """SELECT min(at) FROM (SELECT min(wake_at) AS at FROM tasks WHERE wake_at IS NOT NULL
    UNION ALL SELECT min(expire_at) FROM expiring WHERE kind = 'task')"""
_FORGET = "DELETE FROM expiring WHERE (kind, expire_at, parent, id) = (?, ?, ?, ?)"
_REMOVE = "DELETE FROM tasks WHERE id = ? AND version = ?"

PURGE_BATCH_SIZE = 1000
"""The number of documents that one transaction removes: few enough that no other writer waits long."""
MAX_EXPIRY_BATCHES = 200
"""The number of such transactions in which a sweep removes what has expired: 200,000 documents a minute, so
that the file does not grow with what nobody keeps."""


class SqliteSweep:
    """A `SweepStore` in the database of a `SqliteStore`."""

    def __init__(self, database: SqliteDatabase, known: KnownTasks, on_removed: Callable[[str], None]) -> None:
        self._database = database
        self._known = known
        self._on_removed = on_removed

    def list_due(
        self,
        before: datetime,
        *,
        since: datetime | None = None,
        shard: int | None = None,  # noqa: ARG002 - there is one
        is_removal: bool = False,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        """Return a page of the tasks whose `wake_at` is not later than `before`, the earliest first."""
        bounds = {"wake_at <= ?": before}
        if since is not None:
            bounds["wake_at >= ?"] = since
        query = "due"
        kind = f"NOT {_WAITS_FOR_REMOVAL}"
        if is_removal:
            query = "removal"
            kind = _WAITS_FOR_REMOVAL
        values = tuple(map(to_microseconds, bounds.values()))
        listing = SqliteListing("tasks", "wake_at", conditions=(*bounds, kind), values=values, more=("version",))

        def read(task_id: str, body: bytes, version: int) -> Task:
            parse = partial(Task.from_stored_json, task_id, body)
            return self._known.read(task_id, body, Version(version), len(body), parse)

        return fetch_page(self._database, read, listing, query, limit, page_token)

    def count_shards(self) -> int:
        """Return 1: a file has one index."""
        return 1

    def next_wakeup(self) -> datetime | None:
        """Return the earliest `wake_at` or `expire_at` of all tasks."""
        at = self._database.read(_NEXT_WAKEUP)[0][0]
        return None if at is None else from_microseconds(at)

    def purge(self, task_id: str) -> None:
        """Remove a deleted task's executions and journals in batches, then the task."""

        def is_alive(connection: sqlite3.Connection) -> bool:
            return connection.execute(_TASK_EXISTS, (task_id,)).fetchone() is not None

        def some(connection: sqlite3.Connection) -> int:
            if is_alive(connection):
                return 0
            return connection.execute(_PURGE_SOME, (task_id, PURGE_BATCH_SIZE)).rowcount

        def task(connection: sqlite3.Connection) -> None:
            if not is_alive(connection):
                connection.execute("DELETE FROM tasks WHERE id = ?", (task_id,))
                self._remove_rest(connection, task_id)

        while self._database.write(some):
            pass
        self._database.write(task)

    def remove(self, ended: VersionedTask) -> bool:
        """Remove an ended task with its executions, if it has not changed."""
        task_id = ended.task.id

        def write(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_REMOVE, (task_id, ended.version.value)).rowcount:
                return False
            connection.execute("DELETE FROM executions WHERE task_id = ?", (task_id,))
            self._remove_rest(connection, task_id)
            return True

        return self._database.write(write)

    def _remove_rest(self, connection: sqlite3.Connection, task_id: str) -> None:
        connection.execute(DELETE_OFFER, (task_id,))
        connection.execute("DELETE FROM steps WHERE task_id = ?", (task_id,))
        self._notify_removed(task_id)

    def expire(self, now: datetime) -> int:
        """Remove expired tasks, executions and messages in batches (see their `expire_at`), and return how many.

        Other writers get their turn between two of them.
        """
        latest = now.astimezone(UTC).isoformat()[:19]

        def some(connection: sqlite3.Connection) -> int:
            found = connection.execute(_EXPIRED, (to_microseconds(now), PURGE_BATCH_SIZE)).fetchall()
            for kind, at, parent, key in found:
                removed = connection.execute(_EXPIRE[kind], (parent, key, latest)).rowcount
                if removed and kind == "execution":
                    self._notify_removed(f"{parent}/{key}")
                elif removed and kind == "task":
                    connection.execute("DELETE FROM executions WHERE task_id = ?", (key,))
                    self._remove_rest(connection, key)
                connection.execute(_FORGET, (kind, at, parent, key))
            return len(found)

        removed = 0
        for _ in range(MAX_EXPIRY_BATCHES):
            count = self._database.write(some)
            removed += count
            if count < PURGE_BATCH_SIZE:
                break
        self._database.tell_of_long_log()
        return removed

    def _notify_removed(self, key: str) -> None:
        """Have the large results removed. A failure is logged and ignored: they only take up space."""
        try:
            self._on_removed(key)
        except Exception as error:  # noqa: BLE001 - no error here may keep the document
            about = {"action": "blob_delete_failed", "taskId": key}
            log.warning("results of %s not removed: %s", key, error, extra=about)
