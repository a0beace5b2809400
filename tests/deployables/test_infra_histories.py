"""Random histories of a deployment; `python -m benchmarks.histories --deployments` plays hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deployables.deployment_histories import Broken, History, play_history
from tests.deployables.fake_databases import make_database


@pytest.mark.parametrize("seed", [43])
def test_whatever_fails_a_deployment_ends_whole_or_says_what_to_do(seed: int, tmp_path: Path) -> None:
    """In any order, killed, interrupted and refused anywhere: one database, no forged token, no refused dispatch.

    In the end nothing differs from the configuration, the doctor finds nothing, and a teardown leaves nothing.
    """
    seen = play_history(seed, tmp_path / "project")
    assert seen["deploy.sh: 0"]


def test_a_history_sees_what_is_wrong(tmp_path: Path) -> None:
    """Without the fence around the old database, the same history finds two that are served."""
    history = History(1, tmp_path / "project")
    script = history.cloud.checkout / "infra/upgrade.sh"
    code = script.read_text(encoding="utf-8")
    script.write_text(
        code.replace('[[ -z "$is_moving" ]] || fence_database "$deployed_database"', ""), encoding="utf-8"
    )
    history.cloud.fake.look = history.look
    history.run("deploy.sh", is_calm=True)
    make_database(history.cloud.state, "restored")
    history.settings["DATABASE"] = "restored"
    with pytest.raises(Broken, match="at the same time"):
        history.run("upgrade.sh", is_calm=True)
