"""A document that cannot be read, of a newer version or damaged, is skipped in every list, and refused alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import NOW, MakeExecution, MakeMessage, MakeTask
from tests.contract.conftest import iter_pages
from tests.engine.harness import DAY, MINUTE
from tests.harness import new_project

from cloudsched.adapters.firestore.protos import Write
from cloudsched.adapters.firestore.rpc import FirestoreRpc
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.firestore.values import encode
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.document import SCHEMA_VERSION
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.storage.pages import Page
from cloudsched.errors import UnreadableDocument, UnsupportedDocument
from cloudsched.features.pull.fields import Offer

DAMAGE = ("truncated", "wrong type", "not decodable", "not an object")
BODIES = {
    "truncated": "'{\"schemaVersion\": 1'",
    "wrong type": """'{"schemaVersion": 1, "handler": {}}'""",
    "not decodable": "CAST(x'7bff' AS TEXT)",
    "not an object": "'[]'",
}
FIELDS = {"truncated": None, "wrong type": {"a": 1}, "not decodable": b"\xff", "not an object": 7}


class DamagedSqlite:
    """A file whose rows are overwritten by another program."""

    def __init__(self, path: Path) -> None:
        self.store: Store = SqliteStore(path)
        self._path = path

    def damage(self, kind: str, collection: str, *path: str) -> None:
        key = "id" if collection != "locks" else "key"
        with sqlite3.connect(self._path) as connection:
            connection.execute(f"UPDATE {collection} SET body = {BODIES[kind]} WHERE {key} = ?", (path[-1],))  # noqa: S608
        connection.close()


class DamagedFirestore:
    """A database whose documents another client has written to."""

    def __init__(self, address: str) -> None:
        project = new_project()
        self._database = f"projects/{project}/databases/(default)"
        self.store: Store = FirestoreStore(project=project, emulator=address, deadline=MINUTE)
        self._address = address

    def damage(self, kind: str, collection: str, *path: str) -> None:
        parents = {"tasks": "tasks/{}", "executions": "tasks/{}/executions/{}", "messages": "inboxes/{}/messages/{}"}
        write = Write()
        write.update.name = f"{self._database}/documents/{parents[collection].format(*path)}"
        field = "schemaVersion" if kind == "not an object" else {"messages": "title"}.get(collection, "handler")
        if collection == "executions":
            field = "status"
        write.update_mask.field_paths.append(field)
        value = FIELDS[kind]
        if isinstance(value, bytes):
            write.update.fields[field].bytes_value = value
        elif value is not None:
            write.update.fields[field].CopyFrom(encode(value))
        rpc = FirestoreRpc(self._database, self._address, MINUTE)
        assert rpc.commit([write]) is not None
        rpc.close()


@pytest.fixture(params=["sqlite", "firestore"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DamagedSqlite | DamagedFirestore]:
    made: DamagedSqlite | DamagedFirestore
    if request.param == "sqlite":
        made = DamagedSqlite(tmp_path / "tasks.db")
    else:
        made = DamagedFirestore(request.getfixturevalue("firestore_address"))
    yield made
    made.store.close()


def _lists(store: Store, task: Task) -> Iterator[tuple[str, Callable[[str | None], Page[Any]]]]:
    yield "tasks", lambda token: store.list_tasks(TaskQuery(), limit=1, page_token=token)
    yield "tasks", lambda token: store.list_tasks(TaskQuery(owner=task.owner), limit=1, page_token=token)
    yield "tasks", lambda token: store.list_tasks(TaskQuery(due_from=NOW), limit=1, page_token=token)
    yield "tasks", lambda token: store.sweep.list_due(NOW + 900 * DAY, limit=1, page_token=token)
    yield "executions", lambda token: store.search.list_executions("b", limit=1, page_token=token)
    yield "messages", lambda token: store.inbox.list(task.owner, limit=1, page_token=token)


def _read_all(read: Callable[[str | None], Page[Any]]) -> tuple[int, int]:
    """Return how many items all pages of a list have, and how many documents they skipped."""
    pages = [*iter_pages(read)]
    return sum(len(page.items) for page in pages), sum(page.unreadable for page in pages)


@pytest.mark.parametrize("kind", ["newer", *DAMAGE])
def test_every_list_skips_counts_and_logs_an_unreadable_document(
    place: DamagedSqlite | DamagedFirestore,
    kind: str,
    make_task: MakeTask,
    make_execution: MakeExecution,
    make_message: MakeMessage,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Wherever it stands, and with pages of one, the others are listed, once each."""
    store = place.store
    newer = {"schema_version": 7} if kind == "newer" else {}
    message_id = ""
    for key in ("a", "b", "c"):
        middle = newer if key == "b" else {}
        task = make_task(id=key, offer=Offer(queue_key="gpu", order=f"2 {key}"), next_execution_time=NOW, wake_at=NOW)
        runs = [make_execution(task, each) for each in ("1", "2", "3")] if key == "b" else []
        runs = [each.model_copy(update=newer if each.id == "2" else {}) for each in runs]
        messages = [make_message(task, f"m{key}").model_copy(update=middle)]
        message_id = messages[0].id if key == "b" else message_id
        store.commit(Commit(task.model_copy(update=middle), None, runs, messages))
    if kind != "newer":
        place.damage(kind, "tasks", "b")
        place.damage(kind, "executions", "b", "2")
        place.damage(kind, "messages", task.owner, message_id)
    for name, read in _lists(store, task):
        caplog.clear()
        assert _read_all(read) == (2, 1), name
        assert [getattr(each, "action", None) for each in caplog.records] == ["unreadable"]
    assert [each.task.id for each in store.load_many(["a", "b", "c"])] == ["a", "c"]
    assert store.sweep.next_wakeup() == NOW


@pytest.mark.parametrize("kind", ["newer", *DAMAGE])
def test_loading_an_unreadable_document_is_refused(
    place: DamagedSqlite | DamagedFirestore, kind: str, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """It is not treated as missing, since its id is not free; the error names a newer version and the supported one."""
    newer = {"schema_version": 7} if kind == "newer" else {}
    task = make_task(id="b")
    place.store.commit(
        Commit(task.model_copy(update=newer), None, [make_execution(task, "2").model_copy(update=newer)])
    )
    if kind != "newer":
        place.damage(kind, "tasks", "b")
        place.damage(kind, "executions", "b", "2")
    for read in (lambda: place.store.load("b"), lambda: place.store.load_execution("b", "2")):
        with pytest.raises(UnsupportedDocument if kind == "newer" else UnreadableDocument) as caught:
            read()
        if isinstance(caught.value, UnsupportedDocument):
            assert (caught.value.version, caught.value.supported) == (7, SCHEMA_VERSION)
