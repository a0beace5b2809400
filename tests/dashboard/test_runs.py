"""Runs: what failed comes first, equal failures in one row, and is retried together after a question with the count."""

from __future__ import annotations

import ast
import html
import random
import re
from collections import Counter
from itertools import combinations

import pytest
from tests.dashboard.conftest import read_hidden
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR, MINUTE

from cloudsched import App, Context, Schedule
from cloudsched.dashboard.views import runs as runs_view
from cloudsched.dashboard.words import SKIPPED_TOGETHER

IS_MENDED: list[bool] = []


@pytest.fixture
def app(app: App) -> App:
    IS_MENDED.clear()

    @app.handler("load", retry=0, access="users")
    def load(ctx: Context) -> str:
        if not IS_MENDED:
            raise ConnectionError(f"the host <of> {ctx.task.title} is gone")
        return "done"

    @app.handler("same", retry=0)
    def same(ctx: Context) -> None:
        raise KeyError(str(ctx.task.title))

    @app.handler("calls", retry=0)
    def calls(ctx: Context) -> None:
        ctx.call("load", {}).result()

    return app


def run(pages: Pages, app: App, count: int, owner: str = "ada", handler: str = "load", title: str = "") -> None:
    at = pages.sim.now
    for number in range(count):
        named = title or f"{handler} {owner} {number}"
        app.create(owner=owner, title=named, handler=handler, schedule=Schedule.once(at))
    pages.sim.advance(2 * MINUTE)


def list_rows(text: str) -> list[str]:
    return re.findall(r'<tr data-key="([^"/]+/[^"]+)"', text)


def test_failures_are_counted_and_each_role_sees_its_own(pages: Pages, app: App) -> None:
    """In a window of time, with what failed first. Without a window no index has the number: the rows are counted."""
    run(pages, app, 2)
    pages.sim.advance(3 * HOUR)
    run(pages, app, 3)
    run(pages, app, 1, owner="bob")
    for who, count in (("admin", 4), ("viewer", 4), ("ada", 3), ("bob", 1)):
        text = pages.words("/runs?within=PT1H", who)
        assert f"<h1>Runs</h1><p>{count} failed.</p>" in text
        assert len(list_rows(text)) == count
        assert "ConnectionError: the host <of> load" in text
        assert ('name="all"' in text) == (who == "admin" or who in {"ada", "bob"})
    assert "<p>6 failed.</p>" in pages.words("/runs?within=P1D&outcome=failed")
    assert "<p>Nothing matches.</p>" in pages.words("/runs?within=PT15M&handler=other")
    text = pages.read("/runs")
    assert "<h1>Runs</h1><p>6 found.</p>" in text
    assert [number for number, *_ in read_folds(text)] == ["2", "2"]


def read_folds(text: str) -> list[tuple[str, str, str, str]]:
    """Return the rows that stand for several runs: their number, error, address, and all of the row."""
    rows = re.findall(r"<tr data-key.*?</tr>", text, re.DOTALL)
    found = [
        (re.search(r'>((?:at least )?\d+) runs?: ([^<]*)<.*?href="(\?[^"]*)"', each, re.DOTALL), each) for each in rows
    ]
    return [(*match.groups(), each) for match, each in found if match]


@pytest.mark.parametrize("seed", range(3))
def test_equal_failures_are_one_row_with_their_number(pages: Pages, app: App, seed: int) -> None:
    """None is lost, however they are mixed: the row names each, and its link leads to all of them."""
    chance = random.Random(seed)  # noqa: S311 - the same runs in each test
    wanted: Counter[str] = Counter()
    for number in range(30):
        kind = chance.choice(["total", "x" * 200, "<b>&amp;%'\"", "total " + "y" * 300])
        wanted[kind] += 1
        at = pages.sim.now + number * MINUTE
        app.create(owner="ada", title=kind, handler="same", schedule=Schedule.once(at))
    run(pages, app, 3)
    pages.sim.advance(HOUR)
    text = pages.read("/runs")
    folds = read_folds(text)
    assert len(list_rows(text)) == len([kind for kind in wanted if wanted[kind]]) + 3
    for count, error, address, row in folds:
        kind = ast.literal_eval(html.unescape(error).removeprefix("KeyError: "))
        assert int(count) == wanted[kind]
        assert row.count("/executions/") == wanted[kind]
        linked = pages.rows(f"/runs{html.unescape(address)}")
        assert wanted[kind] <= len(linked)
        assert pages.read(f"/runs{html.unescape(address)}").count('name="pick"') == len(linked), "one tick for several"
    assert not read_folds(pages.read("/runs?handler=load"))
    assert read_folds(pages.read("/runs", "bob")) == []


