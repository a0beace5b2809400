"""The clock of these tests stands still unless they move it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from cloudsched import App
from cloudsched.testing import Simulation


@pytest.fixture(autouse=True)
def clock_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of a simulation move only where the test says so.

    These tests count exact instants of the core: when a dispatch is due, a lease ends, a retry comes. That they hold on
    a clock that moves is for the rooms of doors, API and client.
    """
    monkeypatch.setattr("cloudsched.testing.simulation.EACH_LOOK", timedelta(0))


@pytest.fixture
def sim(request: pytest.FixtureRequest, app: App) -> Iterator[Simulation]:
    """A simulation of `app`, or of the module's app for Ada, who can be reached by every channel."""
    own: App | None = getattr(request.module, "app", None)
    with Simulation(own or app) as opened:
        if own:
            opened.add_person("ada")
        yield opened
