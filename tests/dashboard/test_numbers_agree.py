"""Each number on a page is that of the list to which it leads, over stores in which all kinds of runs are mixed."""

from __future__ import annotations

import html
import random
import re
from collections import Counter
from typing import Final

import pytest
from tests.dashboard.role_pages import Pages
from tests.mixed_runs import HOUR, live, make_mixed_app

from cloudsched import App, Context
from cloudsched.dashboard.routes import VIEWS

NUMBER: Final = re.compile(r'<a class="number" href="\./([^"]+)">.*?</svg>([^<]*?)</a>', re.DOTALL)
OF_TASKS: Final = re.compile(r'<a href="\./(tasks\?status[^"]+)">(.*?)</a>', re.DOTALL)
BAR: Final = re.compile(r'<a href="([^"]+)" class="b"[^>]*><title>\S+\s\S+ ([^<]*)</title>')


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
    counts = {"succeeded": 0, "failed": 0, "skipped or cancelled": 0}
    for each in rows:
        kind = kinds.get(
            each["status"], "skipped or cancelled" if each["status"] in {"SKIPPED", "EXPIRED", "CANCELLED"} else ""
        )
        if kind:
            counts[kind] += int(each["covers.count"] or 1) if kind == "skipped or cancelled" else 1
    return counts


@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_of_home_are_those_of_their_lists(pages: Pages, seed: int) -> None:
    """Of each status of tasks, and of what ran and failed in the last hours. The list's page says the number, too."""
    live(pages.sim, random.Random(seed))  # noqa: S311 - the same tasks in each run
    pages.forget()
    home = pages.read("/")
    numbers = [*OF_TASKS.findall(home), *NUMBER.findall(home)]
    assert len(numbers) > 4, "hardly anything was tried"
    for link, words in numbers:
        number = int(re.sub(r"<[^>]+>|\D", "", words))
        if link.startswith("runs"):
            assert sum(count_listed(pages, link).values()) == number, link
        else:
            assert len(pages.rows(f"/{html.unescape(link)}")) == number, link
        assert re.search(rf"\b{number} ", pages.text("/" + html.unescape(link))), link


@pytest.mark.parametrize("seed", range(2))
def test_the_runs_of_usage_are_those_of_the_list_that_started(pages: Pages, seed: int) -> None:
    """Those of all handlers and of each owner, calls included: the page, its rows, and the list of runs agree."""
    live(pages.sim, random.Random(seed))  # noqa: S311 - the same tasks in each run
    started = [each["handler"] for each in pages.rows("/runs?calls=true") if each["startedAt"] and each["finishedAt"]]
    assert len(started) > 9, "hardly anything was tried"
    assert re.search(rf" Total Queries \S+ · Tokens \S+ {len(started):,} ", pages.text("/usage"))
    used = {each["name"]: int(each["executions"]) for each in pages.rows("/usage?by=handler")}
    assert {name: number for name, number in used.items() if number} == Counter(started)


@pytest.mark.parametrize(
    "view", ["calendar", "calendar?day={day}&tz=Europe/Paris", "calendar?day={next}", "calendar?month={month}"]
)
@pytest.mark.parametrize("seed", range(2))
def test_each_number_and_each_bar_is_that_of_its_list(pages: Pages, seed: int, view: str) -> None:
    """Of the calendar: what ran, failed and was skipped, what has not started, and what is due.

    The page of the list says the same number, and the bars together are what the first numbers say.
    """
    live(pages.sim, random.Random(seed))  # noqa: S311 - the same tasks in each run
    pages.app.create(title="Often", owner="ada", handler="works", schedule="every 10 minutes")
    now = pages.sim.now
    days = {"day": f"{now:%Y-%m-%d}", "next": f"{now.replace(day=now.day + 1):%Y-%m-%d}", "month": f"{now:%Y-%m}"}
    text = pages.read(f"/{view.format(**days)}")
    numbers, bars = NUMBER.findall(text), BAR.findall(text)
    assert len(bars) > 5, "hardly anything was tried"
    for link, words in [*numbers[:12], *random.Random(seed).sample(bars, min(12, len(bars)))]:  # noqa: S311 - likewise
        number, _, kind = words.partition(" ")
        listed = count_listed(pages, link)
        assert sum(listed.values()) == int(number.replace(",", "")), (link, words, listed)
        assert listed[kind if kind != "not started" else "due"], "it is another kind"
        page = pages.text("/" + html.unescape(link))
        assert re.search(rf"\b{number} ", page), f"the page does not say its number: {link}"
    totals = NUMBER.findall(text.partition('<svg class="c"')[0].partition('class="week"')[0])
    for total, _, kind in (words.partition(" ") for _, words in totals):
        drawn = sum(int(words.partition(" ")[0].replace(",", "")) for _, words in bars if words.endswith(f" {kind}"))
        assert drawn == int(total.replace(",", "")), kind


def test_one_of_anything_has_a_noun_of_one(pages: Pages, app: App) -> None:
    """On each page of a store in which nearly all numbers are 1."""

    @app.handler("once")
    def once(ctx: Context) -> None:
        ctx.used(queries=1, tokens=1)
        ctx.call("works")

    task = app.create(title="Once", owner="ada", handler="once", delivery_channels=["EMAIL"])
    app.create(title="Waits", owner="ada", handler="works", pull="gpu")
    pages.sim.advance(HOUR)
    own = f"/tasks/{task.id}"
    [run] = pages.sim.executions(task.id)
    paths = [f"/{view.path.lstrip('/')}" for view in VIEWS.values() if "<" not in view.path and not view.is_form]
    for path in [*paths, own, f"{own}/executions/{run.id}", "/queues?queue=gpu"]:
        wrong = re.findall(r"(?<![\d,.:-])1\s(?!is|was|has)[a-z]+s\b", pages.text(path))
        assert not wrong, (path, wrong)
