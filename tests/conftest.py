"""What all tests share: how many random histories to live through, and the tests' own modules on the path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent.parent))

# How long an example takes says more of the machine, which may be busy, than of the code.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run ask for more histories, or for one of them again."""
    group = parser.getgroup("histories")
    group.addoption("--histories", type=int, default=210, help="how many random histories to live through")
    group.addoption("--seed", type=int, default=None, help="live through the history of this seed only")


@pytest.fixture
def histories(request: pytest.FixtureRequest) -> int:
    """How many random histories to live through."""
    return int(request.config.getoption("--histories"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int | None:
    """The one history to live through, if there is one."""
    value: int | None = request.config.getoption("--seed")
    return value
