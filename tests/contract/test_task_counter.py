"""What every store counts of an owner: what is committed, up to a bound."""

from __future__ import annotations

from datetime import timedelta

from tests.conftest import NOW, MakeTask

from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store


def test_unfinished_tasks_are_counted(store: Store, make_task: MakeTask) -> None:
    """Active and paused tasks of that owner count, others do not; counting stops at the limit."""
    for status in TaskStatus:
        store.commit(Commit(make_task(owner="ada", status=status)))
    store.commit(Commit(make_task(owner="ada")))
    store.commit(Commit(make_task(owner="bob")))
    assert [store.search.count_unfinished("ada", bound) for bound in (1, 2, 3, 10)] == [1, 2, 3, 3]
    assert (store.search.count_unfinished("bob", 10), store.search.count_unfinished("nobody", 10)) == (1, 0)


def test_new_tasks_are_counted(store: Store, make_task: MakeTask) -> None:
    """Tasks created after the instant count, whatever their status; one created exactly at it does not."""
    for seconds in (0, 1, 2, 3):
        store.commit(Commit(make_task(owner="ada", created_at=NOW + timedelta(seconds=seconds))))
    store.commit(Commit(make_task(owner="bob", created_at=NOW + timedelta(seconds=9))))
    assert [store.search.count_created_since("ada", NOW + timedelta(seconds=after), 10) for after in (-1, 0, 2, 3)] == [
        4,
        3,
        1,
        0,
    ]
    assert store.search.count_created_since("ada", NOW, 2) == 2
