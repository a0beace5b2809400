"""Whoever creates many tasks with ids that follow each other is told, once, what that costs and what to do."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from uuid import UUID

import pytest
from tests.cases import try_each
from tests.conftest import MakeTask
from tests.harness import new_project

from cloudsched.adapters.firestore import rising_ids
from cloudsched.adapters.firestore.rising_ids import COUNT, WITHIN_SECONDS, RisingIds
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.domain.transitions.commit import Commit

CHANCE = random.Random(88)  # noqa: S311 - the same ids each time


def hash_in_front(number: int) -> str:
    return f"{hashlib.sha256(str(number).encode()).hexdigest()[:8]}-order-{number}"


def overtake(number: int) -> str:
    """Return the id of a client that has ten threads, each a little ahead or behind."""
    return f"order-{1_000_000 + 10 * number + CHANCE.randrange(20)}"


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time, which a test lets pass."""
    now = [0.0]
    monkeypatch.setattr(rising_ids, "monotonic", lambda: now[0])
    return now


def create(make_id: Callable[[int], str], seconds: list[float], pause: float, count: int = 3 * COUNT) -> None:
    noticed = RisingIds()
    for number in range(count):
        seconds[0] += pause
        noticed.note(make_id(number))


def list_told(caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    return (each.message for each in caplog.records if getattr(each, "action", "") == "rising_ids")


@try_each(
    "name, make_id, is_told",
    [
        ("rising", lambda number: f"order-{1_000_001 + number}", True),
        ("short numbers", lambda number: f"order-{number}", True),
        ("falling", lambda number: f"order-{9_000_000 - number}", True),
        ("from several threads", overtake, True),
        ("with the time in front", lambda number: str(UUID(int=number << 96 | CHANCE.getrandbits(90))), True),
        ("random", lambda _: str(UUID(int=CHANCE.getrandbits(128))), False),
        ("with a hash in front", hash_in_front, False),
    ],
)
def test_ids_that_follow_each_other_are_told_once(
    name: str, make_id: Callable[[int], str], *, is_told: bool, seconds: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """A hundred a second, in whatever order a few threads make of them."""
    caplog.clear()
    create(make_id, seconds, 0.01)
    told = list(list_told(caplog))
    assert len(told) == is_told, name
    assert all("hash" in each for each in told)


def test_few_of_them_are_fine(seconds: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """At twenty a second no place gets too hot, however long that goes on."""
    create(lambda number: f"order-{1_000_001 + number}", seconds, 2 * WITHIN_SECONDS / COUNT)
    assert not list(list_told(caplog))


@pytest.mark.usefixtures("seconds")
def test_the_store_tells_of_what_it_creates(
    firestore_address: str, make_task: MakeTask, caplog: pytest.LogCaptureFixture
) -> None:
    """Of each task that a commit creates, and not of one that it changes."""
    store = FirestoreStore(project=new_project(), emulator=firestore_address, deadline=timedelta(minutes=1))
    with closing(store):
        for number in range(COUNT):
            created = store.commit(Commit(make_task(id=f"order-{1_000_001 + number}")))
            store.commit(Commit(created.task, created))
    assert len(list(list_told(caplog))) == 1
