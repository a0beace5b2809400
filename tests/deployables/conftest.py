"""Shared fixtures: a project after its first deployment."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deployables.fake_project import AT_END, Cloud


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    """A project after its first deployment, for which each Python was a new interpreter. Tests must not change it."""
    cloud = Cloud(tmp_path_factory.mktemp("deployed"), MONITORING="on")
    cloud.use_python(is_copied=False)
    cloud.pack_source()
    cloud.ok("deploy.sh")
    return cloud


@pytest.fixture
def cloud(tmp_path: Path, deployed: Cloud) -> Cloud:
    return Cloud(tmp_path, deployed.state)


def pytest_sessionfinish() -> None:
    """End what the tests share, before it counts as left behind."""
    AT_END.close()
