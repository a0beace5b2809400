"""Whenever a process on a data folder is killed, the next start has each task once, or is refused with what to do."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.harness import wait_until
from tests.instants import DAY

from cloudsched import App, Settings
from cloudsched.errors import Misconfigured
from cloudsched.local.backup import restore_backup, write_backup
from cloudsched.local.embedded_app import embedded

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
POINTS = {"open", "os.rename", "os.remove", "os.rmdir"}
SOCKETS = shutil.ignore_patterns("*.sock")
STATEMENTS = ("COMMIT", "PRAGMA application_id =", "PRAGMA schema_version =", "PRAGMA wal_checkpoint", "VACUUM")


def make_app(data: Path) -> App:
    app = App()

    @app.handler("note")
    def note() -> None:
        with data.with_name("runs").open("a", encoding="ascii") as file:
            file.write("x")

    return app


def create(app: App, name: str) -> None:
    app.create(id=name, owner="ada", handler="note", title="Note", schedule=datetime(2040, 1, 1, tzinfo=UTC))


def read_tasks(data: Path) -> set[str]:
    """Start on a folder, and return the ids of its tasks: each is there once, and none has run again."""
    app = make_app(data)
    with embedded(app, data, settings=Settings()):
        ids = [each.id for each in app.tasks().items]
        assert [each.status for each in app.executions("ran").items] == ["SUCCEEDED"]
    assert data.with_name("runs").read_text("ascii") == "x"
    assert len(ids) == len({*ids})
    return {*ids}


def start(data: Path) -> None:
    with embedded(make_app(data), data, settings=Settings()):
        pass


def restore(data: Path) -> None:
    restore_backup(next((data.parent / "backups").iterdir()), data, now=NOW)


def leave_log(data: Path, name: str = "in-log") -> None:
    """End without the file's log copied into it."""
    app = make_app(data)
    with embedded(app, data, settings=Settings()):
        create(app, name)
        os.kill(os.getpid(), signal.SIGKILL)


def die_at(point: int, work: Callable[[Path], None], data: Path) -> None:
    """Do the work, and be killed before it changes the folder, or its database, for that time."""
    turns = itertools.count()

    def step() -> None:
        if next(turns) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement.startswith(STATEMENTS):
                step()
            return super().execute(statement, *values)

    sqlite3.connect = functools.partial(sqlite3.connect, factory=Connection)  # type: ignore[assignment]
    sys.addaudithook(lambda event, found: step() if event in POINTS and str(found[0]).startswith(f"{data}/") else None)
    work(data)


def run(work: Callable[..., object], *values: object) -> int | None:
    """Call a function in a process of its own, and return how that ended."""
    process = multiprocessing.get_context("fork").Process(target=work, args=values)
    process.start()
    process.join(60)
    return process.exitcode


def kill_at_each_point(work: Callable[[Path], None], left: Path, place: Path) -> Iterator[Path]:
    """Yield the folder as a kill at each point of the work leaves it, and as the whole work does."""
    for point in itertools.count():
        data = place / f"at-{point}" / "data"
        shutil.copytree(left.parent, data.parent, ignore=SOCKETS)
        code = run(die_at, point, work, data)
        assert code in {0, -signal.SIGKILL}
        yield data
        if code == 0:
            assert point > 3
            return
        shutil.rmtree(data.parent)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder of a killed process, with one task in its file, and one in its log; and a backup of before."""
    data = tmp_path / "left" / "data"
    app = make_app(data)
    with embedded(app, data, settings=Settings()):
        create(app, "in-file")
        app.run_now("note", id="ran", owner="ada", title="Note")
        wait_until(lambda: app.get("ran").status == "COMPLETED", "it has run")
    write_backup(data, data.parent / "backups", now=NOW - DAY)
    assert run(leave_log, data) == -signal.SIGKILL
    assert (data / "tasks.db-wal").stat().st_size
    return data


def test_a_start_that_is_killed_loses_nothing_and_keeps_out_a_backup(left: Path, tmp_path: Path) -> None:
    """At each point: the log goes on with its own file, and never into another that was put beside it."""
    for data in kill_at_each_point(start, left, tmp_path):
        copied = data.with_name("copied")
        shutil.copytree(data, copied, ignore=SOCKETS)
        shutil.copy(next((data.parent / "backups").iterdir()) / "tasks.db", copied)
        if (copied / "tasks.db-wal").exists() and (copied / "tasks.db-wal").stat().st_size:
            with pytest.raises(Misconfigured, match=r"belongs to another file .* `cloudsched admin restore`"):
                start(copied)
        else:
            assert read_tasks(copied) == {"in-file", "ran"}
        assert read_tasks(data) == {"in-file", "in-log", "ran"}


def test_a_restore_that_is_killed_is_whole_or_refused(left: Path, tmp_path: Path) -> None:
    """At each point, a start has all of what was there or all of the backup; a second restore completes it."""
    for data in kill_at_each_point(restore, left, tmp_path):
        try:
            assert read_tasks(data) in [{"in-file", "in-log", "ran"}, {"in-file", "ran"}]
            assert (data / "secret").read_text() == (left / "secret").read_text(), "it was restored before"
        except Misconfigured as refused:
            assert "Put the file back, such as from a backup" in str(refused)  # noqa: PT017 - it may start
        restore_backup(next((data.parent / "backups").iterdir()), data, now=NOW + DAY)
        assert read_tasks(data) == {"in-file", "ran"}


def leave_log_while_another_reads(data: Path) -> None:
    with closing(sqlite3.connect(data / "tasks.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()
        leave_log(data, "second")


def test_a_kill_while_another_reads_leaves_the_file_to_its_log(left: Path) -> None:
    """What a reader keeps from being copied into the file is in the log, which is still the file's."""
    assert run(leave_log_while_another_reads, left) == -signal.SIGKILL
    assert read_tasks(left) == {"in-file", "in-log", "ran", "second"}
