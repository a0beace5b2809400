"""The embedded store: tasks, offers, executions and messages in one SQLite file, or in memory for tests.

A document is JSON text. The values that lists and sweeps search for are also columns. Instants are whole
microseconds since 1970. Each task has a version number that every commit increments, so a commit's
precondition is one ``UPDATE … WHERE``.
"""

from __future__ import annotations

import json
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from cloudsched.adapters.sqlite.database import Row, SqliteDatabase
from cloudsched.adapters.sqlite.records import SqliteInbox, SqliteRecords
from cloudsched.adapters.sqlite.search import (
    BODY,
    SqliteSearch,
    build_offer_statement,
    build_task_listing,
    fetch_page,
)
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.adapters.sqlite.tables import LAYOUT_VERSION, list_layout, to_microseconds
from cloudsched.adapters.sqlite.writes import CommitWriter
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.task import Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.commit import Commit, Version, VersionedTask
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page, collect_readable, skip_unreadable
from cloudsched.features.fields import OfferEntry
from cloudsched.features.table import open_linked_store

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from cloudsched.engine.ports.search import TaskQuery

log: Final = own_logger(__name__)

_LOAD_TASK = f"SELECT version, {BODY} FROM tasks WHERE id = ?"
_LOAD_TASKS = f"SELECT id, version, {BODY} FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
_LOAD_EXECUTION = f"SELECT {BODY} FROM executions WHERE task_id = ? AND id = ?"
_LOAD_STEPS = f"SELECT {BODY} FROM steps WHERE task_id = ? AND execution_id = ? ORDER BY number"
_TRIAL = ("(trial)", "." * 16_384)
_DELETE_TRIAL = "DELETE FROM records WHERE kind = '(trial)'"


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

        `on_removed` is called with ``taskId`` or ``taskId/executionId``, to remove large results as well: in
        the same transaction, so that the id cannot be created again in between, and again if that is
        repeated.
        """
        self._database = SqliteDatabase(path, list_layout(), LAYOUT_VERSION, is_read_only=is_read_only)
        self.records: SqliteRecords = SqliteRecords(self._database)
        self.inbox: SqliteInbox = SqliteInbox(self._database)
        self.search: SqliteSearch = SqliteSearch(self._database)
        self.locks: Any = open_linked_store("sqlite", self._database)
        self._known = KnownTasks()
        self.sweep: SqliteSweep = SqliteSweep(self._database, self._known, on_removed)

    @property
    def database(self) -> SqliteDatabase:
        """The database underneath, for inspection."""
        return self._database

    def make_id(self, at: datetime) -> str:
        """Return a UUID that is greater than those of earlier instants (version 7: RFC 9562, section 5.7).

        Rows that were created together then lie together in the file, and their runs write half as many
        pages.
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
        return self._read(task_id, version, body)

    def recall(self, task_id: str) -> VersionedTask | None:
        """Return the task as this process read or wrote it last, or None."""
        return self._known.recall(task_id)

    def commit(self, commit: Commit) -> VersionedTask:
        """Write tasks, their records and a lock in one transaction, if their versions are the expected ones."""
        writer = CommitWriter.of(commit, self.locks)
        return self._note(writer, self._database.write(writer.write))

    def commit_all(self, commits: Sequence[Commit]) -> list[VersionedTask | Exception]:
        """Commit each as `commit` does, many in one transaction, and return its task or its error."""
        answers: dict[int, VersionedTask | Exception] = {}
        writers: dict[int, CommitWriter] = {}
        for number, commit in enumerate(commits):
            try:
                writers[number] = CommitWriter.of(commit, self.locks)
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

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Return the whole journal of an open execution."""
        rows = self._database.read(_LOAD_STEPS, (task_id, execution_id))
        return [JournalEntry.from_stored_json(execution_id, body) for (body,) in rows]

    def list_tasks(
        self, query: TaskQuery, *, limit: int, page_token: str | None = None, max_bytes: int = MAX_PAGE_BYTES
    ) -> Page[Task]:
        """Return a page of the tasks that match a query."""
        return fetch_page(
            self._database,
            Task.from_stored_json,
            build_task_listing(query),
            query,
            limit,
            page_token,
            max_bytes,
        )

    def list_offers(
        self,
        queue_keys: Sequence[str],
        owner: str | None,
        *,
        limit: int,
        after: tuple[str, str] | None = None,
    ) -> Sequence[OfferEntry]:
        """Return the offers in some queues, in their order."""

        def read(last: Row | None, count: int) -> list[Row]:
            start = after if last is None else (last[1], last[0])
            return self._database.read(*build_offer_statement(queue_keys, owner, count, start))

        return collect_readable(
            read,
            lambda row: (row[0], partial(OfferEntry.from_stored_json, row[0], row[2])),
            limit,
        )

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        """Return those of some tasks that exist and can be read."""
        rows = self._database.read(_LOAD_TASKS, (json.dumps(list(task_ids)),))
        return skip_unreadable((row[0], partial(self._read, *row)) for row in rows)

    def _read(self, task_id: str, number: int, body: bytes) -> VersionedTask:
        version = Version(number)
        parse = partial(Task.from_stored_json, task_id, body)
        return VersionedTask(self._known.read(task_id, body, version, len(body), parse), version)

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        rows = self._database.read(_LOAD_EXECUTION, (task_id, execution_id))
        if not rows:
            return None
        return Execution.from_stored_json(execution_id, rows[0][0])

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


def _try_to_write(connection: sqlite3.Connection) -> None:
    """Write as much as a usual commit, for which a disk that is full has no room."""
    connection.execute(
        "INSERT OR REPLACE INTO records (kind, id, owner, version, body) VALUES (?, '', '', 1, ?)", _TRIAL
    )
