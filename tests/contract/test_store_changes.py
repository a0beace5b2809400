"""What every store promises about the text by which callers see that something has changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import MakeTask

    from cloudsched.engine.ports.store import Store

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


def test_each_change_of_a_task_is_seen(store: Store, make_task: MakeTask) -> None:
    """Of all, or of an owner; also two changes at the same time by the engine's clock, and one that stores the same."""
    find = store.search.find_last_change
    assert find() == find()
    task = make_task(id="a", owner="ada", updated_at=NOW)
    seen, of_ada, of_bob = [find()], [find("ada")], find("bob")

    def look() -> None:
        seen.append(find())
        of_ada.append(find("ada"))
        assert (find(), find("ada"), find("bob")) == (seen[-1], of_ada[-1], of_bob)

    version = store.commit(task, None)
    look()
    store.commit(make_task(id="z", owner="ada", updated_at=NOW), None)
    look()
    version = store.commit(task, version)
    look()
    store.commit(task.model_copy(update={"deleted_at": NOW}), version)
    look()
    assert len(set(seen)) == len(set(of_ada)) == 5
    stored = store.load("a")
    assert stored is not None
    assert stored.task == task.model_copy(update={"deleted_at": NOW})
