"""Counts and handlers over HTTP: right, each caller's own, and cheap however many people look."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from tests.web.callers import DAY, MINUTE, RoleHarness

from cloudsched import App, Context, Settings
from cloudsched.adapters.operation_counts import Counts, count_store
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, TaskStatus
from cloudsched.domain.responses.count import Count
from cloudsched.engine.queries.overview import LOCAL_SECONDS, Overview
from cloudsched.engine.sweep.shard_sweeps import SweepNotes
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.testing import Simulation


class About(BaseModel):
    """What a report is about."""

    about: str
    pages: int = 1


MOST_READS = 30
"""What an overview may cost where there is little."""


@pytest.fixture
def app() -> App:
    """An app with handlers for users and for servers."""
    app = App(Settings())

    @app.handler("report", access="users")
    def report(payload: About) -> None:
        """Write a report.

        More about it.
        """

    @app.handler("fail", access="users", retry=0)
    def fail() -> None:
        raise KeyError("x")

    @app.handler("wait", access="users")
    def wait(ctx: Context) -> None:
        ctx.wait_for("word", timeout=9 * DAY)

    @app.handler("secret-maintenance")
    def maintain(payload: dict[str, Any]) -> None: ...

    return app


@pytest.fixture
def ask(roles: RoleHarness) -> Callable[..., Any]:
    """Ask as one of the callers of `roles`; `ask.sim` has the simulation."""

    def send(who: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - a response
        return roles.ask(who, "GET" if body is None else "POST", path, body)

    setattr(send, "sim", roles.sim)  # noqa: B010 - what a test moves on
    return send


def test_the_counts_are_those_of_the_lists(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """Tasks by status, open ones, what failed and what ended in this hour; each owner's own."""
    for owner, handler in (("ada", "fail"), ("ada", "wait"), ("ada", "report"), ("bob", "fail")):
        payload = {"about": "x"} if handler == "report" else {}
        body = {"owner": owner, "handler": handler, "payload": payload}
        assert ask("admin", "/v1/tasks", body).status_code == 201
    ask.sim.advance(7 * MINUTE)
    late = {"owner": "bob", "handler": "fail"}
    assert ask("admin", "/v1/tasks", late).status_code == 201
    for who, tasks, hour, due in (
        ("admin", {"ACTIVE": 2, "COMPLETED": 1, "FAILED": 2}, (2, 1), 1),
        ("ada", {"ACTIVE": 1, "COMPLETED": 1, "FAILED": 1}, (1, 1), 0),
        ("bob", {"ACTIVE": 1, "FAILED": 1}, (1, 0), 1),
    ):
        shown = ask(who, "/v1/overview").json
        assert {status: count["value"] for status, count in shown["tasks"].items() if count["value"]} == tasks, who
        assert shown["open"]["SUSPENDED"]["value"] == (0 if who == "bob" else 1)
        last = shown["hours"][-1]
        assert (last["failed"], last["ran"]) == hour
        assert len(shown["hours"]) == 12
        assert shown["dueSoon"] == {"value": due, "atLeast": False}
    assert ask("viewer", "/v1/overview?owner=bob").json["tasks"]["FAILED"]["value"] == 1


def test_many_who_look_cost_what_one_does(sim: Simulation) -> None:
    """Counts are kept for ten seconds of real time, for each owner apart: then a look costs one read."""
    counts, now = Counts(), [0.0]
    store = count_store(sim.app.container.store, counts)
    overview = Overview(store, sim.app.container.clock, lambda: now[0], SweepNotes(store, sim.app.container.clock))
    overview.count("ada")
    cost = counts.reads - 1
    assert cost <= MOST_READS
    for _ in range(4):
        overview.count("ada")
    assert counts.reads == cost + 5
    overview.count(None)
    assert counts.reads == 2 * cost + 6
    now[0] = 9.9
    overview.count("ada")
    assert counts.reads == 2 * cost + 7
    now[0] = 10.0
    overview.count("ada")
    assert counts.reads == 3 * cost + 8


def test_a_count_that_stopped_at_a_bound_says_so(sim: Simulation) -> None:
    """Where counts are billed there is a bound; where they are free, all is counted.

    There a change makes them old: after a second all is counted anew, so that a page that looks every two has it.
    """
    store, clock, now = sim.app.container.store, sim.app.container.clock, [0.0]
    notes = SweepNotes(store, clock)
    free = Overview(store, clock, lambda: now[0], notes, LOCAL_SECONDS)
    first = free.count(None).counts
    now[0] = 9.0
    assert free.count(None).counts is first
    for number in range(5):
        sim.app.create(owner="ada", title=f"T{number}", handler="fail", schedule="in 3 days")
    tasks = free.count(None).counts.tasks
    assert tasks[TaskStatus.ACTIVE].value == first.tasks[TaskStatus.ACTIVE].value + 5

    def count(most: int) -> Count:
        return Overview(store, clock, lambda: 0.0, notes, most=most).count("ada").counts.tasks[TaskStatus.ACTIVE]

    assert count(5) == Count(value=5, at_least=True)
    assert count(6) == Count(value=5)


def test_what_needs_somebody_is_counted_anew_once_a_task_has_changed(ask: Any) -> None:  # noqa: ANN401 - a fixture
    """Whoever looks after a failure sees it, however shortly before somebody has looked."""

    def count_failed() -> int:
        needs = ask("admin", "/v1/overview").json["needs"]
        return sum(int(each["count"]["value"]) for each in needs if each["cause"] == "FAILED")

    assert count_failed() == 0
    assert ask("admin", "/v1/tasks", {"owner": "ada", "handler": "fail"}).status_code == 201
    ask.sim.run_until_idle()
    assert count_failed() == 1


