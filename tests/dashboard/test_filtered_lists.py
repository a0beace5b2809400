"""A list of tasks says what is true of all that match its filters, and no more of the rest than is known."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import timedelta
from urllib.parse import parse_qs, parse_qsl, urlencode

import pytest
from tests.conftest import MakeTask
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR, MINUTE

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import Run, Suspension
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
        pages.sim.app.container.store.commit(Commit(task))
    pages.sim.app.container.many_tasks.overview.forget()


def list_tasks(pages: Pages, query: str) -> list[dict[str, str]]:
    return pages.rows(f"/tasks?{query}")


def read_text(pages: Pages, query: str) -> str:
    return pages.words(f"/tasks?{query}")


@pytest.mark.parametrize("filters", FILTERS, ids=urlencode)
def test_a_page_says_how_many_of_all_that_match_need_attention(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, filters: dict[str, str]
) -> None:
    """However few of them the page has. Chips count the same, and lead to the lists with the filters kept."""
    monkeypatch.setattr("cloudsched.dashboard.views.tasks.PAGE_SIZE", 4)
    fill(pages, make_task, seed=len(str(filters)))
    query = urlencode(filters)
    listed = list_tasks(pages, query)
    needy = [each for each in listed if each.get("needs")]
    text = read_text(pages, query)
    said = re.search(r"Of all [^<]*?(none|<a[^>]*>([\d,]+)) needs? attention", text)
    assert bool(said) == (len(listed) > 4), text
    if said:
        assert int((said[2] or "0").replace(",", "")) == len(needy)

    chips = re.findall(r'<a class="chip" href="(\?[^"]+)"[^>]*>([^<]+?) (\d+)</a>', text)
    counted = 0
    for address, _, number in chips:
        assert {name: [value] for name, value in filters.items()}.items() <= parse_qs(address[1:]).items()
        counted += len(list_tasks(pages, address[1:]))
        assert len(list_tasks(pages, address[1:])) == int(number), address
    assert counted == sum(len(each["needs"].split()) for each in needy)

    pause = re.search(r'href="[^"]*bulk\?(action=pause[^"]+)">Pause ([^<]+)…', text)
    assert bool(pause) == ("handler" not in filters)
    assert not pause or parse_qs(pause[1]).get("owner") == ([filters["owner"]] if filters else None)


@pytest.mark.parametrize("filters", [{"label": "a=1"}, {"q": "task"}, {"status": "active"}], ids=urlencode)
def test_where_nothing_is_counted_a_page_speaks_of_itself(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, filters: dict[str, str]
) -> None:
    """It neither says how many others need attention, nor offers counts that ignore its filters."""
    monkeypatch.setattr("cloudsched.dashboard.views.tasks.PAGE_SIZE", 4)
    fill(pages, make_task, seed=1)
    text = read_text(pages, urlencode(filters))
    assert "Of all" not in text
    assert not re.search(r'class="chip" href="\?trouble', text)
    assert "Pause everything" not in text


@pytest.mark.parametrize(
    "query", ["trouble=FAILED&handler=payroll", "category=REPORT&handler=payroll", "trouble=FAILED&q=category:report"]
)
def test_no_page_is_empty_if_a_column_has_what_is_asked_for(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """However many tasks stand before those that match."""
    monkeypatch.setattr(matching_rows, "MAX_LOOKED_THROUGH", 2)
    monkeypatch.setattr("cloudsched.engine.queries.task_search.MAX_LOOKED_THROUGH", 2)
    monkeypatch.setattr("cloudsched.dashboard.views.tasks._FOLLOWED", 0)
    now = pages.sim.now
    store = pages.sim.app.container.store
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
    assert 'data-key="task-0"' in read_text(pages, query)


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
        pages.sim.app.container.store.commit(Commit(task))
    query = "orderBy=nextExecutionTime&handler=payroll"
    text = read_text(pages, query)
    assert 'data-key="task-8"' in text
    seen = []
    while further := re.search(r'href="(\?[^"]*page=[^"]+)"[^>]*>Next', text):
        seen += re.findall(r'<tr data-key="([^"]+)"', text)
        text = read_text(pages, further[1][1:])
    seen += re.findall(r'<tr data-key="([^"]+)"', text)
    assert seen == ["task-8", "task-29"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("trouble=FAILED", "Nothing matches Needs attention: Failing."),
        ("trouble=FAILED&owner=bob", "Nothing matches Owner: bob, Needs attention: Failing."),
        ("status=paused", "Nothing matches Status: Paused."),
        ("orderBy=nextExecutionTime", "No task has a next run."),
        ("dueUntil=2000-01-01T00:00:00Z", "Nothing matches Due before"),
    ],
)
def test_an_empty_list_names_the_filters_that_made_it_empty(
    pages: Pages, make_task: MakeTask, query: str, words: str
) -> None:
    """It is not a store without tasks, which alone says that it has none."""
    assert "No tasks yet" in read_text(pages, "")
    task = make_task(status=TaskStatus.COMPLETED, next_execution_time=None)
    pages.sim.app.container.store.commit(Commit(task))
    text = read_text(pages, query)
    assert words in text
    assert "No tasks yet" not in text


def test_the_sentence_has_the_order_of_the_list(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails comes by when it began, and what waits by when it gives up, which each row says."""
    now = pages.sim.now
    for number in (1, 3, 2):
        at = now + timedelta(hours=number)
        run = Run(
            execution_id="e",
            scheduled_for=now,
            due_at=now,
            started_at=now,
            suspension=Suspension(at=now, reason="waits for approved", deadline=at),
        )
        store = pages.sim.app.container.store
        store.commit(Commit(make_task(id=f"waits-{number}", runs=(run,))))
        store.commit(Commit(make_task(id=f"fails-{number}", consecutive_failures=1, failing_since=at)))
    monkeypatch.setattr("cloudsched.dashboard.views.tasks.PAGE_SIZE", 3)
    for trouble, words, order in (
        ("WAITING", "3 tasks, the first to give up first.", "123"),
        ("FAILED", "3 tasks, the latest to need attention first.", "321"),
        ("WAITING", "2 tasks on this page, the last to give up first.", "32"),
    ):
        text = read_text(pages, f"trouble={trouble}")
        assert words in text
        assert "".join(row[-1] for row in re.findall(r'<tr data-key="([^"]+)"', text)) == order
        ends = re.findall(r"<small>gives up\s*<time[^>]*>(in [^<]*)<", text)
        assert len({*ends}) == (0 if trouble == "FAILED" else len(order))
        if trouble == "FAILED":  # the API's first page of those that wait has the last to give up
            monkeypatch.setattr("cloudsched.dashboard.views.tasks.PAGE_SIZE", 2)


