"""Fixtures for pytest, available as soon as cloudsched is installed. No heavy module is imported until one is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.testing.simulation import Simulation


@pytest.fixture
def cloudsched_app() -> App:
    """Return the app under test. Define a fixture of this name that returns yours."""
    raise pytest.UsageError(
        "The fixture `simulation` needs your app. Define this in conftest.py:\n\n"
        "    @pytest.fixture\n"
        "    def cloudsched_app():\n"
        "        from handlers import app\n"
        "        return app\n"
    )


@pytest.fixture
def simulation(cloudsched_app: App) -> Iterator[Simulation]:
    """Put your app into a world of its own whose clock the test moves. See `cloudsched.testing`."""
    from cloudsched.testing.simulation import Simulation  # noqa: PLC0415 - imported only by tests that use it

    with Simulation(cloudsched_app) as simulated:
        yield simulated
