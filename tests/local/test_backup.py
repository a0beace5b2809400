"""A backup is a data folder of one instant, made while others write; and what is damaged is not written to."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.harness import wait_until
from tests.instants import DAY

from cloudsched import App, Context, Settings
from cloudsched.cli import backup as cli
from cloudsched.config.access import Access
from cloudsched.errors import Misconfigured, NotFound, StoreUnavailable
from cloudsched.local import backup
from cloudsched.local.backup import require_sound_folder, restore_backup, write_backup
from cloudsched.local.embedded_app import embedded
from cloudsched.local.folder_lock import FolderLock
from cloudsched.local.service import run_service

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
LARGE = "a result " * 100_000
SETTINGS = Settings()


@pytest.fixture
def app(app: App) -> App:
    @app.handler("report")
    def report(ctx: Context) -> int:
        return len(ctx.step("write", lambda: LARGE))

    return app


def damage(path: Path) -> None:
    """Overwrite a part of a file that has pages of a table."""
    content = bytearray(path.read_bytes())
    content[8192:12_000] = b"x" * 3808
    path.write_bytes(content)


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def create(app: App, number: int) -> str:
    return app.create(
        id=f"task-{number}", owner="ada", handler="report", title="Report", schedule=datetime(2040, 1, 1, tzinfo=UTC)
    ).id


def test_it_is_of_one_instant_while_others_write(app: App, tmp_path: Path) -> None:
    """What was acknowledged before it was begun is in it; of what follows, a part without holes."""
    data, stopped = tmp_path / "data", threading.Event()
    numbers: list[int] = []

    def write() -> None:
        while not stopped.is_set():
            create(app, len(numbers))
            numbers.append(len(numbers))

    with embedded(app, data, settings=SETTINGS):
        writer = threading.Thread(target=write)
        writer.start()
        wait_until(lambda: len(numbers) > 20, "tasks are created")
        before = len(numbers)
        made = write_backup(data, tmp_path / "backups", now=NOW)
        after = len(numbers) + 1
        stopped.set()
        writer.join()
    assert made.folder == tmp_path / "backups" / "20270104T120000Z"
    assert before <= made.tasks <= after
    assert made.folder.stat().st_mode & 0o777 == 0o700
    with embedded(app, made.folder, settings=SETTINGS):
        for number in range(made.tasks):
            assert app.get(f"task-{number}").title == "Report"


def test_it_has_large_results_and_the_secret(app: App, tmp_path: Path) -> None:
    """What a step returned is not in the document; and links that were signed stay valid."""
    data = tmp_path / "data"
    with embedded(app, data, settings=SETTINGS):
        task = app.run_now("report", owner="ada", title="Report")
        wait_until(lambda: app.get(task.id).status == "COMPLETED", "it has run")
        made = write_backup(data, tmp_path / "backups", now=NOW)
    assert read_files(made.folder / "tasks.db-results") == read_files(data / "tasks.db-results") != {}
    assert made.size > len(LARGE)
    assert (made.folder / "secret").read_text() == (data / "secret").read_text()
    with embedded(app, made.folder, settings=SETTINGS):
        assert app.executions(task.id).items[0].status == "SUCCEEDED"


def test_the_oldest_beyond_the_number_go(app: App, tmp_path: Path) -> None:
    """Only backups: what else is in the place stays, as does one that another process is writing."""
    data, place = tmp_path / "data", tmp_path / "backups"
    (place / "20250101T000000Z.part").mkdir(parents=True)
    (place / "photos").mkdir()
    with embedded(app, data, settings=SETTINGS):
        for day in range(4):
            write_backup(data, place, now=NOW + timedelta(days=day), keep=2)
    kept = ["20250101T000000Z.part", "20270106T120000Z", "20270107T120000Z", "photos"]
    assert sorted(each.name for each in place.iterdir()) == kept


def test_what_cannot_be_copied_leaves_nothing(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, a damaged one, a full disk, or a backup of the same second: an error, and the others are untouched."""
    data, place = tmp_path / "data", tmp_path / "backups"
    with pytest.raises(Misconfigured, match=r"There is no .*tasks\.db: name the folder"):
        write_backup(data, place, now=NOW)
    with embedded(app, data, settings=SETTINGS):
        for number in range(20):
            create(app, number)
    write_backup(data, place, now=NOW)
    with pytest.raises(Misconfigured, match="a backup of this second"):
        write_backup(data, place, now=NOW)
    with monkeypatch.context() as patch:
        patch.setattr(backup, "_copy_results", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(StoreUnavailable, match="No space left on device"):
            write_backup(data, place, now=NOW + DAY)
    damage(data / "tasks.db")
    with pytest.raises((Misconfigured, StoreUnavailable), match=r"malformed|damaged"):
        write_backup(data, place, now=NOW + DAY, keep=1)
    assert [each.name for each in place.iterdir()] == ["20270104T120000Z"]


@pytest.mark.parametrize("owner", ["4242\n", ""], ids=["killed", "stopped"])
def test_damage_is_looked_for_after_an_end_that_was_no_clean_one(owner: str, app: App, tmp_path: Path) -> None:
    """The error says what to do. A process that was stopped has left the file whole, which is not read again."""
    data = tmp_path / "data"
    with embedded(app, data, settings=SETTINGS):
        for number in range(20):
            create(app, number)
    damage(data / "tasks.db")
    (data / "lock").write_text(owner)
    lock = FolderLock(data)
    lock.require()
    try:
        with (
            pytest.raises(Misconfigured, match=r"tasks\.db is damaged \(.*\)\. Put a copy of a backup")
            if owner
            else nullcontext()
        ):
            require_sound_folder(lock)
    finally:
        lock.release()


@pytest.mark.parametrize("start", [embedded, run_service])
def test_damage_is_found_at_each_start_until_it_is_mended(
    start: Callable[..., AbstractContextManager[object]], app: App, tmp_path: Path
) -> None:
    """A start that was refused does not count as a clean end, after which nobody would look again."""
    data, settings = tmp_path / "data", Settings(access=Access(open=True))
    with embedded(app, data, settings=SETTINGS):
        for number in range(20):
            create(app, number)
    damage(data / "tasks.db")
    (data / "lock").write_text("4242\n")
    for _ in range(2):
        with pytest.raises(Misconfigured, match=r"tasks\.db is damaged"), start(app, data=data, settings=settings):
            pass


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_folder_that_had_tasks_is_not_taken_for_a_new_one(app: App, tmp_path: Path, *, is_missing: bool) -> None:
    """Its file is missing or empty: the start is refused, and says what to do; with the file back, it starts."""
    data = tmp_path / "data"
    with embedded(app, data, settings=SETTINGS):
        create(app, 1)
    file, kept = data / "tasks.db", tmp_path / "kept"
    file.rename(kept)
    if not is_missing:
        file.touch()
    with pytest.raises(Misconfigured, match="had tasks") as refused, embedded(app, data):
        pass
    assert str(data / "has-tasks") in str(refused.value)
    kept.replace(file)
    with embedded(app, data, settings=SETTINGS):
        assert app.get("task-1").owner == "ada"


def test_a_file_with_two_names_is_not_run_twice(app: App, tmp_path: Path) -> None:
    """The lock is the folder's, and the second name is in another."""
    data, other = tmp_path / "data", tmp_path / "other"
    with embedded(app, data, settings=SETTINGS):
        create(app, 1)
    other.mkdir()
    (other / "tasks.db").hardlink_to(data / "tasks.db")
    for folder in (data, other):
        with pytest.raises(Misconfigured, match="hard link"), embedded(app, folder, settings=SETTINGS):
            pass


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_process_whose_file_is_gone_is_not_ready(app: App, tmp_path: Path, *, is_replaced: bool) -> None:
    """What it stores is in a file that nobody can open again."""
    data = tmp_path / "data"
    with embedded(app, data, settings=SETTINGS):
        app.container.store.check()
        (data / "tasks.db").rename(tmp_path / "kept")
        if is_replaced:
            (data / "tasks.db").touch()
        with pytest.raises(StoreUnavailable, match="deleted, or replaced"):
            app.container.store.check()
        (tmp_path / "kept").replace(data / "tasks.db")
        app.container.store.check()


def kill(app: App, data: Path, copy: Path) -> None:
    """Make in `copy` what is left of a data folder when its process is killed: a log that was not copied."""
    with embedded(app, data, settings=SETTINGS):
        create(app, 1)
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock"))
    assert (copy / "tasks.db-wal").stat().st_size


def copy_by_backup(data: Path, place: Path) -> Path:
    return write_backup(data, place, now=NOW).folder / "tasks.db"


def copy_by_sqlite(data: Path, place: Path) -> Path:
    """Copy to the same file each night, whose tables' version counts on until it is that of the store."""
    place.mkdir()
    with closing(sqlite3.connect(data / "tasks.db")) as source, closing(sqlite3.connect(place / "tasks.db")) as target:
        (version,) = source.execute("PRAGMA schema_version").fetchone()
        for _ in range(min(version, 100)):
            source.backup(target)
    return place / "tasks.db"


def copy_of_before(data: Path, place: Path) -> Path:
    """Copy the file itself while nothing is using it, before the process starts again."""
    return Path(shutil.copytree(data.with_name("stopped"), place)) / "tasks.db"


@pytest.mark.parametrize("copy", [copy_by_backup, copy_by_sqlite, copy_of_before])
def test_a_file_beside_the_log_of_another_is_refused(
    app: App, tmp_path: Path, copy: Callable[[Path, Path], Path]
) -> None:
    """SQLite would overwrite it with what the log says. The file of the log is accepted, wherever it is."""
    data, left = tmp_path / "data", tmp_path / "left"
    with embedded(app, data, settings=SETTINGS):
        create(app, 0)
    shutil.copytree(data, tmp_path / "stopped")
    kill(app, data, left)
    shutil.copytree(left, tmp_path / "moved")
    with embedded(app, tmp_path / "moved", settings=SETTINGS):
        assert app.get("task-1").title == "Report"
    shutil.copy(copy(data, tmp_path / "copies"), left)
    before = read_files(left)
    with pytest.raises(Misconfigured, match=r"tasks\.db-wal belongs to another file .* `cloudsched admin restore`"):
        embedded(app, left, settings=SETTINGS).start()
    with pytest.raises(Misconfigured, match="belongs to another file"):
        write_backup(left, tmp_path / "backups", now=NOW)
    assert {name: text for name, text in read_files(left).items() if name.startswith("tasks.db")} == {
        name: text for name, text in before.items() if name.startswith("tasks.db")
    }
    (left / "tasks.db-wal").unlink()  # as the error says
    (left / "tasks.db-shm").unlink()
    with embedded(app, left, settings=SETTINGS):
        assert app.get("task-0").title == "Report"


def test_a_restore_replaces_all_and_keeps_what_was_there(app: App, tmp_path: Path) -> None:
    """Over a folder that a killed process has left, and to a new one, with results and secret."""
    data, left = tmp_path / "data", tmp_path / "left"
    with embedded(app, data, settings=SETTINGS):
        task = app.run_now("report", owner="ada", title="Report")
        wait_until(lambda: app.get(task.id).status == "COMPLETED", "it has run")
    made = write_backup(data, tmp_path / "backups", now=NOW).folder
    kill(app, data, left)
    for folder in (left, tmp_path / "new"):
        kept = restore_backup(made, folder, now=NOW)
        assert not (folder / "tasks.db-wal").exists()
        assert read_files(folder / "tasks.db-results") == read_files(made / "tasks.db-results") != {}
        assert (folder / "secret").read_text() == (made / "secret").read_text()
        with embedded(app, folder, settings=SETTINGS):
            assert app.executions(task.id).items[0].status == "SUCCEEDED"
            with pytest.raises(NotFound):
                app.get("task-1")
    restore_backup(left / f"replaced-{NOW:%Y%m%dT%H%M%SZ}", tmp_path / "back", now=NOW)
    with embedded(app, tmp_path / "back", settings=SETTINGS):
        assert app.get("task-1").title == "Report"
    assert kept.tasks == 1


def test_the_commands_say_what_was_copied_and_what_is_left(app: App, tmp_path: Path) -> None:
    """A new folder had nothing, so nothing of it is kept."""
    with embedded(app, tmp_path / "data", settings=SETTINGS):
        create(app, 1)
    commands = CliRunner()
    made = commands.invoke(cli.backup, ["--data", str(tmp_path / "data"), str(tmp_path / "backups")]).output
    place = made.split("  ")[0]
    assert "  1 task, 0." in made
    for name, kept in ("data", True), ("new", False):
        output = commands.invoke(cli.restore, [place, "--data", str(tmp_path / name)]).output
        assert output.startswith(f"{tmp_path / name}  1 task.")
        assert ("What it had is in" in output, any((tmp_path / name).glob("replaced-*"))) == (kept, kept)


def test_a_restore_that_cannot_be_made_changes_nothing(app: App, tmp_path: Path) -> None:
    """To a folder in use, from a damaged backup, or from a folder of several."""
    data, place = tmp_path / "data", tmp_path / "backups"
    with embedded(app, data, settings=SETTINGS):
        for number in range(20):
            create(app, number)
        made = write_backup(data, place, now=NOW).folder
        with pytest.raises(Misconfigured, match="is in use by process"):
            restore_backup(made, data, now=NOW)
    before = read_files(data)
    with pytest.raises(Misconfigured, match=f"name one, such as {made}, the latest"):
        restore_backup(place, data, now=NOW)
    damage(made / "tasks.db")
    with pytest.raises(Misconfigured, match=r"is damaged \(.*\)\. Restore an earlier one, or"):
        restore_backup(made, data, now=NOW)
    assert read_files(data) == before


def test_nothing_starts_on_a_restore_that_was_interrupted(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of one and half of the other would be neither. A second restore completes it."""
    data = tmp_path / "data"
    with embedded(app, data, settings=SETTINGS):
        create(app, 0)
    made = write_backup(data, tmp_path / "backups", now=NOW).folder
    moves: list[Path] = []

    def stop_at_third(self: Path, target: Path) -> Path:
        moves.append(target)
        if len(moves) == 3:
            raise OSError(5, "Input/output error")
        return real(self, target)

    real = Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", stop_at_third)
        with pytest.raises(StoreUnavailable, match="cannot be restored"):
            restore_backup(made, data, now=NOW)
    with pytest.raises(Misconfigured, match=r"tasks\.db is missing"):
        embedded(app, data, settings=SETTINGS).start()
    restore_backup(made, data, now=NOW + DAY)
    with embedded(app, data, settings=SETTINGS):
        assert app.get("task-0").title == "Report"


def test_another_program_s_look_leaves_the_log(app: App, tmp_path: Path) -> None:
    """The locks of a running process stay: else whoever closes the file last would remove the log of the other."""
    data = tmp_path / "data"
    with embedded(app, data, settings=SETTINGS):
        create(app, 0)
        look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM tasks').fetchone()"
        subprocess.run([sys.executable, "-c", look, str(data / "tasks.db")], check=True)  # noqa: S603 - this Python
        create(app, 1)
        assert (data / "tasks.db-wal").stat().st_size
