"""What the contract suites share: every adapter of a port, and things to put into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

import pytest
from tests.harness import new_project

from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.ports.store import Store, VersionedTask

OpenStore = Callable[[], AbstractContextManager[Store]]


def load(store: Store, task_id: str) -> VersionedTask:
    """Return a task that a store has."""
    found = store.load(task_id)
    assert found is not None
    return found


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
            project = new_project()
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


@pytest.fixture(autouse=True)
def clock_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of a simulation move only where the test says so.

    These tests compare whole histories, of two handlers or of two databases, which agree to the instant.
    """
    monkeypatch.setattr("cloudsched.testing.simulation.EACH_LOOK", timedelta(0))
