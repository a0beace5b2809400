"""Every reason that the engine knows is produced by what really happens, and says what matters about it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.tasks.explained_scenes import (
    DAY,
    HOUR,
    MINUTE,
    SCENARIOS,
    WORDS,
    Scene,
    fail_once,
    make_scene,
    offer,
    sleep,
    wait_for_event,
)

from cloudsched import Schedule
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.execution import WaitingFor
from cloudsched.domain.explanation.findings import Reason
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.engine.pull.offers import THIS_PROCESS, WorkerFilter
from cloudsched.testing import START, Simulation


@pytest.fixture
def scene() -> Scene:
    return make_scene()


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_found_where_it_holds(scene: Scene, reason: Reason) -> None:
    """A reason without a scenario fails here; and so does one that no scenario leads to any more."""
    with scene.sim:
        SCENARIOS[reason](scene)
        assert WORDS.get(reason, "") in scene.find(reason).sentence


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
        scene.app.container.presence.note(WorkerFilter(**{"queue": "gpu", "worker": "box", **worker}), THIS_PROCESS)
        assert is_alone() == (not is_enough)
        scene.sim.clock.advance(10 * MINUTE)
        assert is_alone()


def test_what_is_due_while_the_task_is_paused_waits_for_that(scene: Scene) -> None:
    """A run that waits for its next attempt, and a handler that sleeps: no dispatch is missing."""
    for scenario in (fail_once, sleep):
        fresh = Scene(Simulation(scene.app), scene.app, scene.does)
        with fresh.sim:
            scenario(fresh)
            fresh.app.pause("t")
            fresh.sim.clock.advance(2 * DAY)
            assert fresh.find(Reason.DUE).sentence.endswith("starts once its task is resumed.")
            assert fresh.explain().findings[0].reason is Reason.PAUSED


def test_a_moved_occurrence_says_from_where(scene: Scene) -> None:
    """And that it does not run on the day itself is said no second time."""
    with scene.sim:
        first = START.date()
        scene.app.container.calendars.put(
            "fr", SYSTEM_OWNER, days=[(first, first + 2 * DAY, "Bastille Day")], by=OWN_CODE
        )
        daily = {"rrule": "FREQ=WEEKLY;BYDAY=FR;BYHOUR=12", "calendars": [{"id": "fr", "on": "after"}]}
        scene.create(schedule=Schedule.model_validate(daily))
        assert START.weekday() == 4
        found = [each for each in scene.explain().findings if each.reason is Reason.CALENDAR]
        assert [each.at for each in found] == [scene.app.get("t").next_execution_time]
        assert f"Moved from {first}: Bastille Day (fr)." in found[0].sentence


def test_a_wait_for_an_event_ends_at_its_deadline(scene: Scene) -> None:
    """The handler looks for the event in between, which matters to nobody; without a deadline, it says so."""
    with scene.sim:
        wait_for_event(scene)
        found = scene.find(Reason.WAITING_FOR_EVENT)
        assert found.at == START + 5 * MINUTE + 30 * DAY
        assert f"{found.at:%Y-%m-%d at %H:%M:%S}" in found.sentence
        scene.sim.advance(10 * DAY)
        assert scene.find(Reason.WAITING_FOR_EVENT) == found
        scene.does["work"] = lambda ctx: ctx.wait_for("approved")
        scene.create("u", schedule=Schedule.once(scene.sim.now + MINUTE))
        scene.sim.advance(HOUR)
        endless = scene.explain("u").findings[0]
        assert (endless.at, "however long" in endless.sentence) == (None, True)


def test_what_a_run_waits_for_is_all_explained() -> None:
    """What an open run can wait for has a reason of that name."""
    assert {f"WAITING_FOR_{each.value}" for each in WaitingFor} <= {each.value for each in Reason}
