"""Usage: what was used and what it costs, budgets with what is left, and to each caller their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
import requests
from tests.dashboard.conftest import make_app, schedule

from cloudsched import Context
from cloudsched.client import Client
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.dashboard import usage_view
from cloudsched.dashboard.application import Dashboard
from cloudsched.dashboard.usage_view import draw_budget
from cloudsched.dashboard.visit import UTC_ZONE, Visit
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.stack import run_stack
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

NOW = datetime(2027, 3, 27, 14, 42, 7, tzinfo=UTC)
AMOUNTS: dict[str, Any] = {
    "executions": 0, "queries": 0, "estimatedQueries": 0, "tokens": 0, "estimatedTokens": 0, "reads": 0, "writes": 0,
    "deletes": 0, "queueOperations": 0, "requests": 0, "dollars": 0,
}  # fmt: skip
NOTHING: dict[str, Any] = {
    "month": "2027-03", "usage": [], "total": AMOUNTS, "summedUntil": NOW.isoformat(), "isComplete": True,
    "prices": {"read": 0.3, "query": 0}, "budgets": [], "moreBudgets": None,
}  # fmt: skip


def visit(owner: str | None = None, **query: str) -> Visit:
    return Visit(NOW, UTC_ZONE, query, may_change=True, role="admin", owner=owner, is_local=True)


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
    [row] = usage_view.build(answer, visit()).budgets
    assert row.status.word == word
    assert (css in row.chart) if css else ("f-" not in row.chart)
    assert (row.paused == "tasks?owner=ada&status=PAUSED") == is_used_up
    assert row.used.startswith(f"{used} of {most}")


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
    assert [row.owner for row in page.budgets] == ["over", "near", "calm"]
    assert page.sentence.endswith("1 budget is used up. 1 budget is nearly used.")


@pytest.mark.parametrize(
    ("dollars", "text"), [(0, "0.00"), (0.00001, "< 0.0001"), (0.0030, "0.0030"), (0.01, "0.01"), (1234.5, "1,234.50")]
)
def test_dollars_are_never_written_as_nothing_unless_they_are(dollars: float, text: str) -> None:
    """Small amounts have four places, what is smaller says so."""
    page = usage_view.build({**NOTHING, "total": {**AMOUNTS, "dollars": dollars}}, visit())
    assert page.total.dollars == text


def test_who_costs_most_comes_first() -> None:
    """Owners by what they cost together, and of each owner the dearest handler first; nobody's rows are torn apart."""
    costs = (("b", "x", 1), ("a", "y", 3), ("b", "z", 4), ("a", "w", 1), ("c", "v", 0))
    rows = [{**AMOUNTS, "owner": owner, "handler": name, "dollars": dollars} for owner, name, dollars in costs]
    page = usage_view.build({**NOTHING, "usage": rows}, visit())
    assert [row.owner + row.handler for row in page.rows] == ["bz", "bx", "ay", "aw", "cv"]


def test_what_is_not_all_says_so() -> None:
    """A sum that is not complete, a total of one page, and a user's own view are told apart."""
    rows = [{"owner": "ada", "handler": "h", "month": "2027-03", **AMOUNTS}]
    page = usage_view.build({**NOTHING, "usage": rows, "isComplete": False, "nextPageToken": "t"}, visit("ada"))
    assert page.is_partial
    assert "on this page" in page.sentence
    assert len(page.notes) == 2
    assert page.next_page == "?page=t"


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
    assert page.months[0][0] == "← Before"
    assert ("After →" in dict(page.months)) == (page.month < "2027-03")
    if month in {"", "x", "2027-13", "2027-3", "<b>"}:
        assert page.month == "2027-03"
        assert dict(page.months)["← Before"] == "?month=2027-02"


@pytest.fixture(scope="module")
def pages() -> Iterator[dict[str, str]]:
    """The addresses of pages as an admin, a user with a budget that is used up, another user, and a worker's key."""
    app = make_app()

    @app.handler("spend")
    def spend(ctx: Context) -> None:
        ctx.used(queries=9, tokens=250)

    made = {
        "admin": create_key("boss", Role.ADMIN), "ada": create_key("ada", Role.USER, "ada"),
        "bob": create_key("bob", Role.READER, "bob"), "worker": create_key("w", Role.WORKER),
    }  # fmt: skip
    base = Settings(access=Access(api_keys=tuple(str(entry) for _, entry in made.values())))
    clock = MovableClock(datetime(2027, 3, 20, 7, 30, tzinfo=UTC), frozen=True)
    with ExitStack() as parts:
        stack = parts.enter_context(run_stack(app, base=base, store="sqlite", clock=clock))
        admin = {"X-Api-Key": made["admin"][0]}
        for owner in ("ada", "bob"):
            plan = schedule("FREQ=HOURLY", "2027-03-20T09:00:00")
            body = {"owner": owner, "title": "Spend", "handler": "spend", "schedule": plan}
            assert requests.post(f"{stack.url}/v1/tasks", json=body, headers=admin, timeout=60).status_code == 201
        stack.mover.move({"advance": "PT6H"})
        path, limit = f"{stack.url}/v1/people/ada/budget", {"maxQueriesPerMonth": 40}
        assert requests.put(path, json=limit, headers=admin, timeout=60).status_code == 201
        addresses = {}
        for name, (key, _) in made.items():
            client = parts.enter_context(Client(stack.url, key=key))
            server = parts.enter_context(WebServer(Dashboard(client, place="test")))
            server.serve()
            parts.callback(server.stop)
            addresses[name] = f"http://{server.address}/usage"
        yield addresses


def test_each_caller_sees_what_the_server_says(pages: dict[str, str]) -> None:
    """An admin sees all owners, a user the own usage and budget, a worker's key nothing."""
    everything = requests.get(pages["admin"], timeout=60).text
    assert "54 of 40" in everything
    assert 'data-key="bob spend"' in everything
    own = requests.get(pages["ada"], timeout=60).text
    assert "54 of 40" in own
    assert "See the paused tasks" in own
    assert "bob" not in own
    other = requests.get(pages["bob"], timeout=60).text
    assert "54 of 40" not in other
    assert 'data-key="bob spend"' in other
    assert requests.get(pages["worker"], timeout=60).status_code == 403
    assert requests.get(pages["bob"], params={"owner": "ada"}, timeout=60).status_code == 403


def test_it_does_not_ask_again_by_itself(pages: dict[str, str]) -> None:
    """A look sums up what has changed, at a read for each task: only somebody who reloads pays for that."""
    text = requests.get(pages["admin"], timeout=60).text
    assert 'data-every="0"' in text
    assert 'id="live"' not in text
