"""What every store promises about lists across tasks: filters, order, pages, and what is in none of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import try_each
from tests.conftest import NOW, MakeExecution, MakeTask
from tests.contract.conftest import OpenStore, iter_pages
from tests.engine.harness import DAY, MINUTE

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Lease, Run, Suspension
from cloudsched.domain.documents.run_counts import RunOutcome, has_started_late
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.queries.execution_search import find_executions
from cloudsched.errors import InvalidInput

FAILURES = {ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT}
OPEN = [ExecutionStatus.RUNNING, ExecutionStatus.RETRYING, ExecutionStatus.SUSPENDED]
FINAL = [status for status in ExecutionStatus if status.is_final]

_INSTANTS = st.integers(0, 3).map(lambda number: NOW + timedelta(microseconds=number))
"""So few that many share one."""
_RECORDS = st.lists(
    st.fixed_dictionaries(
        {"status": st.sampled_from(FINAL), "at": _INSTANTS, "started": _INSTANTS | st.just(NOW + DAY)}
    ),
    max_size=3,
)
_RUNS = st.lists(st.fixed_dictionaries({"status": st.sampled_from(OPEN), "at": _INSTANTS}), max_size=3)
_TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "owner": st.sampled_from(["ada", "bob"]),
            "handler": st.sampled_from(["greet", "check"]),
            "labels": st.sampled_from([(), ("a=1",), ("a=2", "b=1")]),
            "category": st.sampled_from([Category.OTHERS, Category.REPORT]),
            "records": _RECORDS,
            "runs": _RUNS,
        }
    ),
    max_size=5,
)
_QUERIES = st.builds(
    ExecutionQuery,
    owner=st.none() | st.sampled_from(["ada", "eve"]),
    status=st.none() | st.sampled_from(list(ExecutionStatus)),
    outcome=st.none() | st.sampled_from(RunOutcome),
    since=st.none() | _INSTANTS,
    until=st.none() | _INSTANTS,
    handler=st.none() | st.just("greet"),
    label=st.none() | st.sampled_from(["a=1", "b=1", "c=1"]),
    category=st.none() | st.sampled_from([Category.OTHERS, Category.REPORT]),
    is_late=st.booleans(),
)


def make_run(number: int, status: ExecutionStatus, at: datetime) -> Run:
    fields: dict[str, Any] = {"execution_id": f"open{number}", "scheduled_for": at, "due_at": at, "started_at": at}
    if status is ExecutionStatus.RUNNING:
        fields["lease"] = Lease(token_hash="", started_at=at, until=at + 5 * MINUTE, worker="box")
    if status is ExecutionStatus.SUSPENDED:
        fields["suspension"] = Suspension(at=at, reason="waits for an event")
    return Run(**fields)


def find_all(store: Store, query: ExecutionQuery, limit: int) -> list[Execution]:
    pages = iter_pages(lambda token: find_executions(store.search, query, limit, token))
    return [item for page in pages for item in page.items]


def fits(task: dict[str, Any], status: ExecutionStatus, at: datetime, query: ExecutionQuery) -> bool:
    """The port's promise, in plain Python."""
    return (
        query.owner in {None, task["owner"]}
        and query.handler in {None, task["handler"]}
        and (query.label is None or query.label in task["labels"])
        and query.category in {None, task["category"]}
        and (query.statuses is None or status in query.statuses)
        and (query.since is None or at >= query.since)
        and (query.until is None or at < query.until)
    )


@settings(max_examples=30, deadline=None)
@given(fields=_TASKS, queries=st.lists(_QUERIES, min_size=3, max_size=3), limit=st.integers(1, 4))
def test_every_filter_in_every_combination(
    open_store: OpenStore,
    make_task: MakeTask,
    make_execution: MakeExecution,
    fields: list[dict[str, Any]],
    queries: list[ExecutionQuery],
    limit: int,
) -> None:
    """Each matching execution is listed once, on whatever page: failures, then open ones, then all others."""
    with open_store() as store:
        expected: list[tuple[dict[str, Any], str, ExecutionStatus, datetime, bool]] = []
        for number, each in enumerate(fields):
            runs = tuple(make_run(n, run["status"], run["at"]) for n, run in enumerate(each["runs"]))
            found_by = {name: each[name] for name in ("handler", "labels", "category")}
            task = make_task(id=f"t{number}", owner=each["owner"], runs=runs, **found_by)
            records = [
                make_execution(
                    task,
                    f"e{n}",
                    status=record["status"],
                    scheduled_for=record["at"],
                    started_at=record["started"],
                    **found_by,
                )
                for n, record in enumerate(each["records"])
            ]
            store.commit(Commit(task, None, records))
            expected += [
                (each, f"{task.id}/{one.id}", one.status, one.scheduled_for, has_started_late(one)) for one in records
            ]
            expected += [
                (each, f"{task.id}/open{n}", run["status"], run["at"], True) for n, run in enumerate(each["runs"])
            ]
        for query in queries:
            found = find_all(store, query, limit)
            names = [f"{one.task_id}/{one.id}" for one in found]
            wanted = [
                name
                for task, name, status, at, is_late in expected
                if fits(task, status, at, query) and (is_late or not query.is_late)
            ]
            assert sorted(names) == sorted(wanted)
            finished = [one for one in found if one.status.is_final]
            order = [(one.status in FAILURES, one.scheduled_for, one.task_id, one.id) for one in finished]
            assert order == sorted(order, reverse=True)
            parts = [0 if one.status in FAILURES else 1 if one.status in OPEN else 2 for one in found]
            assert parts == sorted(parts)


