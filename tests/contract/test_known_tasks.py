"""A task that this process has parsed or written is not parsed again, and nobody sees anything but what is stored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.conftest import MakeTask
from tests.contract.conftest import load

from cloudsched.adapters.firestore.protos import Document as Proto
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.firestore.values import encode_fields
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.document import Document
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.transitions.commit import Commit, Version, VersionedTask
from cloudsched.engine.ports.store import Store
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.errors import VersionConflict
from cloudsched.testing import START

DEEP = {"list": [1, {"a": [2]}], "map": {"b": [3]}}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    ids: list[str] = []

    def count(name: str) -> None:
        read = getattr(Document, name).__func__

        def counted(cls: type[Document], key: str, data: object) -> object:
            if cls is Task:
                ids.append(key)
            return read(cls, key, data)

        monkeypatch.setattr(Document, name, classmethod(counted))

    count("from_stored")
    count("from_stored_json")
    return ids


def edit(store: Store, task_id: str, **changes: object) -> VersionedTask:
    stored = load(store, task_id)
    return store.commit(Commit(stored.task.model_copy(update=changes), stored))


def test_what_was_written_or_read_is_not_parsed_again(store: Store, make_task: MakeTask, parsed: list[str]) -> None:
    task = make_task()
    store.commit(Commit(task, None))
    assert load(store, task.id).task == task
    edited = edit(store, task.id, title="New")
    assert load(store, task.id).task == edited.task
    assert store.load_many([task.id])[0].task == edited.task
    assert parsed == []


def test_a_task_that_was_written_and_one_that_is_parsed_are_the_same(store: Store, make_task: MakeTask) -> None:
    """Also where JSON tells apart what Python calls equal."""
    task = make_task(payload={"number": 1, "on": True})
    store.commit(Commit(task, None))
    for payload in ({"number": 1.0, "on": 1}, {"number": True, "on": 1.0}, {"number": 1, "on": True}):
        edit(store, task.id, payload=payload)
        known = load(store, task.id).task
        vars(store)["_known"] = KnownTasks()
        read = load(store, task.id).task
        assert repr(known.payload["number"]) == repr(read.payload["number"]) == repr(payload["number"])
        assert repr(known.payload["on"]) == repr(read.payload["on"]) == repr(payload["on"])


def change_everything(value: Any) -> int:  # noqa: ANN401 - any value of a field
    """Change each list and object in a value; return how many there were."""
    match value:
        case BaseModel():
            return sum(map(change_everything, value.__dict__.values()))
        case tuple():
            return sum(map(change_everything, value))
        case list():
            found = sum(map(change_everything, value))
            value.append("changed")
            return found + 1
        case dict():
            found = sum(map(change_everything, list(value.values())))
            value["changed"] = True
            return found + 1
        case _:
            return 0


def make_changeable(make_task: MakeTask) -> Task:
    """Return a task with JSON wherever a task can have it."""
    task = make_task(payload=DEEP)
    content = {
        **task.to_stored(),
        "children": [{"title": "A", "handler": "h", "payload": DEEP}],
        "events": [{"name": "e", "payload": [DEEP], "at": START, "sender": {"role": "owner"}}],
        "runs": [{"executionId": "e", "scheduledFor": START, "dueAt": START, "payload": DEEP}],
    }
    return Task.from_stored(task.id, content)


def test_nobody_changes_what_is_known(store: Store, make_task: MakeTask) -> None:
    """Whatever is done to what was written, or to what was read, the next reader gets what is stored."""
    task = make_changeable(make_task)
    expected = task.to_stored_json()
    committed = store.commit(Commit(task, None))
    assert change_everything(committed.task) >= 18
    for _ in range(3):
        found = load(store, task.id).task
        assert found.to_stored_json() == expected
        change_everything(found)
        change_everything(store.load_many([task.id])[0].task)
        recalled = store.recall(task.id)
        assert recalled is not None
        assert recalled.task.to_stored_json() == expected
        change_everything(recalled.task)


def test_another_process_is_seen(tmp_path: Path, make_task: MakeTask, parsed: list[str]) -> None:
    """Two processes each know a task, and each reads what the other has written last."""
    here, there = SqliteStore(tmp_path / "tasks.db"), SqliteStore(tmp_path / "tasks.db")
    task = make_task()
    here.commit(Commit(task, None))
    for number in range(3):
        edit(there, task.id, title=f"There {number}")
        assert load(here, task.id).task.title == f"There {number}"
        edit(here, task.id, title=f"Here {number}")
        assert load(there, task.id).task.title == f"Here {number}"
    assert len(parsed) == 7
    here.close()
    there.close()


def test_a_task_that_was_created_again_is_another(store: Store, make_task: MakeTask) -> None:
    task = make_task()
    store.commit(Commit(task, None))
    edit(store, task.id, deleted_at=START)
    store.sweep.purge(task.id)
    assert store.load(task.id) is None
    store.commit(Commit(task.model_copy(update={"title": "Again"}), None))
    assert load(store, task.id).task.title == "Again"
    edit(store, task.id, purpose="To see")
    assert load(store, task.id).task.purpose == "To see"


def test_a_restored_file_has_nothing_of_what_was_known(tmp_path: Path, make_task: MakeTask) -> None:
    """What a process knows from before the restore is not found, and a commit that was decided from it conflicts."""
    path, backup = tmp_path / "tasks.db", tmp_path / "backup.db"
    here = SqliteStore(path)
    task = make_task()
    here.commit(Commit(task, None))
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    lost = edit(here, task.id, title="Lost", purpose="Lost as well")
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    there = SqliteStore(path)
    written = edit(there, task.id, title="Written since")
    recalled = here.recall(task.id)
    assert recalled is not None
    assert recalled == lost
    with pytest.raises(VersionConflict):
        here.commit(Commit(recalled.task, recalled))
    assert load(here, task.id).task == written.task
    assert here.recall(task.id) == written
    here.close()
    there.close()


def test_a_restored_database_in_which_update_times_repeat_is_read(
    monkeypatch: pytest.MonkeyPatch, make_task: MakeTask
) -> None:
    """Each write has an id of its own, by which Firestore's documents are told apart as well."""
    store = FirestoreStore(project="demo", emulator="127.0.0.1:9")
    task, answers = make_task(), [("a" * 16, "First"), ("b" * 16, "Second")]

    def get(name: str) -> tuple[object, object]:
        commit_id, title = answers.pop(0)
        document = Proto(name=name)
        encode_fields(document.fields, {**task.to_stored(), "title": title, "private": {"commitId": commit_id}})
        document.update_time.FromNanoseconds(1_000)
        return document, START

    monkeypatch.setattr(vars(store)["_rpc"], "get", get)
    assert [load(store, task.id).task.title for _ in range(2)] == ["First", "Second"]
    store.close()


def test_a_task_that_has_ended_is_dropped(make_task: MakeTask) -> None:
    """Nothing claims it. Of many that run once, only those that have not ended take memory."""
    known = KnownTasks()
    task = make_task()
    known.keep(task, Version(1), 1, 25)
    known.keep(task.model_copy(update={"status": TaskStatus.COMPLETED}), Version(2), 2, 25)
    assert known.recall(task.id) is None


def test_it_has_no_more_bytes_than_it_may_have(make_task: MakeTask) -> None:
    """What was used last stays."""
    known = KnownTasks(100)
    tasks = [make_task(id=f"t{number}") for number in range(5)]
    for task in tasks[:4]:
        known.keep(task, Version(1), 1, 25)
    assert known.find("t0", 1) == tasks[0]
    known.keep(tasks[4], Version(1), 1, 30)
    assert [known.find(each.id, 1) is not None for each in tasks] == [True, False, False, True, True]
    known.keep(tasks[4], Version(1), 2, 101)
    assert known.find("t4", 2) is None
    assert known.find("t0", 2) is None
    known.keep(tasks[1], Version(1), 1, 50)
    assert [known.find(each.id, 1) is not None for each in tasks] == [True, True, False, True, False]
