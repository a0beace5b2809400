"""The worlds are closed at the end, for all tests of this folder use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.doors.world import WORLDS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _close_worlds() -> Iterator[None]:
    yield
    WORLDS.close()
