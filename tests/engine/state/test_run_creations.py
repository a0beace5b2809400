"""The tasks that runs create have a limit per owner and minute: a handler that creates its own kind is stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, only_run, run_to_end

from cloudsched import App, Context, Done, Schedule, TaskDraft
from cloudsched.adapters.sqlite.search import SqliteSearch
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import START, Simulation

LIMIT = 40
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
        assert count_created(sim, HOUR) > LIMIT
        assert app.get(first.id).status == "COMPLETED"
        failed = app.find_executions(limit=1).items[0]
        assert failed.status == "FAILED"
        assert failed.error is not None
        assert NAME in failed.error.message
        assert str(LIMIT) in failed.error.message


SOON: Any = {"handler": "double", "owner": "ada", "schedule": "in 1 minute"}


def follow_up(ctx: Context, number: int) -> Done:
    after = Schedule.once(ctx.now() + MINUTE)
    return Done(then=[TaskDraft(handler="double", owner="ada", schedule=after) for _ in range(number)])


def create_with_pause(app: App, ctx: Context) -> None:
    ctx.step("first", app.create, **SOON)
    ctx.sleep(MINUTE / 2)
    ctx.step("second", app.create, **SOON)


WAYS: dict[str, Callable[[App, Context], Any]] = {
    "create": lambda app, _: [app.create(**SOON).id for _ in range(2)],
    "at once": lambda app, _: [app.create(**{**SOON, "schedule": "now"}).id for _ in range(2)],
    "create many": lambda app, _: len(app.create_many([SOON, SOON])),
    "follow-ups": lambda _, ctx: follow_up(ctx, 2),
    "one of each": lambda app, ctx: (app.create(**SOON), follow_up(ctx, 1))[1],
    "as the user": lambda app, _: [app.acting_for("ada").create(**SOON).id for _ in range(2)],
    "calls": lambda _, ctx: ctx.gather(ctx.call("spawn"), ctx.call("spawn")),
    "a pause between": create_with_pause,
}
"""By way, what a reminder does that makes two a minute later."""


def register(app: App, way: str) -> None:
    @app.handler("spawn", tool=True)
    def spawn() -> str:
        return app.create(**SOON).id

    @app.handler("double", access="users")
    def double(ctx: Context) -> Any:  # noqa: ANN401 - whatever the way is
        return WAYS[way](app, ctx)


@pytest.mark.parametrize("way", WAYS)
def test_tasks_that_multiply_die_out(app: App, way: str) -> None:
    """However they do it: nothing is left after some hours of retries, and their owner was told once an hour."""
    register(app, way)
    with simulate(app) as sim:
        app.create(handler="double", owner="ada")
        for _ in range(30):
            sim.advance(MINUTE)
        assert count_created(sim, HOUR) <= 4 * LIMIT
        sim.advance(23 * HOUR)
        assert app.container.store.search.count_unfinished("ada", 10) == 0
        assert count_created(sim, DAY) <= 8 * LIMIT
        told = [each.title for each in app.inbox("ada").items]
        assert set(told) <= {"Too many tasks"}
        assert len(told) <= 8


def test_their_owner_is_told_once(app: App) -> None:
    """Not by each of the tasks that fail, neither in the inbox nor by mail."""
    create_two(app)
    with simulate(app) as sim:
        person = PersonSpec.model_validate({"email": {"address": "ada@example.com", "verified": True}})
        PeopleWiring.of(app.container).people.put("ada", person, by=OWN_CODE)
        app.create(handler="create", owner="ada", schedule=START, delivery_channels=["EMAIL"])
        sim.advance(30 * MINUTE)
        (told,) = app.inbox("ada").items
        assert told.title == "Too many tasks"


def test_chains_and_pipelines_go_on(app: App) -> None:
    """For years, also if each run creates something beside the next one; or hundreds at once, in several stages."""
    app.handler("report")(lambda: "fine")
    steps = list[str]()

    @app.handler("chain", retry=False)
    def chain(ctx: Context, payload: dict[str, Any]) -> None:
        steps.append("chain")
        app.create(handler="chain", owner="ada", payload=payload, schedule=ctx.now() + timedelta(**payload))
        if "days" in payload:
            app.create(handler="report", owner="ada")

    @app.handler("stage", retry=False)
    def stage(ctx: Context, payload: dict[str, int]) -> None:
        steps.append("stage")
        if payload["left"]:
            left = {"left": payload["left"] - 1}
            app.create(handler="stage", owner="ada", payload=left, schedule=ctx.now() + 2 * MINUTE)

    @app.handler("fan out", retry=False)
    def fan_out_in_stages(ctx: Context) -> None:
        for _ in range(LIMIT - 5):
            app.create(handler="stage", owner="ada", payload={"left": 4}, schedule=ctx.now() + 2 * MINUTE)

    with simulate(app, retention=DAY) as sim:
        task = app.create(handler="fan out", owner="ada")
        sim.advance(HOUR)
        assert only_run(sim, task).status == "SUCCEEDED"
        assert steps.count("stage") == (LIMIT - 5) * 5
        app.create(handler="chain", owner="ada", payload={"minutes": 1})
        sim.advance(3 * HOUR)
        assert steps.count("chain") > 170
        sim.advance(SECOND)
    with simulate(app) as sim:
        app.create(handler="chain", owner="ada", payload={"days": 7})
        steps.clear()
        sim.advance(timedelta(days=3 * 365))
        assert steps.count("chain") == 157


def test_processes_stop_them_together() -> None:
    """Each runs a part of the tasks of one store, and learns of the limit with its next share."""
    store = SqliteStore()
    apps = [App() for _ in range(4)]
    for each in apps:
        register(each, "create")
    with ExitStack() as processes:
        sims = [processes.enter_context(simulate(each, store=store)) for each in apps]
        apps[0].create(handler="double", owner="ada")
        for minute in range(40):
            sims[minute % 4].advance_to(START + minute * MINUTE)
        assert count_created(sims[0], 2 * HOUR) <= 4 * LIMIT
        assert store.search.count_unfinished("ada", 1_000) <= LIMIT


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
            app.create(handler="create", owner="ada", schedule=START + DAY)


def test_processes_keep_the_limit_together() -> None:
    """Each may go over it by a tenth, since it asks the store only after that many creations of its own."""
    store = SqliteStore()
    made = list[str]()

    def make() -> App:
        app = App()

        @app.handler("many", retry=False)
        def many() -> None:
            for _ in range(LIMIT):
                made.append(app.create(handler="none", owner="ada", schedule=START + DAY).id)

        app.handler("none")(lambda: None)
        return app

    for process in range(4):
        app = make()
        with simulate(app, store=store) as sim:
            task = app.create(handler="many", owner="bob")
            execution = run_to_end(sim, task, SECOND)
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
