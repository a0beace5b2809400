"""What every store promises about lists: filters, order, pages, tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import try_each
from tests.conftest import NOW, MakeExecution, MakeMessage, MakeTask
from tests.contract.conftest import OpenStore, iter_pages
from tests.engine.harness import DAY, HOUR

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.task import Parent, Task, TaskStatus, Trouble
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.needs import find_trouble
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.storage.pages import Page, make_token
from cloudsched.errors import InvalidInput

_INSTANTS = st.integers(0, 3).map(lambda number: NOW + timedelta(microseconds=number))
"""So few that many tasks share one."""
_FEW_TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "owner": st.sampled_from(["ada", "bob"]),
            "handler": st.sampled_from(["greet", "check"]),
            "status": st.sampled_from([TaskStatus.ACTIVE, TaskStatus.PAUSED, TaskStatus.COMPLETED]),
            "created_at": _INSTANTS,
            "next_execution_time": st.none() | _INSTANTS,
            "wake_at": st.none() | _INSTANTS,
            "deleted_at": st.sampled_from([None, None, None, NOW]),
            "labels": st.sampled_from([(), ("a=1",), ("a=2", "b=1"), ("a=1", "b=1", "c=")]),
            "category": st.sampled_from([Category.OTHERS, Category.REPORT]),
            "pause_id": st.sampled_from([None, "p1"]),
            "parent": st.sampled_from([None, None, Parent(task_id="p", execution_id="e", step=1, depth=1)]),
            "failing_since": st.none() | _INSTANTS,
        }
    ).map(lambda task: task if task["status"] is TaskStatus.ACTIVE else task | {"next_execution_time": None}),
    max_size=10,
)
"""Only an ACTIVE task has a next execution time; the random histories check that."""
_FILTERS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "owner": st.none() | st.sampled_from(["ada", "bob", "eve"]),
        "handler": st.none() | st.sampled_from(["greet", "check"]),
        "status": st.none() | st.sampled_from([TaskStatus.ACTIVE, TaskStatus.PAUSED]),
        "label": st.none() | st.sampled_from(["a=1", "b=1", "d=1"]),
        "category": st.none() | st.just(Category.REPORT),
        "parent": st.none() | st.just("p"),
        "pause_id": st.none() | st.just("p1"),
    }
)
_QUERIES = _FILTERS.flatmap(
    lambda filters: st.one_of(
        st.just(TaskQuery(**filters)),
        st.just(TaskQuery(**filters, trouble=Trouble.FAILED)),
        st.builds(partial(TaskQuery, **filters), due_from=st.none() | _INSTANTS, due_until=_INSTANTS),
    )
)
"""Any filters, in each of the three orders."""


def select_expected(tasks: list[Task], query: TaskQuery) -> list[Task]:
    """The port's promise, in plain Python."""

    def fits(task: Task) -> bool:
        due = task.next_execution_time
        return (
            task.deleted_at is None
            and query.owner in {None, task.owner}
            and query.handler in {None, task.handler}
            and query.status in {None, task.status}
            and (query.label is None or query.label in task.labels)
            and query.category in {None, task.category}
            and query.parent in {None, task.parent and task.parent.task_id}
            and query.pause_id in {None, task.pause_id}
            and (query.trouble is None or (find_trouble(task) or (None,))[0] is query.trouble)
            and (due is not None if query.is_sorted_by_due_time else True)
            and (query.due_from is None or (due is not None and due >= query.due_from))
            and (query.due_until is None or (due is not None and due < query.due_until))
        )

    found = [task for task in tasks if fits(task)]
    if query.is_sorted_by_due_time:
        return sorted(found, key=lambda task: (task.next_execution_time or NOW, task.id))
    if query.trouble is not None:
        return sorted(found, key=lambda task: (task.failing_since or NOW, task.id), reverse=True)
    return sorted(found, key=lambda task: (task.created_at, task.id), reverse=True)


def read_pages(read: Callable[[str | None], Page[Any]], limit: int) -> list[Any]:
    """Read a list to its end; every page but the last is full, and none but the first is empty."""
    *full, last = iter_pages(read)
    assert all(len(page.items) == limit for page in full)
    assert last.items or not full
    assert len(last.items) <= limit
    return [item for page in (*full, last) for item in page.items]


def page_of_tasks(store: Store, query: TaskQuery, limit: int, token: str | None) -> Page[Task]:
    return store.list_tasks(query, limit=limit, page_token=token)


