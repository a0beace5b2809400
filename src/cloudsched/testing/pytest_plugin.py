"""Fixtures for pytest, available as soon as cloudsched is installed.

No heavy module is imported until one is used. `simulation` is a world whose clock the test moves, and
`cloud_tasks` a local Cloud Tasks of the test's own. Override `cloud_tasks_settings` to change its arguments::

    @pytest.fixture
    def cloud_tasks_settings():
        return {"queues": ["projects/demo/locations/here/queues/mail"], "clock": MovableClock(frozen=True)}

    def test_a_reminder(cloud_tasks):
        create_reminder(cloud_tasks.address)
        cloud_tasks.advance(timedelta(days=30))
        assert cloud_tasks.attempts()[0].answer.ok
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.app import App
    from cloudsched.emulator.emulator import CloudTasksEmulator
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


@pytest.fixture
def cloud_tasks_settings() -> dict[str, Any]:
    """Return the arguments of `CloudTasksEmulator`.

    By default a task for a missing queue creates the queue.
    """
    return {"auto_create_queues": True}


@pytest.fixture
def cloud_tasks(cloud_tasks_settings: dict[str, Any]) -> Iterator[CloudTasksEmulator]:
    """Run an emulator on a free port. It stops at the end of the test and keeps nothing."""
    from cloudsched.emulator import CloudTasksEmulator  # noqa: PLC0415 - imported only by tests that use it

    with CloudTasksEmulator(**cloud_tasks_settings) as emulator:
        yield emulator
