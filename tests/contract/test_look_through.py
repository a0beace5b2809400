"""What every store promises of a list whose filter no index has: what it reads at most, and that it says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import NOW, MakeExecution, MakeTask
from tests.contract.conftest import OpenStore, iter_pages
from tests.contract.test_store_search import find_all as find_all_executions
from tests.contract.test_store_search import fits, make_run
from tests.engine.harness import DAY

from cloudsched.adapters.operation_counts import Counts, count_store
from cloudsched.adapters.sqlite import search
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.run_counts import PartLength
from cloudsched.domain.documents.task import Parent, TaskStatus, Trouble
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.queries import execution_search
from cloudsched.engine.queries.execution_search import find_executions
from cloudsched.engine.queries.overview import count_by_time
from cloudsched.engine.storage import matching_rows
from cloudsched.engine.storage.matching_rows import find_matching_rows
from cloudsched.engine.storage.pages import Page

RUNNING, SUCCEEDED = ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED
QUARTER = timedelta(minutes=15)
BOUND = 4
"""How much a page may look through here."""
TASK_QUERIES = [
    TaskQuery(handler="greet", due_from=NOW),
    TaskQuery(owner="ada", handler="greet", due_until=NOW + DAY),
    TaskQuery(parent="p", due_from=NOW),
    TaskQuery(parent="p", handler="greet", status=TaskStatus.ACTIVE, due_from=NOW),
    TaskQuery(parent="p", handler="greet"),
    TaskQuery(parent="p", handler="greet", owner="ada", status=TaskStatus.ACTIVE),
]
VALUES: list[dict[str, Any]] = [{"handler": "greet"}, {"label": "a=1"}, {"category": Category.REPORT}]
FINISHED_QUERIES = [ExecutionQuery(owner="ada", **value) for value in VALUES]
OPEN_QUERIES = [*FINISHED_QUERIES, *(ExecutionQuery(**value) for value in VALUES)]
_TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "owner": st.sampled_from(["ada", "bob"]),
            "handler": st.sampled_from(["greet", "check", "check"]),
            "labels": st.sampled_from([(), (), ("a=1",), ("a=2", "b=1")]),
            "category": st.sampled_from([Category.OTHERS, Category.REPORT]),
            "parent": st.sampled_from([None, Parent(task_id="p", execution_id="e", step=1, depth=1)]),
        }
    ),
    max_size=12,
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page look through few documents."""
    monkeypatch.setattr(matching_rows, "MAX_LOOKED_THROUGH", BOUND)
    monkeypatch.setattr(search, "MANY_TIMES", 1)


def fill(store: Store, make_task: MakeTask, make_execution: MakeExecution, tasks: list[Any]) -> None:
    for number, each in enumerate(tasks):
        at = NOW + number * 5 % 7 * QUARTER
        found_by = {name: each[name] for name in ("handler", "labels", "category")}
        runs = (make_run(number, RUNNING, at),)
        task = make_task(id=f"t{number}", runs=runs, created_at=at, next_execution_time=at, **each)
        record = make_execution(task, "e", status=SUCCEEDED, scheduled_for=at, **found_by)
        store.commit(Commit(task, None, [record]))


def read_pages(read: Callable[[str | None], Page[Any]], limit: int) -> list[list[str]]:
    """Return the ids of each page of a list. Only a page that has looked through its bound may be short and go on."""
    pages = []
    for page in iter_pages(read):
        assert page.read <= BOUND
        if page.next_page_token is not None and len(page.items) < limit:
            assert page.read == BOUND
        pages.append([f"{getattr(each, 'task_id', '')}/{each.id}" for each in page.items])
    return pages


def read_tasks(store: Store, query: TaskQuery, token: str | None) -> Page[Any]:
    return store.list_tasks(query, limit=9, page_token=token)


def list_everything(store: Store, limit: int) -> dict[str, list[list[str]]]:
    """Return the pages of every list that looks through."""
    search = store.search

    def of(listing: Callable[..., Page[Any]], *query: object, **options: Any) -> list[list[str]]:
        return read_pages(lambda token: listing(*query, limit=limit, page_token=token, **options), limit)

    return {
        **{repr(query): of(store.list_tasks, query) for query in TASK_QUERIES},
        **{f"ran {query}": of(search.list_finished, query, is_failure=False) for query in FINISHED_QUERIES},
        **{f"open {query}": of(search.list_open, query, RUNNING) for query in OPEN_QUERIES},
    }


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(tasks=_TASKS, limit=st.integers(1, 3))
def test_pages_look_through_as_much_in_every_store(
    open_store: OpenStore, make_task: MakeTask, make_execution: MakeExecution, tasks: list[dict[str, Any]], limit: int
) -> None:
    """Every match comes once, no page reads more than the bound, and each store ends its pages at the same ones."""
    with open_store() as store, closing(SqliteStore()) as plain:
        for each in store, plain:
            fill(each, make_task, make_execution, tasks)
        found = list_everything(store, limit)
        assert found == list_everything(plain, limit)
        for query in TASK_QUERIES:
            matching = {
                f"/t{number}"
                for number, each in enumerate(tasks)
                if query.owner in {None, each["owner"]}
                and query.handler in {None, each["handler"]}
                and (query.parent is None or each["parent"] is not None)
            }
            assert sorted(one for page in found[repr(query)] for one in page) == sorted(matching)
        for asked in OPEN_QUERIES:
            matching = {f"/t{number}" for number, each in enumerate(tasks) if fits(each, RUNNING, NOW, asked)}
            assert sorted(one for page in found[f"open {asked}"] for one in page) == sorted(matching)
        for asked in FINISHED_QUERIES:
            matching = {f"t{number}/e" for number, each in enumerate(tasks) if fits(each, SUCCEEDED, NOW, asked)}
            assert sorted(one for page in found[f"ran {asked}"] for one in page) == sorted(matching)
            both = [f"{one.task_id}/{one.id}" for one in find_all_executions(store, asked, limit)]
            opened = {f"{name[1:]}/open{name[2:]}" for page in found[f"open {asked}"] for name in page}
            assert sorted(both) == sorted(matching | opened)


