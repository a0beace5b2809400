"""What every store promises about finding tasks by fragments of their names, and by who did what."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.conftest import NOW, MakeExecution, MakeTask
from tests.contract.conftest import iter_pages, load
from tests.engine.harness import HOUR, MINUTE

from cloudsched.domain.documents.execution import ExecutionError, ExecutionStatus
from cloudsched.domain.documents.name_words import NameMatch, fold_names
from cloudsched.domain.documents.task import HistoryEntry, Task
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.queries.execution_search import ExecutionFilter, find_executions_with_tasks
from cloudsched.engine.queries.name_search import find_named
from cloudsched.engine.queries.task_search import TaskSearch, search_tasks
from cloudsched.errors import InvalidInput

HOSTILE = ["'", '"', '" OR 1=1 --', "%", "_", "*", "NEAR(", "\x00", "\u202e", "\ud800", "x" * 10_000, "\\"]


def put(store: Store, *tasks: Task) -> None:
    for task in tasks:
        store.commit(Commit(task, None))


def list_named(store: Store, query: TaskQuery, *words: str, limit: int = 2) -> list[str]:
    """Return the ids of all pages. A store without such an index is not tried."""
    if store.search.get_name_match() is not NameMatch.FRAGMENTS:
        pytest.skip("it has no index of fragments")
    pages = iter_pages(lambda token: store.search.list_named(query, words, limit=limit, page_token=token))
    return [task.id for page in pages for task in page.items]


def entry(at: datetime, number: int = 1, action: Action = Action.CREATED) -> HistoryEntry:
    return HistoryEntry(number=number, at=at, action=action)


def test_a_fragment_of_each_name_finds_the_task(store: Store, make_task: MakeTask) -> None:
    """Title, id, handler, owner and label, in any case and in their middle; the payload is no name."""
    named = {"title": "Zahle GEHÄLTER aus", "handler": "payroll_run", "labels": ("team=Shop",), "owner": "ada"}
    put(
        store,
        make_task(id="abc-123", payload={"about": "secretive"}, **named),
        make_task(id="other", title="Water", handler="greet", owner="bob"),
    )
    for fragment in ("gehält", "hle g", "c-1", "roll_r", "am=sh", "a"):
        assert "abc-123" in list_named(store, TaskQuery(), fragment), fragment
    assert list_named(store, TaskQuery(), "ecret") == []
    assert list_named(store, TaskQuery(), "gehält", "shop") == ["abc-123"]
    assert list_named(store, TaskQuery(), "gehält", "water") == []


@pytest.mark.parametrize("text", ["Daily report 1", "dAILY rEPORT 1"])
def test_the_whole_name_is_found_first_among_any_number(store: Store, make_task: MakeTask, text: str) -> None:
    """Of the many newer tasks whose names have it as a part, those that are nearest follow."""
    if store.search.get_name_match() is not NameMatch.FRAGMENTS:
        pytest.skip("it has no index of fragments")
    for number in (1, *range(1000, 1230)):
        made = {"created_at": NOW + timedelta(seconds=number), "title": f"Daily report {number}"}
        put(store, make_task(id=f"t{number}", **made))
    found = find_named(store, text, None, [], 20).tasks
    assert [task.title for task in found[:2]] == ["Daily report 1", "Daily report 1030"]
    assert len(found) == 20


def test_a_change_of_a_name_is_found_at_once(store: Store, make_task: MakeTask) -> None:
    """The new title finds it, and the old one no longer."""
    task = make_task(id="t", title="Before")
    put(store, task)
    store.commit(Commit(task.model_copy(update={"title": "After"}), load(store, "t")))
    assert list_named(store, TaskQuery(), "aft") == ["t"]
    assert list_named(store, TaskQuery(), "before") == []


@pytest.mark.parametrize(
    "query",
    [
        TaskQuery(),
        TaskQuery(owner="ada"),
        TaskQuery(handler="greet"),
        TaskQuery(owner="ada", handler="greet"),
        TaskQuery(label="a=1"),
        TaskQuery(due_from=NOW),
    ],
)
def test_the_other_filters_hold_as_well(store: Store, make_task: MakeTask, query: TaskQuery) -> None:
    """Whatever the list: those of it that have the word, in its order, each once on whatever page."""
    tasks = [
        make_task(
            id=f"t{number}",
            title=("Report", "Water")[number % 2],
            owner=("ada", "bob")[number % 3 == 0],
            handler=("greet", "check")[number % 5 == 0],
            labels=("a=1",) if number % 4 else (),
            created_at=NOW + timedelta(seconds=number),
        )
        for number in range(14)
    ]
    put(store, *tasks)
    expected = [task.id for task in store.list_tasks(query, limit=100).items if "report" in fold_names(task)]
    assert list_named(store, query, "epor", limit=2) == expected


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_is_an_error_or_finds_anything_else(store: Store, make_task: MakeTask, text: str) -> None:
    """Quotes, wildcards, syntax of a search engine, NUL, and what is no Unicode are texts like others."""
    put(store, make_task(id="t", title="Report"))
    assert list_named(store, TaskQuery(), text) == []
    store.search.list_owners(text, limit=5)
    with suppress(InvalidInput):  # what no request may look for is refused
        query = ExecutionQuery(error=text)
        page = find_executions_with_tasks(store.search, query, 5, only=ExecutionFilter(error=text))
        assert page.items == []


def test_a_search_finds_names_first_and_then_payloads_each_once(store: Store, make_task: MakeTask) -> None:
    """Whatever the size of a page, and over whatever store."""
    put(
        store,
        *(
            make_task(
                id=f"t{number}",
                title=("Pay", "Water")[number % 2],
                payload={"for": ("pay", "rent")[number % 3 == 0]},
                created_at=NOW + timedelta(seconds=number),
            )
            for number in range(12)
        ),
    )
    only = TaskSearch(("pay",))
    expected = {task.id for task in store.list_tasks(TaskQuery(), limit=100).items if only.matches(task)}
    for limit in (1, 3, 5, 20):
        pages = list(iter_pages(partial(search_tasks, store, TaskQuery(), only, limit)))
        found = [task.id for page in pages for task in page.items]
        assert sorted(found) == sorted(expected)
        assert all(len(page.items) <= limit for page in pages)


def test_the_owners_are_found_by_fragment(store: Store, make_task: MakeTask) -> None:
    """In any case, each once, in their order. Without an index, those that begin with it as it is written or small."""
    put(store, *(make_task(id=f"t{n}", owner=owner) for n, owner in enumerate(["ada", "Adam", "bob", "ada"])))
    has_index = store.search.get_name_match() is NameMatch.FRAGMENTS
    assert list(store.search.list_owners("AD", limit=5)) == (["Adam", "ada"] if has_index else ["ada"])
    assert list(store.search.list_owners("Ad", limit=5)) == ["Adam", "ada"]
    assert list(store.search.list_owners("a", limit=1)) == (["Adam"] if has_index else ["ada"])
    assert list(store.search.list_owners("da", limit=5)) == (["Adam", "ada"] if has_index else [])


def test_the_tasks_somebody_acted_on_last_come_first(store: Store, make_task: MakeTask) -> None:
    """By their latest action, those of an owner, not before an instant, on whatever page."""
    tasks = [
        make_task(
            id=f"t{number}",
            owner=("ada", "bob")[number % 2],
            history=(entry(NOW + timedelta(minutes=(number * 5) % 7)),) if number else (),
        )
        for number in range(7)
    ]
    put(store, *tasks)
    again = tasks[6].model_copy(update={"history": (*tasks[6].history, entry(NOW + HOUR, 2))})
    store.commit(Commit(again, load(store, "t6")))

    def read(owner: str | None, since: datetime | None) -> list[str]:
        pages = iter_pages(lambda token: store.search.list_acted_on(owner, since, limit=2, page_token=token))
        return [task.id for page in pages for task in page.items]

    assert read(None, None) == ["t6", "t4", "t1", "t5", "t2", "t3"]
    assert read("ada", None) == ["t6", "t4", "t2"]
    assert read(None, NOW + 5 * MINUTE) == ["t6", "t4", "t1"]


_ERRORS: list[dict[str, Any]] = [
    {"type": "OSError", "message": "No space left ON device"},
    {"type": "ValueError", "message": "OSError: nested"},
    {"type": "KeyError", "message": "x"},
]


@pytest.mark.parametrize(
    "only",
    [ExecutionFilter(error="on dev"), ExecutionFilter(error_type="OSError"), ExecutionFilter(error="oserror: n")],
)
@pytest.mark.parametrize("owner", [None, "ada"])
@pytest.mark.parametrize("handler", [None, "greet"])
def test_the_text_of_an_error_finds_what_reading_all_would(
    store: Store,
    make_task: MakeTask,
    make_execution: MakeExecution,
    only: ExecutionFilter,
    owner: str | None,
    handler: str | None,
) -> None:
    """With whatever filters beside it, and whether the execution failed or only ended with an error."""
    for number in range(9):
        task = make_task(id=f"t{number}", owner=("ada", "bob")[number % 2], handler=("greet", "check")[number % 4 == 0])
        record = make_execution(
            task,
            "e",
            status=(ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)[number > 6],
            scheduled_for=NOW + timedelta(seconds=number),
            handler=task.handler,
            error=ExecutionError(**_ERRORS[number % 3]),
        )
        store.commit(Commit(task, None, [record]))
    plain = ExecutionQuery(owner, handler=handler)
    hinted = ExecutionQuery(owner, handler=handler, error=only.error, error_type=only.error_type)

    def read(query: ExecutionQuery) -> list[str]:
        pages = iter_pages(lambda token: find_executions_with_tasks(store.search, query, 2, token, only))
        return [one.execution.task_id for page in pages for one in page.items]

    assert read(hinted) == read(plain)
    assert read(ExecutionQuery(owner, error=only.error, error_type=only.error_type))
