"""A list of tasks says what is true of all that match its filters, and no more of the rest than is known."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, parse_qsl, urlencode

import pytest
from tests.conftest import MakeTask
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR, MINUTE

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.task import Hold, TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.storage import matching_rows

FILTERS: list[dict[str, str]] = [
    {},
    *[{"owner": owner} for owner in ("ada", "bob", "nobody")],
    *[{"handler": handler} for handler in ("payroll", "noise", "nothing")],
    {"owner": "ada", "handler": "payroll"},
    {"owner": "bob", "handler": "noise"},
]


def fill(pages: Pages, make_task: MakeTask, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same tasks in each run
    now = pages.sim.now
    for number in range(60):
        status = chance.choice([TaskStatus.ACTIVE, TaskStatus.ACTIVE, TaskStatus.PAUSED, TaskStatus.COMPLETED])
        since = now - chance.choice([1, 5, 500]) * MINUTE
        due = chance.choice([since, now + HOUR, None]) if status is TaskStatus.ACTIVE else None
        failures = chance.choice([0, 0, 0, 2])
        task = make_task(
            id=f"task-{number}",
            owner=chance.choice(["ada", "bob", "cleo"]),
            handler=chance.choice(["payroll", "noise", "noise"]),
            category=chance.choice([*Category]),
            status=status,
            status_changed_at=since,
            created_at=now - timedelta(minutes=number),
            consecutive_failures=failures,
            failing_since=since if failures else None,
            next_execution_time=due,
            hold=Hold(at=since, is_alone=True) if status is TaskStatus.PAUSED and chance.random() < 0.5 else None,
        )
        pages.app.container.store.commit(Commit(task))
    pages.forget()


def list_tasks(pages: Pages, query: str) -> list[dict[str, str]]:
    return pages.rows(f"/tasks?{query}")


def read_text(pages: Pages, query: str) -> str:
    return pages.words(f"/tasks?{query}")


def walk(pages: Pages, query: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the address and the rows of each page of a list."""
    further: re.Match[str] | None = re.match("(.*)", query)
    while further:
        text = read_text(pages, further[1])
        rows = re.findall(r'<tr data-key="([^"]+)"', text)
        yield further[1], rows
        further = re.search(r'href="\?([^"]*page=[^"]+)"[^>]*>Next', text)


@pytest.mark.parametrize("filters", FILTERS, ids=urlencode)
def test_the_number_above_the_list_is_that_of_its_tasks(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, filters: dict[str, str]
) -> None:
    """Of one page it is exact. If there are others, it is all that Home counts, or the least that there are."""
    fill(pages, make_task, seed=len(str(filters)))
    query = urlencode(filters)
    listed = len(list_tasks(pages, query))
    for size in (4, 60):
        monkeypatch.setattr("cloudsched.dashboard.views.tasks.PAGE_SIZE", size)
        text = read_text(pages, query)
        said = re.search(r"<h1>Tasks</h1><p>(at least )?([\d,]+) tasks?\b", text)
        assert bool(said) == bool(listed)
        if said:
            assert int(said[2]) == (min(listed, size) if said[1] else listed)
            further = re.search(r'href="(\?[^"]*page=[^"]+)"[^>]*>Next', text)
            assert (further is not None) == (listed > size)
            assert not further or said[0] in read_text(pages, further[1][1:])

    pause = re.search(r'href="[^"]*bulk\?(action=PAUSE[^"]+)">Pause ([^<]+)…', text)
    assert bool(pause) == (filters.keys() <= {"owner"})
    assert not pause or parse_qs(pause[1]).get("owner") == ([filters["owner"]] if filters else None)


