"""A file of one of the layouts before the present one is upgraded when it is opened, whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conftest import MakeTask
from tests.contract.test_store_troubles import NOW as TROUBLED_AT
from tests.contract.test_store_troubles import make_all

from cloudsched.adapters.sqlite import store as sqlite_store
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.adapters.sqlite.tables import LAYOUT_VERSION, UPGRADES
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Lease, Run
from cloudsched.domain.documents.task import Parent, Task, Trouble
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.ports.store import Commit
from cloudsched.errors import CloudschedError

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


_DROPPED = {
    "tasks_next_of_handler": "(handler, next_at, id) WHERE NOT is_unlisted",
    "tasks_next_of_status": "(status, next_at, id) WHERE NOT is_unlisted",
    "tasks_next_of_parent": "(parent, next_at, id) WHERE NOT is_unlisted AND parent IS NOT NULL",
    "deliveries_newest": "(created_at, id) WHERE is_delivery",
    "deliveries_newest_of_parent": "(parent, created_at, id) WHERE is_delivery",
}


def write_file_of_layout_14(path: Path, task: Task, execution: Execution) -> None:
    """Write a file as the code did that did not list what needs somebody."""
    store = SqliteStore(path)
    store.commit(Commit(task, executions=[execution]))
    store.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP INDEX tasks_in_trouble")
        for column in ("trouble", "trouble_since"):
            database.execute(f"ALTER TABLE tasks DROP COLUMN {column}")
        database.execute("PRAGMA user_version = 14")
        database.commit()


def write_file_of_layout_13(path: Path, task: Task, execution: Execution) -> None:
    """Write a file as the code did that had an index of every filter by due time."""
    write_file_of_layout_14(path, task, execution)
    with closing(sqlite3.connect(path)) as database:
        for name, columns in _DROPPED.items():
            database.execute(f"CREATE INDEX {name} ON tasks {columns}")
        database.execute("PRAGMA user_version = 13")
        database.commit()


def write_file_of_layout_12(path: Path, task: Task, execution: Execution) -> None:
    """Write a file as the code did whose indexes of parents had every task."""
    write_file_of_layout_13(path, task, execution)
    with closing(sqlite3.connect(path)) as database:
        for name, column in ("tasks_newest_of_parent", "created_at"), ("tasks_next_of_parent", "next_at"):
            database.execute(f"DROP INDEX {name}")
            database.execute(f"CREATE INDEX {name} ON tasks (parent, {column}, id) WHERE NOT is_unlisted")
        database.execute("PRAGMA user_version = 12")
        database.commit()


def write_file_of_layout_11(path: Path, task: Task, execution: Execution) -> None:
    """Write a file as the code before categories were searched did."""
    write_file_of_layout_12(path, task, execution)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP INDEX executions_of_category")
        database.execute("ALTER TABLE executions DROP COLUMN category")
        database.execute("ALTER TABLE tasks DROP COLUMN category")
        database.execute("UPDATE executions SET body = json_remove(body, '$.category')")
        database.execute("PRAGMA user_version = 11")
        database.commit()


def describe(path: Path) -> tuple[object, ...]:
    """Return a file's version, its columns and its indexes, in no order."""
    with closing(sqlite3.connect(path)) as database:
        columns = {
            (table, *column[1:4])
            for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for column in database.execute(f"PRAGMA table_info({table})")
        }
        indexes = set(database.execute("SELECT type, name, sql FROM sqlite_schema WHERE type != 'table'"))
        return database.execute("PRAGMA user_version").fetchone(), columns, indexes


def make_documents(make_task: MakeTask) -> tuple[Task, Execution]:
    lease = Lease(token_hash="", started_at=NOW, until=NOW)
    run = Run(execution_id="r", scheduled_for=NOW, due_at=NOW, attempt=1, lease=lease)
    task = make_task(category=Category.REPORT, runs=(run,))
    ended = Execution(
        id="e", task_id=task.id, owner=task.owner, handler=task.handler, scheduled_for=NOW,
        status=ExecutionStatus.SUCCEEDED, category=Category.REPORT,
    )  # fmt: skip
    return task, ended


