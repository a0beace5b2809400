"""Random histories of a deployment; `python -m benchmarks.histories --deployments` plays hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deployables.deployment_histories import play_history


@pytest.mark.parametrize("seed", [43])
def test_whatever_fails_a_deployment_ends_whole_or_says_what_to_do(seed: int, tmp_path: Path) -> None:
    """In any order, killed, interrupted and refused anywhere: one database, no forged token, no refused dispatch.

    In the end nothing differs from the configuration, the doctor finds nothing, and a teardown leaves nothing.
    """
    seen = play_history(seed, tmp_path / "project")
    assert seen["deploy.sh: 0"]
