"""Work that is fetched: what is offered, to whom, in which order, and what its owner can do about it meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.pull.harness import (
    AT_ONCE,
    HOUR,
    MINUTE,
    SECOND,
    claim,
    claim_keys,
    offer,
    require_claim,
    statuses,
    work_app,
)

from cloudsched import App, Context, Fail, Overlap, Schedule, Settings, TaskStatus
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.errors import InvalidInput, Misconfigured, UnknownHandler
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A simulation of an app with work for the queue ``gpu``, without a worker yet."""
    app, _ = work_app()
    with Simulation(app) as opened:
        yield opened


def test_the_executor_offers_what_is_for_workers_and_runs_none_of_it() -> None:
    """It waits in the store for as long as it takes; a worker of its queue runs it, and no other."""
    app, ran = work_app()
    with Simulation(app) as sim:
        offer(sim, "a")
        sim.add_worker("press")
        sim.advance(timedelta(days=100))
        assert not ran
        sim.add_worker("gpu")
        sim.advance(SECOND)
        assert ran == ["a"]
        (record,) = sim.executions("a")
        assert (record.status, record.content, record.attempts[0].worker) == ("SUCCEEDED", "a", "worker-2")
        assert app.get("a").status is TaskStatus.COMPLETED


def test_a_recurring_task_goes_on_with_each_of_its_occurrences() -> None:
    """The plan is the same as with an executor: each instant once, a year of them."""
    app, ran = work_app()
    with Simulation(app) as sim:
        sim.add_worker("gpu")
        offer(sim, "a", schedule=Schedule(rrule="FREQ=WEEKLY", dtstart="2027-01-04T09:00:00", timezone="Europe/Paris"))
        sim.advance(timedelta(days=365))
        found = sim.executions("a")
        assert len(ran) == len(found) == 52
        assert {one.status.value for one in found} == {"SUCCEEDED"}
        assert all(one.started_at == one.scheduled_for for one in found)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Priority), st.integers(1, 5)), min_size=1, max_size=8))
def test_the_most_urgent_come_first_and_of_those_the_oldest(tasks: list[tuple[Priority, int]]) -> None:
    """Whatever order they were created in."""
    app, ran = work_app()
    with Simulation(app) as sim:
        for number, (priority, due) in enumerate(tasks):
            offer(sim, f"t{number}", priority=priority, schedule=Schedule.once(sim.now + due * SECOND))
        sim.advance(MINUTE)
        sim.add_worker("gpu")
        sim.work()
        expected = sorted(range(len(tasks)), key=lambda number: (tasks[number][0].rank, tasks[number][1], number))
        assert ran == [f"t{number}" for number in expected]


def test_what_asks_for_a_skill_is_for_those_who_have_it(sim: Simulation) -> None:
    """Who has more skills takes what asks for one of them or for none; who has none takes what asks for none."""
    for name, pull in (("plain", "gpu"), ("cuda", {"queue": "gpu", "skill": "cuda"})):
        offer(sim, name, pull=pull)
    sim.advance(MINUTE)
    assert require_claim(sim).stored.task.id == "plain"
    assert claim(sim, "metal") is None
    assert require_claim(sim, "metal", "cuda").stored.task.id == "cuda"


def test_no_more_is_claimed_than_was_asked_for(sim: Simulation) -> None:
    """And the rest stays for others."""
    for number in range(5):
        offer(sim, f"t{number}")
    sim.advance(MINUTE)
    assert [len(sim.app.worker_claims.claim(WorkerFilter("gpu"), limit)) for limit in (2, 100, 1)] == [2, 3, 0]


def test_a_worker_gets_only_what_it_can_and_may_run(sim: Simulation) -> None:
    """Handlers that it lacks and owners that are not its own are passed over, however many lie before."""
    for number in range(30):
        offer(
            sim,
            f"a{number}",
            owner="bob" if number % 2 else "ada",
            handler="other" if number < 28 else "work",
            pull="gpu",
        )
    sim.advance(MINUTE)
    found = sim.app.worker_claims.claim(WorkerFilter("gpu", handlers={"work"}, owner="bob"), 10)
    assert [each.stored.task.id for each in found] == ["a29"]


def test_a_handler_that_only_workers_have_need_not_be_known_here(sim: Simulation) -> None:
    """It is not for the function that creates the task to check it; without workers it is."""
    offer(sim, "a", handler="render", payload={"anything": 1}, pull="gpu")
    with pytest.raises(UnknownHandler):
        offer(sim, "b", handler="render", pull=None)
    parent = sim.app.create(owner="ada", title="p", children=[{"handler": "render", "pull": "gpu"}])
    assert parent.children[0].pull
    with pytest.raises(UnknownHandler):
        sim.app.create(owner="ada", title="p", children=[{"handler": "render"}])


@pytest.mark.parametrize("pull", ["", "a/b", "a" * 65, {"queue": "gpu", "skill": "a b"}, {"skill": "cuda"}, 5])
def test_what_is_no_queue_is_refused(sim: Simulation, pull: object) -> None:
    """By its name, before anything is stored; also where a handler is registered with it."""
    with pytest.raises(InvalidInput, match=r"^pull"):
        offer(sim, "a", pull=pull)
    with pytest.raises(Misconfigured, match="pull is"):
        App(Settings()).handler("x", pull=pull)(lambda: None)  # type: ignore[arg-type]  # what is wrong about it


def test_a_task_with_children_leaves_the_workers_to_them(sim: Simulation) -> None:
    """Its own handler is the built-in one, which no worker has."""
    with pytest.raises(InvalidInput, match="beside children"):
        sim.app.create(owner="ada", title="p", pull="gpu", children=[{"handler": "work"}])


