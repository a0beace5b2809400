"""A lease ends at the time its holder was given; after that it is not renewed, as the next holder may have started."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.engine.harness import HOUR, MINUTE, SECOND, elsewhere, only_run

from cloudsched import App, Context, RetryPolicy, Schedule
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.features.locks.lock import Holder, VersionedLock
from cloudsched.testing import Simulation


def test_a_heartbeat_after_the_lease_ended_is_refused_once_the_lock_is_taken(app: App, sim: Simulation) -> None:
    """The late heartbeat returns False, even though no other process has taken over the run."""
    heard: list[bool] = []
    began: list[str] = []

    @app.handler("slow", retry=RetryPolicy(max_retries=0), expected_duration=40 * SECOND)
    def slow(ctx: Context) -> None:
        began.append(ctx.task.id)
        if ctx.task.id == "first":
            sim.clock.advance(50 * SECOND)
            sim.queue.deliver_due()
            heard.append(ctx.heartbeat())

    for number, name in enumerate(("first", "second")):
        at = Schedule.once(sim.now + timedelta(seconds=60 + 45 * number))
        app.create(id=name, handler="slow", schedule=at, lock_key="door")
    sim.advance(10 * MINUTE)
    assert began == ["first", "second"]
    assert heard == [False]


@pytest.mark.parametrize(
    "renewal", [lambda ctx: ctx.heartbeat(), lambda ctx: ctx.step("one", int)], ids=["own", "step"]
)
def test_a_renewal_never_shortens_a_lease(app: App, sim: Simulation, renewal: Callable[[Context], object]) -> None:
    """A shorter expected duration takes effect with the next lease; the current one keeps its end."""
    seen: list[datetime] = []

    def lease_end() -> datetime:
        (run,) = app.get("it").runs
        assert run.lease
        return run.lease.until

    @app.handler("slow", expected_duration=HOUR)
    def slow(ctx: Context) -> None:
        seen.append(lease_end())
        elsewhere(app.patch, "it", {"expectedDuration": 1})
        sim.clock.advance(MINUTE)
        renewal(ctx)
        seen.append(lease_end())

    app.create(id="it", handler="slow", schedule=Schedule.once(sim.now))
    sim.advance(timedelta(0))
    assert seen[0] == seen[1]
    assert only_run(sim, "it").status == "SUCCEEDED"


@pytest.mark.parametrize("late", [timedelta(0), timedelta(microseconds=1), MINUTE])
def test_a_handler_does_not_go_on_past_a_step_once_its_lease_has_ended(
    app: App, sim: Simulation, late: timedelta
) -> None:
    """From the end of the lease on, no step is recorded under it, even if no other process has taken over the run."""
    reached: list[int] = []
    calls: list[bool] = []
    heard: list[bool] = []

    @app.handler("slow", retry=False, expected_duration=40 * SECOND)
    def slow(ctx: Context) -> None:
        calls.append(True)
        if len(calls) == 1:
            sim.clock.advance(40 * SECOND + late)
            heard.append(ctx.heartbeat())
        ctx.step("one", int)
        reached.append(len(calls))

    app.create(id="it", handler="slow", schedule=Schedule.once(sim.now))
    sim.queue.deliver_due()
    assert (heard, reached) == ([False], [2])


def test_a_renewal_that_is_answered_after_its_new_end_is_lost(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store took longer than the lease lasts: meanwhile another process may have taken over, so it is not told."""
    heard: list[bool] = []

    @app.handler("slow", retry=False, expected_duration=40 * SECOND)
    def slow(ctx: Context) -> None:
        store = app.container.store
        commit = store.commit

        def answer_late(change: Commit) -> VersionedTask:
            committed = commit(change)
            sim.clock.advance(40 * SECOND)
            return committed

        with monkeypatch.context() as patch:
            patch.setattr(store, "commit", answer_late)
            heard.append(ctx.heartbeat())

    app.create(id="it", handler="slow", schedule=Schedule.once(sim.now))
    sim.queue.deliver_due()
    assert heard == [False]


@pytest.mark.parametrize("renewal", ["heartbeat", "step"])
def test_a_lease_is_not_renewed_once_another_run_holds_the_lock(app: App, sim: Simulation, renewal: str) -> None:
    """A process whose clock is fast may take the lock before the lease has ended by the holder's own clock."""
    reached: list[str] = []

    @app.handler("slow", retry=False, expected_duration=MINUTE)
    def slow(ctx: Context) -> None:
        stored = app.container.store.locks.load("door")
        other = Holder(task_id="other", execution_id="e", until=sim.now + HOUR)
        app.container.store.locks.commit(
            VersionedLock(stored.lock.model_copy(update={"holders": (other,)}), stored.version)
        )
        if renewal == "step":
            ctx.step("one", int)
            reached.append("what follows the step")
        elif ctx.heartbeat():
            reached.append("a renewed lease")

    app.create(id="it", handler="slow", schedule=Schedule.once(sim.now), lock_key="door")
    sim.queue.deliver_due()
    assert reached == []
    assert [one.task_id for one in app.container.store.locks.load("door").lock.holders] == ["other"]
