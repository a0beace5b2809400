"""Every store lists and counts the tasks that need attention, by the reason, and forgets them once they do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import MakeTask
from tests.contract.conftest import make_delivery
from tests.engine.harness import DAY

from cloudsched.domain.documents.authority import TRUSTED_CODE
from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.execution import Attempt, ExecutionStatus, Run, Suspension
from cloudsched.domain.documents.task import Hold, Parent, Task, TaskStatus, Trouble
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.errors import InvalidInput

NOW = datetime(2027, 3, 20, 7, 30, tzinfo=UTC)
FAILING = {"consecutive_failures": 1, "failing_since": NOW}
STORED = [each for each in Trouble if each is not Trouble.OVERDUE]
ANSWER = Event(name="approved", at=NOW, sender=TRUSTED_CODE)
PAUSED = {"status": TaskStatus.PAUSED, "status_changed_at": NOW}


def ask() -> Run:
    return Run(
        execution_id="e",
        scheduled_for=NOW,
        due_at=NOW,
        started_at=NOW,
        suspension=Suspension(at=NOW, reason="waits for approved", events=("approved",)),
    )


def deliver(make_task: MakeTask, **fields: object) -> Task:
    attempt = Attempt(number=1, started_at=NOW, finished_at=NOW, status=ExecutionStatus.FAILED)
    run = Run(execution_id="e", scheduled_for=NOW, due_at=NOW, started_at=NOW, attempts=(attempt,))
    return make_task(handler="cloudsched.delivery", delivery=make_delivery(), runs=(run,), **fields)


def make_unsent(make_task: MakeTask, name: str, *, is_unreached: bool = False) -> Task:
    delivery = make_delivery(is_unreached=is_unreached)
    return make_task(id=name, handler="cloudsched.delivery", delivery=delivery, status=TaskStatus.CANCELLED)


def make_all(make_task: MakeTask) -> dict[str, Task]:
    """Return tasks by what they are, those first that need attention."""
    parent = Parent(task_id="above", execution_id="e", step=1, depth=1)
    return {
        Trouble.FAILED: make_task(id="failed", **FAILING),
        Trouble.PAUSED: make_task(id="paused", **FAILING, **PAUSED),
        Trouble.HELD: make_task(id="budget", **PAUSED, hold=Hold(at=NOW)),
        Trouble.LIMITED: make_task(id="limit", **PAUSED, hold=Hold(at=NOW), paused_until=NOW + DAY),
        Trouble.WAITING: make_task(id="waiting", runs=(ask(),)),
        Trouble.DELIVERY: deliver(make_task, id="delivery"),
        Trouble.UNREACHED: make_unsent(make_task, "unsent", is_unreached=True),
        "not wanted": make_unsent(make_task, "unwanted"),
        "well": make_task(id="well"),
        "a call, whose parent answers for it": make_task(id="call", parent=parent, **FAILING),
        "cancelled": make_task(id="cancelled", status=TaskStatus.CANCELLED, **FAILING),
        "paused by its owner": make_task(id="rests", **PAUSED),
        "paused by others, too": make_task(id="both", **PAUSED, hold=Hold(at=NOW, is_alone=False)),
        "paused together with others": make_task(id="many", **PAUSED, hold=Hold(at=NOW), inner_pause_id=""),
        "answered": make_task(id="answered", runs=(ask(),), events=(ANSWER,)),
        "being deleted": make_task(id="gone", deleted_at=NOW, **FAILING),
    }


def test_each_trouble_lists_its_tasks_and_no_others(store: Store, make_task: MakeTask) -> None:
    """Of all owners, of one, and in numbers."""
    tasks = make_all(make_task)
    for task in tasks.values():
        store.commit(Commit(task))
    assert store.search.count_open(ExecutionQuery(owner=None), ExecutionStatus.SUSPENDED, 9).value == 2
    for trouble in STORED:
        task = tasks[trouble]
        for owner in (None, task.owner):
            query = TaskQuery(owner, trouble=trouble)
            assert [each.id for each in store.list_tasks(query, limit=9).items] == [task.id]
            assert store.search.count_tasks(query, 9).value == 1
        assert store.list_tasks(TaskQuery("nobody", trouble=trouble), limit=9).items == []
        assert store.search.count_tasks(TaskQuery("nobody", trouble=trouble), 9).value == 0


@pytest.mark.parametrize("trouble", STORED)
def test_a_task_is_listed_from_the_write_that_needs_somebody_to_the_one_that_does_not(
    store: Store, make_task: MakeTask, trouble: Trouble
) -> None:
    """Also if nothing of it is written in between that lists look at."""
    ill, query = make_all(make_task)[trouble], TaskQuery(trouble=trouble)
    well = ill.model_copy(
        update={"consecutive_failures": 0, "failing_since": None, "status": TaskStatus.ACTIVE, "runs": ()}
    )
    found = []
    for state in (well, ill, ill.model_copy(update={"title": "Another"}), well):
        stored = store.load(ill.id)
        store.commit(Commit(state, stored))
        found.append(store.search.count_tasks(query, 9).value)
    assert found == [0, 1, 1, 0]


def test_the_latest_come_first_page_by_page(store: Store, make_task: MakeTask) -> None:
    """By when they began to fail."""
    for number in (2, 0, 1):
        since = NOW + timedelta(hours=number)
        store.commit(Commit(make_task(id=f"t{number}", consecutive_failures=3, failing_since=since)))
    query = TaskQuery(trouble=Trouble.FAILED)
    first = store.list_tasks(query, limit=2)
    rest = store.list_tasks(query, limit=2, page_token=first.next_page_token)
    assert [each.id for each in (*first.items, *rest.items)] == ["t2", "t1", "t0"]
    assert rest.next_page_token is None


def test_a_reason_has_an_order_of_its_own() -> None:
    """No list has two orders."""
    with pytest.raises(InvalidInput):
        TaskQuery(trouble=Trouble.FAILED, due_from=NOW)
