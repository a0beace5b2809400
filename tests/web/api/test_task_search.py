"""The list of tasks searched by words, and without calls: every match is on one page, and it says what was read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import MINUTE, RoleHarness

from cloudsched import App, Context, Settings
from cloudsched.engine.queries import task_search

app = App(Settings())


@app.handler("report", access="users")
def report(payload: dict[str, str]) -> None: ...


app.handler("tidy", access="users")(lambda: None)


@app.handler("calls")
def calls(ctx: Context) -> None:
    for _ in range(3):
        ctx.call("tidy", {})


def create(roles: RoleHarness, owner: str, title: str, handler: str = "tidy", **more: Any) -> None:
    body = {"owner": owner, "title": title, "handler": handler, "schedule": "every year", **more}
    answer = roles.create_task("admin", body)
    assert answer.status_code == 201, answer.text


def walk(roles: RoleHarness, who: str, query: str) -> list[list[str]]:
    """Return the titles of each page, and check that none comes twice."""
    pages, token = [], ""
    while True:
        answer = roles.ask(who, "GET", f"/v1/tasks?{query}{token}")
        page = answer.json
        pages.append([each["title"] for each in page["tasks"]])
        if "nextPageToken" not in page:
            return pages
        token = f"&pageToken={page['nextPageToken']}"


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("search=SALES", {"Sales report", "Other"}),
        ("search=%22sales+report%22", {"Sales report"}),
        ("search=team%3Dshop", {"Labelled"}),
        ("search=payload.about%3Dsales", {"Other"}),
        ("search=category%3Areport", {"Of a category"}),
        ("search=tidy", {"Labelled", "Of a category"}),
    ],
)
def test_words_are_found_wherever_a_person_would_look(roles: RoleHarness, query: str, titles: set[str]) -> None:
    """In title, handler, labels and payload; a field of the payload and the category by name."""
    create(roles, "ada", "Sales report", "report", payload={"about": "returns"})
    create(roles, "ada", "Other", "report", payload={"about": "sales"})
    create(roles, "ada", "Labelled", labels=["team=shop"])
    create(roles, "ada", "Of a category", category="REPORT")
    assert {title for page in walk(roles, "ada", query) for title in page} == titles
    assert walk(roles, "bob", query) == [[]]


def test_a_category_that_does_not_exist_is_refused(roles: RoleHarness) -> None:
    """It would look through all tasks for nothing."""
    answer = roles.ask("admin", "GET", "/v1/tasks?search=category%3Anonsense")
    assert answer.status_code == 400
    assert "Give one of reminder, report, analysis, others." in answer.text


@pytest.mark.parametrize("order", ["", "&orderBy=nextExecutionTime"])
def test_every_match_is_on_one_page_however_few_match(
    roles: RoleHarness, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Pages end at the bound, too, and the next one goes on there."""
    monkeypatch.setattr(task_search, "MAX_LOOKED_THROUGH", 7)
    monkeypatch.setattr(task_search, "_PAGE", 3)
    for number in range(30):
        create(roles, "ada", f"{'needle' if number % 5 == 0 else 'hay'} {number:02}")
    pages = walk(roles, "ada", f"search=needle&pageSize=2{order}")
    found = [title for page in pages for title in page]
    assert sorted(found) == [f"needle {number:02}" for number in range(0, 30, 5)]
    assert all(len(page) <= 2 for page in pages)
    first = roles.fetch("ada", f"/v1/tasks?search=nothing{order}")
    assert (first["tasks"], first["lookedThrough"]) == ([], 7)
    assert "nextPageToken" in first


def test_names_alone_are_all_looked_at_at_once(roles: RoleHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tasks there are, and in any order: a page that is not full is the last. Payloads are left out."""
    monkeypatch.setattr(task_search, "MAX_LOOKED_THROUGH", 7)
    for number in range(30):
        create(roles, "ada", f"{'needle' if number % 5 == 0 else 'hay'} {number:02}")
    create(roles, "ada", "Only its payload", "report", payload={"about": "a needle"})
    for order in ("", "&orderBy=nextExecutionTime", "&owner=ada"):
        sizes = [len(page) for page in walk(roles, "ada", f"search=needle&payloads=false&pageSize=4{order}")]
        assert sizes == [4, 2], order
        first = roles.fetch("ada", f"/v1/tasks?search=nothing&payloads=false{order}")
        assert "nextPageToken" not in first
    assert sum(len(page) for page in walk(roles, "ada", "search=needle")) == 7
    fields = "search=payload.about%3D%22a+needle%22&payloads=false"
    assert [title for page in walk(roles, "ada", fields) for title in page] == ["Only its payload"]


def test_calls_are_left_out_if_that_is_asked(roles: RoleHarness) -> None:
    """The task that made them stays."""
    body = {"owner": "ada", "title": "Calls", "handler": "calls"}
    assert roles.create_task("admin", body).status_code == 201
    roles.sim.advance(MINUTE)
    assert sum(len(page) for page in walk(roles, "admin", "pageSize=2")) == 4
    assert [title for page in walk(roles, "admin", "calls=false&pageSize=2") for title in page] == ["Calls"]
