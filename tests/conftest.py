"""What all tests share: Google's Firestore emulator, how many random histories to live through, the modules' path."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from cloudsched.adapters.firestore_emulator import Missing, find

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parent.parent))

# How long an example takes says more of the machine, which may be busy, than of the code.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


@pytest.fixture(scope="session")
def firestore_address() -> Iterator[str]:
    """Google's emulator, for the whole run. Without one the tests fail where CI is set, and are skipped elsewhere."""
    found = find(os.environ.get("FIRESTORE_EMULATOR_HOST"))
    if isinstance(found, Missing):
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"No Firestore emulator: {found.reason}. {found.hint}")
    with found:
        yield found.address


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process is left with it at the end while the others have nothing."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run ask for more histories, or for one of them again."""
    group = parser.getgroup("histories")
    group.addoption("--histories", type=int, default=210, help="how many random histories to live through")
    group.addoption("--seed", type=int, default=None, help="live through the history of this seed only")
    parser.getgroup("language").addoption("--phrases", type=int, default=2000, help="how many random phrases to read")


@pytest.fixture
def histories(request: pytest.FixtureRequest) -> int:
    """How many random histories to live through."""
    return int(request.config.getoption("--histories"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int | None:
    """The one history to live through, if there is one."""
    value: int | None = request.config.getoption("--seed")
    return value


@pytest.fixture
def phrases(request: pytest.FixtureRequest) -> int:
    """How many random phrases to read."""
    return int(request.config.getoption("--phrases"))
