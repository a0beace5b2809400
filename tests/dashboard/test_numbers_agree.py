"""Each number on a page is that of the list to which it leads, over stores in which all kinds of runs are mixed."""

from __future__ import annotations

import html
import random
import re
from typing import Final

import pytest
from tests.dashboard.role_pages import Pages
from tests.mixed_runs import HOUR, live, make_mixed_app

from cloudsched import App

NUMBER: Final = re.compile(r'<td class="num">\s*<a href="\./([^"]+)">([\d,]+)</a>')
BAR: Final = re.compile(r'<a href="([^"]+)"[^>]*class="b"[^>]*><title>[^<]*?(\d[^<]*)</title>')
WORDS: Final = re.compile(r"([\d,]+) (succeeded|failed|skipped|due)")


@pytest.fixture
def app() -> App:
    """Handlers that end in every way."""
    return make_mixed_app()


def count_listed(pages: Pages, link: str) -> dict[str, int]:
    """Return what the list behind a link has: of runs those that are no calls, by how they ended."""
    path = html.unescape(link).removeprefix("./")
    rows = pages.rows(f"/{path}")
    if path.startswith("due"):
        return {"due": len(rows)}
    kinds = {"SUCCEEDED": "succeeded", "FAILED": "failed", "TIMED_OUT": "failed"}
    counts = {"succeeded": 0, "failed": 0, "skipped": 0}
    for each in rows:
        kind = kinds.get(each["status"], "skipped" if each["status"] in {"SKIPPED", "EXPIRED", "CANCELLED"} else "")
        if kind:
            counts[kind] += int(each["covers.count"] or 1) if kind == "skipped" else 1
    return counts


@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_of_home_are_those_of_their_lists(pages: Pages, seed: int) -> None:
    """Of each hour: what ran, failed, was skipped and began late, and what is due."""
    live(pages.sim, random.Random(seed))  # noqa: S311 - the same tasks in each run
    pages.sim.app.container.many_tasks.overview.forget()
    numbers = NUMBER.findall(pages.read("/"))
    assert len(numbers) > 20, "hardly anything was tried"
    for link, number in numbers:
        assert sum(count_listed(pages, link).values()) == int(number.replace(",", "")), link
        page = pages.read("/" + html.unescape(link))
        assert re.search(rf"<h1>[^<]+</h1><p>{number} ", page), f"the page does not say its number: {link}"


def test_a_day_says_how_much_it_lists_of_all(pages: Pages) -> None:
    """With the lists that have all of it, of past runs and of what is due."""
    pages.sim.advance(HOUR * 4)
    for number in range(70):
        at = (pages.sim.now + number * HOUR / 9).isoformat()
        pages.sim.app.create(title=f"T{number}", owner="ada", handler="works", schedule={"at": at})
    pages.sim.advance(HOUR)
    text = pages.read(f"/calendar?day={pages.sim.now:%Y-%m-%d}")
    listed, total, links = re.findall(r"<span>([\d,]+) of ([\d,]+) are listed\.(.*?)</span>", text)[0]
    found = [count_listed(pages, link) for link in re.findall(r'href="([^"]+)"', links)]
    assert (int(listed), len(found)) == (50, 2)
    assert sum(sum(each.values()) for each in found) == int(total)


@pytest.mark.parametrize(
    "view", ["calendar", "calendar?owner=ada", "calendar?day={day}", "calendar?day={next}&owner=bob"]
)
def test_the_bars_of_the_calendar_are_those_of_their_lists(pages: Pages, view: str) -> None:
    """Each bar leads to the runs that it counts, or to what is due then, with the filters of the page."""
    live(pages.sim, random.Random(7))  # noqa: S311 - likewise
    pages.sim.app.create(title="Often", owner="ada", handler="works", schedule="every 10 minutes")
    pages.sim.app.create(title="Often", owner="bob", handler="works", schedule="every 10 minutes")
    now = pages.sim.now
    days = {"day": f"{now:%Y-%m-%d}", "next": f"{now.replace(day=now.day + 1):%Y-%m-%d}"}
    bars = BAR.findall(pages.read(f"/{view.format(**days)}"))
    assert len(bars) > 9, "hardly anything was tried"
    for link, words in bars:
        said = {kind: int(number.replace(",", "")) for number, kind in WORDS.findall(words)}
        listed = count_listed(pages, link)
        assert {kind: said.get(kind, 0) for kind in listed} == listed, link
