"""The parts of an app are made on first use, by whichever thread is first."""

from __future__ import annotations

from cloudsched import App
from cloudsched.runtime.container import Wiring
from cloudsched.testing import Simulation


def test_all_parts_are_made_under_one_lock() -> None:
    """The first sweep makes some parts of others while the first request does, too: with two locks both waited."""
    with Simulation(App()) as sim:
        container = sim.app.container
        kinds = Wiring.__subclasses__()
        assert kinds, "nothing was tried"
        locks = [container.many_tasks.build_lock, *(container.wire(kind).build_lock for kind in kinds)]
        assert {*map(id, locks)} == {id(container.build_lock)}
