"""The worlds are closed at the end, for all tests of this folder use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.doors.world import WORLDS


@pytest.fixture(scope="session", autouse=True)
def _close_worlds() -> Iterator[None]:
    yield
    WORLDS.close()
