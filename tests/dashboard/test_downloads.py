"""Downloads: lists are whole or say why not, and nobody gets what a run of others got and returned."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from tests.dashboard.conftest import TASKS, find_execution, get
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE, PEOPLE

from cloudsched.dashboard import downloads
from cloudsched.dashboard.api import Api
from cloudsched.engine.queries import task_search
from cloudsched.errors import CloudschedError


@pytest.mark.parametrize("who", PEOPLE)
def test_what_a_page_does_not_show_no_download_shows(pages: Pages, who: str) -> None:
    """Whoever gets 404 for a task's page gets that for what its runs got and returned."""
    pages.app.create(id="t", owner="ada", handler="work", payload={"n": 1})
    pages.sim.advance(MINUTE)
    (record,) = pages.app.executions("t").items
    page = pages.get(who, "/tasks/t")
    for name in ("payload", "result"):
        assert pages.get(who, f"/tasks/t/executions/{record.id}/{name}.json").status_code == page.status_code


def test_downloads_have_all_of_it(ui: str) -> None:
    """As a file, under a name of letters; what there is not is not found."""
    task = TASKS[0]["id"]
    path = f"{ui}/tasks/{task}/executions/{find_execution(ui, task)}"
    result = get(f"{path}/result.json")
    assert result.json() == {"about": TASKS[0]["title"]}
    assert re.fullmatch(r'attachment; filename="result-[\w-]+\.json"', result.headers["Content-Disposition"])
    assert get(f"{path}/payload.json").json() == {}
    assert get(f"{ui}/tasks/{task}/executions/none/result.json").status_code == 404
    failed = f"{ui}/tasks/sync/executions/{find_execution(ui, 'sync')}"
    assert get(f"{failed}/result.json").status_code == 404


def read_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def create_many(pages: Pages, count: int, **fields: Any) -> set[str]:
    for number in range(count):
        pages.app.create(id=f"t{number}", owner="ada", handler="work", **fields)
    return {f"t{number}" for number in range(count)}


def test_a_file_has_all_rows_of_its_list(pages: Pages) -> None:
    """More than two of the API's largest pages, each row once."""
    wanted = create_many(pages, 1001, schedule="in 3 days")
    rows = read_rows(pages.read("/tasks.csv", "ada"))
    assert len(rows) == 1001
    assert {row["id"] for row in rows} == wanted
    assert read_rows(pages.read("/tasks.csv", "bob")) == []


def test_a_file_has_the_runs_of_its_window(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several pages, those of the filters alone, under a name that no filter can change."""
    monkeypatch.setattr(downloads, "PAGE_SIZE", 3)
    pages.app.create(id="t", owner="ada", handler="work", schedule={"rrule": "FREQ=HOURLY"})
    pages.sim.advance(30 * HOUR)
    now = pages.sim.now
    got = pages.get("ada", "/runs.csv?within=P1D&status=SUCCEEDED")
    assert got.mimetype == "text/csv"
    listed = pages.app.executions("t", limit=100).items
    wanted = {each.id for each in listed if each.scheduled_for >= now - DAY}
    assert len(wanted) > 20
    rows = read_rows(got.text)
    assert {row["id"] for row in rows} == wanted
    assert len(rows) == len(wanted)
    hostile = pages.get("ada", '/runs.csv?handler=ä"; x=../%0d%0aEvil: 1').headers
    assert "Evil" not in hostile
    for headers in (got.headers, hostile):
        assert headers["Content-Disposition"] == f'attachment; filename="runs-{now:%Y-%m-%dT%H-%M}.csv"'


def test_a_file_whose_list_fails_half_way_ends_with_an_error(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is there, and the last line says that the rest is not. A list that fails at once is no file."""
    monkeypatch.setattr(downloads, "PAGE_SIZE", 5)
    create_many(pages, 11, schedule="in 3 days")
    ask = Api.get

    def get_some(api: Api, path: str, **query: Any) -> dict[str, Any]:
        if query.get("pageToken"):
            raise CloudschedError('The "store" did not answer.')
        return ask(api, path, **query)

    monkeypatch.setattr(Api, "get", get_some)
    rows = read_rows(pages.read("/tasks.csv", "ada"))
    assert rows[-1]["id"] == "ERROR: Rows are missing from here on: The 'store' did not answer."
    assert len(rows) == 6
    refused = pages.get("ada", "/tasks.csv?orderBy=nothing")
    assert refused.status_code == 400
    assert "Content-Disposition" not in refused.headers


def test_a_search_goes_on_over_pages_that_found_nothing(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked through may have gaps longer than a look; an exact id is a row, and not another page."""
    monkeypatch.setattr(task_search, "MAX_LOOKED_THROUGH", 4)
    create_many(pages, 30, schedule="in 3 days")
    assert "Nothing was found yet" in pages.text("/tasks?search=payload.a%3Dnowhere")
    for task_id, due in (("other", "in 2 hours"), ("other2", "in 9 days")):
        pages.app.create(id=task_id, owner="ada", handler="work", title="needle", schedule=due)
    rows = read_rows(pages.read("/tasks.csv?search=needle", "ada"))
    assert {row["id"] for row in rows} == {"other", "other2"}
    assert [row["id"] for row in read_rows(pages.read("/tasks.csv?search=t7", "ada"))] == ["t7"]


def test_usage_and_changes_are_files_as_well(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all pages, with the filters of the page, and each caller's own; what was not looked at is said."""
    monkeypatch.setattr(downloads, "PAGE_SIZE", 2)
    for number, owner in enumerate(["ada", "bob", "eve", "ada", "bob"]):
        labels = [f"team={'ab'[number % 2]}"]
        pages.app.create(id=f"t{number}", owner=owner, handler="work", labels=labels, schedule="in 3 days")
    pages.app.pause("t1")
    pages.app.update("t2", title="Anew")
    changes = read_rows(pages.read("/audit.csv"))
    wanted = [*((f"t{number}", "CREATED") for number in range(5)), ("t1", "PAUSED"), ("t2", "EDITED")]
    assert sorted((row["taskId"], row["action"]) for row in changes) == sorted(wanted)
    assert [each["fields"] for each in changes if each["fields"]] == ['title: "work" → "Anew";']
    paused = read_rows(pages.read("/audit.csv?action=paused"))
    assert [each["taskId"] for each in paused] == ["t1"]
    assert {row["owner"] for row in read_rows(pages.read("/audit.csv", "bob"))} == {"bob"}
    used = read_rows(pages.read("/usage.csv"))
    assert sorted(row["name"] for row in used) == ["ada", "bob", "eve"]
    assert {row["name"] for row in read_rows(pages.read("/usage.csv", "bob"))} == {"bob"}
    summed = read_rows(pages.read("/usage.csv?label=team"))
    assert {row["name"]: row["writes"] for row in summed}.keys() == {"a", "b"}
    page = pages.read("/usage?label=team")
    assert "tasks?label=team%3Da" in page
    monkeypatch.setattr("cloudsched.engine.queries.audit_trail.MAX_LOOKED_THROUGH", 1)
    assert "ERROR: Not everything" in pages.read("/audit.csv")


@pytest.mark.parametrize("name", ["tasks", "runs"])
def test_a_file_of_a_local_stack_has_more_than_its_first_page(
    ui: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its page asks the API in its own process, also for what is sent after the request has been handled."""
    monkeypatch.setattr(downloads, "PAGE_SIZE", 2)
    answer = get(f"{ui}/{name}.csv")
    assert answer.status_code == 200
    text = answer.text
    assert len(read_rows(text)) > 2
    assert "ERROR" not in text