def test_a_number_that_the_page_has_cut_says_so(pages: Pages, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be more of them before a page or after it, but not after what has not failed: failures come first."""
    monkeypatch.setattr(runs_view, "PAGE_SIZE", 5)
    run(pages, app, 8, handler="same", title="total")
    IS_MENDED.append(True)
    run(pages, app, 8)
    text = pages.read("/runs")
    assert [number for number, *_ in read_folds(text)] == ["at least 5"]
    further = re.findall(r'href="(\?[^"]*page=[^"]+)"[^>]*>Next', text)[0]
    assert [number for number, *_ in read_folds(pages.read(f"/runs{html.unescape(further)}"))] == ["at least 3"]
    monkeypatch.setattr(runs_view, "PAGE_SIZE", 9)
    assert [number for number, *_ in read_folds(pages.read("/runs"))] == ["8"]


def test_calls_fold_under_who_made_them(pages: Pages, app: App) -> None:
    """They are hidden by default; shown, each names the execution that called it, and cannot be ticked."""
    run(pages, app, 1, handler="calls")
    pages.sim.advance(30 * MINUTE)
    assert len(list_rows(pages.words("/runs"))) == 1
    text = pages.words("/runs?calls=true")
    assert len(list_rows(text)) == 2
    assert text.count("called by</a>") == 1
    assert text.count('name="pick"') == 1


def test_what_is_ticked_is_retried_and_nothing_else(pages: Pages, app: App) -> None:
    """Without a tick, or if the number has changed since, nothing is done. That for all looks at no ticks."""
    run(pages, app, 3)
    first, *_ = list_rows(pages.words("/runs", "ada"))
    assert pages.get("ada", "/retry?only=ticked&owner=ada").status_code == 400
    text = pages.words(f"/retry?only=ticked&pick={first}", "ada")
    assert "Retry 1 run?" in text
    assert "Retry 3 runs?" in pages.words(f"/retry?owner=ada&all=1&pick={first}", "ada")
    form = read_hidden(text)
    refused = pages.post("ada", "/retry", {**form, "count": "2"})
    assert refused.status_code == 412
    assert "The number is " in refused.text
    IS_MENDED.append(True)
    assert pages.post("ada", "/retry", form).status_code == 303
    pages.sim.advance(MINUTE)
    assert first not in list_rows(pages.words("/runs?status=failed", "ada"))
    assert len(list_rows(pages.words("/runs?status=failed", "ada"))) == 2


@pytest.mark.parametrize(
    "query", ["", "status=failed", "status=succeeded", "outcome=ran", "outcome=skipped", "calls=true"]
)
def test_ticked_runs_are_retried_where_any_can_be_ticked(pages: Pages, app: App, query: str) -> None:
    """No button stands above a list without a box, and none is missing above one with boxes."""
    run(pages, app, 2)
    IS_MENDED.append(True)
    run(pages, app, 2)
    for who in ("admin", "viewer"):
        text = pages.words(f"/runs?{query}", who)
        assert ("Retry the ticked" in text) == ('name="pick"' in text)
    assert ('name="pick"' in pages.words(f"/runs?{query}")) == (query in {"", "status=failed", "calls=true"})


def test_any_two_filters_have_a_page(pages: Pages, app: App) -> None:
    """With what they found, or with why they cannot be joined."""
    run(pages, app, 2)
    wanted = {
        "status": ("SUCCEEDED", "SKIPPED", "SUSPENDED", "FAILED"), "outcome": ("ran", "skipped", "failed"),
        "handler": ("load",), "owner": ("ada",), "label": ("a=b",), "category": ("others",), "error": ("gone",),
        "errorType": ("ConnectionError",), "minDuration": ("PT10S",), "minLateness": ("PT1M",),
    }  # fmt: skip
    given = [(name, value) for name, values in wanted.items() for value in values]
    for one, other in combinations(given, 2):
        address = f"/runs?within=P1D&{one[0]}={one[1]}&{other[0]}={other[1]}"
        answer = pages.get("admin", address)
        assert answer.status_code in {200, 400}, address
        assert "This view has failed" not in answer.text, address


def test_a_count_of_what_was_skipped_says_where_it_counts(pages: Pages) -> None:
    """One record may cover days, so those after its first have none."""
    for path in ("runs?within=P1D&outcome=skipped", "runs?status=SKIPPED", "calendar"):
        assert SKIPPED_TOGETHER in pages.words(f"/{path}")
    assert "Open runs, and those offered to workers, are not counted." in pages.words("/calendar")
    assert SKIPPED_TOGETHER not in pages.words("/runs?within=P1D")