@settings(max_examples=40, deadline=None)
@given(fields=_FEW_TASKS, queries=st.lists(_QUERIES, min_size=3, max_size=3), limit=st.integers(1, 4))
def test_every_filter_in_every_combination(
    open_store: OpenStore, make_task: MakeTask, fields: list[dict[str, Any]], queries: list[TaskQuery], limit: int
) -> None:
    """Tasks that were changed match by their current fields."""
    tasks = [make_task(id=f"t{number * 7 % 10}", consecutive_failures=1, **each) for number, each in enumerate(fields)]
    with open_store() as store:
        for task, other in zip(tasks, reversed(fields), strict=True):
            store.commit(Commit(task, store.commit(Commit(task.model_copy(update=other)))))
        for query in queries:
            found = read_pages(partial(page_of_tasks, store, query, limit), limit)
            assert found == select_expected(tasks, query)


def _read_after(read: Callable[..., Page[Task]], token: str | None) -> Page[Task]:
    return read(page_token=token)


@settings(max_examples=20, deadline=None)
@given(fields=_FEW_TASKS, before=_INSTANTS, since=st.none() | _INSTANTS, limit=st.integers(1, 4))
def test_due_tasks_are_listed_for_the_sweep_apart_from_those_to_remove(
    open_store: OpenStore,
    make_task: MakeTask,
    fields: list[dict[str, Any]],
    before: datetime,
    since: datetime | None,
    limit: int,
) -> None:
    tasks = [make_task(id=f"t{number * 7 % 10}", **each) for number, each in enumerate(fields)]
    waiting = sorted((task.wake_at, task.id) for task in tasks if task.wake_at is not None)
    to_remove = {task.id for task in tasks if task.waits_for_removal}
    with open_store() as store:
        for task, other in zip(tasks, reversed(fields), strict=True):
            store.commit(Commit(task, store.commit(Commit(task.model_copy(update=other)))))
        due = [each for each in waiting if (since or each[0]) <= each[0] <= before]
        for is_removal in (False, True):  # however many wait for their removal, nothing else waits behind them
            read = partial(store.sweep.list_due, before, since=since, is_removal=is_removal, limit=limit)
            found = read_pages(partial(_read_after, read), limit)
            expected = [each for each in due if (each[1] in to_remove) == is_removal]
            assert [(task.wake_at, task.id) for task in found] == expected
        assert store.sweep.next_wakeup() == (waiting[0][0] if waiting else None)


@settings(max_examples=15, deadline=None)
@given(offsets=st.lists(st.integers(0, 2), max_size=8), limit=st.integers(1, 3))
def test_records_come_latest_first(
    open_store: OpenStore,
    make_task: MakeTask,
    make_execution: MakeExecution,
    make_message: MakeMessage,
    offsets: list[int],
    limit: int,
) -> None:
    task, other = make_task(), make_task(owner="bob")
    instants = [(NOW + timedelta(microseconds=offset), f"e{number * 5 % 8}") for number, offset in enumerate(offsets)]
    with open_store() as store:
        for each in (task, other):
            executions = [make_execution(each, key, scheduled_for=at) for at, key in instants]
            messages = [make_message(each, key, created_at=at) for at, key in instants]
            store.commit(Commit(each, None, executions, messages))
        found = read_pages(lambda token: store.search.list_executions(task.id, limit=limit, page_token=token), limit)
        assert [(each.task_id, each.id) for each in found] == [
            (task.id, key) for _, key in sorted(instants, reverse=True)
        ]
        found = read_pages(lambda token: store.inbox.list("ada", limit=limit, page_token=token), limit)
        assert [(each.owner, each.execution_id) for each in found] == [
            ("ada", key) for _, key in sorted(instants, reverse=True)
        ]


