"""Every reason that the engine knows is produced by what really happens, and says what matters about it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE
from tests.engine.queries.explained_scenes import (
    SCENARIOS,
    Scene,
    lose_dispatch,
    lose_the_mail_server,
    make_scene,
    offer,
)

from cloudsched import Schedule
from cloudsched.domain.documents.execution import ExecutionStatus, WaitingFor
from cloudsched.domain.documents.policy import CatchUpMode
from cloudsched.domain.explanation.findings import Reason
from cloudsched.engine.queries.explanations import explain_task
from cloudsched.engine.sweep.due_work import ExecutorState
from cloudsched.engine.sweep.shard_sweeps import SweepNotes
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.features.deliveries.maker import delivery_ids
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import START


@pytest.fixture
def scene() -> Scene:
    return make_scene()


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_found_where_it_holds(scene: Scene, reason: Reason) -> None:
    """A reason without a scenario fails here; and so does one that no scenario leads to any more."""
    with scene.sim:
        happen, words = SCENARIOS[reason]
        happen(scene)
        assert words in scene.find(reason).sentence
        if reason is Reason.OVERDUE:
            scene.sim.queue.find_paused = {"LOW": "low"}.get  # type: ignore[assignment, method-assign]
            scene.app.container.conditions.forget()
            assert words not in str(scene.explain())
        if reason in {Reason.RETRYING, Reason.PUT_OFF, Reason.SUSPENDED, Reason.SLEEPING}:
            scene.app.pause("t")
            assert "or when the pause ends" in scene.find(reason).sentence
            scene.app.cancel_run("t", scene.app.get("t").runs[0].execution_id)
            assert "ZeroDivisionError" not in str(scene.explain())


@pytest.mark.parametrize(
    ("worker", "is_enough"),
    [
        ({"skills": ("cuda", "x86")}, True),
        ({"skills": ("cuda",), "owner": "ada"}, True),
        ({"skills": ("x86",)}, False),
        ({"skills": ("cuda",), "owner": "bob"}, False),
        ({"queue": "cpu", "skills": ("cuda",)}, False),
    ],
)
def test_who_listens_is_who_would_claim_it(scene: Scene, worker: dict[str, Any], *, is_enough: bool) -> None:
    """Only workers of the queue with the skill and for the owner; and only while they ask. The summary says it."""

    def is_alone() -> bool:
        found = scene.explain()
        is_said = Reason.NO_WORKER_LISTENS in {each.reason for each in found.findings}
        assert ("none listens" in found.summary) == is_said
        return is_said

    with scene.sim:
        offer(scene)
        assert is_alone()
        PullWiring.of(scene.app.container).presence.note(
            WorkerFilter(**{"queue": "gpu", "worker": "box", **worker}), THIS_PROCESS
        )
        assert is_alone() == (not is_enough)
        scene.sim.clock.advance(10 * MINUTE)
        assert is_alone()


def test_a_run_whose_mail_is_stuck_is_explained_by_that(scene: Scene) -> None:
    """First of all, with the channel, the cause and since when; then that it is given up; and no more once it is sent.

    The same holds for the day on which it ran.
    """
    with scene.sim:
        lose_the_mail_server(scene)
        ran_on = START + MINUTE
        for asked_at in (None, ran_on):
            scene.asked_at = asked_at
            stuck = scene.find(Reason.NOT_DELIVERED)
            assert "by EMAIL, since Fri 1 Jan 2027 at 00:01" in stuck.sentence
            assert "RETRYING, and tried again on Sat 2 Jan 2027" in stuck.sentence
            assert stuck.execution_id == scene.sim.executions("t")[0].id
        scene.asked_at = None
        assert scene.explain().summary == stuck.sentence
        scene.sim.advance(5 * 24 * HOUR)
        assert "It is FAILED." in scene.explain().summary
        scene.app.retry(
            scene.app.container.store.load_many(delivery_ids(scene.app.get("t"), str(stuck.execution_id)))[0].task.id
        )
        scene.sim.channel("EMAIL").is_down = False
        scene.sim.advance(HOUR)
        assert Reason.NOT_DELIVERED not in {each.reason for each in scene.explain().findings}


def test_what_a_run_waits_for_is_all_explained() -> None:
    """What an open run can wait for has a reason of that name."""
    assert {f"WAITING_FOR_{each.value}" for each in WaitingFor} <= {each.value for each in Reason}


@pytest.mark.parametrize("hanging", ["16 handlers hang: 'fetch' (16), since 2026-07-01 09:00:00 UTC", ""])
def test_the_sweep_is_not_blamed_while_it_runs(scene: Scene, hanging: str) -> None:
    """What is due and does not start has another cause then. Users learn how many handlers hang, not which."""
    with scene.sim:
        lose_dispatch(scene)
        store, clock = scene.app.container.store, scene.app.container.clock
        scene.sim.clock.advance(10 * MINUTE)
        SweepNotes(store, clock, lambda: ExecutorState(hanging)).run(Sweep)
        found = scene.explain()
        assert Reason.SWEEP_IS_LATE not in [each.reason for each in found.findings]
        sentence = scene.find(Reason.DUE).sentence
        assert "has not started, although the process that runs tasks swept at" in sentence
        assert (f"{hanging}." if hanging else "all threads of that process are busy") in sentence
        told = explain_task(store, clock, scene.app.get("t"), shows_holders=False).summary
        assert "fetch" not in told
        assert ("16 handlers hang, since" in told) is bool(hanging)


@pytest.mark.parametrize("mode", [CatchUpMode.LATEST, CatchUpMode.ALL])
def test_a_run_by_hand_that_has_not_begun_skips_nothing(scene: Scene, mode: CatchUpMode) -> None:
    """What comes due meanwhile is for ``catchUp`` to decide: that it would be skipped is not said, nor done."""
    with scene.sim as sim:
        sim.app.create(id="hourly", handler="work", schedule=Schedule.every(HOUR, start=START), catch_up=mode)
        sim.advance(MINUTE)
        sim.queue.holds = True
        sim.app.trigger("hourly")
        assert "is skipped" not in explain(scene)
        sim.advance(3 * HOUR)
        assert f"catchUp ({mode}) decides" in explain(scene)
        sim.queue.holds = False
        sim.advance(MINUTE)
        assert sim.executions("hourly")[0].status is ExecutionStatus.SUCCEEDED


def explain(scene: Scene) -> str:
    return next(each.sentence for each in scene.app.explain("hourly").findings if each.reason is Reason.OVERLAP)
