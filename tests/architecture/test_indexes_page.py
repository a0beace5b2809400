"""docs/reference/indexes.md names every index and its query; lists.md says which lists are exact."""

from __future__ import annotations

import itertools
import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cases import try_each
from tests.scale.index_entries import count_entries, make_subjects

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.ports.search import MAX_LOOKED_THROUGH, ExecutionQuery, TaskQuery
from cloudsched.engine.tasks.execution_search import MAX_READ
from cloudsched.engine.tasks.occurrences import MAX_TASKS, OccurrenceQuery
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
CONTENT: dict[str, Any] = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text("utf-8"))
AT = datetime(2027, 1, 1, tzinfo=UTC)
MAX_COMPOSITES, MAX_ENTRIES = 25, {0: 6, 2: 8}
"""How many composite indexes there may be with one shard, and entries of a record with so many labels."""


def read_rows(page: str, heading: str) -> list[tuple[str, ...]]:
    """Return the rows of the tables in a section of a page."""
    text = (REFERENCE / page).read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if "|" in line]
    return [row for row in rows if row[0] not in {"collection", "document", "list"} and set(row[0]) != {"-"}]


def read_names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def write_index(index: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return an index as the page writes it."""
    fields = (
        f"{each['fieldPath']}{'[]' if 'arrayConfig' in each else '↓' if each['order'] == 'DESCENDING' else ''}"
        for each in index["fields"]
    )
    return index["collectionGroup"], tuple(fields)


def test_the_page_names_a_query_for_every_index() -> None:
    """No index is without one, and none is on the page that is not in the file."""
    composites = read_rows("indexes.md", "Composite indexes")
    expected = [write_index(each) for each in (*CONTENT["indexes"], *CONTENT["sharded"]["indexes"])]
    assert sorted((row[0], read_names(row[1])) for row in composites) == sorted(expected)
    single = read_rows("indexes.md", "Single fields")
    listed = {
        (each["collectionGroup"], f"{each['fieldPath']}{'↓' if index['order'] == 'DESCENDING' else ''}")
        for each in CONTENT["fieldOverrides"]
        for index in each["indexes"]
    }
    assert {(row[0], *read_names(row[1])) for row in single} == listed
    assert len(single) == len(listed)
    assert all(len(row) == 5 and all(row) for row in [*composites, *single])


@pytest.fixture(scope="module", params=[0, 2])
def counted(request: pytest.FixtureRequest) -> tuple[int, dict[str, int]]:
    """How many labels documents have, and the entries of each: of what the adapter writes, with the file's indexes."""
    labels: int = request.param
    return labels, {each.name: count_entries(CONTENT, each).count for each in make_subjects(labels)}


def test_indexes_are_few(counted: tuple[int, dict[str, int]]) -> None:
    """Each entry costs at every run, each composite index minutes of the first deployment."""
    labels, entries = counted
    assert len(CONTENT["indexes"]) <= MAX_COMPOSITES
    assert 0 < entries["record"] <= MAX_ENTRIES[labels]


TASK_FILTERS: dict[str, Any] = {
    "owner": "ada", "status": TaskStatus.ACTIVE, "handler": "greet", "label": "a=1", "dueFrom": AT, "dueUntil": AT,
}  # fmt: skip
RUN_FILTERS: dict[str, Any] = {
    "owner": "ada", "status": ExecutionStatus.FAILED, "handler": "greet", "label": "a=1", "category": Category.REPORT,
    "from": AT, "until": AT,
}  # fmt: skip
PYTHON = {"dueFrom": "due_from", "dueUntil": "due_until", "from": "since"}


def combine(filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for size in range(len(filters) + 1):
        yield from map(dict, itertools.combinations(filters.items(), size))


def find_answer(name: str, given: Mapping[str, Any]) -> str | None:
    """Return what the table says of a list with these filters: its first line that has all of them."""
    rows = [row for row in read_rows("lists.md", "Exact or looked through") if row[0] == name]
    assert rows
    return next((row[2] for row in rows if {*given} <= {*read_names(row[1])}), None)


def ask_tasks(given: Mapping[str, Any], *, is_soonest: bool) -> str:
    query = TaskQuery(**{PYTHON.get(name, name): value for name, value in given.items()})
    if query.is_sorted_by_due_time != is_soonest:
        query = TaskQuery(owner=query.owner, status=query.status, handler=query.handler, label=query.label, due_from=AT)
    return f"looks through {MAX_LOOKED_THROUGH:,} tasks" if query.looked_for else "exact"


def ask_executions(given: Mapping[str, Any], *, is_open: bool) -> str:
    query = ExecutionQuery(**{PYTHON.get(name, name): value for name, value in given.items()})
    has_times = query.since is not None or query.until is not None
    if query.find_looked_for(is_open=is_open) or (is_open and has_times):
        return f"looks through {MAX_READ:,} {'tasks' if is_open else 'executions'}"
    return "exact"


LISTS: dict[str, tuple[dict[str, Any], Callable[[Mapping[str, Any]], str]]] = {
    "tasks, newest first": (
        {name: value for name, value in TASK_FILTERS.items() if not name.startswith("due")},
        lambda given: ask_tasks(given, is_soonest=False),
    ),
    "tasks, soonest first": (TASK_FILTERS, lambda given: ask_tasks(given, is_soonest=True)),
    "executions that ended": (RUN_FILTERS, lambda given: ask_executions(given, is_open=False)),
    "executions that are open": (RUN_FILTERS, lambda given: ask_executions(given, is_open=True)),
}


@try_each("name", [*LISTS])
def test_the_table_says_which_lists_are_exact(name: str) -> None:
    """For every combination of filters: an index has it, or a page looks through so many, or it is refused."""
    filters, ask = LISTS[name]
    for given in combine(filters):
        answer: str | None = None
        with suppress(InvalidInput):
            answer = ask(given)
        assert find_answer(name, given) == answer, given


def test_occurrences_look_through_tasks() -> None:
    """Whatever the filter; the bound is the one that the page names."""
    given = {"from" if name == "since" else name: AT for name in OccurrenceQuery.__dataclass_fields__}
    answer = find_answer("occurrences", given)
    assert answer is not None
    assert f"looks through {MAX_TASKS:,} tasks" in answer
    assert find_answer("occurrences", {**given, "status": AT}) is None
    assert MAX_READ == MAX_LOOKED_THROUGH, "the table has one figure for both"