def test_records_before_an_instant_are_a_list_of_their_own(
    store: Store, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """What is scheduled for the instant itself is not before it; further pages go on by their tokens."""
    task = make_task()
    records = [make_execution(task, f"e{index}", scheduled_for=NOW + index * HOUR) for index in range(5)]
    store.commit(Commit(task, None, records))
    before = records[3].scheduled_for

    def read(token: str | None) -> Page[Any]:
        return store.search.list_executions(task.id, limit=2, page_token=token, before=before)

    assert read_pages(read, 2) == records[2::-1]
    assert not store.search.list_executions(task.id, limit=2, before=records[0].scheduled_for).items


@settings(max_examples=20, deadline=None)
@given(
    count=st.integers(3, 9),
    limit=st.integers(1, 3),
    changes=st.dictionaries(st.integers(0, 8), st.sampled_from(["purge", "edit"]), max_size=4),
    new=st.integers(0, 3),
)
def test_changes_between_pages_do_not_affect_other_tasks(
    open_store: OpenStore, make_task: MakeTask, count: int, limit: int, changes: dict[int, str], new: int
) -> None:
    with open_store() as store:
        tasks = [make_task(id=f"t{number}", created_at=NOW + timedelta(seconds=number // 2)) for number in range(count)]
        versions = {task.id: store.commit(Commit(task)) for task in tasks}
        first = store.list_tasks(TaskQuery(), limit=limit)
        touched = set()
        for number, change in changes.items():
            if number < count:
                task = tasks[number]
                touched.add(task.id)
                if change == "purge":
                    store.commit(Commit(task.model_copy(update={"deleted_at": NOW}), versions[task.id]))
                    store.sweep.purge(task.id)
                else:
                    store.commit(
                        Commit(task.model_copy(update={"title": "Edited", "wake_at": None}), versions[task.id])
                    )
        for number in range(new):
            store.commit(Commit(make_task(id=f"new{number}", created_at=NOW + timedelta(seconds=number))))
        seen = [task.id for task in first.items]
        if (begin := first.next_page_token) is not None:
            read = partial(page_of_tasks, store, TaskQuery(), limit)
            seen += [task.id for page in iter_pages(lambda token: read(token or begin)) for task in page.items]
        assert len(seen) == len(set(seen))
        assert {task.id for task in tasks} - touched <= set(seen)


@pytest.fixture
def full_store(store: Store, make_task: MakeTask, make_execution: MakeExecution) -> Store:
    for number in range(3):
        task = make_task(id=f"t{number}")
        store.commit(Commit(task, None, [make_execution(task, f"e{each}") for each in range(3)]))
    return store


def lists(store: Store, token: str) -> list[Callable[[], Page[Any]]]:
    return [
        lambda: store.list_tasks(TaskQuery(), limit=1, page_token=token),
        lambda: store.list_tasks(TaskQuery(owner="ada", due_from=NOW), limit=1, page_token=token),
        lambda: store.sweep.list_due(NOW + DAY, limit=1, page_token=token),
        lambda: store.search.list_executions("t1", limit=1, page_token=token),
        lambda: store.inbox.list("ada", limit=1, page_token=token),
    ]


@settings(max_examples=50, deadline=None)
@given(token=st.text(min_size=1) | st.binary(min_size=1).map(lambda data: data.hex()))
def test_invalid_page_tokens_are_refused(open_store: OpenStore, token: str) -> None:
    with open_store() as store:
        for read in lists(store, token):
            with pytest.raises(InvalidInput, match="pageToken"):
                read()


def test_a_token_of_another_list_is_refused(full_store: Store) -> None:
    queries = [
        TaskQuery(),
        TaskQuery(owner="ada"),
        TaskQuery(handler="greet"),
        TaskQuery(status=TaskStatus.ACTIVE),
        TaskQuery(due_from=NOW),
        TaskQuery(due_until=NOW + DAY),
    ]
    reads: list[Callable[[str | None], Page[Any]]] = [
        *(partial(page_of_tasks, full_store, query, 1) for query in queries),
        lambda token: full_store.search.list_executions("t1", limit=1, page_token=token),
        lambda token: full_store.search.list_executions("t2", limit=1, page_token=token),
    ]
    tokens = [read(None).next_page_token for read in reads]
    assert None not in tokens
    for own, read in enumerate(reads):
        for number, token in enumerate(tokens):
            if number == own:
                read(token)
            else:
                with pytest.raises(InvalidInput, match="pageToken"):
                    read(token)


@try_each("key", ["__a__", "x" * 2000, ".", "\x00", "a b"])
@try_each("at", [datetime(1, 1, 1, tzinfo=UTC), NOW, datetime.max.replace(tzinfo=UTC)])
def test_a_forged_token_with_a_valid_fingerprint_gives_a_page_or_is_refused(
    full_store: Store, at: datetime, key: str
) -> None:
    """Anyone can compute its fingerprint, so it may contain anything; it gives access to nothing but another page."""
    for query in (TaskQuery(), TaskQuery(due_until=NOW + DAY)):
        items: Sequence[Task] = ()
        with suppress(InvalidInput):
            items = full_store.list_tasks(query, limit=5, page_token=make_token(query, at, key)).items
        assert all(task.id.startswith("t") for task in items)
