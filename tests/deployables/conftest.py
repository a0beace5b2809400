"""What the tests of the deployment share: a project after its first deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.deployables.fake_project import FakeProject

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> FakeProject:
    """A project after its first deployment; to be looked at only."""
    cloud = FakeProject(tmp_path_factory.mktemp("deployed"))
    cloud.ok("deploy.sh")
    return cloud


@pytest.fixture
def cloud(tmp_path: Path, deployed: FakeProject) -> FakeProject:
    """A deployed project of the test's own."""
    return FakeProject(tmp_path, deployed.state)
