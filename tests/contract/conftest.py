"""What the contract suites share: every adapter of a port, and things to put into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from tests.adapters.firestore.production import PREFIX, list_names
from tests.conftest import NOW
from tests.engine.conftest import clock_stands
from tests.engine.harness import MINUTE
from tests.harness import new_project

from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.delivery_channels import Delivery
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.commit import VersionedTask
from cloudsched.engine.ports.store import Store
from cloudsched.engine.storage.pages import Page
from cloudsched.features.locks.lock import Waiter

__all__ = ["clock_stands"]  # these tests compare whole histories, which agree to the instant
OpenStore = Callable[[], AbstractContextManager[Store]]


def load(store: Store, task_id: str) -> VersionedTask:
    found = store.load(task_id)
    assert found is not None
    return found


def make_waiter(task_id: str, **fields: Any) -> Waiter:
    """Return a run that waits for a lock, some of its fields replaced."""
    usual = {"execution_id": "e", "revision": 1, "scheduled_for": NOW, "attempt": 1, "due_at": NOW, "limit": 1}
    return Waiter(task_id=task_id, **(usual | {"priority": Priority.NORMAL} | fields))


def make_delivery(**fields: Any) -> Delivery:
    """Return what a delivery of the execution e1 of the task t1 is about, some of its fields replaced."""
    usual = {"channel": "EMAIL", "task_id": "t1", "execution_id": "e1", "category": "OTHERS", "created_at": NOW}
    return Delivery(**(usual | {"message_id": "m", "thread": "t"} | fields))


def iter_pages(read: Callable[[str | None], Page[Any]]) -> Iterator[Page[Any]]:
    token = None
    for _ in range(300):
        page = read(token)
        yield page
        token = page.next_page_token
        if token is None:
            return
    pytest.fail("the list has no end")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try each test over every store, with `--all` also over one whose collections have a prefix."""
    if "open_store" in metafunc.fixturenames:
        more = ["firestore-prefixed"] if metafunc.config.getoption("--all") else []
        kinds = ["sqlite-memory", "sqlite-file", "firestore", *more]
        metafunc.parametrize("open_store", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
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
            prefix = PREFIX if request.param == "firestore-prefixed" else ""
            store = FirestoreStore(project=project, emulator=address, deadline=MINUTE, prefix=prefix)
        try:
            yield store
            if request.param == "firestore-prefixed":
                names = list_names(address, project)
                assert all(each.startswith(PREFIX) for name in names for each in name.split("/")[::2]), names
        finally:
            store.close()

    return opened


@pytest.fixture
def store(open_store: OpenStore) -> Iterator[Store]:
    with open_store() as opened:
        yield opened
