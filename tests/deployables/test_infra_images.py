"""One image runs all functions: it is built once, kept in a repository of its own, and removed with it."""

from __future__ import annotations

import json

from tests.deployables.fake_project import Cloud
from tests.deployables.fake_resources import get_env

FUNCTIONS = ("execute", "sweep", "api", "links")


def find_images(cloud: Cloud) -> set[str]:
    found = set()
    for function in FUNCTIONS:
        status = cloud.state.get(f"service/cloudsched-{function}", {"status": {"traffic": []}})["status"]
        found |= {status["revisions"][part["revisionName"]]["image"] for part in status["traffic"]}
    return found


def count_builds(cloud: Cloud) -> int:
    return sum("@sha256:" in key for key in cloud.state)


def test_each_run_builds_once_and_all_functions_run_it(deployed: Cloud, cloud: Cloud) -> None:
    """FUNCTION_TARGET makes the image one function or the other; Google keeps what is below it up to date."""
    assert count_builds(deployed) == 1
    (first,) = find_images(deployed)
    cloud.ok("deploy.sh", MEMORY="1Gi", PUBLIC_LINKS="yes")
    assert count_builds(cloud) == 2
    cloud.ok("upgrade.sh", MEMORY="2Gi", PUBLIC_LINKS="yes")
    assert count_builds(cloud) == 3
    (second,) = find_images(cloud)
    assert second != first
    for function in FUNCTIONS:
        told = cloud.revision(function)
        assert get_env(told)["FUNCTION_TARGET"] == function
        assert told["base-image"].endswith("/runtimes/python312")
    assert {cloud.ledger[f"image.{function}"] for function in FUNCTIONS} == {second}
    cloud.ok("rollback.sh")
    assert first in find_images(cloud)


def test_old_images_are_removed_by_a_policy(deployed: Cloud, cloud: Cloud) -> None:
    """The repository keeps the last twenty; without the repository, as after an older deployment, it is made."""
    policies = json.loads((deployed.checkout / "infra/images.json").read_text("utf-8"))
    assert deployed.state["repository/cloudsched"]["policies"] == policies
    assert {each["action"]["type"] for each in policies} == {"Keep", "Delete"}
    for name in ("repository/cloudsched", *find_images(cloud)):
        cloud.state.pop(name)
    for entry in ("created.repository", "images"):
        cloud.ledger.pop(entry)
    cloud.ok("upgrade.sh", MEMORY="1Gi")
    assert cloud.state["repository/cloudsched"]["policies"] == policies


def test_a_repository_of_somebody_else_is_used_and_kept(cloud: Cloud) -> None:
    """It gets no policy of ours, and a teardown leaves it and its images."""
    cloud.state["repository/cloudsched"] = {"name": "cloudsched"}
    for entry in ("created.repository", "images"):
        cloud.ledger.pop(entry)
    cloud.ok("upgrade.sh", MEMORY="1Gi", ADOPT="(repository/cloudsched)")
    assert "policies" not in cloud.state["repository/cloudsched"]
    cloud.ok("teardown.sh", "--yes", "--with-data")
    assert "repository/cloudsched" in cloud.state
