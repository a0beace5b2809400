"""The lists of tasks and runs: an id opens at once, columns are chosen, rows become files."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import MINUTE

from cloudsched import App


def create(app: App, task_id: str, **fields: Any) -> None:
    usual: dict[str, Any] = {"id": task_id, "title": f"Title of {task_id}", "handler": "work", "owner": "ada"}
    app.create(**(usual | fields))


def list_rows(text: str) -> list[str]:
    return re.findall(r'<tr data-key="([^"]+)"', text)


@pytest.mark.parametrize(
    ("who", "word", "path"),
    [
        ("admin", "s16", "tasks/s16"),
        ("ada", "s16", "tasks/s16"),
        ("admin", "bob", None),
        ("bob", "s16", None),
        ("bob", "ada", None),
        ("admin", "Title", None),
        ("admin", "..", None),
    ],
)
def test_an_exact_id_opens_at_once(pages: Pages, app: App, who: str, word: str, path: str | None) -> None:
    """A task's, if whoever asks may see it; anything else is searched for."""
    create(app, "s16")
    create(app, "s160")
    create(app, "other", owner="bob")
    answer = pages.get(who, f"/search?q={word}")
    assert answer.status_code == (200 if path is None else 303)
    assert answer.headers.get("Location", "").removeprefix("./") == (path or "")
    if who == "bob":
        assert "s16" not in list_rows(answer.text)


def test_what_is_shown_becomes_a_file(pages: Pages) -> None:
    """With the same filters; `test_downloads` and `test_csv` have what is in it."""
    for list_name, name, text in (("tasks", "orderBy", "nextExecutionTime"), ("runs", "within", "P1D")):
        shown = pages.read(f"/{list_name}?owner=ada&{name}={text}&done=same")
        assert f'href="./{list_name}.csv?owner=ada&amp;{name}={text}" download' in shown


def read_search_form(text: str) -> dict[str, str]:
    """Return what the filter form of a page sends as it stands."""
    form = re.search(r'<form class="row end"[^>]*role="search".*?</form>', text, re.DOTALL)
    assert form
    sent = {}
    for tag in re.findall(r"<input[^>]*>", form[0]):
        found = dict(re.findall(r'(name|value)="([^"]*)"', tag))
        sent[found["name"]] = html.unescape(found.get("value", ""))
    for name, options in re.findall(r'<select[^>]*name="([^"]+)">(.*?)</select>', form[0], re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        sent[name] = html.unescape(chosen[1]) if chosen else ""
    return {name: text for name, text in sent.items() if text}


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/runs", {"outcome": "SKIPPED", "owner": "ada", "within": "P1D"}),
        ("/runs", {"minLateness": "PT1M", "calls": "true", "within": "P7D", "tz": "Europe/Paris"}),
        ("/tasks", {"trouble": "OVERDUE", "troubleUntil": "2027-01-09T00:00:00+00:00"}),
        ("/tasks", {"dueUntil": "2027-01-09T00:00:00+00:00", "search": "<b>"}),
        ("/audit", {"owner": "ada", "tz": "Europe/Paris"}),
        ("/usage", {"by": "handler", "owner": "ada", "month": "2027-01", "tz": "Europe/Paris"}),
        ("/decisions", {"owner": "ada", "tz": "Europe/Paris"}),
    ],
)
def test_a_filter_form_keeps_each_filter_of_the_address(
    pages: Pages, app: App, path: str, query: dict[str, str]
) -> None:
    """Also those that it has no field for. The page of the list begins anew."""
    create(app, "one")
    pages.sim.advance(MINUTE)
    for page in (path, f"{path}?{urlencode(query)}"):
        assert pages.get("admin", page).status_code == 200
    asked = urlencode({**query, "done": "same"})
    sent = read_search_form(pages.read(f"{path}?{asked}"))
    assert query.items() <= sent.items()
    assert "done" not in sent
    assert pages.get("admin", f"{path}?{urlencode(sent)}").status_code == 200