def test_handlers_have_the_schemas_of_their_payloads(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """For forms: admins and viewers see all, users those that they may name."""
    names = {who: [one["name"] for one in ask(who, "/v1/handlers").json["handlers"]] for who in ("admin", "ada")}
    assert names["admin"] == ["fail", "report", "secret-maintenance", "wait"]
    assert names["ada"] == ["fail", "report", "wait"]
    assert "secret-maintenance" not in ask("bob", "/v1/handlers").text
    assert "secret-maintenance" in ask("viewer", "/v1/handlers").text
    (report,) = [one for one in ask("ada", "/v1/handlers").json["handlers"] if one["name"] == "report"]
    assert report["description"] == "Write a report."
    assert report["payloadSchema"]["required"] == ["about"]
    assert report["payloadSchema"]["properties"]["pages"]["default"] == 1


def test_a_cursor_says_whether_anything_has_changed(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """For one read; a user's is not moved by others, and it moves once a minute."""
    body = {"owner": "ada", "handler": "wait", "schedule": "every year"}

    def look() -> dict[str, str]:
        return {who: ask(who, "/v1/changes").json["cursor"] for who in ("admin", "ada", "bob")}

    first = look()
    before = ask.sim.counts.reads
    assert look() == first
    assert ask.sim.counts.reads - before == 3
    assert ask("admin", "/v1/tasks", body).status_code == 201
    second = look()
    assert [who for who in first if first[who] != second[who]] == ["admin", "ada"]
    ask.sim.advance(MINUTE)
    assert look()["bob"] != second["bob"]


def test_what_an_open_run_holds_back_is_not_overdue(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """It waits for that run's end; what is due behind it is overdue, and found for two reads of each that waits."""
    sim, overview = ask.sim, ask.sim.app.container.many_tasks.overview
    hourly = {"owner": "ada", "handler": "wait", "schedule": "every hour"}
    held = [
        ask("admin", "/v1/tasks", {**hourly, "overlap": overlap}).json["id"] for overlap in ("skip", "buffer", "allow")
    ]
    sim.advance(timedelta(hours=MAX_OPEN_RUNS + 2))
    assert all(sim.app.get(task_id).next_execution_time < sim.now for task_id in held)
    assert "overdueSince" not in ask("ada", "/v1/overview").json
    assert sim.app.sweep().overdue_seconds == 0
    due = sim.now + MINUTE
    once = {"owner": "ada", "handler": "fail", "schedule": {"at": due.isoformat()}}
    assert ask("admin", "/v1/tasks", once).status_code == 201
    sim.clock.move_to(due + 5 * MINUTE)
    overview.forget()
    before = sim.counts.reads
    late = ask("ada", "/v1/overview").json
    assert datetime.fromisoformat(late["overdueSince"]) == due
    assert sim.counts.reads - before <= MOST_READS + 5 + 2 * len(held)


def test_the_sweep_says_when_it_ran(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """Once a minute for one write, however often it runs; only those who see all tasks are told, with its lag."""
    app, counts = ask.sim.app, ask.sim.counts
    assert "sweep" not in ask("admin", "/v1/overview").json
    app.container.many_tasks.sweep_notes.run(app.sweep)
    before = counts.copy()
    for _ in range(5):
        app.container.many_tasks.sweep_notes.run(app.sweep)
    assert counts.since(before).writes == 0
    ask.sim.clock.advance(MINUTE)
    before = counts.copy()
    app.container.many_tasks.sweep_notes.run(app.sweep)
    assert (counts.since(before).writes, counts.since(before).commits) == (1, 1)
    ask.sim.clock.advance(4 * MINUTE)
    for who in ("admin", "viewer"):
        assert ask(who, "/v1/overview").json["sweep"]["lag"] == pytest.approx(240, abs=1)
    assert "sweep" not in ask("ada", "/v1/overview").json


def test_a_sweep_that_cannot_be_noted_is_a_sweep_all_the_same(ask: Any) -> None:  # noqa: ANN401 - the fixture above
    """Another process notes at the same time; both go on, and the next one is noted."""
    container = ask.sim.app.container
    first, second = (SweepNotes(container.store, container.clock) for _ in range(2))
    for _ in range(3):
        ask.sim.clock.advance(MINUTE)
        for notes in (first, second):
            notes.note(ask.sim.now, Sweep(examined=1))
    note = first.load()
    assert note is not None
    assert ask.sim.now - note.updated_at <= MINUTE


def test_a_clock_that_came_back_is_named(ask: Any, caplog: pytest.LogCaptureFixture) -> None:  # noqa: ANN401 - as above
    """By `/ready`, each process's log and `why`, until its time has come: what ran ahead stands still until then."""
    app, clock = ask.sim.app, ask.sim.clock
    task = app.create(owner="ada", title="Report", handler="report", payload={"about": "x"}, schedule="every hour")
    before = clock.at
    ask.sim.advance(DAY)
    SweepNotes(app.container.store, clock).run(Sweep)
    clock.at = before
    for count in (1, 2):
        notes = SweepNotes(app.container.store, clock)
        notes.run(Sweep)
        assert caplog.text.count("the clock was ahead") == count
    app.container.replace(load_sweep=notes.load)
    assert "was ahead" in ask("viewer", "/ready").json["faults"]["clock"]
    assert "a clock was ahead" in str(app.explain(task.id))
    clock.move_to(before + 2 * DAY)
    notes.run(Sweep)
    assert not ask("viewer", "/ready").json["faults"]