@pytest.mark.parametrize("query", ["trouble=FAILED", "trouble=FAILED&owner=ada"])
def test_a_list_of_a_cause_names_each_handler_with_its_number(
    pages: Pages, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """However many of another one's tasks are on its first page; the rarest comes first."""
    monkeypatch.setattr("cloudsched.dashboard.views.tasks.PAGE_SIZE", 4)
    fill(pages, make_task, seed=3)
    text = read_text(pages, query)
    named = re.findall(r'<a href="(\?[^"]+)">(\w+) \((\d+)\)</a>', text)
    handlers = Counter(each["handler"] for each in list_tasks(pages, query))
    assert [(name, int(number)) for _, name, number in named] == handlers.most_common()[::-1]
    for address, name, number in named:
        assert [each["handler"] for each in list_tasks(pages, address[1:])] == [name] * int(number)
    of_one = read_text(pages, f"{query}&handler=noise")
    assert re.findall(r'<a href="\?[^"]+">\w+ \(\d+\)</a>', of_one) == []
    retry = re.search(r'href="[^"]*bulk\?([^"]+)">Retry all of these', of_one)
    assert retry
    assert 'data-why="Tick tasks first."' in of_one
    asked = dict(parse_qsl(f"{query}&handler=noise")) | {"action": "RETRY_FAILED"}
    assert dict(parse_qsl(retry[1])) == {name: text for name, text in asked.items() if name != "trouble"}


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
