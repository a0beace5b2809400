"""A quick handler changes what an occurrence costs, and nothing else: on every store."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Cancel, Context, Done, Fail, Retry, RetryPolicy, Schedule, Settings, Snooze, TaskDraft
from cloudsched.domain.documents.policy import CatchUp, CatchUpMode, Overlap
from cloudsched.errors import CloudschedError
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from tests.contract.conftest import OpenStore

    from cloudsched.adapters.operation_counts import Counts
    from cloudsched.engine.ports.store import Store

RULES = ("FREQ=MINUTELY;INTERVAL=7", "FREQ=MINUTELY;INTERVAL=20", "FREQ=HOURLY", "FREQ=HOURLY;COUNT=3")
ACTIONS = ("pause", "resume", "resume", "trigger", "backfill", "edit", "outage", "cancel", "retry")


def make_app(seed: int, *, quick: bool) -> App:
    """Return an app whose handlers end as the seed, the execution and the attempt say."""
    app = App(Settings())

    def run(ctx: Context) -> object:
        now = app.container.clock.now()  # `ctx.now` would be recorded in the journal, which a quick handler has not
        chance = Random(f"{seed} {ctx.task.id} {ctx.execution_id} {ctx.attempt} {now}")  # noqa: S311 - to be repeated
        draw = chance.random()
        if draw < 0.5:
            ctx.used(queries=1, tokens=chance.randrange(9))
            if draw < 0.2:
                ctx.notify("Done", ctx.execution_id)
            after = TaskDraft.of(id=f"after-{ctx.execution_id}", owner="ada", handler="note", title="After")
            return Done(
                {"at": ctx.scheduled_for.isoformat(), "uuid": str(ctx.uuid())}, then=(after,) if draw < 0.1 else ()
            )
        if draw < 0.65:
            raise ValueError(f"broke in attempt {ctx.attempt}")
        wait = timedelta(seconds=chance.choice([1, 200]))
        return chance.choice([Retry("again"), Retry("later", wait), Snooze(wait), Fail("no"), Cancel("not needed")])

    @app.handler("work", quick=quick, expected_duration=timedelta(seconds=10))
    def work(ctx: Context) -> object:
        return run(ctx)

    @app.handler("async work", quick=quick, expected_duration=timedelta(seconds=10))
    async def work_async(ctx: Context) -> object:
        return run(ctx)

    @app.handler("note")
    def note() -> None: ...

    return app


def make_fields(chance: Random, task_id: str) -> dict[str, Any]:
    """Return the fields of a task of a quick handler, with all of its policies."""
    pick, start = chance.choice, START + timedelta(seconds=chance.randrange(3600))
    recurring = Schedule(rrule=pick(RULES), dtstart=start.replace(tzinfo=None).isoformat(), timezone="Europe/Paris")
    return {
        "id": task_id,
        "owner": "ada",
        "handler": pick(["work", "work", "async work"]),
        "schedule": Schedule.once(start) if chance.random() < 0.2 else recurring,
        "overlap": Overlap.ALLOW,
        "catch_up": CatchUp(mode=pick([*CatchUpMode]), window=pick([None, timedelta(minutes=30)])),
        "expiration": pick([None, None, timedelta(minutes=15)]),
        "jitter": pick([timedelta(0), timedelta(minutes=3)]),
        "retry": RetryPolicy(max_retries=pick([0, 1, 3]), base=timedelta(seconds=pick([5, 300]))),
        "pause_after_failures": pick([None, None, 2]),
        "max_runs": pick([None, None, 4]),
        "until": pick([None, None, START + timedelta(hours=4)]),
        "delivery_channels": pick([(), ("WEB",)]),
        "query_per_execution": 2,
    }


def act(sim: Simulation, chance: Random, task_id: str) -> None:
    """Do something with a task, or take the executor's queue away for a while."""
    verb = chance.choice(ACTIONS)
    if verb == "outage":
        sim.queue.purge()
        sim.clock.move_to(sim.now + timedelta(minutes=chance.choice([2, 50])))
        return
    try:
        if verb == "backfill":
            sim.app.backfill(task_id, sim.now - timedelta(hours=2), sim.now - timedelta(hours=1))
        elif verb == "edit":
            sim.app.update(task_id, title=f"edited at {sim.now}", expiration=timedelta(minutes=chance.choice([5, 50])))
        else:
            getattr(sim.app, verb)(task_id)
    except CloudschedError:
        pass


def live(seed: int, store: Store | None, *, quick: bool) -> tuple[list[Any], list[tuple[datetime, bytes]], Counts]:
    """Return what the store has of a history's tasks, what is in the queue, and what it cost."""
    chance = Random(seed)  # noqa: S311 - to be repeated
    with Simulation(make_app(seed, quick=quick), store=store, seed=seed) as sim:
        ids = [f"t{number}" for number in range(3)]
        for each in ids:
            sim.app.create(TaskDraft.of(title="T", **make_fields(chance, each)))
        for _ in range(8):
            sim.advance(timedelta(minutes=chance.randrange(40)))
            act(sim, chance, chance.choice(ids))
        sim.advance(timedelta(hours=1))
        found: list[Any] = []
        for task in sorted(sim.app.tasks(limit=100).items, key=lambda each: each.id):
            usage = [each.counts.model_dump(include={"executions", "queries", "tokens"}) for each in task.usage]
            records = [sim.app.execution(task.id, each.id).model_dump() for each in sim.executions(task.id)]
            found.append((task.model_dump(exclude={"usage": True, "recent_requests": True}), usage, records))
        found += [each.model_dump() for each in sim.inbox("ada")]
        return found, sorted((each.at, each.body) for each in sim.pending()), sim.counts.copy()


def require_equal(seed: int, open_store: OpenStore | None) -> float:
    """Live a history with and without quick handlers, and return what part of the commits is left."""
    results = []
    for quick in (False, True):
        if open_store is None:
            results.append(live(seed, None, quick=quick))
        else:
            with open_store() as store:
                results.append(live(seed, store, quick=quick))
    (usual, usual_queue, usual_counts), (quick_one, quick_queue, quick_counts) = results
    assert quick_one == usual
    assert quick_queue == usual_queue
    assert quick_counts.dispatches <= usual_counts.dispatches
    assert quick_counts.reads <= usual_counts.reads
    return quick_counts.commits / usual_counts.commits


@pytest.mark.parametrize("seed", range(3))
def test_outcomes_plans_and_records_are_those_of_the_same_handler_without_quick(
    seed: int, open_store: OpenStore
) -> None:
    """Statuses, attempts, retries, next occurrences, messages, follow-ups, usage and dispatches, on every store."""
    require_equal(seed, open_store)


def test_many_histories_are_the_same_with_and_without_quick() -> None:
    """The same over many more histories in memory; and a quick handler saves commits in them."""
    assert sum(require_equal(seed, None) for seed in range(100, 106)) / 6 < 0.8
