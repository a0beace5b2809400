"""The embedded store: tasks, offers, executions and messages in one SQLite file, or in memory for tests.

A document is JSON text. The values that lists and sweeps search for are also columns. Instants are whole microseconds
since 1970. Each task has a version number that every commit increments, so a commit's precondition is one ``UPDATE …
WHERE``.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from cloudsched.adapters.sqlite.database import Database, Row
from cloudsched.adapters.sqlite.records import SqliteInbox, SqliteRecords
from cloudsched.adapters.sqlite.search import (
    BODY,
    Listing,
    SqliteSearch,
    build_offer_statement,
    build_task_listing,
    build_waiter_statement,
    fetch_page,
)
from cloudsched.adapters.sqlite.tables import (
    DELETE_OFFER,
    LAYOUT,
    LAYOUT_VERSION,
    from_microseconds,
    to_microseconds,
)
from cloudsched.adapters.sqlite.writes import CommitWriter, write_lock
from cloudsched.domain.documents.execution import Execution, Message
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.pull import OfferEntry
from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.commit import Commit, Version, VersionedLock, VersionedTask
from cloudsched.domain.transitions.locks import Lock, Waiter
from cloudsched.engine.ports.known_tasks import KnownTasks
from cloudsched.engine.ports.pages import MAX_PAGE_BYTES, Page, collect_readable, skip_unreadable, start_before

if TYPE_CHECKING:
    from cloudsched.engine.ports.search import TaskQuery

log = own_logger(__name__)

_LOAD_TASK = f"SELECT version, {BODY} FROM tasks WHERE id = ?"  # noqa: S608 - no input
_LOAD_TASKS = f"SELECT id, version, {BODY} FROM tasks WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - the same
_LOAD_LOCK = f"SELECT version, {BODY} FROM locks WHERE key = ?"  # noqa: S608 - the same
_LOAD_EXECUTION = f"SELECT {BODY} FROM executions WHERE task_id = ? AND id = ?"  # noqa: S608 - the same
_LOAD_STEPS = f"SELECT {BODY} FROM steps WHERE task_id = ? AND execution_id = ? ORDER BY number"  # noqa: S608 - the same
_TASK_EXISTS = "SELECT 1 FROM tasks WHERE id = ? AND body ->> '$.deletedAt' IS NULL"
_PURGE_SOME = "DELETE FROM executions WHERE rowid IN (SELECT rowid FROM executions WHERE task_id = ? LIMIT ?)"

_EXPIRED = "SELECT kind, parent, id FROM expiring WHERE expire_at <= ? ORDER BY expire_at LIMIT ?"
_EXPIRE = {  # what was reopened since then has no expireAt
    "execution": "DELETE FROM executions WHERE task_id = ? AND id = ? AND body ->> '$.expireAt' IS NOT NULL",
    "task": "DELETE FROM tasks WHERE owner = ? AND id = ? AND body ->> '$.expireAt' IS NOT NULL",
    "message": "DELETE FROM messages WHERE owner = ? AND id = ?",
    "record": "DELETE FROM records WHERE kind = ? AND id = ? AND body ->> '$.expireAt' IS NOT NULL",
}

_WAITS_FOR_REMOVAL = f"""(status IN ({", ".join(f"'{each}'" for each in sorted(FINAL_STATUSES))})
    AND (body ->> '$.runs', body ->> '$.deletedAt', body ->> '$.deferred') IS (NULL, NULL, NULL))"""
_NEXT_WAKEUP = """SELECT min(at) FROM (SELECT min(wake_at) AS at FROM tasks WHERE wake_at IS NOT NULL
    UNION ALL SELECT min(expire_at) FROM expiring WHERE kind = 'task')"""
_REMOVE = "DELETE FROM tasks WHERE id = ? AND version = ?"

_TRIAL = ("(trial)", "." * 16_384)
_DELETE_TRIAL = "DELETE FROM records WHERE kind = '(trial)'"

PURGE_BATCH_SIZE = 1000
"""The number of documents that one transaction removes: few enough that no other writer waits long."""
MAX_EXPIRY_BATCHES = 200
"""The number of such transactions in which a sweep removes what has expired: 200,000 documents a minute, so that the
file does not grow with what nobody keeps."""


class SqliteStore:
    """A `Store` in a SQLite file that several threads and processes may use, or in memory."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        on_removed: Callable[[str], None] = lambda _: None,
        is_read_only: bool = False,
    ) -> None:
        """Open the store, creating it if it does not exist. One that is only read has to exist.

        `on_removed` is called with ``taskId`` or ``taskId/executionId``, to remove large results as well: in the same
        transaction, so that the id cannot be created again in between, and again if that is repeated.
        """
        self._database = Database(path, LAYOUT, LAYOUT_VERSION, is_read_only=is_read_only)
        self.records = SqliteRecords(self._database)
        self.inbox = SqliteInbox(self._database)
        self.search = SqliteSearch(self._database)
        self._on_removed = on_removed
        self._known = KnownTasks()

    @property
    def database(self) -> Database:
        """The database underneath, for inspection."""
        return self._database

    def make_id(self, at: datetime) -> str:
        """Return a UUID that is greater than those of earlier instants (version 7: RFC 9562, section 5.7).

        Rows that were created together then lie together in the file, and their runs write half as many pages.
        """
        milliseconds, rest = divmod(max(0, to_microseconds(at)), 1000)
        fraction = (rest << 12) // 1000
        return str(UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | secrets.randbits(62)))

    def load(self, task_id: str) -> VersionedTask | None:
        """Return the task as it is now, or None."""
        rows = self._database.read(_LOAD_TASK, (task_id,))
        if not rows:
            return None
        version, body = rows[0]
        return VersionedTask(self._parse(task_id, body, version), Version(version))

    def recall(self, task_id: str) -> VersionedTask | None:
        """Return the task as this process read or wrote it last, or None."""
        return self._known.recall(task_id)

    def commit(self, commit: Commit) -> VersionedTask:
        """Write tasks, their records and a lock in one transaction, if tasks and lock have the expected versions."""
        writer = CommitWriter.of(commit)
        return self._note(writer, self._database.write(writer.write))

    def commit_all(self, commits: Sequence[Commit]) -> list[VersionedTask | Exception]:
        """Commit each as `commit` does, many in one transaction, and return its task, or the error that it met."""
        answers: dict[int, VersionedTask | Exception] = {}
        writers: dict[int, CommitWriter] = {}
        for number, commit in enumerate(commits):
            try:
                writers[number] = CommitWriter.of(commit)
            except Exception as error:  # noqa: BLE001 - raised where this commit was asked for
                answers[number] = error
        written = self._database.write_all([each.write for each in writers.values()])
        for (number, writer), found in zip(writers.items(), written, strict=True):
            answers[number] = found if isinstance(found, Exception) else self._note(writer, found)
        return [answers[number] for number in range(len(commits))]

    def _note(self, written: CommitWriter, versions: Sequence[int]) -> VersionedTask:
        for row, version in zip(written.tasks, versions, strict=True):
            body = row.body.encode()
            self._known.keep(row.write.task, Version(version), body, len(body))
        return VersionedTask(written.commit.task, Version(versions[0]))

    def load_lock(self, key: str) -> VersionedLock:
        """Return the current lock of a key, or an empty one if there is none."""
        rows = self._database.read(_LOAD_LOCK, (key,))
        if not rows:
            return VersionedLock(Lock(key=key), None)
        version, body = rows[0]
        return VersionedLock(Lock.from_stored_json(key, body), Version(version))

    def commit_lock(self, lock: VersionedLock) -> None:
        """Write a lock alone, if its version is still the one that was read."""
        self._database.write(lambda connection: write_lock(connection, lock))

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> Sequence[Waiter]:
        """Return the first waiters of a lock, in their order."""

        def read(last: Row | None, count: int) -> list[Row]:
            after = last[0] if last else ""
            return self._database.read(*build_waiter_statement(key, count, after, task_ids, worker_group))

        return collect_readable(read, lambda row: (row[0], partial(Waiter.from_stored_json, *row)), limit)

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Return the whole journal of an open execution."""
        rows = self._database.read(_LOAD_STEPS, (task_id, execution_id))
        return [JournalEntry.from_stored_json(execution_id, body) for (body,) in rows]

    def purge(self, task_id: str) -> None:
        """Remove a deleted task's executions and journals in batches, then the task."""

        def is_alive(connection: sqlite3.Connection) -> bool:
            return connection.execute(_TASK_EXISTS, (task_id,)).fetchone() is not None

        def some(connection: sqlite3.Connection) -> int:
            return 0 if is_alive(connection) else connection.execute(_PURGE_SOME, (task_id, PURGE_BATCH_SIZE)).rowcount

        def task(connection: sqlite3.Connection) -> None:
            if not is_alive(connection):
                connection.execute("DELETE FROM tasks WHERE id = ?", (task_id,))
                connection.execute(DELETE_OFFER, (task_id,))
                connection.execute("DELETE FROM steps WHERE task_id = ?", (task_id,))
                self._notify_removed(task_id)

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
            connection.execute("DELETE FROM steps WHERE task_id = ?", (task_id,))
            connection.execute(DELETE_OFFER, (task_id,))
            self._notify_removed(task_id)
            return True

        return self._database.write(write)

    def expire(self, now: datetime) -> int:
        """Remove the tasks, executions and messages whose `expire_at` has passed, in batches, and return how many.

        Other writers get their turn between two of them.
        """

        def some(connection: sqlite3.Connection) -> int:
            found = connection.execute(_EXPIRED, (to_microseconds(now), PURGE_BATCH_SIZE)).fetchall()
            for kind, parent, key in found:
                removed = connection.execute(_EXPIRE[kind], (parent, key)).rowcount
                if kind == "execution" and removed:
                    self._notify_removed(f"{parent}/{key}")
                connection.execute("DELETE FROM expiring WHERE (kind, parent, id) = (?, ?, ?)", (kind, parent, key))
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

    def list_tasks(
        self, query: TaskQuery, *, limit: int, page_token: str | None = None, max_bytes: int = MAX_PAGE_BYTES
    ) -> Page[Task]:
        """Return a page of the tasks that match a query."""
        return fetch_page(
            self._database, Task.from_stored_json, build_task_listing(query), query, limit, page_token, max_bytes
        )

    def list_due_tasks(
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
        bounds = {"wake_at <= ?": before, **({} if since is None else {"wake_at >= ?": since})}
        conditions = (*bounds, _WAITS_FOR_REMOVAL if is_removal else f"NOT {_WAITS_FOR_REMOVAL}")
        values = tuple(map(to_microseconds, bounds.values()))
        listing = Listing("tasks", "wake_at", conditions=conditions, values=values, more=("version",))
        query = "removal" if is_removal else "due"
        return fetch_page(self._database, self._parse, listing, query, limit, page_token)

    def count_shards(self) -> int:
        """Return 1: a file has one index."""
        return 1

    def list_offers(
        self, queue_keys: Sequence[str], owner: str | None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[OfferEntry]:
        """Return the offers in some queues, in their order."""

        def read(last: Row | None, count: int) -> list[Row]:
            start = after if last is None else (last[1], last[0])
            return self._database.read(*build_offer_statement(queue_keys, owner, count, start))

        return collect_readable(read, lambda row: (row[0], partial(OfferEntry.from_stored_json, row[0], row[2])), limit)

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        """Return those of some tasks that exist and can be read."""
        rows = self._database.read(_LOAD_TASKS, (json.dumps(list(task_ids)),))
        parsed = {key: partial(self._parse, key, body, version) for key, version, body in rows}
        versions = {key: Version(version) for key, version, _ in rows}
        return [VersionedTask(task, versions[task.id]) for task in skip_unreadable(parsed.items())]

    def next_wakeup(self) -> datetime | None:
        """Return the earliest `wake_at` or `expire_at` of all tasks."""
        at = self._database.read(_NEXT_WAKEUP)[0][0]
        return None if at is None else from_microseconds(at)

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        rows = self._database.read(_LOAD_EXECUTION, (task_id, execution_id))
        return Execution.from_stored_json(execution_id, rows[0][0]) if rows else None

    def list_executions(
        self, task_id: str, *, limit: int, page_token: str | None = None, before: datetime | None = None
    ) -> Page[Execution]:
        """Return a page of a task's executions, the latest first."""
        listing = Listing(
            "executions", "scheduled_for", is_descending=True, conditions=("task_id = ?",), values=(task_id,)
        )
        query = ("executions", task_id)
        token = start_before(query, before) if before and not page_token else page_token
        return fetch_page(self._database, Execution.from_stored_json, listing, query, limit, token)

    def list_messages(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first."""
        listing = Listing("messages", "created_at", is_descending=True, conditions=("owner = ?",), values=(owner,))
        return fetch_page(self._database, Message.from_stored_json, listing, ("inbox", owner), limit, page_token)

    def check(self) -> None:
        """Run a small query, and write something if a write has failed. SQLite has no clock of its own.

        It fails as well if the file is no longer the one that was opened.
        """
        self._database.require_same_file()
        self._database.read("SELECT count(*) FROM sqlite_schema")
        if self._database.has_failed_to_write:
            self._database.write(_try_to_write)
            self._database.write(lambda connection: connection.execute(_DELETE_TRIAL))
            self._database.has_failed_to_write = False

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _parse(self, task_id: str, body: bytes, version: int) -> Task:
        """Return a task. A document that this process knows is not parsed again: the same document is the same task."""
        task = self._known.find(task_id, body)
        if task is None:
            task = Task.from_stored_json(task_id, body)
            self._known.keep(task, Version(version), body, len(body))
        return task


def _try_to_write(connection: sqlite3.Connection) -> None:
    """Write as much as a usual commit, for which a disk that is full has no room."""
    connection.execute(
        "INSERT OR REPLACE INTO records (kind, id, owner, version, body) VALUES (?, '', '', 1, ?)", _TRIAL
    )
