"""The index of names in Firestore: the beginnings of words find every task that has them, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Protocol

import pytest
from tests.conftest import NOW, MakeTask
from tests.contract.conftest import iter_pages, load
from tests.harness import new_project

from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.domain.documents.name_words import MAX_BEGINNING, NameMatch
from cloudsched.domain.documents.person import EmailContact, Person
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.queries.name_search import find_named


class OpenOne(Protocol):
    def __call__(self, *, name_index: bool) -> Store: ...


@pytest.fixture
def open_one(firestore_address: str) -> Iterator[OpenOne]:
    """Open the same database, with the index or without."""
    project = new_project()
    with ExitStack() as opened:

        def open_one(*, name_index: bool) -> Store:
            store = FirestoreStore(
                project=project, emulator=firestore_address, deadline=timedelta(minutes=1), name_index=name_index
            )
            return opened.enter_context(closing(store))

        yield open_one


def find(store: Store, *words: str, owner: str | None = None) -> list[str]:
    query = TaskQuery(owner)
    pages = iter_pages(lambda token: store.search.list_named(query, words, limit=2, page_token=token))
    return [task.id for page in pages for task in page.items]


def test_the_beginnings_of_words_find_a_task(open_one: OpenOne, make_task: MakeTask) -> None:
    """Of title, id, handler, owner and label, in any case, the newest first; their middle and the payload do not."""
    store = open_one(name_index=True)
    long = "Donaudampfschifffahrtsgesellschaft"
    assert len(long) > MAX_BEGINNING
    store.commit(
        Commit(
            make_task(
                id="abc-123",
                title=f"Zahle GEHÄLTER aus, {long}",
                handler="payroll_run",
                labels=("team=Shop",),
                owner="ada@example.com",
                payload={"about": "secret"},
            )
        )
    )
    store.commit(Commit(make_task(id="other", title="Zahlen", owner="bob", created_at=NOW + timedelta(1))))
    for word in ("gehäl", "abc", "123", "payroll", "run", "team", "sho", "ada", "exam", "a", long.casefold()):
        assert find(store, word) == ["abc-123"], word
    assert find(store, "zahl") == ["other", "abc-123"]
    assert find(store, "zahl", owner="bob") == ["other"]
    assert find(store, "zahl", "shop") == ["abc-123"]
    assert find(store, "abc-12") == ["abc-123"], "a word that is written as several is found by each"
    for word in ("ehälter", "secret", f"{long.casefold()}x", "-", ""):
        assert find(store, word) == [], word


def test_a_task_is_found_by_its_names_of_now(open_one: OpenOne, make_task: MakeTask) -> None:
    """After a rename; after the index was turned on, with the next write; and after it was off for a while."""
    without, having = open_one(name_index=False), open_one(name_index=True)
    assert without.search.get_name_match() is NameMatch.NEWEST
    task = make_task(id="t", title="Before")

    def write(store: Store, title: str) -> None:
        store.commit(Commit(task.model_copy(update={"title": title}), load(store, "t")))

    without.commit(Commit(task))
    assert find(having, "before") == []
    having.commit(Commit(task.model_copy(update={"next_execution_time": NOW}), load(having, "t")))
    assert find(having, "before") == ["t"]
    write(having, "After")
    assert (find(having, "before"), find(having, "after")) == ([], ["t"])
    write(without, "Meanwhile")
    assert (find(having, "after"), find(having, "meanwhile")) == ([], [])
    write(having, "Meanwhile")
    assert find(having, "meanwhile") == ["t"]


def test_people_are_found_by_their_profile(open_one: OpenOne, make_task: MakeTask) -> None:
    """By name and address, beside the owners of tasks; and a search says how it has looked."""
    store = open_one(name_index=True)
    store.commit(Commit(make_task(id="t", title="Water", owner="adam")))
    email = EmailContact(address="lovelace@example.com", verified=True)
    person = Person(id="u-1", owner="u-1", created_at=NOW, updated_at=NOW, name="Ada King", email=email)
    store.records.write(person, None)
    for text, owners in (("ada", ["adam", "u-1"]), ("lovelace@ex", ["u-1"]), ("ada king", ["u-1"]), ("water", [])):
        found = find_named(store, text, None, [], 10)
        assert (list(found.owners), found.match) == (owners, NameMatch.BEGINNINGS), text
        assert found.is_complete
    assert list(find_named(store, "ada", "bob", [], 10).owners) == [], "users find nobody else"