def test_a_record_is_listed_by_what_it_became(store: Store, make_task: MakeTask, make_execution: MakeExecution) -> None:
    """A failure that is retried leaves the list while it is open, and comes back as what it ended as."""
    task = make_task(id="t", labels=("a=1",))

    def record(status: ExecutionStatus, label: str, category: Category | None = None) -> Execution:
        return make_execution(task, "e", status=status, handler="greet", labels=(label,), category=category)

    def find(**filters: Any) -> list[ExecutionStatus]:
        return [one.status for one in find_all(store, ExecutionQuery(**filters), 5)]

    written = store.commit(Commit(task, None, [record(ExecutionStatus.FAILED, "a=1")]))
    assert find() == find(label="a=1") == find(owner="ada", handler="greet") == [ExecutionStatus.FAILED]
    written = store.commit(Commit(task, written, [record(ExecutionStatus.RETRYING, "a=1")]))
    assert find() == find(label="a=1") == []
    assert find(category=Category.OTHERS) == [], "its record is from before records had a category"
    written = store.commit(Commit(task, written, [record(ExecutionStatus.SUCCEEDED, "a=2", Category.REPORT)]))
    assert find() == find(label="a=2") == find(category=Category.REPORT) == [ExecutionStatus.SUCCEEDED]
    assert find(label="a=1") == find(status=ExecutionStatus.FAILED) == find(category=Category.OTHERS) == []
    store.commit(Commit(task.model_copy(update={"deleted_at": NOW}), written))
    store.sweep.purge("t")
    assert find() == find(label="a=2") == []


def test_lists_leave_out_what_may_be_large(store: Store, make_task: MakeTask, make_execution: MakeExecution) -> None:
    """A page of 500 results could need more memory than a server has."""
    task = make_task(id="t")
    store.commit(
        Commit(task, None, [make_execution(task, "e", handler="greet", title="Greet", content={"x": "y" * 1000})])
    )
    (found,) = find_executions(store.search, ExecutionQuery(), 5).items
    assert (found.content, found.title) == (None, "Greet")
    stored = store.load_execution("t", "e")
    assert stored is not None
    assert stored.content == {"x": "y" * 1000}


def test_records_without_a_handler_are_not_listed(
    store: Store, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """Those of deliveries have none."""
    task = make_task(id="t")
    store.commit(Commit(task, None, [make_execution(task, "e")]))
    assert find_all(store, ExecutionQuery(), 5) == []


@try_each("token", ["x", "9.", "0.x", "1", "/", "4.eyJ", "0." + "A" * 3000])
def test_a_made_up_token_is_refused(store: Store, token: str) -> None:
    with pytest.raises(InvalidInput, match="pageToken"):
        find_executions(store.search, ExecutionQuery(), 5, token)


def test_a_token_belongs_to_one_query(store: Store, make_task: MakeTask, make_execution: MakeExecution) -> None:
    """Another owner's list is not continued by it."""
    tasks = [make_task(id=f"t{number}", owner="ada", runs=(make_run(0, OPEN[0], NOW),)) for number in range(2)]
    for task in tasks:
        store.commit(Commit(task, None, [make_execution(task, f"e{n}", handler="greet") for n in range(2)]))
    page = partial(find_executions, store.search)
    token = None
    for _ in range(5):
        token = page(ExecutionQuery(owner="ada"), 1, token).next_page_token
        if token is None or token.endswith("."):
            continue
        for other in (
            ExecutionQuery(owner="bob"),
            ExecutionQuery(),
            ExecutionQuery(owner="ada", category=Category.OTHERS),
        ):
            with pytest.raises(InvalidInput, match="pageToken"):
                page(other, 1, token)
