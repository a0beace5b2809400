"""What every `TaskCounter` promises, over each store: counts of what is committed, of one owner, up to a bound."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.conftest import NOW, MakeTask
from tests.harness import new_project

from cloudsched.adapters.firestore.store import FirestoreStore, FirestoreTaskCounter
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.ports.store import Commit, ListingTaskCounter, Store, TaskCounter

Opened = tuple["Store", "TaskCounter"]


@pytest.fixture(params=["listed", "firestore"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    """A new, empty store, and what counts in it."""
    if request.param == "listed":
        store = SqliteStore()
        yield store, ListingTaskCounter(store)
        store.close()
        return
    address = request.getfixturevalue("firestore_address")
    project = new_project()
    remote = FirestoreStore(project=project, emulator=address, deadline=timedelta(minutes=1))
    tally = FirestoreTaskCounter(project=project, database="(default)", emulator=address)
    yield remote, tally
    tally.close()
    remote.close()


def test_unfinished_tasks_are_counted(opened: Opened, make_task: MakeTask) -> None:
    """Active and paused tasks of that owner count, others do not; counting stops at the limit."""
    store, tally = opened
    for status in TaskStatus:
        store.commit(Commit(make_task(owner="ada", status=status)))
    store.commit(Commit(make_task(owner="ada")))
    store.commit(Commit(make_task(owner="bob")))
    assert [tally.count_unfinished("ada", bound) for bound in (1, 2, 3, 10)] == [1, 2, 3, 3]
    assert (tally.count_unfinished("bob", 10), tally.count_unfinished("nobody", 10)) == (1, 0)


def test_new_tasks_are_counted(opened: Opened, make_task: MakeTask) -> None:
    """Tasks created after the instant count, whatever their status; one created exactly at it does not."""
    store, tally = opened
    for seconds in (0, 1, 2, 3):
        store.commit(Commit(make_task(owner="ada", created_at=NOW + timedelta(seconds=seconds))))
    store.commit(Commit(make_task(owner="bob", created_at=NOW + timedelta(seconds=9))))
    assert [tally.count_created_since("ada", NOW + timedelta(seconds=after), 10) for after in (-1, 0, 2, 3)] == [
        4,
        3,
        1,
        0,
    ]
    assert tally.count_created_since("ada", NOW, 2) == 2
