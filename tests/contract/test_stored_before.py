"""What is stored means the same to later versions, and goes on running.

``stored_before`` has a SQLite file and an export of Google's emulator, which its ``write.py`` wrote in the form of
version 0.1.0.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.contract.stored_before.write import HOUR, make_app
from tests.contract.test_restore import import_database
from tests.harness import new_project

from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.document import Document
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Message
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.engine.ports.pages import Page
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.testing import START, Simulation

FOLDER = Path(__file__).with_name("stored_before")
END = START + timedelta(hours=39, minutes=2)
KINDS: dict[str, type[Document]] = {"tasks": Task, "executions": Execution, "steps": JournalEntry, "messages": Message}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.db"
    path.write_bytes(gzip.decompress((FOLDER / "tasks.db.gz").read_bytes()))
    return path


@pytest.fixture(params=["sqlite", "firestore"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: SqliteStore | FirestoreStore
    if request.param == "sqlite":
        opened = SqliteStore(request.getfixturevalue("file"))
    else:
        address = request.getfixturevalue("firestore_address")
        with tarfile.open(FOLDER / "firestore.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        project = new_project()
        import_database(address, tmp_path / "firestore/firestore.overall_export_metadata", project)
        opened = FirestoreStore(project=project, emulator=address, deadline=timedelta(minutes=1))
    yield opened
    opened.close()


def list_bodies(path: Path) -> dict[str, list[dict[str, Any]]]:
    with closing(sqlite3.connect(path)) as database:
        return {
            table: [json.loads(body) for (body,) in database.execute(f"SELECT body FROM {table}")]  # noqa: S608 - ours
            for table in KINDS
        }


def test_each_document_means_what_it_said(file: Path) -> None:
    """What is stored of it now is what was stored, and no longer."""
    for table, bodies in list_bodies(file).items():
        assert bodies, table
        for body in bodies:
            document = KINDS[table].from_stored("it", body)
            stored = document.to_stored_json()
            assert json.loads(stored) == {**body, "schemaVersion": json.loads(stored)["schemaVersion"]}
            assert KINDS[table].from_stored_json("it", stored.encode()) == document
            assert len(stored) <= len(json.dumps(body, separators=(",", ":")))


def test_it_goes_on_where_it_was(store: Store) -> None:
    """Each task is found as before, runs on, and is stored in the present form from then on."""
    active = store.list_tasks(TaskQuery(status=TaskStatus.ACTIVE), limit=10)
    assert {each.id for each in active.items} == {"hourly", "order", "everything", "pulled", "children"}
    assert active.unreadable == 0
    before = store.load("hourly")
    assert before is not None
    assert before.task.recent_outcomes == (ExecutionStatus.SUCCEEDED,) * 12
    (usage,) = before.task.usage
    assert (usage.counts.executions, usage.counts.queries, usage.counts.tokens) == (40, 80, 1200)
    app = make_app()
    with Simulation(app, END, store=store) as sim:
        sim.advance(3 * HOUR)
        task = app.get("hourly")
        assert task.run_count == before.task.run_count + 3
        assert task.usage[0].counts.executions == 43
        (suspended,) = app.get("order").runs
        assert suspended.suspension is not None
        sim.advance(timedelta(days=30))
        assert app.get("order").status is TaskStatus.COMPLETED
        assert app.get("children").run_count == 1
        charged = next(each for each in app.executions("order").items if each.status is ExecutionStatus.SUCCEEDED)
        assert charged.steps[0].result == {"amount": [1, [2, 3]]}
        assert app.get("hourly").history == before.task.history
        pulled = store.load("pulled")
        assert pulled is not None
        assert pulled.task.offer is not None


def test_every_list_finds_what_was_stored_before(store: Store) -> None:
    """Lists of tasks and of runs need no field that was not stored then: nothing has to be migrated."""
    tasks = read_all(partial(store.list_tasks, TaskQuery()))
    records = [one for task in tasks for one in read_all(partial(store.list_executions, task.id))]
    ended = [one for one in records if one.status.is_final and one.handler is not None]
    assert len(ended) > 10
    for owner in (None, "ada", "bob"):
        mine = [task for task in tasks if owner in {None, task.owner}]
        for handler in {task.handler for task in tasks}:
            found = read_all(partial(store.list_tasks, TaskQuery(owner, handler=handler, due_from=START)))
            due = [each.id for each in mine if each.next_execution_time and each.handler == handler]
            assert sorted(each.id for each in found) == sorted(due)
        for label in {label for task in tasks for label in task.labels}:
            found = read_all(partial(store.list_tasks, TaskQuery(owner, label=label)))
            assert sorted(each.id for each in found) == sorted(each.id for each in mine if label in each.labels)
        suspended = [task.id for task in mine if any(run.suspension is not None for run in task.runs)]
        listed = read_all(partial(store.search.list_open, ExecutionQuery(owner), ExecutionStatus.SUSPENDED))
        assert sorted(each.id for each in listed) == sorted(suspended)
        queries = [
            ExecutionQuery(owner),
            *(ExecutionQuery(owner, status) for status in {one.status for one in ended}),
            *(ExecutionQuery(owner, handler=handler) for handler in {one.handler for one in ended}),
            *(ExecutionQuery(owner, label=label) for label in {label for one in ended for label in one.labels}),
            *(ExecutionQuery(owner, category=category) for category in Category),
        ]
        for query in queries:
            found = [
                one
                for is_failure in (False, True)
                for one in read_all(partial(store.search.list_finished, query, is_failure=is_failure))
            ]
            matching = [
                one
                for one in ended
                if query.owner in {None, one.owner}
                and query.status in {None, one.status}
                and query.handler in {None, one.handler}
                and query.label in {None, *one.labels}
                and query.category in {None, one.category}
            ]
            assert sorted((one.task_id, one.id) for one in found) == sorted((one.task_id, one.id) for one in matching)


def read_all(read: Callable[..., Page[Any]]) -> list[Any]:
    """Read a list to its end."""
    found: list[Any] = []
    token: str | None = None
    while True:
        page = read(limit=7, page_token=token)
        found += page.items
        token = page.next_page_token
        if token is None:
            return found