def test_an_upgraded_file_is_like_a_new_one(path: Path, tmp_path: Path, make_task: MakeTask) -> None:
    """In version, columns and indexes; and every document is still there, and can be changed."""
    task, ended = make_documents(make_task)
    write_file_of_layout_11(path, task, ended)
    store = SqliteStore(path)
    stored = store.load(task.id)
    assert stored is not None
    assert stored.task == task
    assert store.load_execution(task.id, "e") == ended.model_copy(update={"category": None})
    store.commit(Commit(task.model_copy(update={"category": Category.REMINDER}), stored))
    assert [each.id for each in store.search.list_open(
        ExecutionQuery(category=Category.REMINDER), ExecutionStatus.RUNNING, limit=9
    ).items] == [task.id]  # fmt: skip
    store.close()
    SqliteStore(tmp_path / "new.db").close()
    assert describe(path) == describe(tmp_path / "new.db")
    assert describe(path)[0] == (LAYOUT_VERSION,)


def test_what_needs_somebody_is_found_in_a_file_of_the_layout_before(path: Path, make_task: MakeTask) -> None:
    """By the reason and since when, as if this code had written it."""
    tasks = make_all(make_task).values()
    with closing(SqliteStore(path)) as store:
        for task in tasks:
            store.commit(Commit(task))
        queries = [TaskQuery(trouble=trouble) for trouble in Trouble]
        written = [store.list_tasks(query, limit=9).items for query in queries]
    write_file_of_layout_14(path, make_task(id="more"), make_documents(make_task)[1])
    with closing(SqliteStore(path)) as store:
        assert [store.list_tasks(query, limit=9).items for query in queries] == written
        until = TaskQuery(trouble=Trouble.WAITING, trouble_until=TROUBLED_AT + timedelta(days=3))
        assert store.search.count_tasks(until, 9) == 0
        later = TaskQuery(trouble=Trouble.WAITING, trouble_until=TROUBLED_AT + timedelta(days=3, seconds=1))
        assert store.search.count_tasks(later, 9) == 1


@pytest.mark.parametrize("write", [write_file_of_layout_12, write_file_of_layout_13])
def test_a_file_of_the_layouts_before_becomes_like_a_new_one(
    path: Path, tmp_path: Path, make_task: MakeTask, write: Callable[[Path, Task, Execution], None]
) -> None:
    """The children of a task are still found, newest first and by when they run next."""
    parent = Parent(task_id="above", execution_id="e", step=1, depth=1)
    child = make_task(parent=parent)
    write(path, child, make_documents(make_task)[1])
    with closing(SqliteStore(path)) as store:
        for query in TaskQuery(parent="above"), TaskQuery(parent="above", due_from=NOW - timedelta(days=3650)):
            assert [each.id for each in store.list_tasks(query, limit=9).items] == [child.id]
    SqliteStore(tmp_path / "new.db").close()
    assert describe(path) == describe(tmp_path / "new.db")


def test_open_runs_are_found_by_category_and_old_records_are_not(path: Path, make_task: MakeTask) -> None:
    """What runs is found by what its task has; a record says nothing about categories that it was written without."""
    task, ended = make_documents(make_task)
    write_file_of_layout_11(path, task, ended)
    with closing(SqliteStore(path)) as store:
        query = ExecutionQuery(category=Category.REPORT)
        assert [each.id for each in store.search.list_open(query, ExecutionStatus.RUNNING, limit=9).items] == [task.id]
        assert list(store.search.list_finished(query, is_failure=False, limit=9).items) == []
        everything = store.search.list_finished(ExecutionQuery(), is_failure=False, limit=9)
        assert [each.id for each in everything.items] == ["e"]


def test_an_upgrade_that_fails_changes_nothing(
    path: Path, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the next attempt, or the code before, finds the file as it was."""
    write_file_of_layout_11(path, *make_documents(make_task))
    before = describe(path)
    monkeypatch.setattr(sqlite_store, "UPGRADES", {**UPGRADES, 11: [*UPGRADES[11], "CREATE TABLE tasks (a TEXT)"]})
    with pytest.raises(CloudschedError):
        SqliteStore(path)
    assert describe(path) == before
    monkeypatch.undo()
    SqliteStore(path).close()
    assert describe(path)[0] == (LAYOUT_VERSION,)
