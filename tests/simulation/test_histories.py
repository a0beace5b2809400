"""Random histories: the rules of the design under crashes, duplicates, delays, lost answers and reordering.

In the durable weathers most handlers are durable ones, which call each other: there, each step's effect is recorded
once, whatever dies when. In the workers' weathers much of the work is fetched, by workers that fail in their own ways.

``pytest tests/simulation --histories 5000`` lives through more of them, ``--seed N`` through one of them
again. One that fails prints its course.
"""

from __future__ import annotations

import logging
import traceback

import pytest
from tests.simulation.faults import DURABLE_PROFILES, PROFILES, WORKER_PROFILES, FaultProfile
from tests.simulation.world import SECRET, World


def run_history(seed: int, weather: FaultProfile) -> str | None:
    world = World(seed, weather)
    try:
        world.run()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told with its history
        course = "\n".join(world.trace)
        why = "".join(traceback.format_exception(error)[-6:])
        return f"{course}\n{why}\nagain: pytest {__file__} -k '{weather.name.replace(' ', ' and ')}' --seed {seed}"
    return None


@pytest.mark.parametrize("weather", [*PROFILES, *DURABLE_PROFILES, *WORKER_PROFILES], ids=lambda weather: weather.name)
def test_the_rules_hold_in_every_history(
    weather: FaultProfile, histories: int, seed: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The rules hold, whatever fails, dies, comes twice, late or in another order; no log has the secret."""
    caplog.set_level(logging.INFO)
    share = histories // len(PROFILES) + 1
    if weather.is_durable or weather.has_workers:  # each of them takes longer
        share = share // (5 if weather.has_workers else 4) + 1
    seeds = range(share) if seed is None else [seed]
    for number in seeds:
        failure = run_history(number, weather)
        assert SECRET not in caplog.text
        caplog.clear()
        if failure:
            pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize(
    "weather", [PROFILES[4], DURABLE_PROFILES[4], WORKER_PROFILES[4]], ids=lambda weather: weather.name
)
def test_a_seed_is_one_history(weather: FaultProfile) -> None:
    """The same seed gives the same history, so that a failure can be looked at again."""
    courses = []
    for _ in range(2):
        world = World(3, weather)
        world.run()
        courses.append([line.split("records")[0] for line in world.trace])
    assert courses[0] == courses[1]
    assert len(courses[0]) > 50
