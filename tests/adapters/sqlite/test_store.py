"""What the SQLite store promises beyond the port: processes, crashes, indexes, files of other programs."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from tests.cases import try_each
from tests.conftest import MakeTask
from tests.contract.conftest import load
from tests.engine.harness import RecordingQueue

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite import database as sqlite_database
from cloudsched.adapters.sqlite import sweep as sqlite_sweep
from cloudsched.adapters.sqlite.search import SqliteListing, build_offer_statement, build_task_listing
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.adapters.sqlite.tables import LAYOUT_VERSION, list_layout
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.errors import Misconfigured, StoreUnavailable, UnsupportedDocument, VersionConflict

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@pytest.fixture
def file_store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def python(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter, our own script
        (sys.executable, "-c", script, *arguments), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


_CLAIMANT = """
import sys
from pathlib import Path
from cloudsched.adapters.sqlite import database as sqlite_database
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit
from cloudsched.errors import VersionConflict

sqlite_database.BUSY_TIMEOUT_SECONDS = 60  # a busy disk takes longer than five
store, me = SqliteStore(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
for line in sys.stdin:
    stored = store.load(line.strip())
    print("read", flush=True)
    sys.stdin.readline()
    try:
        store.commit(Commit(stored.task.model_copy(update={"message": me}), stored))
        print("won", flush=True)
    except VersionConflict:
        print("lost", flush=True)
store.close()
"""


def test_of_many_processes_exactly_one_wins(file_store: SqliteStore, path: Path, make_task: MakeTask) -> None:
    processes = [python(_CLAIMANT, str(path), str(number)) for number in range(3)]

    def tell(text: str) -> None:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{text}\n")
            process.stdin.flush()

    def hear() -> list[str]:
        return [process.stdout.readline().strip() if process.stdout else "" for process in processes]

    try:
        assert hear() == ["ready"] * 3
        for _ in range(20):
            task = make_task()
            file_store.commit(Commit(task))
            tell(task.id)
            assert hear() == ["read"] * 3
            tell("go")
            answers = hear()
            assert sorted(answers) == ["lost", "lost", "won"]
            stored = load(file_store, task.id)
            assert stored.task.message == str(answers.index("won"))
    finally:
        for process in processes:
            process.communicate()


_WRITER = """
import sys
from pathlib import Path
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit

store = SqliteStore(Path(sys.argv[1]))
task = Task.model_validate_json(sys.argv[2])
written = store.commit(Commit(task))
count = 0
while True:
    count += 1
    written = store.commit(Commit(task.model_copy(update={"run_count": count}), written))
    store.commit(Commit(task.model_copy(update={"id": f"other-{count}"})))
    print(count, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(path: Path, make_task: MakeTask) -> None:
    task = make_task()
    process = python(_WRITER, str(path), task.model_dump_json(by_alias=True, exclude_none=True))
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(50)]
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read()  # `communicate` would lose what has been read ahead
    process.communicate()
    last = int(rest.split()[-1]) if rest.split() else acknowledged[-1]
    store = SqliteStore(path)
    try:
        stored = load(store, task.id)
        assert stored.task.run_count in {last, last + 1}
        assert all(store.load(f"other-{number}") is not None for number in range(1, last + 1))
    finally:
        store.close()


def test_every_commit_waits_for_the_disk(file_store: SqliteStore) -> None:
    """The log is synced at each commit, so a power cut loses nothing either, which kill -9 cannot show."""

    def read_pragmas(writer: sqlite3.Connection) -> list[Any]:
        return [writer.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous")]

    assert file_store.database.write(read_pragmas) == [("wal",), (2,)]


def _lists() -> Iterator[SqliteListing]:
    for owner, handler, status, due_from, due_until, parent in itertools.product(
        (None, "ada"), (None, "greet"), (None, TaskStatus.ACTIVE), (None, NOW), (None, NOW), (None, "p")
    ):
        yield build_task_listing(TaskQuery(owner, status, handler, due_from, due_until, parent))
    for owner, status in itertools.product((None, "ada"), (None, TaskStatus.ACTIVE)):
        yield build_task_listing(TaskQuery(owner, status, label="team=payments"))
    yield build_task_listing(TaskQuery("ada", is_delivery=True))
    yield SqliteListing("tasks", "wake_at", conditions=("wake_at <= ?",), values=(0,))
    yield SqliteListing("executions", "scheduled_for", is_descending=True, conditions=("task_id = ?",), values=("a",))
    yield SqliteListing("messages", "created_at", is_descending=True, conditions=("owner = ?",), values=("a",))


@pytest.mark.parametrize("after", [None, (NOW, "a")], ids=["first", "next"])
@try_each("wanted", _lists())
def test_every_list_reads_an_index_in_order(wanted: SqliteListing, after: tuple[datetime, str] | None) -> None:
    database = sqlite3.connect(":memory:")
    for statement in list_layout():
        database.execute(statement)
    text, values = wanted.to_statement(after, 10)
    plan = [str(row[3]) for row in database.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    database.close()
    is_by_label = "label = ?" in wanted.conditions
    assert len(plan) == 1 + is_by_label, plan
    assert "USING INDEX" in plan[0] or "USING COVERING INDEX" in plan[0] or is_by_label
    assert not is_by_label or (plan[0].startswith("SEARCH labels USING PRIMARY KEY") and "(id=?)" in plan[1]), plan
    leading = [each.removesuffix(" = ?") for each in wanted.conditions if re.fullmatch(r"\w+ = \?", each)]
    assert not leading or f"({leading[0]}=?" in plan[0]


@pytest.mark.parametrize("owner", [None, "ada"])
@pytest.mark.parametrize("after", [None, ("2 a", "t")], ids=["first", "next"])
def test_offers_are_read_by_one_index_per_queue_key(owner: str | None, after: tuple[str, str] | None) -> None:
    """However many offers wait, no query sorts them or reads more of a queue than was asked for."""
    database = sqlite3.connect(":memory:")
    for statement in list_layout():
        database.execute(statement)
    text, values = build_offer_statement(["gpu", "gpu/cuda"], owner, 10, after)
    plan = [str(row[3]) for row in database.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    database.close()
    index = "offers_first_of_owner (owner=? AND queue_key=?" if owner else "offers_first (queue_key=?"
    assert sum(f"USING INDEX {index}" in step for step in plan) == 2
    assert not any("SCAN offers" in step for step in plan)
    assert all("LAST" not in step for step in plan)


def test_many_may_open_a_new_file_at_once(path: Path, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening waits for the others, on a slow disk as well."""
    monkeypatch.setattr(sqlite_database, "BUSY_TIMEOUT_SECONDS", 60)
    barrier, stores = threading.Barrier(8), list[SqliteStore]()

    def open_it() -> None:
        barrier.wait()
        stores.append(SqliteStore(path))

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 8
    task = make_task()
    stores[0].commit(Commit(task))
    for store in stores:
        assert store.load(task.id) is not None
        store.close()


@pytest.mark.parametrize("version", [3, 99])
def test_a_file_of_another_layout_is_refused(path: Path, version: int) -> None:
    """An older layout is refused like a newer one. The error names its version, and who can read it."""
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE tasks (something TEXT)")
    database.execute(f"PRAGMA user_version = {version}")
    database.close()
    with pytest.raises(UnsupportedDocument, match=rf"tasks\.db has schema version {version}") as refused:
        SqliteStore(path)
    assert ("the newer cloudsched" in str(refused.value)) == (version > LAYOUT_VERSION)
    assert ("of an older cloudsched" in str(refused.value)) == (version < LAYOUT_VERSION)


def test_what_expires_faster_than_a_batch_does_not_let_the_file_grow(
    path: Path, make_task: MakeTask, make_execution: Callable[..., Execution], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look removes all that has expired, however many batches that takes, and new records take its room."""
    monkeypatch.setattr(sqlite_sweep, "PURGE_BATCH_SIZE", 10)
    store, sizes, written = SqliteStore(path), list[int](), None
    task = make_task()
    for minute in range(8):
        at = NOW + timedelta(minutes=minute)
        records = [make_execution(task, f"{minute}-{n}", expire_at=at) for n in range(35)]
        written = store.commit(Commit(task, written, records))
        assert store.sweep.expire(at) == 35
        ((pages,),) = store.database.read("PRAGMA page_count")
        sizes.append(pages)
    assert sizes[-1] <= sizes[1]
    store.close()


def test_a_store_that_could_not_write_tells_so_until_it_can(path: Path, make_task: MakeTask) -> None:
    """A full disk refuses writes and lets reads through; what changes nothing succeeds on it, too."""
    store, task = SqliteStore(path), make_task()
    written = store.commit(Commit(task))
    store.check()
    ((pages,),) = store.database.read("PRAGMA page_count")
    store.database.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())
    with pytest.raises(StoreUnavailable, match="full"):
        store.commit(Commit(task.model_copy(update={"title": "x" * 50_000}), written))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="full"):
            store.check()
        assert store.sweep.expire(NOW) == 0
    store.database.write(lambda connection: connection.execute("PRAGMA max_page_count = 100000").fetchall())
    store.check()
    assert not store.database.has_failed_to_write
    assert store.database.read("SELECT count(*) FROM records") == [(0,)]
    store.close()


@pytest.mark.parametrize("kind", ["another program's", "no database"])
def test_a_file_of_something_else_is_refused_and_left_alone(path: Path, kind: str) -> None:
    if kind == "no database":
        path.write_bytes(b"Dear diary, " * 1000)
    else:
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE recipes (name TEXT)")
        database.commit()
        database.close()
    before = path.read_bytes()
    with pytest.raises(Misconfigured, match="name another file"):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"tasks\.db"):
        SqliteStore(tmp_path / "no" / "tasks.db")


def test_a_file_that_another_process_holds_is_unavailable(
    path: Path, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "BUSY_TIMEOUT_SECONDS", 0.05)
    store = SqliteStore(path)
    task = make_task()
    written = store.commit(Commit(task))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreUnavailable, match="locked"):
            store.commit(Commit(task, written))
        assert store.load(task.id) is not None
    finally:
        holder.close()
    store.commit(Commit(task, written))
    store.close()


@pytest.mark.parametrize("is_loaded", [False, True], ids=["written here", "loaded"])
def test_a_commit_on_a_known_version_reads_nothing(
    file_store: SqliteStore, make_task: MakeTask, *, is_loaded: bool
) -> None:
    """The columns of that version are known; what changes is written all the same, and no stale version wins."""
    statements: list[str] = []
    task = make_task()
    first = file_store.commit(Commit(task))
    if is_loaded:
        loaded = load(file_store, task.id)
        first = loaded
    file_store.database.write(lambda writer: writer.set_trace_callback(statements.append))
    paused = task.model_copy(update={"status": TaskStatus.PAUSED, "wake_at": None})
    second = file_store.commit(Commit(paused, first))
    assert not [each for each in statements if "FROM tasks WHERE id" in each]
    assert file_store.load(task.id) is not None
    for status in (TaskStatus.ACTIVE, TaskStatus.PAUSED):
        listed = file_store.list_tasks(TaskQuery("ada", status), limit=9).items
        assert [each.id for each in listed] == ([task.id] if status is TaskStatus.PAUSED else [])
    third = file_store.commit(Commit(task, second))
    with pytest.raises(VersionConflict):
        file_store.commit(Commit(paused, second))
    stored = load(file_store, task.id)
    assert stored == third, "what is known beside the number makes no version another one"
    assert file_store.list_tasks(TaskQuery("ada", TaskStatus.PAUSED), limit=9).items == []


def test_new_ids_in_a_file_follow_each_other(file_store: SqliteStore) -> None:
    """They are random beside, and UUIDs: tasks that were created together lie together in the file."""
    clock, ids = ManualClock(NOW), list[str]()
    app = App(Settings(secret="s" * 32), store=file_store, dispatcher=RecordingQueue(), clock=clock)
    app.handler("work")(lambda: None)
    for _ in range(20):
        ids.append(app.create(handler="work", schedule=Schedule.once(NOW + timedelta(days=1))).id)
        clock.move_to(clock.now() + timedelta(microseconds=1))
    assert ids == sorted(ids)
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {(7, RFC_4122)}
    assert UUID(file_store.make_id(datetime(1960, 1, 1, tzinfo=UTC))).version == 7, "a test may be set in any year"
