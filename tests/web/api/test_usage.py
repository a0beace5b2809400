"""Usage over HTTP: right, priced, and each caller's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.web.callers import DAY, HOUR, MINUTE, open_roles

from cloudsched import App, Context, Schedule, Settings
from cloudsched.config.settings import Prices
from cloudsched.testing import Simulation

app = App(Settings())


@app.handler("spend", access="users")
def spend(ctx: Context) -> None:
    ctx.used(queries=3, tokens=500)


app.handler("idle", access="users")(lambda: None)


@pytest.fixture
def ask(app: App) -> Iterator[Callable[..., Any]]:
    """Ask as one of these callers; `ask.sim` has the simulation."""
    with open_roles(app, prices=Prices.from_environment({"CLOUDSCHED_PRICES": "query=1000 token=2"})) as roles:

        def send(who: str, path: str, body: object = None, method: str = "GET") -> Any:  # noqa: ANN401 - a response
            return roles.ask(who, method, path, body)

        setattr(send, "sim", roles.sim)  # noqa: B010 - what a test moves on
        yield send


def fill(sim: Simulation) -> None:
    """Create an hourly task of each handler for Ada and for Bob."""
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
    for owner in ("ada", "bob"):
        for handler in ("spend", "idle"):
            sim.app.create(owner=owner, handler=handler, schedule=hourly, query_per_execution=4)


def test_what_was_used_is_summed_and_priced(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """By owner and handler, actual and estimated, with our own operations, in dollars by the prices that are set."""
    fill(ask.sim)
    ask.sim.advance(10 * HOUR)
    page = ask("admin", "/v1/usage").json
    assert (page["month"], page["isComplete"]) == ("2027-01", True)
    assert page["summedUntil"].startswith("2027-01-01T10:00:00")
    rows = {(each["owner"], each["handler"]): each for each in page["usage"]}
    assert set(rows) == {("ada", "spend"), ("ada", "idle"), ("bob", "spend"), ("bob", "idle")}
    spent = rows["ada", "spend"]
    assert (spent["executions"], spent["queries"], spent["tokens"], spent["estimatedQueries"]) == (10, 30, 5000, 40)
    assert (spent["reads"], spent["writes"], spent["queueOperations"], spent["requests"]) == (10, 31, 20, 10)
    ours = (10 * 0.30 + 31 * 0.90 + 20 * 0.40 + 10 * 0.40) / 1e6
    assert spent["dollars"] == pytest.approx(ours + 30 * 1000 / 1e6 + 5000 * 2 / 1e6)
    assert page["total"]["queries"] == 60
    assert page["total"]["dollars"] == pytest.approx(sum(each["dollars"] for each in page["usage"]))
    assert page["prices"]["query"] == 1000


def test_months_handlers_and_pages(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """A month that is over stays as it was; pages have whole owners; what is no month or no token is refused."""
    ask.sim.advance(29 * DAY)
    fill(ask.sim)
    ask.sim.advance(2 * DAY)
    ask.sim.advance(HOUR)
    january = ask("ada", "/v1/usage?month=2027-01&handler=spend").json
    assert [(each["handler"], each["executions"]) for each in january["usage"]] == [("spend", 2 * 24)]
    assert [each["executions"] for each in ask("ada", "/v1/usage").json["usage"]] == [1, 1]
    assert ask("ada", "/v1/usage?month=2026-12").json["usage"] == []
    first = ask("admin", "/v1/usage?pageSize=1").json
    second = ask("admin", f"/v1/usage?pageSize=1&pageToken={first['nextPageToken']}").json
    assert "nextPageToken" not in second
    assert sorted(each["owner"] for page in (first, second) for each in page["usage"]) == ["ada", "ada", "bob", "bob"]
    for wrong in ("month=2027-13", "month=January", "pageToken=x", f"month=2026-12&pageToken={first['nextPageToken']}"):
        assert ask("admin", f"/v1/usage?{wrong}").status_code == 400, wrong


def test_only_admins_set_budgets(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """A user sees their own, and nobody else's; a budget that is none is refused, and one that is gone is gone."""
    fill(ask.sim)
    ask.sim.advance(HOUR)
    path, body = "/v1/people/ada/budget", {"maxQueriesPerMonth": 100}
    assert ask("ada", path).status_code == 404
    for who in ("ada", "viewer", "worker"):
        assert ask(who, path, body, "PUT").status_code == 403, who
    assert ask("bob", path, body, "PUT").status_code in {403, 404}
    assert ask("admin", path, body, "PUT").status_code == 201
    for wrong in ({}, {"maxQueriesPerMonth": -1}, {"maxQueriesPerMonth": "5"}, {"maxQueriesPerMonth": True}):
        assert ask("admin", path, wrong, "PUT").status_code == 400, wrong
    shown = ask("ada", path).json
    assert (shown["maxQueriesPerMonth"], shown["queries"], shown["isUsedUp"]) == (100, 3, False)
    assert ask("bob", path).status_code == 404
    used_up = ask("admin", path, {"maxQueriesPerMonth": 3}, "PUT").json
    assert used_up["isUsedUp"]
    tasks = {(each["owner"], each["status"]) for each in ask("admin", "/v1/tasks").json["tasks"]}
    assert tasks == {("ada", "PAUSED"), ("bob", "ACTIVE")}
    (paused, *_) = [each for each in ask("ada", "/v1/tasks").json["tasks"] if each["handler"] == "spend"]
    refused = ask("ada", f"/v1/tasks/{paused['id']}/resume", {}, "POST")
    assert refused.status_code == 409
    assert "used up its budget" in refused.json["detail"]
    assert "used up its budget" in ask("ada", f"/v1/tasks/{paused['id']}/explain").json["summary"]
    assert ask("ada", path, None, "DELETE").status_code == 403
    assert ask("admin", path, None, "DELETE").status_code == 204
    assert ask("admin", path, None, "DELETE").status_code == 404
    assert {each["status"] for each in ask("ada", "/v1/tasks").json["tasks"]} == {"ACTIVE"}


