"""What every store promises about deliveries: they are in no other list, and mark what they have delivered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.cases import try_each
from tests.conftest import NOW, MakeTask
from tests.contract.conftest import iter_pages, load, make_delivery
from tests.engine.harness import DAY

from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.task import Parent, Task, TaskStatus, Trouble
from cloudsched.domain.transitions.commit import Commit, DeliveryMark
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.errors import InvalidInput, VersionConflict


def make_delivery_task(make_task: MakeTask, task_id: str = "d1", **fields: Any) -> Task:
    parent = Parent(task_id="t1", execution_id="e1", step=0, depth=1)
    usual = {"owner": "ada", "handler": "cloudsched.delivery", "created_at": NOW, "wake_at": NOW}
    return make_task(id=task_id, **(usual | {"delivery": make_delivery(), "parent": parent} | fields))


def make_execution(**fields: Any) -> Execution:
    usual = {"id": "e1", "task_id": "t1", "owner": "ada", "scheduled_for": NOW, "content": {"n": 1}}
    return Execution(**(usual | {"status": ExecutionStatus.SUCCEEDED} | fields))


def test_only_lists_of_deliveries_have_them(store: Store, make_task: MakeTask) -> None:
    """By owner, status, handler, parent and due time, and in the counts that quotas need; a delivery stays readable."""
    task, delivery = make_task(id="t1", owner="ada"), make_delivery_task(make_task, next_execution_time=NOW)
    store.commit(Commit(task))
    store.commit(Commit(delivery))
    for query in (
        TaskQuery(),
        TaskQuery(owner="ada"),
        TaskQuery(status=TaskStatus.ACTIVE),
        TaskQuery(handler="cloudsched.delivery"),
        TaskQuery(parent="t1"),
        TaskQuery(due_from=NOW - DAY),
    ):
        assert "d1" not in [each.id for each in store.list_tasks(query, limit=10).items], query
    assert store.search.count_unfinished("ada", 10) == 1
    assert store.list_tasks(TaskQuery(owner="ada", is_delivery=True), limit=10).items == [delivery]
    assert not store.list_tasks(TaskQuery(owner="eve", is_delivery=True), limit=10).items
    found = load(store, "d1")
    assert found.task == delivery
    assert [each.id for each in store.sweep.list_due(NOW, limit=10).items if each.id == "d1"] == ["d1"]


@try_each("others", [{}, {"owner": "ada", "handler": "x"}, {"owner": "ada", "due_from": NOW}, {"label": "a=1"}])
def test_deliveries_are_listed_by_their_owner_alone(others: dict[str, Any]) -> None:
    """No index has them by anything else, so nothing else is asked for."""
    with pytest.raises(InvalidInput, match="owner"):
        TaskQuery(is_delivery=True, **others)


def test_a_channel_is_looked_for_to_the_end_of_a_list(store: Store, make_task: MakeTask) -> None:
    """By pages, which have each match once. A task that is no delivery has no channel."""
    store.commit(Commit(make_task(id="t1", consecutive_failures=1, failing_since=NOW)))
    for number in range(7):
        channel = "EMAIL" if number % 3 == 0 else "MOBILE"
        at = NOW + timedelta(minutes=number)
        made = make_delivery().model_copy(update={"channel": channel})
        failed = {"status": TaskStatus.FAILED, "failing_since": at, "created_at": at}
        store.commit(Commit(make_delivery_task(make_task, f"d{number}", delivery=made, **failed)))
    for query in (
        TaskQuery("ada", is_delivery=True, channel="EMAIL"),
        TaskQuery(trouble=Trouble.DELIVERY, channel="EMAIL"),
    ):
        pages = iter_pages(lambda token, query=query: store.list_tasks(query, limit=2, page_token=token))  # type: ignore[misc]
        assert [each.id for page in pages for each in page.items] == ["d6", "d3", "d0"]


def test_a_delivery_that_is_not_deleted_is_not_purged(store: Store, make_task: MakeTask) -> None:
    """That it is hidden does not mean that it is going."""
    store.commit(Commit(make_delivery_task(make_task)))
    store.sweep.purge("d1")
    found = load(store, "d1")
    store.commit(Commit(found.task.model_copy(update={"deleted_at": NOW}), found))
    assert not store.list_tasks(TaskQuery(owner="ada", is_delivery=True), limit=10).items
    store.sweep.purge("d1")
    assert store.load("d1") is None


def test_a_delivery_marks_the_execution_in_its_own_commit(store: Store, make_task: MakeTask) -> None:
    """Nothing else of the record changes."""
    store.commit(Commit(make_task(id="t1"), None, [make_execution()]))
    store.commit(Commit(make_delivery_task(make_task), delivered=DeliveryMark("t1", "e1")))
    assert store.load_execution("t1", "e1") == make_execution(is_delivered=True)


def test_a_record_that_is_gone_does_not_come_back(store: Store, make_task: MakeTask) -> None:
    """The commit conflicts, and nothing of it is stored."""
    store.commit(Commit(make_task(id="t1")))
    with pytest.raises(VersionConflict):
        store.commit(Commit(make_delivery_task(make_task), delivered=DeliveryMark("t1", "e1")))
    assert store.load("d1") is None
    assert store.load_execution("t1", "e1") is None


def test_a_delivery_conflicts_with_another_one_that_ends_meanwhile(store: Store, make_task: MakeTask) -> None:
    """As long as the other one is as it was read, it does not; and it is not written."""
    store.commit(Commit(make_task(id="t1"), None, [make_execution()]))
    store.commit(Commit(make_delivery_task(make_task, "d2")))
    other = load(store, "d2")
    written = store.commit(Commit(make_delivery_task(make_task), unchanged=(other,)))
    unchanged = load(store, "d2")
    assert unchanged.version == other.version
    store.commit(Commit(other.task.model_copy(update={"message": "sent"}), other))
    with pytest.raises(VersionConflict):
        store.commit(Commit(make_delivery_task(make_task), written, unchanged=(other,)))
