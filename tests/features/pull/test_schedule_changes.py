"""Work that is fetched, and the plan that it comes by: what takes it off its queue, what counts, what follows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, only_run
from tests.features.pull.harness import (
    DONE,
    FAILED,
    claim,
    claim_all,
    claims_of,
    finish,
    give_back,
    offer,
    require_claim,
    statuses,
    work_app,
)
from tests.instants import spread

from cloudsched import App, Context, Overlap, Schedule, Settings, Task, TaskStatus
from cloudsched.domain.documents.task import MAX_OPEN_RUNS
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.errors import CallFailed
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import START, Simulation

TOMORROW = Schedule.once(START + DAY)
HOURLY = Schedule.every(HOUR, start=START + HOUR)
DAILY = Schedule.every(DAY, start=START + 9 * HOUR)


def executor_app() -> tuple[App, list[str]]:
    """Return the app of `work_app` with a handler that the executor runs."""
    app = App(Settings())
    run_ids: list[str] = []

    @app.handler("work")
    def work(ctx: Context) -> None:
        run_ids.append(ctx.task.id)

    return app, run_ids


def put(app: App, schedule: Schedule) -> Task:
    """Create the task ``a`` again, with another schedule."""
    return app.create(id="a", owner="ada", handler="work", schedule=schedule)


# ── A new schedule, or a new end ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["edit", "put", "edit with another queue"])
@pytest.mark.parametrize("where", ["offered", "given back", "at its lock", "paused"])
def test_a_waiting_run_is_dropped_with_its_schedule(
    sim: Simulation, app: App, run_ids: list[str], where: str, how: str
) -> None:
    """A run that has not started is not run any more, neither now nor beside the new schedule; a record says why."""
    if where == "at its lock":
        offer(sim, "holder", pull="press", lock_key="k", expectedDuration=3600)
        sim.advance(2 * SECOND)
        claim_all(sim, queue="press")
    offer(sim, "a", lock_key="k" if where == "at its lock" else None)
    sim.advance(MINUTE)
    if where == "given back":
        give_back(sim, require_claim(sim))
    elif where == "at its lock":
        assert claim(sim) is None
    elif where == "paused":
        app.pause("a")
    sim.advance(HOUR)
    match how:
        case "edit":
            app.update("a", schedule=TOMORROW)
        case "put":
            put(app, TOMORROW)
        case _:
            app.update("a", schedule=TOMORROW, pull="gpu2")
    if where == "paused":
        app.resume("a")
    record = only_run(sim, "a")
    assert (record.status, record.started_at) == ("SKIPPED", None)
    assert record.message == "Its task was rescheduled before it started."
    sim.add_worker("gpu")
    sim.add_worker("gpu2")
    sim.advance(HOUR)
    assert run_ids == []
    sim.advance(3 * DAY)
    assert (run_ids, statuses(sim, "a")) == (["a"], ["SKIPPED", "SUCCEEDED"])
    assert (app.get("a").status, app.get("a").run_count) == (TaskStatus.COMPLETED, 1)


def test_a_started_run_outlives_a_new_schedule(sim: Simulation) -> None:
    """An attempt in progress finishes, and a failed one is retried."""
    offer(sim, "a", retry={"firstDelay": 3600})
    offer(sim, "b")
    sim.advance(MINUTE)
    failed, running = require_claim(sim), require_claim(sim)
    finish(sim, failed, FAILED)
    for name in ("a", "b"):
        sim.app.update(name, schedule=TOMORROW)
    finish(sim, running)
    assert statuses(sim, "b") == ["SUCCEEDED"]
    sim.advance(2 * HOUR)
    again = require_claim(sim)
    assert (again.task.id, again.run.attempt) == ("a", 2)
    assert [sim.app.get(name).run_count for name in ("a", "b")] == [0, 0], "the new schedule counts anew"


def test_manual_runs_outlive_a_new_schedule(sim: Simulation) -> None:
    """A trigger, a backfill and the retry of an expired run are not part of the plan."""
    offer(sim, "a", schedule=HOURLY)
    sim.app.trigger("a")
    offer(sim, "b", schedule=Schedule.every(HOUR, start=sim.now + MINUTE - 5 * HOUR))
    sim.app.backfill("b", sim.now - 3 * HOUR, sim.now - HOUR)
    offer(sim, "c", expiration=MINUTE)
    sim.advance(2 * MINUTE)
    sim.app.retry("c")
    for name in ("a", "b", "c"):
        sim.app.update(name, schedule=TOMORROW)
    found = {each.task.id for each in claim_all(sim, 10)}
    assert found == {"a", "b", "c"}


def test_a_dropped_run_passes_its_grant_on(sim: Simulation) -> None:
    """The next waiter gets the lock at once."""
    offer(sim, "holder", lock_key="k", expectedDuration=3600)
    sim.advance(2 * SECOND)
    holder = require_claim(sim)
    for name in ("a", "b"):
        offer(sim, name, lock_key="k")
        sim.advance(2 * SECOND)
        assert claim(sim) is None
    sim.app.update("a", schedule=TOMORROW)
    finish(sim, holder)
    sim.queue.deliver_due()
    assert require_claim(sim).task.id == "b"


@pytest.mark.parametrize(
    ("end", "left"),
    [({"until": START + 2 * HOUR}, 2), ({"max_runs": 2}, 2), ({"max_runs": 1}, 1), ({"max_runs": 9}, 3)],
)
def test_waiting_runs_beyond_a_new_end_are_dropped(sim: Simulation, end: dict[str, Any], left: int) -> None:
    """The latest are dropped first; runs that have started stay."""
    offer(sim, "a", schedule=HOURLY, overlap=Overlap.ALLOW, expectedDuration=3600)
    sim.advance(3 * HOUR + MINUTE)
    first = require_claim(sim)
    sim.app.update("a", **end)
    assert statuses(sim, "a") == ["RUNNING"] + ["SKIPPED"] * (3 - left)
    queue, gpu = PullWiring.of(sim.app.container).work_queue, WorkerFilter("gpu")
    waiting = queue.claim(gpu, THIS_PROCESS) + queue.claim(gpu, THIS_PROCESS)
    assert len(waiting) == left - 1
    for each in (first, *waiting):
        finish(sim, each)
    task = sim.app.get("a")
    assert task.run_count == left
    assert task.status == (TaskStatus.ACTIVE if left == 3 else TaskStatus.COMPLETED)


def test_a_call_ended_by_a_new_end_notifies_its_parent(sim: Simulation, app: App) -> None:
    """The parent, which waits for the call, continues at once."""

    @app.handler("parent")
    def parent(ctx: Context) -> str:
        try:
            ctx.call("work").result()
        except CallFailed:
            return "it never ran"
        return "it ran"

    app.create(id="p", handler="parent", schedule=Schedule.once(sim.now + SECOND))
    sim.advance(MINUTE)
    (found,) = [node.task for node in app.tree("p").children]
    app.update(found.id, until=START)
    sim.queue.deliver_due()
    assert only_run(sim, "p").content == "it never ran"


# ── What counts ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [work_app, executor_app])
def test_an_expired_occurrence_does_not_count_as_a_run(make: Callable[[], tuple[App, list[str]]]) -> None:
    """`maxRuns` counts runs only, whether a worker or the executor was away."""
    app, run_ids = make()
    with Simulation(app) as sim:
        offer(sim, "a", schedule=DAILY, max_runs=1, expiration=HOUR)
        if make is work_app:
            sim.advance(DAY + 12 * HOUR)
        else:
            sim.clock.advance(DAY + 12 * HOUR)
        sim.add_worker("gpu")
        sim.advance(5 * DAY)
        found = [str(each.status) for each in spread(sim.executions("a"), sim.app.get("a").schedule)]
        assert (run_ids, found) == (["a"], ["EXPIRED", "EXPIRED", "SUCCEEDED"])
        assert (app.get("a").status, app.get("a").run_count) == (TaskStatus.COMPLETED, 1)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ({"until": START + 10 * HOUR}, TaskStatus.COMPLETED),
        ({"schedule": Schedule(rrule="FREQ=DAILY;COUNT=1", dtstart="2027-01-01T09:00:00")}, TaskStatus.EXPIRED),
    ],
)
def test_an_expired_occurrence_does_not_prolong_a_finished_plan(
    sim: Simulation, end: dict[str, Any], status: TaskStatus
) -> None:
    """`until` and the COUNT of the rule still apply. A rule that counts to one is a one-time task."""
    offer(sim, "a", **{"schedule": DAILY, "max_runs": 1, "expiration": HOUR, **end})
    sim.advance(3 * DAY)
    task = sim.app.get("a")
    assert (statuses(sim, "a"), task.status, task.run_count) == (["EXPIRED"], status, 0)


@pytest.mark.parametrize("edit", [{}, {"overlap": "skip"}, {"title": "b"}])
def test_of_parallel_runs_only_those_that_ran_count(sim: Simulation, edit: dict[str, Any]) -> None:
    """The plan continues after the last of them, not after the one that expired."""
    offer(sim, "a", schedule=HOURLY, max_runs=3, overlap=Overlap.ALLOW, expiration=2.5 * HOUR)
    sim.advance(3 * HOUR)
    first, *others = [require_claim(sim) for _ in range(3)]
    for each in others:
        finish(sim, each)
    give_back(sim, first)
    sim.app.update("a", **edit)
    sim.advance(45 * MINUTE)
    assert statuses(sim, "a") == ["EXPIRED", "SUCCEEDED", "SUCCEEDED"]
    assert sim.app.get("a").run_count == 2
    sim.add_worker("gpu")
    sim.advance(5 * HOUR)
    assert statuses(sim, "a") == ["EXPIRED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]
    assert (sim.app.get("a").status, sim.app.get("a").run_count) == (TaskStatus.COMPLETED, 3)


# ── What is given back ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("before_the_end", [50 * MINUTE, 5 * SECOND])
def test_a_claim_that_is_released_at_once_still_expires(sim: Simulation, before_the_end: timedelta) -> None:
    """Its handler was not called, so the run has not started and cannot be claimed after its expiration."""
    offer(sim, "a", expiration=HOUR)
    sim.advance(HOUR + SECOND - before_the_end)
    found = require_claim(sim)
    sim.advance(10 * SECOND)
    give_back(sim, found)
    assert statuses(sim, "a") == ["RETRYING"]
    sim.advance(HOUR)
    record = only_run(sim, "a")
    assert (record.status, record.started_at) == ("EXPIRED", None)
    assert sim.app.get("a").status is TaskStatus.EXPIRED


def test_a_release_at_once_does_not_undo_an_earlier_start(sim: Simulation) -> None:
    """One worker had started the run, the next one releases it at once: it still counts as started in time."""
    offer(sim, "a", expiration=HOUR)
    for minutes in (4, 0):
        sim.advance(40 * MINUTE)
        found = require_claim(sim)
        sim.advance(minutes * MINUTE)
        give_back(sim, found)
    sim.advance(DAY)
    assert sim.app.get("a").run_count == 1
    assert require_claim(sim).run.started_at == START + 40 * MINUTE


# ── What comes next ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_at_the_store", [True, False])
def test_an_occurrence_beyond_the_run_limit_starts_when_a_run_ends(sim: Simulation, *, is_at_the_store: bool) -> None:
    """Its own dispatch was dropped; the end of a run dispatches it again, without the sweep."""
    every_minute = Schedule.every(MINUTE, start=sim.now + MINUTE)
    more: dict[str, Any] = {"overlap": Overlap.ALLOW, "catch_up": {"mode": "all"}, "expected_duration": HOUR}
    offer(sim, "a", schedule=every_minute, **more)
    sim.advance((MAX_OPEN_RUNS + 5) * MINUTE)
    found: list[Attempt] = [require_claim(sim) for _ in range(MAX_OPEN_RUNS)]
    started = [claims_of(sim).start(each) for each in found]
    sim.queue.deliver_due()
    sim.advance(5 * SECOND)
    for each, attempt in zip(found, started, strict=True):
        assert attempt
        if is_at_the_store:
            claims_of(sim).finish(attempt, DONE)
        else:
            finish(sim, each)
    sim.queue.deliver_due()
    assert next(run.scheduled_for for run in sim.app.get("a").runs) == START + (MAX_OPEN_RUNS + 1) * MINUTE
