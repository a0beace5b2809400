"""What every adapter of the port `RecordStore` does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from tests.conftest import MakeTask

from cloudsched.domain.documents.category import Category
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store
from cloudsched.engine.sweep.shard_sweeps import SweepNote
from cloudsched.errors import VersionConflict
from cloudsched.people.documents import Feed

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def make_feed(feed_id: str = "f1", owner: str = "ada", categories: tuple[Category, ...] = ()) -> Feed:
    return Feed(id=feed_id, owner=owner, created_at=NOW, updated_at=NOW, categories=categories)


def test_a_record_is_read_as_it_was_written(store: Store) -> None:
    """With all its fields; one that was never written is None."""
    feed = make_feed(categories=(Category.REPORT,))
    version = store.records.write(feed, None)
    stored = store.records.load(Feed, "f1")
    assert stored is not None
    assert (stored.record, stored.version) == (feed, version)
    assert store.records.load(Feed, "f2") is None
    assert store.records.load(Feed, "a/b") is None


def test_a_record_is_created_once(store: Store) -> None:
    """Of several callers that create it at once, one succeeds, and its record stays."""

    def create(number: int) -> bool:
        try:
            store.records.write(make_feed(owner=f"owner-{number}"), None)
        except VersionConflict:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        created = list(threads.map(create, range(8)))
    assert created.count(True) == 1
    stored = store.records.load(Feed, "f1")
    assert stored is not None
    assert stored.record.owner == f"owner-{created.index(True)}"


def test_a_write_needs_the_version_that_was_read(store: Store) -> None:
    """A record that has changed since, or is gone, is neither replaced nor deleted."""
    first = store.records.write(make_feed(), None)
    second = store.records.write(make_feed(categories=(Category.REPORT,)), first)
    assert first != second
    with pytest.raises(VersionConflict):
        store.records.write(make_feed(), first)
    with pytest.raises(VersionConflict):
        store.records.delete(Feed, "f1", first)
    store.records.delete(Feed, "f1", second)
    assert store.records.load(Feed, "f1") is None
    with pytest.raises(VersionConflict):
        store.records.write(make_feed(), second)
    with pytest.raises(VersionConflict):
        store.records.delete(Feed, "f1", second)


def test_a_commit_writes_a_record_with_its_task_or_neither(store: Store, make_task: MakeTask) -> None:
    """As with a write alone, the record must still be as it was read."""
    read = store.records.write(make_feed(), None)
    changed = make_feed(categories=(Category.REPORT,))
    store.commit(Commit(make_task(id="t1"), records=((changed, read), (make_feed("f2"), None))))
    for conflict in ((make_feed(), read), (make_feed("f2"), None)):
        with pytest.raises(VersionConflict):
            store.commit(Commit(make_task(id="t2"), records=(conflict,)))
    assert store.records.list_all(Feed, limit=9) == [changed, make_feed("f2")]
    assert store.load("t2") is None


def test_a_record_that_is_created_again_has_another_version(store: Store) -> None:
    """Who read the first one cannot change the second."""
    first = store.records.write(make_feed(), None)
    store.records.delete(Feed, "f1", first)
    store.records.write(make_feed(), None)
    with pytest.raises(VersionConflict):
        store.records.write(make_feed(), first)


def test_an_owners_records_are_listed_by_id(store: Store) -> None:
    """Only theirs, at most as many as asked for."""
    for feed_id, owner in (("b", "ada"), ("a", "ada"), ("c", "bob"), ("d", "ada")):
        store.records.write(make_feed(feed_id, owner), None)
    assert [each.id for each in store.records.list(Feed, "ada", limit=10)] == ["a", "b", "d"]
    assert [each.id for each in store.records.list(Feed, "ada", limit=2)] == ["a", "b"]
    assert store.records.list(Feed, "eve", limit=10) == []


def test_records_that_are_only_loaded_are_not_listed(store: Store) -> None:
    """No index has their owner; neither store answers what the other one cannot."""
    with pytest.raises(ValueError, match="sweeps"):
        store.records.list(SweepNote, "ada", limit=10)


def test_records_of_all_owners_are_read_in_parts(store: Store) -> None:
    """By id, each once, whoever owns them; a part begins after the id that the one before ended with."""
    ids = [f"r{number}" for number in range(7)]
    for number, each in enumerate(ids):
        store.records.write(make_feed(each, owner=f"owner-{number % 3}"), None)
    found, after = list[str](), ""
    while page := store.records.list_all(Feed, limit=3, after=after):
        found += [each.id for each in page]
        after = found[-1]
    assert found == ids