@pytest.mark.parametrize(
    "query", ["trouble=FAILED&handler=payroll", "category=REPORT&handler=payroll", "trouble=FAILED&category=report"]
)
def test_what_is_asked_for_is_found_on_one_of_the_pages(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """However many tasks stand before those that match."""
    monkeypatch.setattr(matching_rows, "MAX_LOOKED_THROUGH", 2)
    monkeypatch.setattr("cloudsched.engine.queries.task_search.MAX_LOOKED_THROUGH", 2)
    monkeypatch.setattr("cloudsched.dashboard.views.tasks._FOLLOWED", 0)
    now = pages.sim.now
    store = pages.app.container.store
    for number in range(12):
        is_wanted = number == 0
        task = make_task(
            id=f"task-{number}",
            handler="payroll" if is_wanted else "noise",
            category=Category.REPORT if is_wanted else Category.OTHERS,
            created_at=now + timedelta(minutes=number),
            consecutive_failures=1,
            failing_since=now + timedelta(minutes=number),
        )
        store.commit(Commit(task))
    assert [row for _, rows in walk(pages, query) for row in rows] == ["task-0"]


def test_pages_without_a_match_are_passed_over_up_to_a_bound(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no index has, as a handler in the order of what is due; the rest is one click away."""
    monkeypatch.setattr(matching_rows, "MAX_LOOKED_THROUGH", 2)
    monkeypatch.setattr("cloudsched.engine.queries.task_search.MAX_LOOKED_THROUGH", 2)
    now = pages.sim.now
    for number in range(30):
        handler = "payroll" if number in {8, 29} else "noise"
        at = now + timedelta(minutes=number)
        task = make_task(id=f"task-{number}", handler=handler, next_execution_time=at)
        pages.app.container.store.commit(Commit(task))
    seen = [rows for _, rows in walk(pages, "orderBy=nextExecutionTime&handler=payroll")]
    assert "task-8" in seen[0]
    assert [row for rows in seen for row in rows] == ["task-8", "task-29"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("trouble=FAILED", "Needs attention: Failing"),
        ("trouble=FAILED&owner=bob", "Owner: bob"),
        ("status=paused", "Status: Paused"),
        ("orderBy=nextExecutionTime", "Order: Due soonest"),
        ("dueUntil=2000-01-01T00:00:00Z", "Due before: Sat"),
    ],
)
def test_an_empty_list_names_the_filters_that_made_it_empty(
    pages: Pages, make_task: MakeTask, query: str, words: str
) -> None:
    """It is not a store without tasks, which alone says that it has none."""
    assert "No tasks yet" in read_text(pages, "")
    task = make_task(status=TaskStatus.COMPLETED, next_execution_time=None)
    pages.app.container.store.commit(Commit(task))
    text = read_text(pages, query)
    assert words in text
    assert "<p>Nothing matches.</p>" in text
    assert "No tasks yet" not in text


def test_the_failing_tasks_of_one_are_retried_together(pages: Pages, make_task: MakeTask) -> None:
    """By a link that asks for just these. A list of all of them has none: their causes differ."""
    fill(pages, make_task, seed=3)
    assert "Retry all of these" not in read_text(pages, "trouble=FAILED")
    for of_one in ({"handler": "noise"}, {"handler": "noise", "owner": "ada"}):
        text = read_text(pages, urlencode({"trouble": "FAILED", **of_one}))
        retry = re.search(r'href="[^"]*bulk\?([^"]+)">Retry all of these', text)
        assert retry
        assert dict(parse_qsl(retry[1])) == {"action": "RETRY_FAILED", **of_one}


@pytest.mark.parametrize("query", ["", "trouble=FAILED", "trouble=WAITING&owner=ada"])
def test_each_field_of_the_form_goes_with_the_filters_of_the_page(pages: Pages, query: str) -> None:
    """A form offers no field whose value the page would refuse beside the filters that it keeps."""
    form = re.findall(r"<form[^>]*role=\"search\"[^>]*>.*?</form>", pages.read(f"/tasks?{query}"), re.DOTALL)
    text = next(each for each in form if 'name="handler"' in each)
    kept = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))
    assert kept.items() <= dict(parse_qsl(query)).items()
    names = re.findall(r'<input(?! type="hidden")[^>]* name="(\w+)"', text)
    values = {name: "label=red" if name == "label" else "ada" for name in names}
    for name, options in re.findall(r'<select[^>]* name="(\w+)".*?>(.*?)</select>', text, re.DOTALL):
        values[name] = re.findall(r'<option[^>]* value="([^"]+)"', options)[-1]
    assert values.keys() >= {"handler", "owner"}
    for name, value in values.items():
        answer = pages.get("admin", f"/tasks?{urlencode({**kept, name: value})}")
        assert answer.status_code == 200, (name, value)


def test_the_pages_of_what_is_late_keep_their_instant(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was late by the first of them, though the clock goes on between two looks."""
    monkeypatch.setattr("cloudsched.dashboard.views.tasks.PAGE_SIZE", 2)
    for number in range(5):
        due = pages.sim.now - (10 + number) * MINUTE
        pages.app.container.store.commit(Commit(make_task(id=f"task-{number}", next_execution_time=due)))
    found = [*walk(pages, "trouble=OVERDUE")]
    assert all("troubleUntil" in address for address, _ in found[1:])
    assert sorted(row for _, rows in found for row in rows) == [f"task-{number}" for number in range(5)]
