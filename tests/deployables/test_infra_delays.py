"""What Google does only some time after it was told to: the scripts wait for it, and say so when it takes too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deployables.fake_delays import TAKEN_FOR
from tests.deployables.fake_project import IN_USE, PROJECT, Cloud

CI = f"ci@{PROJECT}.iam.gserviceaccount.com"


def test_a_first_deployment_waits_for_what_it_enabled_and_granted(tmp_path: Path) -> None:
    """APIs that are refused for six minutes, roles that take seven, accounts and queues that take two: all is made."""
    cloud = Cloud(tmp_path, MONITORING="on")
    delays = cloud.fake.delays
    delays.usable_after, delays.effective_after, delays.known_after, delays.ready_after = 360, 420, 110, 110
    cloud.ok("deploy.sh")
    cloud.check()


def test_what_never_becomes_ready_ends_with_googles_words(tmp_path: Path) -> None:
    """After the wait the run ends with the error itself, and nothing is made that the ledger does not know of."""
    cloud = Cloud(tmp_path)
    cloud.fake.delays.usable_after = 86_400
    assert "SERVICE_DISABLED" in cloud.fails("deploy.sh").err
    assert not any(key.startswith(("secret/", "account/", "queue/")) for key in cloud.state)


def test_what_is_forbidden_is_told_at_once(cloud: Cloud) -> None:
    """It is no role that is not known yet."""
    cloud.state["iam/queue/cloudsched-high"].pop()
    said = cloud.fails("deploy.sh", "--step=roles", deny="tasks queues add-iam-policy-binding").err
    assert "PERMISSION_DENIED" in said
    assert "retrying" not in said


def test_a_service_account_can_deploy_into_a_new_project(tmp_path: Path) -> None:
    """It learns the project's number only with the Resource Manager API, which the scripts enable for it."""
    cloud = Cloud(tmp_path)
    cloud.fake.delays.operator = CI
    cloud.state[f"account/{CI}"] = {"email": CI}
    ran = cloud.fails("deploy.sh", "--check")
    assert f"gcloud services enable cloudresourcemanager.googleapis.com --project={PROJECT}" in ran.err
    cloud.ok("deploy.sh")


@pytest.mark.parametrize("has_ghosts", [False, True], ids=["refused", "seems to succeed"])
def test_a_queue_whose_name_is_still_taken_is_found(cloud: Cloud, *, has_ghosts: bool) -> None:
    """After a teardown the same names are taken for days: a deployment says so, and what to do. Then it works."""
    cloud.fake.has_ghosts = has_ghosts
    cloud.ok("teardown.sh", "--yes", "--with-data")
    assert "Deploy under another NAME, or wait." in cloud.fails("deploy.sh").err
    cloud.fake.delays.time += TAKEN_FOR
    cloud.ok("deploy.sh")


def test_a_further_queue_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """Before anything is made: the ledger could not tell it from ours."""
    cloud = Cloud(tmp_path, IN_USE, QUEUES_PER_PRIORITY="2", EXECUTE_MAX_INSTANCES="40")
    cloud.state["queue/cloudsched-q2"] = {"name": "cloudsched-q2"}
    ran = cloud.fails("deploy.sh", "--step=queues")
    assert "Queue cloudsched-q2 exists, but these scripts did not create it" in ran.err
    assert cloud.changes == 0
