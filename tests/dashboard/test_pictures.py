"""Pictures of charts: whole by themselves, of nobody else's tasks; and what a run got and returned, as downloads."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.dashboard.conftest import ATTACK, TASKS, get
from tests.dashboard.role_pages import ROLES

from cloudsched import App
from cloudsched.dashboard.pictures import find_style

if TYPE_CHECKING:
    from tests.dashboard.role_pages import Pages

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def app() -> App:
    """A handler for the pages of each role."""
    app = App()

    @app.handler("greet")
    def greet(payload: dict[str, str]) -> dict[str, str]:
        return payload

    return app


def find_execution(ui: str, task_id: str) -> str:
    answer = get(f"{ui.removesuffix('/ui')}/v1/tasks/{task_id}/executions")
    return str(answer.json()["executions"][0]["id"])


@pytest.mark.parametrize("name", ["life", "waterfall", "week", "day"])
def test_a_picture_is_whole_by_itself(ui: str, name: str) -> None:
    """Well-formed, with a size, a title, its style and patterns, and when it was drawn; without links and scripts."""
    task = TASKS[2]["id"]  # with an attack in its title
    path = {
        "life": f"tasks/{task}/life.svg",
        "waterfall": f"tasks/{task}/executions/{find_execution(ui, task)}/waterfall.svg",
        "week": "calendar.svg?week=2027-03-22&tz=Europe/Paris",
        "day": "calendar.svg?day=2027-03-26",
    }[name]
    answer = get(f"{ui}/{path}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("image/svg+xml")
    root = ET.fromstring(answer.text)  # noqa: S314 - of ours
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert {"title", "desc", "style", "pattern", "text"} <= tags
    assert not tags & {"a", "script", "img", "foreignObject"}
    assert all(float(root.get(side, "0")) > 100 for side in ("width", "height"))
    assert "Sat 27 Mar 2027" in answer.text.replace("\N{NO-BREAK SPACE}", " ")
    policy = answer.headers["Content-Security-Policy"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; frame-ancestors 'none'", policy
    )
    if name != "life":
        assert ATTACK not in answer.text


def test_a_picture_has_the_colours_of_the_pages() -> None:
    """Those of the light and of the dark page, and the rules of charts, and nothing of tables."""
    style = find_style()
    assert style.count("--fail: ") == 2
    assert "prefers-color-scheme: dark" in style
    assert ".f-past" in style
    assert "tbody" not in style
    assert len(style) < 8000


def test_a_page_names_its_picture(ui: str) -> None:
    """For those who unfurl links, and as a link; a page without a chart names none."""
    for path, picture in (("tasks/sync", "../tasks/sync/life.svg"), ("calendar?day=2027-03-26", "./calendar.svg?day=")):
        text = get(f"{ui}/{path}").text
        assert f'<meta property="og:image" content="{picture}' in text
        assert f'href="{picture}' in text
    assert "og:image" not in get(f"{ui}/locks").text


@pytest.mark.parametrize("who", ROLES)
def test_what_a_page_does_not_show_no_picture_or_download_shows(pages: Pages, who: str) -> None:
    """Whoever gets 404 for a task's page gets that for its picture and its results; a week has what its page has."""
    pages.sim.app.create(id="t", owner="ada", title="Secret plan", handler="greet", payload={"name": "Ada"})
    pages.sim.advance(timedelta(minutes=1))
    (record,) = pages.sim.app.executions("t").items
    path = f"tasks/t/executions/{record.id}"
    page = pages.get(who, "/tasks/t")
    for picture in ("tasks/t/life.svg", f"{path}/waterfall.svg", f"{path}/payload.json"):
        assert pages.get(who, f"/{picture}").status_code == page.status_code
    days, week = pages.get(who, "/calendar.svg"), pages.get(who, "/calendar")
    assert days.status_code == week.status_code
    assert ("Secret" in week.text) == (page.status_code == 200)
    assert "Secret" not in days.text or page.status_code == 200  # it may have no room there


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