def test_budgets_are_listed_to_who_may_see_them(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """An admin and a viewer see all, page by page, a user the own one, a worker's key none."""
    fill(ask.sim)
    ask.sim.advance(2 * HOUR)
    assert ask("admin", "/v1/budgets").json == {"budgets": []}
    for owner in ("ada", "bob", "cy"):
        assert ask("admin", f"/v1/people/{owner}/budget", {"maxQueriesPerMonth": 100}, "PUT").status_code == 201

    def show(who: str, query: str = "") -> dict[str, Any]:
        answer: dict[str, Any] = ask(who, f"/v1/budgets{query}").json
        budgets = [{**each, "summedUntil": ""} for each in answer["budgets"]]  # each look counts anew
        return {**answer, "budgets": budgets}

    shown = show("viewer")["budgets"]
    assert [(each["owner"], each["queries"]) for each in shown] == [("ada", 6), ("bob", 6), ("cy", 0)]
    alone = ask("ada", "/v1/people/ada/budget").json
    assert shown[0] == {**alone, "summedUntil": ""}
    assert show("ada") == {"budgets": [shown[0]]}
    assert show("admin", "?owner=bob") == {"budgets": [shown[1]]}
    assert ask("bob", "/v1/budgets?owner=ada").status_code == 403
    assert ask("worker", "/v1/budgets").status_code == 403
    first = show("admin", "?pageSize=2")
    rest = show("admin", f"?pageSize=2&pageToken={first['nextPageToken']}")
    assert first["budgets"] + rest["budgets"] == shown
    assert "nextPageToken" not in rest
    assert ask("admin", "/v1/budgets?pageToken=x").status_code == 400


def test_a_request_reads_so_many_tasks_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 of a user's dearest took a quarter of a second. It says that there are more, and the next one goes on."""
    monkeypatch.setattr("cloudsched.engine.usage.usage_report.MAX_TASKS_OF_REQUEST", 200)
    with Simulation(App(Settings())) as sim:
        sim.app.handler("h")(lambda: None)
        for _ in range(450):
            sim.app.create(owner="ada", handler="h", schedule=Schedule.every(DAY))
        usage = sim.app.container.many_tasks.usage
        shown = [usage.show("ada", None, limit=9) for _ in range(4)]
    assert [each.is_complete for each in shown] == [False, False, True, True]
    writes = [sum(row.counts.writes for row in each.rows) for each in shown]
    assert writes[0] < writes[1] < writes[2] == writes[3] == 450


def test_the_sweep_ends_what_a_look_has_begun() -> None:
    """A look writes a few of many owners' sheets and says so. What changes later is counted by itself, not all anew."""
    with Simulation(App(Settings())) as sim:
        sim.app.handler("h")(lambda: None)
        names = [f"owner-{number}" for number in range(90)]
        later = Schedule.every(DAY, start=sim.now + DAY)
        ids = [sim.app.create(owner=name, handler="h", schedule=later).id for name in names]
        usage = sim.app.container.many_tasks.usage
        first = usage.show(None, None, limit=100)
        assert not first.is_complete
        assert 0 < len(first.rows) < 60
        sim.app.container.many_tasks.sweep(sim.app.sweep)
        whole = usage.show(None, None, limit=100)
        assert whole.is_complete
        assert len(whole.rows) == 90
        sim.app.trigger(ids[40])
        sim.advance(MINUTE)
        after = usage.show(None, None, limit=100)
        assert after.is_complete, "only the task that changed is read"
        assert sum(row.counts.executions for row in after.rows) == 1


def test_usage_is_summed_by_the_value_of_a_label(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - above
    """Each task counts once; what has no such label, or was deleted, is named so; the sums are the whole.

    More tasks than are read are refused, rather than summed up in part.
    """
    sim = ask.sim
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
    labels = {"a": ("team=shop", "other=ops"), "b": ("team=shop",), "c": ("team=ops", "xteam=shop"), "d": ()}
    for name, own in (*labels.items(), ("gone", ("team=shop",))):
        owner = "bob" if name == "b" else "ada"
        sim.app.create(id=name, owner=owner, title=name, handler="spend", schedule=hourly, labels=own)
    sim.advance(10 * HOUR)
    sim.app.delete("gone")
    sim.advance(30 * HOUR)

    def ask_by_label(who: str, more: str = "") -> dict[str, int]:
        page = ask(who, f"/v1/usage?by=LABEL&labelKey=team{more}").json
        assert page["usage"] == []
        assert sum(each["executions"] for each in page["sums"]) == page["total"]["executions"]
        return {each["name"]: each["executions"] for each in page["sums"]}

    assert ask_by_label("admin") == {"shop": 80, "ops": 40, "": 50}
    assert ask_by_label("admin", "&owner=bob") == {"shop": 40}
    assert ask_by_label("bob") == {"shop": 40}
    for query in ("by=LABEL", "labelKey=team", "by=OWNER&labelKey=team", "by=LABEL&labelKey="):
        assert ask("admin", f"/v1/usage?{query}").status_code == 400, query
    monkeypatch.setattr("cloudsched.engine.usage.usage_report.MAX_LABELLED", 3)
    refused = ask("admin", "/v1/usage?by=LABEL&labelKey=team")
    assert (refused.status_code, "at most 3 tasks" in refused.json["detail"]) == (400, True)
    assert ask_by_label("bob") == {"shop": 40}
