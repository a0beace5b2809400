"""A simulation for the settings that only show once something uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.greeting_app import app

from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A world of its own for each test."""
    with Simulation(app) as simulation:
        yield simulation
