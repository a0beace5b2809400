"""A write-ahead log that a reader pins is told of, and so is its end."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cloudsched.adapters.sqlite import database
from cloudsched.adapters.sqlite.store import SqliteStore

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_a_log_that_grows_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each sweep looks. The line names the file, the cause and how to find it."""
    monkeypatch.setattr(database, "_MAX_LOG_BYTES", 100_000)
    monkeypatch.setattr(database, "_LOG_MARGIN_BYTES", 100_000)
    caplog.set_level(logging.INFO)
    store = SqliteStore(tmp_path / "tasks.db")

    def write(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS more (content)")
        connection.execute("INSERT INTO more VALUES (zeroblob(50000))")

    with closing(sqlite3.connect(tmp_path / "tasks.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()
        for _ in range(100):
            store.database.write(write)
        for _ in range(3):
            store.sweep.expire(NOW)
        told = [each for each in caplog.records if each.message.startswith(str(tmp_path / "tasks.db-wal"))]
        assert len(told) == 1
        assert "another program reads the file for long" in told[0].message
    for _ in range(3):  # the first copies the log, the second begins it again
        store.database.write(write)
    store.sweep.expire(NOW)
    assert "MB again" in caplog.messages[-1]
    store.close()
