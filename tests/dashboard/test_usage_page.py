"""Usage: what was used and what it costs, budgets with what is left, and to each caller their own."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.dashboard.conftest import NOW, visit
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR

from cloudsched import App, Context, Schedule
from cloudsched.dashboard.times import BLANK
from cloudsched.dashboard.views import usage as usage_view
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.features.budgets.looks import BudgetLooks

AMOUNTS: dict[str, Any] = {
    "executions": 0, "queries": 0, "estimatedQueries": 0, "tokens": 0, "estimatedTokens": 0, "reads": 0, "writes": 0,
    "deletes": 0, "queueOperations": 0, "requests": 0, "dollars": 0,
}  # fmt: skip
NOTHING: dict[str, Any] = {
    "month": "2027-03", "usage": [], "sums": [], "by": "OWNER", "error": "", "total": AMOUNTS,
    "summedUntil": NOW.isoformat(), "isComplete": True,
    "prices": {"read": 0.3, "query": 0}, "budgets": [],
}  # fmt: skip


def budget(used: int, most: int, *, is_used_up: bool = False) -> dict[str, Any]:
    return {"owner": "ada", "maxQueriesPerMonth": most, "queries": used, "isUsedUp": is_used_up}


@pytest.mark.parametrize(
    ("used", "most", "is_used_up", "word"),
    [
        (0, 100, False, ""),
        (79, 100, False, ""),
        (80, 100, False, "nearly used"),
        (100, 100, False, "used up"),
        (250, 100, True, "used up"),
        (0, 0, True, "used up"),
    ],
)
def test_a_budget_warns_at_80_percent_and_says_what_it_has_paused(
    used: int,
    most: int,
    is_used_up: bool,  # noqa: FBT001 - from the table
    word: str,
) -> None:
    """In words."""
    answer = {**NOTHING, "budgets": [budget(used, most, is_used_up=is_used_up)]}
    [row] = usage_view.build(answer, visit())["budgets"]
    assert row["word"] == word
    assert ("are paused" in row["means"]) == is_used_up
    assert row["used"].startswith(f"{used} of {most}")


def test_a_budget_of_both_shows_the_one_that_ends_first() -> None:
    """In words it shows both. One of tokens alone says nothing of queries."""
    both = {**budget(10, 100), "maxTokensPerMonth": 1_000, "tokens": 900}
    [row] = usage_view.build({**NOTHING, "budgets": [both]}, visit())["budgets"]
    assert row["used"].replace(BLANK, " ") == "900 of 1,000 tokens (90 %), 10 of 100 queries (10 %)"
    assert row["word"] == "nearly used"
    [row] = usage_view.build({**NOTHING, "budgets": [{**both, "maxQueriesPerMonth": 10**12}]}, visit())["budgets"]
    assert "queries" not in row["used"] + row["means"]


def test_budgets_that_need_somebody_come_first() -> None:
    """Sorted by how much is used."""
    budgets = [{**budget(10, 100), "owner": "calm"}, {**budget(100, 100, is_used_up=True), "owner": "over"},
               {**budget(85, 100), "owner": "near"}]  # fmt: skip
    page = usage_view.build({**NOTHING, "budgets": budgets}, visit())
    assert [row["owner"] for row in page["budgets"]] == ["over", "near", "calm"]


@pytest.mark.parametrize(
    ("dollars", "text"), [(0, "0.00"), (0.00001, "< 0.0001"), (0.0030, "0.0030"), (0.01, "0.01"), (1234.5, "1,234.50")]
)
def test_dollars_are_never_written_as_nothing_unless_they_are(dollars: float, text: str) -> None:
    """Small amounts have four places, what is smaller says so."""
    page = usage_view.build({**NOTHING, "total": {**AMOUNTS, "dollars": dollars}}, visit())
    assert page["total"]["dollars"].replace(BLANK, " ") == text


def test_of_very_many_the_dearest_are_shown_and_the_others_are_counted() -> None:
    """The sum is that of all, whatever is shown."""
    sums = [{**AMOUNTS, "name": f"o{number}", "dollars": number} for number in range(usage_view.ROWS + 5)]
    page = usage_view.build({**NOTHING, "sums": sums}, visit())
    assert [row["name"] for row in page["rows"]] == [f"o{number}" for number in range(usage_view.ROWS + 4, 4, -1)]
    assert page["left"] == 5


@pytest.fixture
def app(app: App) -> App:
    @app.handler("spend")
    def spend(ctx: Context) -> None:
        ctx.used(queries=9, tokens=250)

    return app


def test_usage_is_that_of_the_server(pages: Pages, app: App) -> None:
    """With the owners' budgets; it does not ask again by itself."""
    for owner in ("ada", "bob"):
        app.create(owner=owner, handler="spend", schedule=Schedule.every(HOUR, start=pages.sim.now + HOUR))
    pages.sim.advance(timedelta(hours=6, minutes=1))
    Budgets.of(app.container).put("ada", 40, by=OWN_CODE)
    everything = pages.read("/usage")
    assert "54 of 40" in everything
    assert 'data-key="bob"' in everything
    bobs = pages.read("/usage?owner=bob")
    assert 'data-key="spend"' in bobs
    assert ">3,000<" not in bobs, "it has the tokens of both"
    assert "USD leaves out queries and tokens, which have no price" in everything
    head, _, foot = everything[everything.index("by owner") :].partition("</thead>")
    foot = foot[foot.index("<tfoot>") : foot.index("</tfoot>")]
    assert head.count("</th>") == len(re.findall("</t[hd]>", foot))
    assert 'data-every="0"' in everything
    assert 'id="live"' not in everything


def test_a_budget_has_the_numbers_of_the_usage_beside_it(
    pages: Pages, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the page of usage, and in Home's cause, however long ago somebody last looked at budgets."""
    monkeypatch.setattr(BudgetLooks, "find_next", lambda *_: None)
    budgets = Budgets.of(app.container)
    budgets.put("ada", 200, by=OWN_CODE)
    app.create(owner="ada", handler="spend", schedule=Schedule.every(HOUR, start=pages.sim.now + HOUR))
    pages.sim.advance(timedelta(hours=10, minutes=1))
    stored = budgets.get("ada")
    assert (stored.queries, stored.queries_before) == (0, 0), "nobody has looked"

    usage = pages.read("/usage?owner=ada")
    assert f"90 of 200 queries (45{BLANK}%)" in usage
    row, total = re.findall(r"<tr[^>]*>\s*<t[hd][^>]*>.*?</tr>", usage[usage.index("<tbody") :], re.DOTALL)[:2]
    for each in (row, total):
        assert re.findall(r'<td class="num[^"]*">\s*([\d,]+)\s*</td>', each)[:3] == ["10", "90", "2,500"]
    assert budgets.get("ada") == stored, "a look at a page writes nothing"

    budgets.put("ada", 80, by=OWN_CODE)
    budgets.enforce_for("ada")
    pages.forget()
    assert "90 of 80 queries" in pages.read("/")
