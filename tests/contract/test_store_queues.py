"""What every store promises about lists of queues and locks."""

from __future__ import annotations

from typing import Any

from tests.conftest import NOW, MakeTask
from tests.contract.conftest import make_delivery

from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.responses.count import Count
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store
from cloudsched.features.locks.lock import Holder, Lock, VersionedLock
from cloudsched.features.pull.fields import Offer


def test_queue_keys_are_found_once_each(store: Store, make_task: MakeTask) -> None:
    """In their order, after one, with a prefix, of an owner; and what waits is counted up to a bound."""
    for number, (key, owner) in enumerate(
        [
            ("gpu", "ada"),
            ("gpu", "bob"),
            ("gpu", "ada"),
            ("gpu-2", "bob"),
            ("gpu/a", "ada"),
            ("gpu/b", "bob"),
            ("h", "ada"),
        ]
    ):
        offer = Offer(queue_key=key, order=f"2 2027-01-01T09:00:0{number}.000000+00:00")
        store.commit(Commit(make_task(id=f"t{number}", owner=owner, offer=offer)))
    keys = store.search.list_queue_keys
    assert list(keys(None, limit=9)) == ["gpu", "gpu-2", "gpu/a", "gpu/b", "h"]
    assert list(keys(None, limit=2)) == ["gpu", "gpu-2"]
    assert list(keys(None, limit=9, after="gpu/a")) == ["gpu/b", "h"]
    assert list(keys(None, limit=9, prefix="gpu/")) == ["gpu/a", "gpu/b"]
    assert list(keys("bob", limit=9)) == ["gpu", "gpu-2", "gpu/b"]
    assert list(keys("eve", limit=9)) == []
    count = store.search.count_offers
    assert [count("gpu", None, 9), count("gpu", "bob", 9), count("x", None, 9)] == [
        Count(value=number) for number in (3, 1, 0)
    ]
    assert count("gpu", None, 2) == Count(value=2, at_least=True)


def test_handlers_are_found_once_each(store: Store, make_task: MakeTask) -> None:
    """Those of tasks of any status, in their order, up to a bound. Those of deliveries are in no list."""
    for number, handler in enumerate(["mail", "a", "mail", "pay", "mail"]):
        status = TaskStatus.PAUSED if handler == "pay" else TaskStatus.ACTIVE
        store.commit(Commit(make_task(id=f"t{number}", handler=handler, status=status)))
    store.commit(Commit(make_task(id="d", handler="cloudsched.delivery", delivery=make_delivery())))
    assert list(store.search.list_handlers(limit=9)) == ["a", "mail", "pay"]
    assert list(store.search.list_handlers(limit=2)) == ["a", "mail"]


def test_locks_are_listed_by_key(store: Store) -> None:
    """A range of keys, page by page; a lock that nobody holds is in no list."""
    holder = Holder(task_id="t", execution_id="e", until=NOW)
    for key in ("b", "owner:ada/x", "owner:ada/é", "owner:adam/x", "a"):
        store.locks.commit(VersionedLock(Lock(key=key, holders=(holder,)), None))

    def names(**which: Any) -> list[str]:
        return [each.key for each in store.locks.list_all(**which)]

    assert names(limit=9) == ["a", "b", "owner:ada/x", "owner:ada/é", "owner:adam/x"]
    assert names(limit=2, after="a") == ["b", "owner:ada/x"]
    assert names(limit=9, begin="owner:ada/", end="owner:ada0") == ["owner:ada/x", "owner:ada/é"]
    assert names(limit=9, begin="owner:ada/", end="owner:ada0", after="owner:ada/x") == ["owner:ada/é"]
    store.locks.commit(VersionedLock(Lock(key="a"), store.locks.load("a").version))
    assert names(limit=1) == ["b"]
