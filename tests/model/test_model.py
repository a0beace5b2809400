"""The engine's own code, explored: see `tests.model.explorer`. ``python -m benchmarks.model`` explores the rest.

Each control is the code without one guard: the explorer has to find what that guard prevents, by a shortest story.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.model.controls import CONTROLS, Control, find_guards, without_guard
from tests.model.explorer import Model
from tests.model.stories import tell
from tests.model.worlds import WORLDS, World

MOST = 30_000
"""More states than any control needs."""


@pytest.fixture(autouse=True)
def _without_logs() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("world", [each for each in WORLDS.values() if each.is_small], ids=lambda world: world.name)
def test_no_state_of_a_small_world_breaks_a_rule(world: World) -> None:
    """Every order of events, every crash and every lost answer: all rules hold, and everything ends."""
    model = Model(world)
    found = model.explore()
    assert found.rule is None, tell(model, found)
    assert found.states > 400
    assert found.is_whole


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name.replace(" ", "-"))
def test_every_guard_is_missed(control: Control) -> None:
    """Without it a rule breaks, and a story says how."""
    with without_guard(control):
        model = Model(WORLDS[control.world])
        found = model.explore(MOST)
        assert found.rule is not None, f"{found.states} states, and nobody misses it"
        assert len(tell(model, found).splitlines()) > len(found.path)


def test_every_guard_has_a_control() -> None:
    """Alone, or together with what makes up for it."""
    assert find_guards().keys() == {guard for each in CONTROLS for guard in each.without}
