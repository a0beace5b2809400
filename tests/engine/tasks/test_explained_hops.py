"""What is said of hops, which leave no record, is what happens."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests.engine.tasks.explained_scenes import DAY, HOUR, Scene, make_scene, sleep_long

from cloudsched import Schedule
from cloudsched.domain.explanation.explain import count_hops
from cloudsched.domain.explanation.findings import Reason
from cloudsched.domain.transitions.planning import HORIZON
from cloudsched.engine.execution.executor import DeliveryAction
from cloudsched.testing import START


@pytest.fixture
def scene() -> Scene:
    return make_scene()


def read_hops(scene: Scene) -> tuple[int, ...]:
    """Return how many hops the explanation says there may be; nothing if it says nothing of them."""
    said = [each.sentence for each in scene.explain().findings if each.reason is Reason.BEYOND_HORIZON]
    return tuple(int(each) for sentence in said for each in re.findall(r"(\d+) or (\d+) hops", sentence)[0])


def count_to_come(scene: Scene, until: timedelta) -> int:
    """Return how many hops there are until then."""
    before = len(scene.sim.queue.deliveries)
    scene.sim.advance(until)
    return len(
        [
            each
            for each in scene.sim.queue.deliveries[before:]
            if each.result and each.result.action == DeliveryAction.HOPPED
        ]
    )


@pytest.mark.parametrize("days", [31, 59, 60, 61, 89, 91, 200, 365])
@pytest.mark.parametrize("passed", [0, 1, 29])
def test_as_many_hops_come_as_are_said(scene: Scene, days: int, passed: int) -> None:
    """Whenever somebody asks: the fewest if the dispatch has just been sent, or one more."""
    with scene.sim:
        scene.create(schedule=Schedule.once(START + days * DAY))
        scene.sim.advance(passed * DAY)
        said = read_hops(scene)
        assert bool(said) == ((days - passed) * DAY > HORIZON)
        if said:
            assert count_to_come(scene, (days - passed) * DAY + HOUR) in said


@pytest.mark.parametrize(("ahead", "hops"), [(HORIZON, 0), (HORIZON + HOUR, 1), (2 * HORIZON, 1), (3 * HORIZON, 2)])
def test_a_dispatch_takes_as_many_hops_as_there_are_horizons(ahead: timedelta, hops: int) -> None:
    """One less: the last stretch is the dispatch itself."""
    assert count_hops(START, START + ahead) == hops


def test_a_sleep_beyond_the_horizon_names_its_execution(scene: Scene) -> None:
    """So that the page of the execution can say it; nothing is said once the task is paused, which nothing wakes."""
    with scene.sim:
        sleep_long(scene)
        found = scene.find(Reason.BEYOND_HORIZON)
        assert found.execution_id == scene.app.get("t").runs[0].execution_id
        assert found.at == scene.app.get("t").runs[0].due_at
        scene.app.pause("t")
        assert read_hops(scene) == ()
