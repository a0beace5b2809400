"""What was deployed by `gcloud functions deploy` becomes Cloud Run's own, without losing an address or a dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.deployables.fake_project import PROJECT
from tests.deployables.test_infra_upgrade import FUNCTIONS, find_refused_pairs, get_traffic

if TYPE_CHECKING:
    from tests.deployables.fake_project import Cloud

BUILDER = f"serviceAccount:cloudsched-builder@{PROJECT}.iam.gserviceaccount.com"
OLD_ROLE = [BUILDER, "roles/cloudbuild.builds.builder", "None"]


@pytest.fixture(name="old")
def make_old(cloud: Cloud) -> Cloud:
    """A project as the scripts deployed it until November 2026."""
    for function in FUNCTIONS:
        cloud.state[f"function/cloudsched-{function}"] = {"state": "ACTIVE"}
        cloud.ledger[f"digest.{function}"] = "of-older-flags"
        for entry in ("platform", "image"):
            del cloud.ledger[f"{entry}.{function}"]
    bindings = cloud.state[f"iam/project/{PROJECT}"]
    bindings[:] = [OLD_ROLE if each[0] == BUILDER else each for each in bindings]
    cloud.state["services"].append("cloudfunctions.googleapis.com")
    return cloud


def get_addresses(cloud: Cloud) -> list[str]:
    return [
        cloud.state[f"service/cloudsched-{each}"]["metadata"]["annotations"]["run.googleapis.com/urls"]
        for each in FUNCTIONS
    ]


def get_secrets(cloud: Cloud) -> list[str]:
    statuses = [cloud.state[f"service/cloudsched-{each}"]["status"] for each in FUNCTIONS]
    return [status["revisions"][status["traffic"][0]["revisionName"]]["set-secrets"] for status in statuses]


def test_an_upgrade_migrates(old: Cloud) -> None:
    """Addresses and secrets stay, no request moves by the detaching, and no executor ever refuses a dispatch.

    deploy.sh says what to do before, and afterwards takes the role from the builder that it no longer needs.
    """
    assert "run infra/upgrade.sh" in old.ok("deploy.sh").out
    assert OLD_ROLE in old.state[f"iam/project/{PROJECT}"]
    before, kept = get_traffic(old), (get_addresses(old), get_secrets(old))
    old.ok("upgrade.sh")
    detached = [call[3] for call in old.calls if call[1:3] == ["functions", "detach"]]
    assert detached == [f"cloudsched-{function}" for function in FUNCTIONS]
    for state in old.fake.history[: old.fake.history.index(next(s for s in old.fake.history if _is_detached(s))) + 1]:
        parts = [state[f"service/cloudsched-{function}"]["status"]["traffic"] for function in FUNCTIONS]
        assert [{part["revisionName"]: part["percent"] for part in each} for each in parts] == before
    assert find_refused_pairs(old.fake.history) == []
    assert (get_addresses(old), get_secrets(old)) == kept
    old.ok("deploy.sh")
    assert OLD_ROLE not in old.state[f"iam/project/{PROJECT}"]
    assert old.ok("deploy.sh", "--check").out == ""
    old.ok("rollback.sh")
    assert get_traffic(old) == before


def _is_detached(state: dict[str, object]) -> bool:
    return not any(key.startswith("function/") for key in state)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_migration_that_dies_is_resumed(old: Cloud, is_done: bool) -> None:  # noqa: FBT001 - a parameter
    """Killed just before or after a function was detached, the upgrade is completed by the next run."""
    old.fake.interrupt_at = ("detach", 130)
    if is_done:
        old.state.pop("function/cloudsched-execute")  # the answer to the request was lost
        old.fake.interrupt_at = ("", 0)
    else:
        assert old.run("upgrade.sh").code != 0
    old.ok("upgrade.sh")
    assert _is_detached(old.state)
    assert old.ledger["platform.execute"] == "run"


def test_a_teardown_removes_what_was_never_migrated(old: Cloud) -> None:
    """It does not need an upgrade first."""
    old.ok("teardown.sh", "--yes", "--with-data")
    assert not [key for key in old.state if key.startswith(("function/", "service/"))]