# ── While it waits ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_paused_task_is_offered_to_nobody_until_it_is_resumed(sim: Simulation) -> None:
    """What came due before waits, and loses nothing but time."""
    offer(sim, "a")
    sim.advance(MINUTE)
    sim.app.pause("a")
    assert claim(sim) is None
    sim.advance(HOUR)
    sim.app.resume("a")
    assert require_claim(sim).run.attempt == 1


def test_a_cancelled_or_deleted_task_is_offered_no_more(sim: Simulation) -> None:
    """The run that waited is recorded as CANCELLED, with the task that stays."""
    for name in ("a", "b"):
        offer(sim, name)
    sim.advance(MINUTE)
    sim.app.cancel("a")
    sim.app.delete("b")
    assert claim(sim) is None
    assert statuses(sim, "a") == ["CANCELLED"]


def test_an_edit_moves_what_waits() -> None:
    """To another queue, to another place in it, to the executor, and back to workers: at once, and once."""
    app, _ = work_app()
    ran: list[str] = []
    app.handler("anywhere")(lambda: ran.append("c"))
    with Simulation(app) as sim:
        for name in ("a", "b"):
            offer(sim, name, pull="press")
        sim.advance(MINUTE)
        assert claim(sim) is None
        for name, more in (("a", {}), ("b", {"priority": "HIGH"})):
            app.update(name, pull="gpu", **more)
        assert [each.stored.task.id for each in app.worker_claims.claim(WorkerFilter("gpu"), 1)] == ["b"]
        offer(sim, "c", handler="anywhere", pull="gpu")
        sim.advance(MINUTE)
        assert not ran
        app.update("c", pull=None)
        sim.advance(SECOND)
        assert ran == ["c"]


def test_what_waits_for_an_executor_is_offered_when_it_becomes_work_for_workers() -> None:
    """A retry that was to be run later by the executor is fetched then."""
    app = App(Settings())
    calls: list[int] = []

    @app.handler("flaky", retry=1)
    def flaky(ctx: Context) -> None:
        calls.append(ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("not yet")

    with Simulation(app) as sim:
        sim.queue.is_down = False
        task = app.create(owner="ada", title="x", handler="flaky", schedule=AT_ONCE, retry={"firstDelay": 60})
        sim.advance(2 * SECOND)
        app.update(task.id, pull="gpu")
        sim.advance(HOUR)
        assert calls == [1]
        sim.add_worker("gpu")
        sim.advance(SECOND)
        assert calls == [1, 2]
        assert statuses(sim, task.id) == ["SUCCEEDED"]


def test_what_no_worker_took_in_time_has_expired(sim: Simulation) -> None:
    """It is recorded as such on its instant, and cannot be claimed any more, even before that was done."""
    offer(sim, "a", expiration=HOUR)
    sim.advance(HOUR)
    assert statuses(sim, "a") == []
    sim.queue.purge()
    sim.clock.advance(SECOND)
    assert claim(sim) is None
    sim.advance(5 * MINUTE)
    (record,) = sim.executions("a")
    assert (record.status, record.message) == ("EXPIRED", "No worker took it within 1:00:00.")
    assert sim.app.get("a").status is TaskStatus.EXPIRED


def test_it_may_wait_for_longer_than_the_queue_reaches(sim: Simulation) -> None:
    """Giving up is carried over the horizon by hops, like all that lies further ahead."""
    offer(sim, "a", expiration=timedelta(days=100))
    sim.advance(timedelta(days=100))
    assert statuses(sim, "a") == []
    sim.advance(2 * SECOND)
    (record,) = sim.executions("a")
    assert record.status == "EXPIRED"
    assert record.finished_at == record.scheduled_for + timedelta(days=100)


def test_a_run_that_was_begun_does_not_expire(sim: Simulation) -> None:
    """Expiration is about the start: a later attempt may wait for a worker for as long as it takes."""
    offer(sim, "a", expiration=HOUR)
    sim.advance(MINUTE)
    require_claim(sim)  # and dies
    sim.advance(timedelta(days=2))
    assert require_claim(sim).run.attempt == 2


def test_runs_that_may_overlap_are_all_offered_one_after_the_other(sim: Simulation) -> None:
    """A task has one offer; when that is taken, it is about the next run."""
    offer(sim, "a", schedule=Schedule.every(HOUR, start=sim.now + HOUR), overlap=Overlap.ALLOW)
    sim.advance(3 * HOUR)
    found = [require_claim(sim).run.execution_id for _ in range(3)]
    assert found == ["20270101T010000Z", "20270101T020000Z", "20270101T030000Z"]
    assert claim(sim) is None


def test_runs_by_hand_are_offered_at_once(sim: Simulation) -> None:
    """A trigger, a backfill and a retry need no dispatch to be fetched."""
    offer(sim, "a", schedule=Schedule.every(HOUR, start=sim.now + HOUR))
    sim.queue.is_down = True
    sim.app.trigger("a")
    assert require_claim(sim).run.execution_id.endswith("manual")
    offer(sim, "b", schedule=Schedule.every(HOUR, start=sim.now + MINUTE - 5 * HOUR))
    sim.app.backfill("b", sim.now - 3 * HOUR, sim.now - HOUR)
    assert "backfill" in require_claim(sim).run.execution_id
    offer(sim, "c", schedule=Schedule.once(sim.now + timedelta(days=9)))
    sim.app.trigger("c")
    found = require_claim(sim)
    sim.app.worker_claims.finish_by_token(*claim_keys(found), AttemptReport(Fail("no")))
    sim.app.retry("c")
    assert require_claim(sim).run.attempt == 2
