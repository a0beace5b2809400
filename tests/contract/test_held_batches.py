"""Messages that are held together are sent once, over every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.conftest import NOW

from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.documents.person import MAX_ITEMS, HeldBatch, HeldItem
from cloudsched.engine.delivery.batches import CLAIM, Busy, HeldBatches, Sent, ToSend
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from cloudsched.engine.ports.store import Store

AT_8 = NOW + timedelta(hours=8)
MAIL = DeliveryChannel.EMAIL


def add(batches: HeldBatches, number: int, owner: str = "ada") -> str:
    item = HeldItem(delivery_id=f"d{number}", title="T", body="B" * 9000, created_at=NOW)
    return batches.add(owner, MAIL, AT_8, item)


def test_one_of_several_deliveries_sends_for_all(store: Store) -> None:
    """All were added at once, some twice; one gets them all, each once; the others learn that they were sent."""
    batches = HeldBatches(store.records, ManualClock(NOW))
    with ThreadPoolExecutor(3) as threads:
        keys = set(threads.map(lambda number: add(batches, number % 3), range(6)))
    (key,) = keys
    clock = ManualClock(AT_8)
    batches = HeldBatches(store.records, clock)
    with ThreadPoolExecutor(3) as threads:
        claims = list(threads.map(lambda number: batches.claim(key, f"d{number}"), range(3)))
    (to_send,) = [each for each in claims if isinstance(each, ToSend)]
    assert sorted(item.delivery_id for item in to_send.items) == ["d0", "d1", "d2"]
    assert [each for each in claims if isinstance(each, Busy)] == [Busy(AT_8 + CLAIM)] * 2
    assert batches.claim_waiting("bob", MAIL, "d0") is None
    assert batches.claim_waiting("ada", DeliveryChannel.MOBILE, "d0") is None
    batches.finish(key, "m1")
    assert batches.claim_waiting("ada", MAIL, "d2") == Sent("m1")
    assert [batches.claim(key, f"d{number}") for number in range(3)] == [Sent("m1")] * 3


def test_a_claim_of_a_process_that_died_is_taken_over(store: Store) -> None:
    """After its time another delivery sends the same messages; the same delivery may at once."""
    clock = ManualClock(NOW)
    batches = HeldBatches(store.records, clock)
    key = add(batches, 0)
    assert add(batches, 1) == key
    first = batches.claim(key, "d0")
    assert batches.claim(key, "d0") == first
    assert isinstance(batches.claim(key, "d1"), Busy)
    clock.move_to(NOW + CLAIM)
    assert batches.claim(key, "d1") == first


def test_what_comes_late_or_is_too_much_is_a_batch_of_its_own(store: Store) -> None:
    """A batch that is being sent takes nothing more, nor does a full one; other people have others."""
    batches = HeldBatches(store.records, ManualClock(NOW))
    key = add(batches, 0)
    batches.claim(key, "d0")
    later = add(batches, 1)
    assert later != key
    assert add(batches, 0) == key, "what is already in it stays in it"
    assert add(batches, 1, "bob") not in {key, later}
    keys = [add(batches, number) for number in range(2, MAX_ITEMS + 3)]
    assert len(set(keys)) == 2
    assert keys.count(later) == MAX_ITEMS - 1


def test_only_those_who_wait_may_send(store: Store) -> None:
    """Who is not part of a batch, or asks for one that is gone, is told so."""
    batches = HeldBatches(store.records, ManualClock(NOW))
    key = add(batches, 0)
    for batch, delivery in ((key, "d9"), ("0" * 64, "d0")):
        with pytest.raises(NotFound):
            batches.claim(batch, delivery)


def test_a_batch_is_removed_in_time(store: Store) -> None:
    """SQLite removes it two days after its time, and Firestore by a TTL policy."""
    batches = HeldBatches(store.records, ManualClock(NOW))
    key = add(batches, 0)
    stored = store.records.load(HeldBatch, key)
    assert stored is not None
    assert stored.record.expire_at is not None
    store.expire(stored.record.expire_at - timedelta(seconds=1))
    assert store.records.load(HeldBatch, key) is not None
    assert store.expire(stored.record.expire_at) == (1 if isinstance(store, SqliteStore) else 0)
    assert (store.records.load(HeldBatch, key) is None) == isinstance(store, SqliteStore)