@pytest.mark.parametrize(
    "more", [{}, {"owner": "ada"}, {"label": "a=1"}, {"due_from": NOW}, {"trouble": Trouble.FAILED}]
)
def test_a_category_goes_with_every_other_filter(store: Store, make_task: MakeTask, more: dict[str, Any]) -> None:
    """Each match comes once, in the order of the list, whether an index has the category or a page looks for it."""
    wanted = []
    for number in range(12):
        category = Category.REPORT if number % 5 == 0 else Category.OTHERS
        at = NOW + timedelta(minutes=number)
        found_by: dict[str, Any] = {"owner": "ada", "labels": ("a=1",), "created_at": at, "next_execution_time": at}
        failing = {"consecutive_failures": 1, "failing_since": at}
        store.commit(Commit(make_task(id=f"t{number:02}", category=category, **found_by, **failing)))
        wanted += [f"t{number:02}"] if category is Category.REPORT else []
    query = TaskQuery(category=Category.REPORT, **more)
    pages = iter_pages(lambda token: store.list_tasks(query, limit=2, page_token=token))
    found = [each.id for page in pages for each in page.items]
    assert found == (wanted if query.is_sorted_by_due_time else wanted[::-1])


def test_a_page_of_executions_is_given_up(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many documents of whatever part of the list, each of which is counted as a read; then it goes on."""
    monkeypatch.setattr(execution_search, "MAX_READ", BOUND)
    usual = {"owner": "ada", "labels": (), "category": Category.OTHERS, "parent": None}
    fill(store, make_task, make_execution, [{**usual, "handler": "greet" if n == 5 else "check"} for n in range(9)])
    counts = Counts()
    counting = count_store(store, counts)
    query, token = ExecutionQuery(owner="ada", handler="greet"), None
    found: list[Execution] = []
    while True:
        before = counts.reads
        page = find_executions(counting.search, query, 5, token)
        assert counts.reads - before < 2 * BOUND
        found += page.items
        token = page.next_page_token
        if token is None:
            break
    assert sorted(f"{one.task_id}/{one.id}" for one in found) == ["t5/e", "t5/open5"]
    assert counts.reads >= 2 * 9


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(tasks=_TASKS)
def test_what_one_page_does_not_reach_is_not_counted_as_none(
    open_store: OpenStore, make_task: MakeTask, make_execution: MakeExecution, tasks: list[dict[str, Any]]
) -> None:
    """A number is that of the list, or says that it is the least. Parts of the time that it lacks are left out."""
    with open_store() as store:
        fill(store, make_task, make_execution, tasks)
        for query in filter(lambda each: each.looked_for, TASK_QUERIES):
            count = store.search.count_tasks(query, 100)
            pages = read_pages(partial(read_tasks, store, query), 9)
            listed = sum(len(page) for page in pages)
            assert count.value == listed or (count.at_least and count.value < listed)
        for asked in OPEN_QUERIES:
            opened = store.search.count_open(asked, RUNNING, 100)
            matching = [each for each in tasks if fits(each, RUNNING, NOW, asked)]
            assert opened.value == len(matching) or (opened.at_least and opened.value < len(matching))
            found = count_by_time(store.search, asked, NOW, NOW + 8 * QUARTER, load_tzinfo("UTC"), PartLength.QUARTER)
            begin = found.complete_from or NOW
            assert [each.start for each in found.parts] == [
                NOW + number * QUARTER for number in range(8) if NOW + number * QUARTER >= begin
            ]
            for part in found.parts:
                assert part.ran == sum(
                    fits(each, SUCCEEDED, NOW, asked) and part.start == NOW + number * 5 % 7 * QUARTER
                    for number, each in enumerate(tasks)
                )


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 8), st.integers(1, 200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_large_rows_are_not_read_all_at_once(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], first: int, most: int
) -> None:
    """After the first part, each is as large as it may be by the rows before it, or is one row."""
    monkeypatch.setattr(matching_rows, "FIRST_READ", first)
    monkeypatch.setattr(matching_rows, "READ_BYTES", most)
    parts: list[tuple[int, int]] = []

    def read(after: int | None, count: int) -> list[int]:
        begin = 0 if after is None else after + 1
        parts.append((begin, count))
        return list(range(begin, min(begin + count, len(sizes))))

    found = find_matching_rows(read, lambda _: True, sizes.__getitem__, limit=100, max_bytes=10_000)
    assert list(found.rows) == list(range(len(sizes)))
    assert parts[0] == (0, first)
    for begin, count in parts[1:]:
        assert count == 1 or count * sum(sizes[:begin]) <= most * begin
