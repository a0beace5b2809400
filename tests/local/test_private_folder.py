"""The data folder is its user's alone, and a store that has vanished takes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.harness import wait_until

from cloudsched import App, Context, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.errors import StoreUnavailable
from cloudsched.local.embedded_app import embedded

LARGE = "a result " * 100_000
LATER = datetime(2040, 1, 1, tzinfo=UTC)


@pytest.fixture
def app(app: App) -> App:
    @app.handler("report")
    def report(ctx: Context) -> int:
        return len(ctx.step("write", lambda: LARGE))

    return app


def read_rights(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in (folder, *folder.iterdir())}


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_nobody_else_can_read_it(app: App, tmp_path: Path, umask: int) -> None:
    """Whatever the umask is, in a new folder and in one that was open to all."""
    data, before = tmp_path / "data", os.umask(umask)
    try:
        for _ in range(2):
            with embedded(app, data, settings=Settings()):
                task = app.run_now("report", owner="ada", title="R")
                wait_until(lambda: app.get(task.id).status == "COMPLETED", "it has run")  # noqa: B023 - asked at once
                rights = read_rights(data)
            folders = {"data", "tasks.db-results"}
            assert rights == {name: 0o700 if name in folders else 0o600 for name in rights}
            assert {"tasks.db", "tasks.db-wal", "lock", "secret", "has-tasks"} < rights.keys()
            for each in (data, *data.iterdir()):
                each.chmod(0o777)
    finally:
        os.umask(before)


def test_nobody_else_can_read_it_where_a_link_leads(app: App, tmp_path: Path) -> None:
    """To a file on another disk, say, which does not exist yet."""
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for folder in (data, elsewhere):
        folder.mkdir()
    (data / "tasks.db").symlink_to(elsewhere / "tasks.db")
    with embedded(app, data, settings=Settings()):
        app.create(id="one", owner="ada", handler="report", title="R", schedule=LATER)
        rights = {each.name: each.stat().st_mode & 0o777 for each in elsewhere.iterdir()}
    assert rights == dict.fromkeys(("tasks.db", "tasks.db-wal", "tasks.db-shm"), 0o600)


def test_a_folder_with_something_else_in_it_keeps_its_rights(app: App, tmp_path: Path) -> None:
    """It may be a project's, which others serve files from. Our own files are closed all the same."""
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    (data / "index.html").touch(0o644)
    with embedded(app, data, settings=Settings()):
        rights = read_rights(data)
    assert (rights["data"], rights["index.html"], rights["tasks.db"]) == (0o755, 0o644, 0o600)


@pytest.mark.parametrize("fault", ["removed", "moved", "replaced", "moved with its folder"])
def test_a_store_that_has_vanished_takes_nothing(app: App, tmp_path: Path, fault: str) -> None:
    """What was acknowledged would be lost. Once the file is back, it goes on."""
    data, aside = tmp_path / "data", tmp_path / "aside"
    with embedded(app, data, settings=Settings()):
        app.create(id="before", owner="ada", handler="report", title="R", schedule=LATER)
        moved = data if fault == "moved with its folder" else data / "tasks.db"
        moved.rename(aside)
        if fault == "removed":
            os.link(aside, tmp_path / "other")
            aside.unlink()
            (tmp_path / "other").rename(aside)
        if fault == "replaced":
            (data / "tasks.db").touch()
        with pytest.raises(StoreUnavailable, match="deleted, or replaced"):
            app.create(id="lost", owner="ada", handler="report", title="R", schedule=LATER)
        with pytest.raises(StoreUnavailable):
            app.container.store.check()
        aside.rename(moved)
        app.container.store.check()
        app.create(id="after", owner="ada", handler="report", title="R", schedule=LATER)


@pytest.mark.parametrize(("name", "fault"), [("tasks.db-wal", Path.unlink), ("tasks.db", Path.write_bytes)])
def test_a_store_that_has_lost_its_log_or_its_content_takes_nothing(
    app: App, tmp_path: Path, name: str, fault: Callable[..., object]
) -> None:
    """What is acknowledged is in the log first, and would be lost with it if something killed the process."""
    data = tmp_path / "data"
    with embedded(app, data, settings=Settings()):
        app.create(id="before", owner="ada", handler="report", title="R", schedule=LATER)
        fault(data / name, *([b""] if fault is Path.write_bytes else []))
        with pytest.raises(StoreUnavailable, match="deleted, or replaced"):
            app.create(id="lost", owner="ada", handler="report", title="R", schedule=LATER)


def test_no_reader_makes_a_new_file_where_the_store_was(tmp_path: Path) -> None:
    """An empty one would look like a store that was emptied."""
    path = tmp_path / "tasks.db"
    store = SqliteStore(path)
    path.rename(tmp_path / "aside")
    while store.database._idle:  # noqa: SLF001 - so that another connection is opened
        store.database._idle.pop().close()  # noqa: SLF001 - the same
    with pytest.raises(StoreUnavailable):
        store.load("none")
    assert not path.exists()
    store.close()
