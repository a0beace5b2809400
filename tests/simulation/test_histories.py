"""Random histories: the rules of the design under crashes, duplicates, delays, lost answers and reordering.

In the durable profiles most handlers are durable and call each other; there, each step's effect is recorded once,
whatever crashes when. In the worker profiles workers claim much of the work, and fail in ways of their own.

A normal run takes the first seed of each profile, one with ``--all`` two. ``--histories N`` runs N, ``--seed N``
repeats one, and ``python -m benchmarks.histories`` runs thousands of them. What fails prints its trace.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable

import pytest
from tests.simulation.faults import ALL_PROFILES, HEAD_START, FaultProfile
from tests.simulation.world import SECRET, World

from cloudsched.engine.execution import executor
from cloudsched.engine.sweep import shard_sweeps


def limit_records(patch: pytest.MonkeyPatch) -> None:
    """Let the sweep of a shard have several parts, and runs be claimed earlier than usual."""
    patch.setattr(shard_sweeps, "PART_SIZE", 1)
    patch.setattr(executor, "HEAD_START", HEAD_START)


@pytest.fixture(autouse=True)
def _limit_records_per_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_records(monkeypatch)


def run_history(seed: int, profile: FaultProfile) -> str | None:
    world = World(seed, profile)
    try:
        world.run()
    except BaseException as error:  # noqa: BLE001 - any failure is reported with its history
        trace = "\n".join(world.trace)
        why = "".join(traceback.format_exception(error)[-6:])
        return f"{trace}\n{why}\nagain: pytest {__file__} -k '{profile.name.replace(' ', ' and ')}' --seed {seed}"
    return None


@pytest.mark.parametrize("profile", ALL_PROFILES, ids=lambda profile: profile.name)
def test_every_history_keeps_the_invariants(
    profile: FaultProfile,
    histories: int | None,
    seed: int | None,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
    *,
    everything: bool,
) -> None:
    """The invariants hold under failures, crashes, duplicates, delays and reordering; no log contains the secret."""
    caplog.set_level(logging.INFO)
    share = 1 + everything if histories is None else -(-histories // len(ALL_PROFILES))
    seeds = range(share) if seed is None else [seed]
    for number in seeds:
        failure = run_history(number, profile)
        assert SECRET not in caplog.text
        caplog.clear()
        if failure:
            pytest.fail(failure, pytrace=False)
    record_property("histories", len(seeds))


@pytest.mark.parametrize(
    "profile",
    [each for each in ALL_PROFILES if each.name.endswith("all faults")][:5],
    ids=lambda profile: profile.name,
)
def test_a_seed_repeats_its_history(profile: FaultProfile) -> None:
    """The same seed gives the same history, but for what must not be guessed, so a failure can be reproduced."""
    traces = []
    for _ in range(2):
        world = World(3, profile)
        world.run()
        traces.append([re.sub(r"_[\w-]{32} ", "_… ", line.split("records")[0]) for line in world.trace])
    assert traces[0] == traces[1]
    assert len(traces[0]) > 50
