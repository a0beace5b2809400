"""A new project's quota for Cloud Run: the defaults fit it, and other values are refused with values that do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.deployables.fake_project import IN_USE, TABLE, Cloud
from tests.deployables.fake_resources import QUOTA

LARGE = {"EXECUTE_MAX_INSTANCES": "100", "QUEUE_NORMAL": "500/300", "QUEUE_CRITICAL": "500/400"}
"""As the defaults once were."""


def read_lines(printed: str) -> dict[str, str]:
    """Return the settings that a script prints for the configuration."""
    return dict(re.findall(r"(?m)^([A-Z_]+)=(.*)$", printed))


def test_the_defaults_fit_a_new_project() -> None:
    """Each function alone, as Cloud Run looks at it, and all together, with one sweep at a time."""
    maxima = {name: shape["maximum"] for name, shape in TABLE["functions"].items()}
    assert max(maxima.values()) * 1000 <= QUOTA["cpu_allocation"]
    assert (sum(maxima.values()) - maxima["sweep"] + 1) * 1000 <= QUOTA["cpu_allocation"]
    at_once = sum(int(limits.split("/")[1]) for limits in TABLE["queues"].values())
    assert at_once <= maxima["execute"] * TABLE["functions"]["execute"]["concurrency"]


@pytest.mark.parametrize(("quota", "memory"), [(20_000, "512Mi"), (20_000, "4Gi"), (5_000, "512Mi")])
def test_what_does_not_fit_is_refused_with_values_that_do(tmp_path: Path, quota: int, memory: str) -> None:
    """Before anything is made; and with the lines that are printed, the deployment succeeds."""
    cloud = Cloud(tmp_path, IN_USE, MEMORY=memory, **LARGE)
    cloud.fake.quota["cpu_allocation"] = quota
    ran = cloud.fails("deploy.sh")
    assert f"{quota // 1000} vCPU and 40 GiB" in ran.err
    assert cloud.changes == 0
    cloud.configure(MEMORY=memory, **LARGE | read_lines(ran.err))
    cloud.ok("deploy.sh")
