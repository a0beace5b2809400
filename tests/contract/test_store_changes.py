"""What every store promises about the text by which callers see that something has changed."""

from __future__ import annotations

import pytest
from tests.conftest import NOW, MakeTask
from tests.contract.conftest import iter_pages, load

from cloudsched.domain.documents.usage import TaskUsage, UsageCounts
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store
from cloudsched.errors import InvalidInput


def test_each_change_of_a_task_is_seen(store: Store, make_task: MakeTask) -> None:
    """Of all, or of an owner; also two changes at the same time by the engine's clock, and one that stores the same."""
    find = store.search.find_last_change
    assert find(None) == find(None)
    task = make_task(id="a", owner="ada", updated_at=NOW)
    seen, of_ada, of_bob = [find(None)], [find("ada")], find("bob")

    def look() -> None:
        seen.append(find(None))
        of_ada.append(find("ada"))
        assert (find(None), find("ada"), find("bob")) == (seen[-1], of_ada[-1], of_bob)

    written = store.commit(Commit(task))
    look()
    store.commit(Commit(make_task(id="z", owner="ada", updated_at=NOW)))
    look()
    written = store.commit(Commit(task, written))
    look()
    store.commit(Commit(task.model_copy(update={"deleted_at": NOW}), written))
    look()
    assert len(set(seen)) == len(set(of_ada)) == 5
    stored = load(store, "a")
    assert stored.task == task.model_copy(update={"deleted_at": NOW})


def test_what_changed_after_a_mark_is_listed(store: Store, make_task: MakeTask) -> None:
    """At least every task that has used anything and was stored after the mark was taken, page by page, each once."""
    used = (TaskUsage(month="2027-01", handler="h", counts=UsageCounts(queries=1)),)
    ids = [f"t{number}" for number in range(7)]
    versions = {
        each: store.commit(Commit(make_task(id=each, owner="ada" if each < "t5" else "bob", usage=used)))
        for each in ids
    }
    mark = store.search.find_last_change(None)
    deleted = make_task(id="t1", owner="ada", usage=used, deleted_at=NOW)
    store.commit(Commit(deleted, versions["t1"]))
    store.commit(Commit(make_task(id="t6", owner="bob", usage=used), versions["t6"]))
    store.commit(Commit(make_task(id="t9", owner="ada", usage=used)))

    def list_ids(owner: str | None, since: str) -> list[str]:
        pages = iter_pages(lambda token: store.search.list_changed(owner, since, limit=2, page_token=token))
        found = [task.id for page in pages for task in page.items]
        assert len(found) == len(set(found))
        return sorted(found)

    assert {"t1", "t6", "t9"} <= set(list_ids(None, mark)) <= {*ids, "t9"}
    assert {"t1", "t9"} <= set(list_ids("ada", mark)) <= {*ids[:5], "t9"}
    assert list_ids(None, "") == [*ids, "t9"]
    assert list_ids("bob", "") == ["t5", "t6"]
    assert list_ids("nobody", "") == []
    token = store.search.list_changed(None, "", limit=2).next_page_token
    with pytest.raises(InvalidInput):
        store.search.list_changed("ada", "", limit=2, page_token=token)
