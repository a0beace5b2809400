"""One SQLite database for many threads and processes: opening it, reading it, and committing to it in groups.

A file is opened with a write-ahead log and ``synchronous=FULL``: when `Database.write` returns, what it wrote is on
disk (sqlite.org/pragma.html#pragma_synchronous). That costs one wait for the disk per transaction, so concurrent
writers share a transaction (`group_commit`).

Readers of a file use connections of their own and never wait for a writer (sqlite.org/wal.html). A database in memory
has one connection for everything.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.adapters.sqlite.group_commit import GroupCommit
from cloudsched.errors import Misconfigured, StoreUnavailable, UnsupportedDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
Row = tuple[Any, ...]

BUSY_TIMEOUT_SECONDS = 5.0
"""How long to wait for another process that is writing."""

_CHECKPOINT_PAGES = 4_000
"""After how many pages SQLite copies its write-ahead log into the file: four times as many as without this setting, so
16 MB. An index page that many transactions change is then copied once for more of them."""


class Database:
    """A SQLite database with a fixed set of tables."""

    def __init__(
        self,
        path: Path | None,
        layout: Sequence[str],
        layout_version: int,
        upgrades: Mapping[int, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """Open the database, and create its tables if it is new.

        Args:
            path: The file, created if it is missing; None for a database in memory that ends with this object.
            layout: The statements that create its tables and indexes.
            layout_version: The layout's number, 1 or more, stored as SQLite's ``user_version``.
            upgrades: The statements that make a file of an earlier version one of the next version, by the earlier one.

        Raises:
            UnsupportedDocument: The file has another version of the layout, and there is no upgrade from it.
            Misconfigured: The file belongs to another program, or is no database.
            StoreUnavailable: It cannot be opened.
        """
        self._path = path
        self._name = f"The database {path.name}" if path else "The database in memory"
        self._write_lock = threading.Lock()
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        with self._translate_errors():
            self._writer = self._connect()
            self._commits = GroupCommit(self._writer, self._write_lock)
            try:
                self._prepare(layout, layout_version, upgrades)
            except BaseException:
                self._writer.close()
                raise

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` inside a transaction, and return its result once that is on disk.

        If `work` raises, none of its writes is kept. It may run in another thread, in a transaction with other work,
        and is repeated with that if any of it raises: so nothing but its writes may depend on how often it runs.

        Raises:
            StoreUnavailable: Another process kept the file locked for too long, or the disk failed.
        """
        unit = self._commits.run(work)
        if unit.failure is not None:
            raise StoreUnavailable(self._name, unit.failure)
        try:
            return unit.get_result()
        except sqlite3.Error as error:
            raise self._translate(error) from error

    def read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query, as of now.

        Raises:
            StoreUnavailable: The file cannot be read.
        """
        try:
            if self._path is None:
                with self._write_lock:
                    return self._writer.execute(statement, values).fetchall()
            connection = self._take_reader()
            try:
                rows = connection.execute(statement, values).fetchall()
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise self._translate(error) from error
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)
        return rows

    def close(self) -> None:
        """Close every connection; later calls raise StoreUnavailable."""
        with self._write_lock:
            self._closed = True
            self._writer.close()
            while self._idle:
                self._idle.pop().close()

    def _take_reader(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreUnavailable(self._name, "it was closed")
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path or ":memory:",
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,  # this module begins and ends transactions itself
            check_same_thread=False,  # the lock and the pool give a connection to one thread at a time
        )

    def _prepare(self, layout: Sequence[str], layout_version: int, upgrades: Mapping[int, Sequence[str]]) -> None:
        if self._path is None:
            _create_template(tuple(layout), layout_version).backup(self._writer)
            return
        readable = {0, layout_version, *upgrades}
        self._writer.execute("BEGIN")
        self._read_layout_version(
            layout_version, readable
        )  # before anything is written: it may be another program's file
        self._writer.execute("COMMIT")
        self._enable_wal()
        self._writer.execute("PRAGMA synchronous = FULL")
        self._writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        self._writer.execute("BEGIN IMMEDIATE")
        version = self._read_layout_version(layout_version, readable)
        if version != layout_version:
            for step in [layout] if version == 0 else [upgrades[each] for each in range(version, layout_version)]:
                for statement in step:
                    self._writer.execute(statement)
            self._writer.execute(f"PRAGMA user_version = {layout_version}")
        self._writer.execute("COMMIT")

    def _read_layout_version(self, layout_version: int, readable: Collection[int]) -> int:
        """Return the file's layout version, 0 if it is new. Call it in a transaction: others may be creating tables."""
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        (tables,) = self._writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if version == 0 and tables:
            raise Misconfigured(f"{self._name} belongs to another program; name another file.")
        if version not in readable:
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
            raise self._translate(error) from error

    def _translate(self, error: sqlite3.Error) -> Exception:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            return Misconfigured(f"{self._name} is not a SQLite database; name another file.")
        return StoreUnavailable(self._name, str(error))


@cache
def _create_template(layout: tuple[str, ...], layout_version: int) -> sqlite3.Connection:
    """Return a database in memory with nothing but its tables: copying it is five times as fast as creating them.

    Each test's store is such a copy. Copying only reads the template, so threads may share it.
    """
    template = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    template.execute("BEGIN")
    for statement in layout:
        template.execute(statement)
    template.execute(f"PRAGMA user_version = {layout_version}")
    template.execute("COMMIT")
    return template
