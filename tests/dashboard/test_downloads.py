"""What a run got and returned, as downloads: of nobody else's tasks."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests.dashboard.conftest import TASKS, find_execution, get
from tests.dashboard.role_pages import ROLES, Pages

from cloudsched import App


@pytest.fixture
def app() -> App:
    """A handler for the pages of each role."""
    app = App()

    @app.handler("greet")
    def greet(payload: dict[str, str]) -> dict[str, str]:
        return payload

    return app


@pytest.mark.parametrize("who", ROLES)
def test_what_a_page_does_not_show_no_download_shows(pages: Pages, who: str) -> None:
    """Whoever gets 404 for a task's page gets that for what its runs got and returned."""
    pages.sim.app.create(id="t", owner="ada", title="Secret plan", handler="greet", payload={"name": "Ada"})
    pages.sim.advance(timedelta(minutes=1))
    (record,) = pages.sim.app.executions("t").items
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
