"""The tasks that runs create have a limit per owner and minute: a handler that creates its own kind is stopped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Context, Done, Schedule, TaskDraft
from cloudsched.adapters.sqlite.search import SqliteSearch
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.testing import START, Simulation

LIMIT = 40
MINUTE = timedelta(minutes=1)
NAME = "CLOUDSCHED_MAX_RUN_CREATIONS_A_MINUTE"


def simulate(app: App, **more: Any) -> Simulation:
    return Simulation(app, access=Access(open=True, max_run_creations=LIMIT), **more)


def create_two(app: App, owner: Callable[[], str] = lambda: "ada") -> None:
    """Register a reminder that makes two reminders, a minute later, by ``create`` or as follow-ups."""

    @app.handler("create", retry=False)
    def create(ctx: Context) -> None:
        for _ in range(2):
            app.create(handler="create", owner=owner(), schedule=ctx.now() + MINUTE)

    @app.handler("step", retry=False)
    def step(ctx: Context) -> None:
        for _ in range(2):
            ctx.step("create", app.create, handler="step", owner=owner(), schedule=ctx.scheduled_for + 2 * MINUTE)

    @app.handler("follow up", retry=False)
    def follow_up(ctx: Context) -> Done:
        after = Schedule.once(ctx.now() + MINUTE)
        return Done(then=[TaskDraft(handler="follow up", owner=owner(), schedule=after) for _ in range(2)])


def count_created(sim: Simulation, since: timedelta) -> int:
    return sim.app.container.store.search.count_created_since("ada", sim.now - since, 100_000)


@pytest.mark.parametrize("handler", ["create", "step", "follow up"])
def test_a_reminder_that_makes_reminders_is_stopped(app: App, handler: str) -> None:
    """In no minute are there more than the limit, and who goes on is told the setting."""
    create_two(app)
    with simulate(app) as sim:
        first = app.create(handler=handler, owner="ada", schedule=START)
        for _ in range(16):
            sim.advance(MINUTE)
            assert count_created(sim, MINUTE) <= LIMIT
        assert count_created(sim, timedelta(hours=1)) > LIMIT
        assert app.get(first.id).status == "COMPLETED"
        failed = app.find_executions(limit=1).items[0]
        assert failed.status == "FAILED"
        assert failed.error is not None
        assert NAME in failed.error.message
        assert str(LIMIT) in failed.error.message


def test_the_limit_is_each_owners(app: App) -> None:
    """A nightly run that creates a task for each of many owners is not stopped, nor is one that makes calls."""
    app.handler("fine")(lambda: "fine")

    @app.handler("fan out")
    def fan_out() -> None:
        for number in range(3 * LIMIT):
            app.create(handler="fine", owner=f"owner-{number}")

    @app.handler("call")
    def call(ctx: Context) -> int:
        return len(ctx.gather(*[ctx.call("fine") for _ in range(3 * LIMIT)]))

    with simulate(app) as sim:
        tasks = [app.create(handler=each, owner="ada") for each in ("fan out", "call")]
        sim.run_until_idle()
        assert [sim.executions(each.id)[0].status for each in tasks] == ["SUCCEEDED", "SUCCEEDED"]


def test_code_that_is_no_run_has_no_limit(app: App) -> None:
    """An import creates as many as it likes, for one owner, also after runs have created some."""
    create_two(app)
    with simulate(app) as sim:
        app.create(handler="create", owner="ada", schedule=START)
        sim.advance(MINUTE)
        for _ in range(2 * LIMIT):
            app.create(handler="create", owner="ada", schedule=START + timedelta(days=1))


def test_processes_keep_the_limit_together() -> None:
    """Each may go over it by a tenth, since it asks the store only after that many creations of its own."""
    store = SqliteStore()
    made = list[str]()

    def make() -> App:
        app = App()

        @app.handler("many", retry=False)
        def many() -> None:
            for _ in range(LIMIT):
                made.append(app.create(handler="none", owner="ada", schedule=START + timedelta(days=1)).id)

        app.handler("none")(lambda: None)
        return app

    for process in range(4):
        app = make()
        with simulate(app, store=store) as sim:
            task = app.create(handler="many", owner="bob")
            sim.run_until_idle(timedelta(seconds=1))
            (execution,) = sim.executions(task.id)
            assert (execution.status == "SUCCEEDED") == (process == 0)
    assert LIMIT <= len(made) <= LIMIT + 4 * LIMIT // 10


def test_a_usual_run_asks_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store counts only for runs that create many, and the more seldom the more room there is."""
    asked = list[int]()
    count = SqliteSearch.count_created_since

    def note(*args: object) -> int:
        asked.append(1)
        return count(*args)  # type: ignore[arg-type]  # as they are

    monkeypatch.setattr(SqliteSearch, "count_created_since", note)
    app.handler("fine")(lambda: "fine")

    @app.handler("few")
    def few() -> None:
        for _ in range(LIMIT // 10):
            app.create(handler="fine", owner="ada")

    @app.handler("more")
    def more() -> None:
        for _ in range(LIMIT // 2):
            app.create(handler="fine", owner="ada")

    with simulate(app) as sim:
        app.create(handler="few")
        sim.run_until_idle()
        assert not asked
        sim.advance(2 * MINUTE)
        app.create(handler="more")
        sim.run_until_idle()
        assert 0 < len(asked) < LIMIT // 3
