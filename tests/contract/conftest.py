"""What the contract suites share: every adapter of a port, and things to put into them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Message
from cloudsched.domain.documents.task import Task
from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.engine.ports.store import Store

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)

OpenStore = Callable[[], AbstractContextManager[Store]]
MakeTask = Callable[..., Task]


@pytest.fixture(scope="session", params=["sqlite-memory", "sqlite-file", "firestore"])
def open_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    """Open a new, empty store of each kind; it is closed at the end of the ``with``."""

    @contextmanager
    def opened() -> Iterator[Store]:
        store: SqliteStore | FirestoreStore
        if request.param == "sqlite-memory":
            store = SqliteStore()
        elif request.param == "sqlite-file":
            store = SqliteStore(tmp_path_factory.mktemp("store") / "tasks.db")
        else:
            address = request.getfixturevalue("firestore_address")
            project = f"demo-{uuid.uuid4().hex[:20]}"
            store = FirestoreStore(project=project, emulator=address, deadline=timedelta(minutes=1))
        try:
            yield store
        finally:
            store.close()

    return opened


@pytest.fixture
def store(open_store: OpenStore) -> Iterator[Store]:
    with open_store() as opened:
        yield opened


@pytest.fixture(scope="session")
def make_task() -> MakeTask:
    """Make a task with some fields of one's own."""

    def make(**fields: Any) -> Task:
        at = fields.pop("at", NOW + timedelta(hours=1))
        usual = {
            "id": f"task-{uuid.uuid4()}",
            "owner": "ada",
            "title": "A task",
            "handler": "greet",
            "schedule": Schedule.once(at),
            "is_one_time": True,
            "timezone": "UTC",
            "next_execution_time": at,
            "wake_at": at,
            "created_at": NOW,
            "updated_at": NOW,
            "status_changed_at": NOW,
        }
        return Task(**(usual | fields))

    return make


@pytest.fixture(scope="session")
def make_execution() -> Callable[..., Execution]:
    """Make the record of a success, with some fields of one's own."""

    def make(task: Task, execution_id: str = "20270101T090000Z", **fields: Any) -> Execution:
        usual = {"scheduled_for": NOW, "status": ExecutionStatus.SUCCEEDED}
        return Execution(id=execution_id, task_id=task.id, owner=task.owner, **(usual | fields))

    return make


@pytest.fixture(scope="session")
def make_message() -> Callable[..., Message]:
    """Make a message, with some fields of one's own."""

    def make(task: Task, key: str, **fields: Any) -> Message:
        usual = {"owner": task.owner, "execution_id": key, "title": "Done", "body": "", "created_at": NOW}
        return Message(id=f"{task.id}-{key}", task_id=task.id, **(usual | fields))

    return make
