"""Home lists what is due next, each task once, and the list of what is due has all of it."""

from __future__ import annotations

import html
import re

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE

from cloudsched import App, Schedule, Settings


@pytest.fixture
def app() -> App:
    app = App(Settings())
    app.handler("tick", access="users")(lambda: None)
    return app


def list_due(pages: Pages, who: str = "admin") -> list[str]:
    """Return the titles of the rows."""
    text = pages.read("/", who).partition("<caption>Due next</caption>")[2].partition("</table>")[0]
    return [html.unescape(title) for title in re.findall("data-row>([^<]*)</a>", text)]


@pytest.mark.parametrize("busy", [1, 3, 20])
def test_each_task_is_due_next_once(pages: Pages, app: App, busy: int) -> None:
    """The soonest first, in as many rows as there are: a few that are busy hide no other."""
    for number in range(busy):
        app.create(title=f"Tick {number}", handler="tick", owner="ada", schedule=Schedule.every(MINUTE))
    app.create(title="<i>Payroll", handler="tick", owner="ada", schedule=Schedule.every(DAY))
    pages.sim.advance(20 * HOUR)
    titles = list_due(pages)
    assert len(titles) == len({*titles}) == min(8, busy + 1)
    assert (titles[-1] == "<i>Payroll") == (busy < 8)
    assert list_due(pages, "bob") == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("from=x", "from: is no time: “x”"),
        ("until=%3Cb%3E", "until: is no time: “&lt;b&gt;”"),
        ("from=2027-03-25T00:00&until=2027-03-24T00:00", "from: is after `until`"),
        ("within=tomorrow", "within: is no window of time: “tomorrow”"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(pages: Pages, app: App, query: str, said: str) -> None:
    """In the list and in its download, rather than left out in silence, or answered with a count of nothing."""
    app.create(title="Tick", handler="tick", owner="ada", schedule=Schedule.every(HOUR))
    for path in (f"/due?{query}", f"/due.csv?{query}"):
        answer = pages.get("admin", path)
        assert answer.status_code == 400, path
        assert said in answer.text, path
    assert "Tick" in pages.read("/due")
    assert pages.get("admin", "/due?from=2027-01-01T03:00&until=2027-01-01T03:00").status_code == 200


def test_the_next_hour_is_one_click_away(pages: Pages, app: App) -> None:
    """Its number is that of its list, with the filters that were chosen before."""
    app.create(owner="ada", title="Tick", handler="tick", schedule="every 10 minutes", id="tick")
    app.create(owner="bob", title="Tock", handler="tick", schedule="every 5 minutes", id="tock")
    page = pages.words("/due?owner=ada")
    (href,) = re.findall(r'href="([^"]+)">hour</a>', page)
    hour = pages.words(f"/due{href}")
    count = hour.count('<tr data-key="tick')
    assert 5 <= count <= 7
    assert f"{count} runs are due" in hour
    assert "Tock" not in hour


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["12 hours"]),
        ("?within=PT1H", ["hour"]),
        ("?until=2027-01-02T00:00", []),
        ("?from=2026-12-31T00:00&until=2026-12-31T12:00", []),
    ],
)
def test_the_window_that_is_shown_is_marked(pages: Pages, query: str, shown: list[str]) -> None:
    """Bounds of an address are none of the windows to choose from, and what is over is not in the next hours."""
    page = pages.read(f"/due{query}")
    assert re.findall(r'aria-current="true">([^<]+)</a>', page[page.index("</header>") :]) == shown
    assert ("In the next" in page) == ("2026" not in query)


def test_a_window_from_now_on_moves_with_the_clock(pages: Pages, app: App) -> None:
    """So a bookmark, a live page and a download that is made each day have the same window under one address."""
    app.create(title="Tick", handler="tick", owner="ada", schedule=Schedule.every(HOUR))
    for _ in range(2):
        pages.sim.advance(2 * DAY)
        shown = {name: pages.read(f"/due.csv?within={name}").count("Tick") for name in ("PT1H", "P1D")}
        assert shown == {"PT1H": 1, "P1D": 24}
    assert "within=P7D" in pages.read("/due?within=PT1H")
