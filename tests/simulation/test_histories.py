"""Random histories: the rules of the design under crashes, duplicates, delays, lost answers and reordering.

In the durable profiles most handlers are durable and call each other; there, each step's effect is recorded once,
whatever crashes when. In the worker profiles workers claim much of the work, and fail in ways of their own.

``pytest tests/simulation --histories 5000`` runs more of them, and ``--seed N`` repeats one. A history that fails
prints its trace.
"""

from __future__ import annotations

import logging
import traceback

import pytest
from tests.simulation.faults import DURABLE_PROFILES, PROFILES, WORKER_PROFILES, FaultProfile
from tests.simulation.world import SECRET, World

from cloudsched.domain.transitions import backlog


@pytest.fixture(autouse=True)
def _few_records_fit_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sweep have something to record, without histories of hundreds of occurrences."""
    monkeypatch.setattr(backlog, "MAX_RECORDS_PER_COMMIT", 2)


def run_history(seed: int, profile: FaultProfile) -> str | None:
    world = World(seed, profile)
    try:
        world.run()
    except BaseException as error:  # noqa: BLE001 - any failure is reported with its history
        trace = "\n".join(world.trace)
        why = "".join(traceback.format_exception(error)[-6:])
        return f"{trace}\n{why}\nagain: pytest {__file__} -k '{profile.name.replace(' ', ' and ')}' --seed {seed}"
    return None


@pytest.mark.parametrize("profile", [*PROFILES, *DURABLE_PROFILES, *WORKER_PROFILES], ids=lambda profile: profile.name)
def test_every_history_keeps_the_invariants(
    profile: FaultProfile, histories: int, seed: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The invariants hold under failures, crashes, duplicates, delays and reordering; no log contains the secret."""
    caplog.set_level(logging.INFO)
    share = histories // len(PROFILES) + 1
    if profile.is_durable or profile.has_workers:  # each of them takes longer
        share = share // (5 if profile.has_workers else 4) + 1
    seeds = range(share) if seed is None else [seed]
    for number in seeds:
        failure = run_history(number, profile)
        assert SECRET not in caplog.text
        caplog.clear()
        if failure:
            pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize(
    "profile", [PROFILES[4], DURABLE_PROFILES[4], WORKER_PROFILES[4]], ids=lambda profile: profile.name
)
def test_a_seed_repeats_its_history(profile: FaultProfile) -> None:
    """The same seed gives the same history, so a failure can be reproduced."""
    traces = []
    for _ in range(2):
        world = World(3, profile)
        world.run()
        traces.append([line.split("records")[0] for line in world.trace])
    assert traces[0] == traces[1]
    assert len(traces[0]) > 50
