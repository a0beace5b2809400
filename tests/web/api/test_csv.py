"""Lists as CSV: the same items, rights and filters as in JSON, to their end by following links."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from tests.web.callers import DAY, MINUTE, RoleHarness
from tests.web.conftest import Call

from cloudsched.testing import Simulation

CSV = {"Accept": "text/csv"}
LINK = re.compile(r'<([^>]+)>; rel="next"')


def read_all(roles: RoleHarness, who: str, path: str) -> list[dict[str, str]]:
    """Return the rows of all pages, as one file."""
    text = ""
    next_page: str | None = path
    while next_page:
        answer = roles.ask(who, "GET", next_page, **CSV)
        assert answer.status_code == 200
        assert answer.content_type.startswith("text/csv")
        text += answer.text
        link = LINK.fullmatch(answer.headers.get("Link", ""))
        next_page = link and link[1]
    return [*csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("who", ["ada", "bob", "admin"])
def test_the_links_lead_to_all_that_a_caller_may_list_and_to_nothing_else(roles: RoleHarness, who: str) -> None:
    """In the order of JSON, with the filters that were given."""
    for number in range(23):
        roles.task("ada" if number % 2 else "bob", labels=["team=red"] if number % 3 else [])
    roles.sim.advance(DAY)
    for path in (
        "/v1/tasks?",
        "/v1/tasks?label=team%3Dred&",
        "/v1/executions?status=SUCCEEDED&",
        "/v1/audit?",
    ):
        wanted: list[Any] = next(iter(roles.fetch(who, f"{path}pageSize=500").values()))
        rows = read_all(roles, who, f"{path}pageSize=4")
        assert [row["owner"] for row in rows] == [each["owner"] for each in wanted]
        assert [row.get("id", "") for row in rows] == [each.get("id", "") for each in wanted]
        assert wanted


@pytest.mark.parametrize("title", ['=HYPERLINK("http://evil")', "+1", "-1", "@x", 'a"b,\n=c;', "\N{GRINNING FACE} ä"])
def test_no_title_is_a_formula_or_another_cell(roles: RoleHarness, title: str) -> None:
    """Whoever opens the file in a spreadsheet sees it as a text."""
    roles.task("ada", title=title)
    (row,) = read_all(roles, "admin", "/v1/tasks")
    assert row["title"].removeprefix("'") == title
    assert row["title"][0] not in "=+-@\t\r"
    assert row["owner"] == "ada"


def test_json_is_the_answer_unless_csv_is_preferred(roles: RoleHarness) -> None:
    """A refusal is a problem in any format, and caches keep both apart."""
    for accept in ("*/*", "application/json", "text/csv;q=0.5, application/json", "text/html", "nonsense"):
        answer = roles.ask("ada", "GET", "/v1/tasks", Accept=accept)
        assert answer.json == {"tasks": []}
        assert "Accept" in answer.headers["Vary"]
    refused = roles.ask("ada", "GET", "/v1/tasks?statu=x", **CSV)
    assert (refused.status_code, refused.content_type) == (400, "application/problem+json")
    assert roles.ask(None, "GET", "/v1/tasks", **CSV).status_code == 401


def test_a_page_whose_rows_may_be_missing_ends_with_an_error(
    call: Call, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of CSV sees no other field."""
    for _ in range(3):
        sim.app.create(owner="ada", handler="greet", payload={"name": "A"}, schedule="in 3 days")
    sim.advance(MINUTE)
    assert "ERROR" not in call("GET", "/v1/audit", headers=CSV).text
    monkeypatch.setattr("cloudsched.engine.queries.audit_trail.MAX_LOOKED_THROUGH", 1)
    assert call("GET", "/v1/audit", headers=CSV).text.splitlines()[-1].startswith('"ERROR: Not everything')
