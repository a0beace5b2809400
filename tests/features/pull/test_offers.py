"""Which work is offered, to which workers, in which order, and what its owner can do in the meantime."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, only_run
from tests.features.pull.harness import claim, claim_all, finish, offer, require_claim, statuses, work_app

from cloudsched import App, Fail, Overlap, Schedule, Settings, TaskStatus
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.errors import InvalidInput, Misconfigured, UnknownHandler
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import Simulation


def test_the_executor_only_offers_the_tasks_of_workers(sim: Simulation, app: App, run_ids: list[str]) -> None:
    """The run waits in the store for any time; only a worker of its queue runs it."""
    offer(sim, "a")
    sim.add_worker("press")
    sim.advance(100 * DAY)
    assert not run_ids
    sim.add_worker("gpu")
    sim.advance(SECOND)
    assert run_ids == ["a"]
    record = only_run(sim, "a")
    assert (record.status, record.content, record.attempts[0].worker) == ("SUCCEEDED", "a", "worker-2")
    assert app.get("a").status is TaskStatus.COMPLETED


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Priority), st.integers(1, 5)), min_size=1, max_size=8))
def test_claims_go_by_priority_and_then_by_due_time(tasks: list[tuple[Priority, int]]) -> None:
    """The order of creation does not matter."""
    app, run_ids = work_app()
    with Simulation(app) as sim:
        for number, (priority, due) in enumerate(tasks):
            offer(sim, f"t{number}", priority=priority, schedule=Schedule.once(sim.now + due * SECOND))
        sim.advance(MINUTE)
        sim.add_worker("gpu")
        sim.work()
        expected = sorted(range(len(tasks)), key=lambda number: (tasks[number][0].rank, tasks[number][1], number))
        assert run_ids == [f"t{number}" for number in expected]


def test_a_task_with_a_skill_goes_only_to_workers_that_have_it(sim: Simulation) -> None:
    """A worker takes tasks that need no skill or one of its own; a worker without skills takes only the former."""
    for name, pull in (("plain", "gpu"), ("cuda", {"queue": "gpu", "skill": "cuda"})):
        offer(sim, name, pull=pull)
    sim.advance(MINUTE)
    assert require_claim(sim).task.id == "plain"
    assert claim(sim, "metal") is None
    assert require_claim(sim, "metal", "cuda").task.id == "cuda"


def test_a_worker_gets_only_what_it_can_and_may_run(sim: Simulation) -> None:
    """Offers of handlers that it lacks or of other owners are skipped, however many come first."""
    for number in range(30):
        offer(
            sim,
            f"a{number}",
            owner="bob" if number % 2 else "ada",
            handler="other" if number < 28 else "work",
            pull="gpu",
        )
    sim.advance(MINUTE)
    found = PullWiring.of(sim.app.container).work_queue.claim(
        WorkerFilter("gpu", handlers={"work"}, owner="bob"), THIS_PROCESS, 10
    )
    assert [each.task.id for each in found] == ["a29"]


def test_a_handler_that_only_workers_have_need_not_be_known_here(sim: Simulation) -> None:
    """The process that creates the task checks the handler only if no workers are to run it."""
    offer(sim, "a", handler="render", payload={"anything": 1}, pull="gpu")
    with pytest.raises(UnknownHandler):
        offer(sim, "b", handler="render", pull=None)
    parent = sim.app.create(children=[{"handler": "render", "pull": "gpu"}])
    assert parent.children[0].pull
    with pytest.raises(UnknownHandler):
        sim.app.create(children=[{"handler": "render"}])


@pytest.mark.parametrize("pull", ["", "a/b", "a" * 65, {"queue": "gpu", "skill": "a b"}, {"skill": "cuda"}, 5])
def test_an_invalid_queue_is_refused(sim: Simulation, pull: object) -> None:
    """The error names `pull`; it is raised at creation, before anything is stored, and when a handler is registered."""
    with pytest.raises(InvalidInput, match=r"^pull"):
        offer(sim, "a", pull=pull)
    with pytest.raises(Misconfigured, match="pull is"):
        App(Settings()).handler("x", pull=pull)(lambda: None)  # type: ignore[arg-type]  # what is wrong about it


def test_a_task_with_children_has_no_queue_of_its_own(sim: Simulation) -> None:
    """Its own handler is built in, and no worker has it."""
    with pytest.raises(InvalidInput, match="together with children"):
        sim.app.create(pull="gpu", children=[{"handler": "work"}])


# ── While it waits ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_paused_task_is_not_offered_until_it_is_resumed(sim: Simulation) -> None:
    """The run that was due before waits and loses no attempt."""
    offer(sim, "a")
    sim.advance(MINUTE)
    sim.app.pause("a")
    assert claim(sim) is None
    sim.advance(HOUR)
    sim.app.resume("a")
    assert require_claim(sim).run.attempt == 1


def test_a_cancelled_or_deleted_task_is_no_longer_offered(sim: Simulation) -> None:
    """The waiting run of the cancelled task is recorded as CANCELLED."""
    for name in ("a", "b"):
        offer(sim, name)
    sim.advance(MINUTE)
    sim.app.cancel("a")
    sim.app.delete("b")
    assert claim(sim) is None
    assert statuses(sim, "a") == ["CANCELLED"]


def test_an_edit_moves_a_waiting_run(sim: Simulation, app: App) -> None:
    """It moves at once to another queue, to another position, to the executor or to workers, and runs once."""
    run_ids: list[str] = []
    app.handler("anywhere")(lambda: run_ids.append("c"))
    for name in ("a", "b"):
        offer(sim, name, pull="press")
    sim.advance(MINUTE)
    assert claim(sim) is None
    app.update("a", pull="gpu")
    app.update("b", pull="gpu", priority="HIGH")
    assert [each.task.id for each in claim_all(sim, 1)] == ["b"]
    offer(sim, "c", handler="anywhere", pull="gpu")
    sim.advance(MINUTE)
    assert not run_ids
    app.update("c", pull=None)
    sim.advance(SECOND)
    assert run_ids == ["c"]


def test_a_run_that_no_worker_claimed_in_time_is_expired(sim: Simulation) -> None:
    """It is recorded as EXPIRED on time, and cannot be claimed even before that is recorded."""
    offer(sim, "a", expiration=HOUR)
    sim.advance(HOUR)
    assert statuses(sim, "a") == []
    sim.queue.purge()
    sim.clock.advance(SECOND)
    assert claim(sim) is None
    sim.advance(5 * MINUTE)
    record = only_run(sim, "a")
    assert (record.status, record.message) == ("EXPIRED", "No worker took it by Fri 1 Jan 2027 at 01:00:01 (UTC).")
    assert sim.app.get("a").status is TaskStatus.EXPIRED


def test_a_run_that_has_started_does_not_expire(sim: Simulation) -> None:
    """The expiration limits the start; a later attempt may wait for a worker for any time."""
    offer(sim, "a", expiration=HOUR)
    sim.advance(MINUTE)
    require_claim(sim)  # and dies
    sim.advance(2 * DAY)
    assert require_claim(sim).run.attempt == 2


def test_runs_that_may_overlap_are_all_offered_one_after_the_other(sim: Simulation) -> None:
    """A task has one offer at a time; once that run is claimed, the offer is for the next."""
    offer(sim, "a", schedule=Schedule.every(HOUR, start=sim.now + HOUR), overlap=Overlap.ALLOW)
    sim.advance(3 * HOUR)
    found = [require_claim(sim).run.execution_id for _ in range(3)]
    assert found == ["20270101T010000Z", "20270101T020000Z", "20270101T030000Z"]
    assert claim(sim) is None


def test_manual_runs_are_offered_at_once(sim: Simulation) -> None:
    """A trigger, a backfill and a retry can be claimed without a dispatch."""
    offer(sim, "a", schedule=Schedule.every(HOUR, start=sim.now + HOUR))
    sim.queue.is_down = True
    sim.app.trigger("a")
    assert require_claim(sim).run.execution_id.endswith("manual")
    offer(sim, "b", schedule=Schedule.every(HOUR, start=sim.now + MINUTE - 5 * HOUR))
    sim.app.backfill("b", sim.now - 3 * HOUR, sim.now - HOUR)
    assert "backfill" in require_claim(sim).run.execution_id
    offer(sim, "c", schedule=Schedule.once(sim.now + 9 * DAY))
    sim.app.trigger("c")
    found = require_claim(sim)
    finish(sim, found, AttemptReport(Fail("no")))
    sim.app.retry("c")
    assert require_claim(sim).run.attempt == 2


def test_a_handler_of_an_app_s_own_may_have_any_name() -> None:
    """Only the built-in assistant cannot run at workers: a function of that name can, as any other."""
    app = App()

    @app.handler("assistant", pull="gpu")
    def assistant() -> str:
        return "done"

    with Simulation(app) as sim:
        task = app.create(handler="assistant")
        sim.add_worker("gpu")
        sim.advance(SECOND)
        assert statuses(sim, task.id) == ["SUCCEEDED"]
