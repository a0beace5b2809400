"""Every store counts runs and tasks as `domain.documents.run_counts` says, whatever is in it."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import NOW, MakeExecution, MakeTask
from tests.contract.conftest import OpenStore
from tests.engine.harness import MINUTE

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import CalledBy, Execution, ExecutionStatus, OccurrenceRange, Trigger
from cloudsched.domain.documents.task import Trouble
from cloudsched.domain.responses.count import count_runs
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.ports.store import Store

_INSTANTS = st.integers(-1, 6).map(lambda number: NOW + number * timedelta(minutes=10))
_RECORDS = st.fixed_dictionaries(
    {
        "status": st.sampled_from([each for each in ExecutionStatus if each.is_final]),
        "scheduled_for": _INSTANTS,
        "called_by": st.none() | st.just(CalledBy(task_id="above", execution_id="e")),
        "covers": st.none()
        | st.builds(OccurrenceRange, until=st.just(NOW), count=st.integers(2, 2159), is_at_least=st.booleans()),
        "late": st.none() | st.sampled_from([timedelta(0), MINUTE, 46 * MINUTE]),
        "trigger": st.sampled_from([Trigger.SCHEDULE, Trigger.MANUAL]),
    }
)
_TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "owner": st.sampled_from(["ada", "bob"]),
            "handler": st.sampled_from(["greet", "check"]),
            "labels": st.sampled_from([(), ("a=1",), ("a=2", "b=1")]),
            "category": st.sampled_from([Category.OTHERS, Category.REPORT]),
            "records": st.lists(_RECORDS, max_size=4),
        }
    ),
    max_size=5,
)
_EDGES = [NOW + number * timedelta(minutes=20) for number in range(4)]


def _store_all(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, tasks: list[dict[str, Any]]
) -> list[Execution]:
    found = []
    for number, each in enumerate(tasks):
        kind = {name: each[name] for name in ("handler", "labels", "category")}
        task = make_task(id=f"t{number}", owner=each["owner"], **kind)
        records = []
        for index, fields in enumerate(each["records"]):
            late = fields["late"]
            started = None if late is None else fields["scheduled_for"] + late
            values = {name: value for name, value in fields.items() if name != "late"}
            if values["status"] not in {ExecutionStatus.SKIPPED, ExecutionStatus.EXPIRED}:
                values["covers"] = None
            records.append(make_execution(task, f"e{index}", started_at=started, **values, **kind))
        store.commit(Commit(task, None, records))
        found += records
    return found


@settings(max_examples=40, deadline=None)
@given(tasks=_TASKS)
def test_counts_are_those_of_the_records(
    open_store: OpenStore, make_task: MakeTask, make_execution: MakeExecution, tasks: list[dict[str, Any]]
) -> None:
    """Calls, skipped and late ones, and what a record covers: in each part of the time, of all and of one owner."""
    with open_store() as store:
        records = _store_all(store, make_task, make_execution, tasks)
        for owner in (None, "ada"):
            mine = [each for each in records if owner in {None, each.owner}]
            expected = [
                count_runs(each for each in mine if start <= each.scheduled_for < end)
                for start, end in itertools.pairwise(_EDGES)
            ]
            assert list(store.search.count_runs(owner, _EDGES)) == expected
            late = ExecutionQuery(owner, since=_EDGES[0], until=_EDGES[-1], is_late=True)
            listed = [store.search.list_finished(late, is_failure=each, limit=50).items for each in (True, False)]
            assert sum(map(len, listed)) == sum(each.late for each in expected)


def test_tasks_in_trouble_are_grouped_by_handler(store: Store, make_task: MakeTask) -> None:
    """Two of payroll stand before the many of another handler, with the time of the oldest. Owners have their own."""
    for number in range(30):
        failing = {"consecutive_failures": 1, "failing_since": NOW + number * MINUTE}
        store.commit(Commit(make_task(id=f"t{number}", owner=f"o{number % 2}", handler="noise", **failing)))
    for number in (1, 2):
        failing = {"consecutive_failures": 2, "failing_since": NOW - number * MINUTE}
        store.commit(Commit(make_task(id=f"p{number}", owner="o1", handler="payroll", **failing)))
    groups = store.search.group_tasks(TaskQuery(trouble=Trouble.FAILED))
    assert [(each.name, each.count, each.first, each.first_id) for each in groups] == [
        ("payroll", 2, NOW - 2 * MINUTE, "p2"),
        ("noise", 30, NOW, "t0"),
    ]
    assert [each.name for each in store.search.group_tasks(TaskQuery("o0", trouble=Trouble.FAILED))] == ["noise"]
