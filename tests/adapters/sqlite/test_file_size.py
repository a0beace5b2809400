"""The size of a file follows what is kept in it, not what was ever written."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloudsched.adapters.sqlite import database as module
from cloudsched.adapters.sqlite.database import Database

LAYOUT = ("CREATE TABLE notes (id INTEGER PRIMARY KEY, body BLOB)",)
ROWS = 4_000
ROW_BYTES = 3_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


def fill(connection: sqlite3.Connection) -> None:
    connection.executemany("INSERT INTO notes (body) VALUES (zeroblob(?))", [(ROW_BYTES,)] * ROWS)


def empty(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM notes WHERE id > 10")


def size(path: Path) -> int:
    """Return the file's size when its log has been copied into it."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def test_it_shrinks_bit_by_bit_once_most_of_it_is_free(path: Path) -> None:
    """A step gives back at most 2 MB, so no writer waits long; 4 MB stay for what comes, and all rows."""
    database = Database(path, LAYOUT, 1)
    database.write(fill)
    full = size(path)
    assert not database.shrink()
    assert size(path) == full
    database.write(empty)
    sizes = [full]
    while database.shrink():
        sizes.append(size(path))
        assert 0 < sizes[-2] - sizes[-1] <= 502 * 4096
    assert len(sizes) > 3
    assert size(path) <= 5_000_000 < full / 2
    assert database.read("SELECT count(*), sum(length(body)) FROM notes") == [(10, 10 * ROW_BYTES)]
    database.close()


def test_a_file_of_before_shrinks_once_it_was_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is copied whole at the first opening for which the disk has room; whoever reads it meanwhile goes on."""
    with closing(sqlite3.connect(path, isolation_level=None)) as earlier:
        earlier.execute("PRAGMA journal_mode = WAL")
        earlier.execute(LAYOUT[0])
        earlier.execute("PRAGMA user_version = 1")
        for work in fill, empty:
            earlier.execute("BEGIN")
            work(earlier)
            earlier.execute("COMMIT")
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
        Database(path, LAYOUT, 1).close()
    assert size(path) > 10_000_000
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM notes").fetchall()
        Database(path, LAYOUT, 1).close()
        assert reader.execute("SELECT count(*) FROM notes").fetchone() == (10,)
        reader.execute("COMMIT")
    assert size(path) < 200_000
    with closing(sqlite3.connect(path)) as later:
        assert later.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert later.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert later.execute("SELECT count(*) FROM notes").fetchone() == (10,)


def test_the_log_is_cut_when_it_was_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that stays long lets it grow; the next writer after it gives the room back."""
    monkeypatch.setattr(module, "_MAX_LOG_BYTES", 20_000_000)
    database = Database(path, LAYOUT, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM notes").fetchall()
        for _ in range(2):
            database.write(fill)
        log = path.with_name(f"{path.name}-wal")
        assert log.stat().st_size > 24_000_000
        reader.execute("COMMIT")
    for work in fill, empty, fill:
        database.write(work)
    assert log.stat().st_size <= 20_000_000
    database.close()
