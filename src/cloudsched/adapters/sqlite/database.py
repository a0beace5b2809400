"""One SQLite database for many threads and processes: opening it, reading it, and committing to it in groups.

A file is opened with a write-ahead log and ``synchronous=FULL``: when `Database.write` returns, what it wrote is on
disk (sqlite.org/pragma.html#pragma_synchronous). That costs one wait for the disk per transaction, so concurrent
writers share a transaction: the thread that holds the lock commits for all that wait.

Readers of a file use connections of their own and never wait for a writer (sqlite.org/wal.html). A database in memory
has one connection for everything.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from cloudsched.errors import Misconfigured, StoreUnavailable, UnsupportedDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

T = TypeVar("T")
Row = tuple[Any, ...]

BUSY_TIMEOUT_SECONDS = 5.0
"""How long to wait for another process that is writing."""

_MAX_GROUP_SIZE = 64
"""The most writers that share one transaction, so that none waits long for the others."""


class _WriteUnit(Generic[T]):
    """One writer's part of a transaction, and its result."""

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self._work = work
        self._result: T | None = None
        self._error: Exception | None = None
        self.done = False
        self.failure: str | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        """Do the work. If it fails, its writes are rolled back and the rest of the transaction continues."""
        connection.execute("SAVEPOINT unit")
        try:
            self._result = self._work(connection)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that asked for this work
            self._error = error
            connection.execute("ROLLBACK TO unit")
        connection.execute("RELEASE unit")

    def finish(self, failure: str | None) -> None:
        """Record that the transaction is over, and why it failed as a whole if it did."""
        self.failure = failure
        self.done = True

    def get_result(self) -> T:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return cast("T", self._result)


class Database:
    """A SQLite database with a fixed set of tables."""

    def __init__(self, path: Path | None, layout: Sequence[str], layout_version: int) -> None:
        """Open the database, and create its tables if it is new.

        Args:
            path: The file, created if it is missing; None for a database in memory that ends with this object.
            layout: The statements that create its tables and indexes.
            layout_version: The layout's number, 1 or more, stored as SQLite's ``user_version``.

        Raises:
            UnsupportedDocument: The file has another version of the layout.
            Misconfigured: The file belongs to another program, or is no database.
            StoreUnavailable: It cannot be opened.
        """
        self._path = path
        self._name = f"The database {path.name}" if path else "The database in memory"
        self._write_lock = threading.Lock()
        self._pending: deque[_WriteUnit[Any]] = deque()
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        with self._translate_errors():
            self._writer = self._connect()
            try:
                self._prepare(layout, layout_version)
            except BaseException:
                self._writer.close()
                raise

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` inside a transaction, and return its result once that is on disk.

        If `work` raises, none of its writes is kept. It may run in another thread, in a transaction with other work.

        Raises:
            StoreUnavailable: Another process kept the file locked for too long, or the disk failed.
        """
        unit = _WriteUnit(work)
        self._pending.append(unit)
        with self._write_lock:
            while not unit.done:
                self._commit_group()
        if unit.failure is not None:
            raise StoreUnavailable(self._name, unit.failure)
        with self._translate_errors():
            return unit.get_result()

    def read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query, as of now.

        Raises:
            StoreUnavailable: The file cannot be read.
        """
        with self._translate_errors(), self._borrow_reader() as connection:
            return connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close every connection; later calls raise StoreUnavailable."""
        with self._write_lock:
            self._closed = True
            self._writer.close()
            while self._idle:
                self._idle.pop().close()

    def _commit_group(self) -> None:
        group = [self._pending.popleft() for _ in range(min(len(self._pending), _MAX_GROUP_SIZE))]
        failure: str | None = "the thread that was committing was interrupted"
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for unit in group:
                unit.run(self._writer)
            self._writer.execute("COMMIT")
            failure = None
        except sqlite3.Error as error:
            failure = str(error)
        finally:
            if failure is not None:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
            for unit in group:
                unit.finish(failure)

    @contextmanager
    def _borrow_reader(self) -> Iterator[sqlite3.Connection]:
        if self._path is None:
            with self._write_lock:
                yield self._writer
            return
        if self._closed:
            raise StoreUnavailable(self._name, "it was closed")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path or ":memory:",
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,  # this module begins and ends transactions itself
            check_same_thread=False,  # the lock and the pool give a connection to one thread at a time
        )

    def _prepare(self, layout: Sequence[str], layout_version: int) -> None:
        self._writer.execute("BEGIN")
        self._read_layout_version(layout_version)  # before anything is written: it may be another program's file
        self._writer.execute("COMMIT")
        if self._path is not None:
            self._enable_wal()
            self._writer.execute("PRAGMA synchronous = FULL")
        self._writer.execute("BEGIN IMMEDIATE")
        if self._read_layout_version(layout_version) == 0:
            for statement in layout:
                self._writer.execute(statement)
            self._writer.execute(f"PRAGMA user_version = {layout_version}")
        self._writer.execute("COMMIT")

    def _read_layout_version(self, layout_version: int) -> int:
        """Return the file's layout version, 0 if it is new. Call it in a transaction: others may be creating tables."""
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        (tables,) = self._writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if version == 0 and tables:
            raise Misconfigured(f"{self._name} belongs to another program; name another file.")
        if version not in {0, layout_version}:
            raise UnsupportedDocument(self._name, version, layout_version)
        return int(version)

    def _enable_wal(self) -> None:
        """Switch the write-ahead log on. While another process does the same, SQLite returns BUSY without waiting."""
        give_up_at = time.monotonic() + BUSY_TIMEOUT_SECONDS
        while True:
            try:
                self._writer.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                    raise
                time.sleep(0.01)
            else:
                return

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
                raise Misconfigured(f"{self._name} is not a SQLite database; name another file.") from error
            raise StoreUnavailable(self._name, str(error)) from error
