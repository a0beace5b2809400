"""The rules themselves notice what breaks them, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from tests.conftest import MakeTask
from tests.simulation.faults import FaultProfile
from tests.simulation.invariants_runs import InvariantViolated, RunInvariants
from tests.simulation.world import World

from cloudsched.testing import START

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("drift", "steps", "allowed"),
    [(0 * SECOND, 0.0, 0 * SECOND), (SECOND, 0.0, 0 * SECOND), (SECOND, 0.1, 2 * SECOND)],
    ids=["right", "wrong", "set anew"],
)
def test_a_handler_may_begin_late_by_what_its_clock_may_be_set_only(
    drift: timedelta, steps: float, allowed: timedelta, make_task: MakeTask
) -> None:
    """A clock that is wrong but never set shows the handler no other time than the check before it has seen."""
    profile = FaultProfile("some", drift=drift, steps=steps)
    world = SimpleNamespace(now=START, current=SimpleNamespace(name="p"), fault_profile=profile)
    rules = RunInvariants(cast("World", world))
    tick = timedelta(microseconds=1)
    rules.on_attempt_start(make_task(), "e", tick - allowed)
    with pytest.raises(InvariantViolated, match="begun although its lease ended"):
        rules.on_attempt_start(make_task(), "e", -allowed)
