"""Usage: what was used and what it costs, budgets with what is left, and to each caller their own."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.dashboard.conftest import NOW, visit
from tests.dashboard.role_pages import Pages

from cloudsched import App, Context, Schedule, Settings
from cloudsched.dashboard import usage_view
from cloudsched.dashboard.usage_view import draw_budget
from cloudsched.engine.ports.authority import OWN_CODE

AMOUNTS: dict[str, Any] = {
    "executions": 0, "queries": 0, "estimatedQueries": 0, "tokens": 0, "estimatedTokens": 0, "reads": 0, "writes": 0,
    "deletes": 0, "queueOperations": 0, "requests": 0, "dollars": 0,
}  # fmt: skip
NOTHING: dict[str, Any] = {
    "month": "2027-03", "usage": [], "total": AMOUNTS, "summedUntil": NOW.isoformat(), "isComplete": True,
    "prices": {"read": 0.3, "query": 0}, "budgets": [], "moreBudgets": None,
}  # fmt: skip


def budget(used: int, most: int, *, is_used_up: bool = False) -> dict[str, Any]:
    return {"owner": "ada", "maxQueriesPerMonth": most, "queries": used, "isUsedUp": is_used_up}


@pytest.mark.parametrize(
    ("used", "most", "is_used_up", "word", "css"),
    [
        (0, 100, False, "Enough", ""),
        (79, 100, False, "Enough", "f-past"),
        (80, 100, False, "Nearly used", "f-retry"),
        (99, 100, False, "Nearly used", "f-retry"),
        (100, 100, False, "Used up", "f-fail"),
        (250, 100, True, "Used up", "f-fail"),
        (0, 0, True, "Used up", "f-fail"),
    ],
)
def test_a_budget_warns_at_80_percent_and_says_what_it_has_paused(
    used: int,
    most: int,
    is_used_up: bool,  # noqa: FBT001 - from the table
    word: str,
    css: str,
) -> None:
    """A word and a shape, not the colour alone; the paused tasks are a link away."""
    answer = {**NOTHING, "budgets": [budget(used, most, is_used_up=is_used_up)]}
    [row] = usage_view.build(answer, visit())["budgets"]
    assert row["status"].word == word
    assert (css in row["chart"]) if css else ("f-" not in row["chart"])
    assert row["used"].startswith(f"{used} of {most}")


def test_a_bar_never_leaves_its_frame() -> None:
    """However much more than the budget was used, the bar is as wide as its frame; of nothing, there is none."""
    for used, most in ((0, 5), (1, 10**9), (5, 5), (10**9, 1), (0, 0)):
        widths = [float(each) for each in re.findall(r'width="([0-9.]+)%"', draw_budget(used, most))]
        assert max(widths) <= 99
        assert len(widths) == (1 if (used, most) == (0, 5) else 2)


def test_budgets_that_need_somebody_come_first_and_in_the_sentence() -> None:
    """Sorted by how much is used; the sentence counts those that are used up and those that nearly are."""
    budgets = [{**budget(10, 100), "owner": "calm"}, {**budget(100, 100, is_used_up=True), "owner": "over"},
               {**budget(85, 100), "owner": "near"}]  # fmt: skip
    rows = [{"owner": "over", "handler": "h", "month": "2027-03", **AMOUNTS}]
    page = usage_view.build({**NOTHING, "usage": rows, "budgets": budgets}, visit())
    assert [row["owner"] for row in page["budgets"]] == ["over", "near", "calm"]
    assert page["sentence"].endswith("1 budget is used up. 1 budget is nearly used.")


@pytest.mark.parametrize(
    ("dollars", "text"), [(0, "0.00"), (0.00001, "< 0.0001"), (0.0030, "0.0030"), (0.01, "0.01"), (1234.5, "1,234.50")]
)
def test_dollars_are_never_written_as_nothing_unless_they_are(dollars: float, text: str) -> None:
    """Small amounts have four places, what is smaller says so."""
    page = usage_view.build({**NOTHING, "total": {**AMOUNTS, "dollars": dollars}}, visit())
    assert page["total"]["dollars"] == text


def test_who_costs_most_comes_first() -> None:
    """Owners by what they cost together, and of each owner the dearest handler first; nobody's rows are torn apart."""
    costs = (("b", "x", 1), ("a", "y", 3), ("b", "z", 4), ("a", "w", 1), ("c", "v", 0))
    rows = [{**AMOUNTS, "owner": owner, "handler": name, "dollars": dollars} for owner, name, dollars in costs]
    page = usage_view.build({**NOTHING, "usage": rows}, visit())
    assert [row["owner"] + row["handler"] for row in page["rows"]] == ["bz", "bx", "ay", "aw", "cv"]


def test_what_is_not_all_says_so() -> None:
    """A sum that is not complete, a total of one page, and a user's own view are told apart."""
    rows = [{"owner": "ada", "handler": "h", "month": "2027-03", **AMOUNTS}]
    page = usage_view.build({**NOTHING, "usage": rows, "isComplete": False, "nextPageToken": "t"}, visit(owner="ada"))
    assert page["isPartial"]
    assert "on this page" in page["sentence"]
    assert len(page["notes"]) == 2


@pytest.mark.parametrize("month", ["", "2027-03", "x", "2027-13", "2027-3", "0000-01", "9999-12", "<b>"])
def test_months_lead_on_and_what_is_none_is_the_present_one(month: str) -> None:
    """The months around are links; the present one has none after it."""

    class Asked:
        def get(self, _path: str, **query: object) -> dict[str, Any]:
            return {**NOTHING, "month": query.get("month", "")}

        find = get

    looked = visit(month=month) if month else visit()
    answer = usage_view.fetch(Asked(), looked)  # type: ignore[arg-type]  # asks nothing else
    answer = {**answer, "budgets": [], "moreBudgets": None}
    page = usage_view.build(answer, looked)
    assert page["months"][0][0] == "← Before"
    assert ("After →" in dict(page["months"])) == (page["month"] < "2027-03")
    if month in {"", "x", "2027-13", "2027-3", "<b>"}:
        assert page["month"] == "2027-03"
        assert dict(page["months"])["← Before"] == "?month=2027-02"


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("spend")
    def spend(ctx: Context) -> None:
        ctx.used(queries=9, tokens=250)

    return app


def test_usage_is_that_of_the_server(pages: Pages, app: App) -> None:
    """With the owners' budgets; it does not ask again by itself."""
    first = (pages.sim.now + timedelta(hours=1)).replace(tzinfo=None).isoformat()
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart=first, timezone="UTC")
    for owner in ("ada", "bob"):
        app.create(owner=owner, title="Spend", handler="spend", schedule=hourly)
    pages.sim.advance(timedelta(hours=6, minutes=1))
    app.container.many_tasks.budgets.put("ada", 40, by=OWN_CODE)
    everything = pages.get("admin", "/usage").text
    assert "54 of 40" in everything
    assert 'data-key="bob spend"' in everything
    assert 'data-every="0"' in everything
    assert 'id="live"' not in everything
