"""What every adapter of the port `InboxStore` does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tests.conftest import NOW, MakeMessage, MakeTask
from tests.engine.harness import DAY

from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store


def fill(store: Store, make_task: MakeTask, make_message: MakeMessage, owner: str, count: int) -> list[str]:
    task = make_task(id=f"task-of-{owner}", owner=owner)
    messages = [make_message(task, f"m{number}") for number in range(count)]
    store.commit(Commit(task, None, (), messages))
    return [each.id for each in messages]


def test_a_message_is_marked_as_read_once(store: Store, make_task: MakeTask, make_message: MakeMessage) -> None:
    """The first time stays, also of several callers at once; the list shows it; nobody else's is touched."""
    key = fill(store, make_task, make_message, "ada", 1)[0]
    fill(store, make_task, make_message, "bob", 1)
    (before,) = store.inbox.list("ada", limit=5).items
    assert (before.is_read, before.read_at) == (False, None)
    with ThreadPoolExecutor(4) as threads:
        instants = [NOW + timedelta(seconds=number) for number in range(6)]
        marked = list(threads.map(lambda at: store.inbox.mark_read("ada", key, at), instants))
    (after,) = store.inbox.list("ada", limit=5).items
    assert after.is_read
    assert {each.read_at for each in marked if each is not None} == {after.read_at}
    assert store.inbox.mark_read("ada", key, NOW + DAY) == after
    assert store.inbox.get("ada", key) == after
    assert after == before.model_copy(update={"is_read": True, "read_at": after.read_at})
    assert not store.inbox.list("bob", limit=5).items[0].is_read


def test_what_does_not_exist_cannot_be_read(store: Store, make_task: MakeTask, make_message: MakeMessage) -> None:
    """Nor what belongs to somebody else."""
    fill(store, make_task, make_message, "ada", 1)
    for owner, key in (("ada", "nothing"), ("bob", "m0"), ("ada", "a/b"), ("a/b", "m0")):
        assert store.inbox.mark_read(owner, key, NOW) is None
        assert store.inbox.get(owner, key) is None
    assert store.inbox.count_unread("ada", 10) == 1


def test_unread_messages_are_counted(store: Store, make_task: MakeTask, make_message: MakeMessage) -> None:
    """Only the owner's, and no more than asked for."""
    keys = fill(store, make_task, make_message, "ada", 5)
    fill(store, make_task, make_message, "bob", 2)
    assert [store.inbox.count_unread("ada", limit) for limit in (3, 5, 100)] == [3, 5, 5]
    store.inbox.mark_read("ada", keys[0], NOW)
    store.inbox.mark_read("ada", keys[0], NOW)
    assert store.inbox.count_unread("ada", 100) == 4
    assert store.inbox.count_unread("eve", 100) == 0


def test_an_inbox_is_emptied(store: Store, make_task: MakeTask, make_message: MakeMessage) -> None:
    """Step by step, until nothing is left; others keep theirs."""
    fill(store, make_task, make_message, "ada", 5)
    fill(store, make_task, make_message, "bob", 2)
    removed = 0
    while some := store.inbox.remove_some("ada"):
        removed += some
    assert removed == 5
    assert not store.inbox.list("ada", limit=5).items
    assert len(store.inbox.list("bob", limit=5).items) == 2
