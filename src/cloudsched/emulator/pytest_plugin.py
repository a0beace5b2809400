"""A pytest plugin: the fixture `cloud_tasks` gives each test a local Cloud Tasks of its own.

It is active as soon as cloudsched is installed. Override `cloud_tasks_settings` to change its arguments::

    @pytest.fixture
    def cloud_tasks_settings():
        return {"queues": ["projects/demo/locations/here/queues/mail"], "clock": MovableClock(frozen=True)}

    def test_a_reminder(cloud_tasks):
        create_reminder(cloud_tasks.address)
        cloud_tasks.advance(timedelta(days=30))
        assert cloud_tasks.attempts()[0].answer.ok
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cloudsched.emulator.emulator import CloudTasksEmulator


@pytest.fixture
def cloud_tasks_settings() -> dict[str, Any]:
    """Return the arguments of `CloudTasksEmulator`. By default a task for a missing queue creates the queue."""
    return {"auto_create_queues": True}


@pytest.fixture
def cloud_tasks(cloud_tasks_settings: dict[str, Any]) -> Iterator[CloudTasksEmulator]:
    """Run an emulator on a free port. It stops at the end of the test and keeps nothing."""
    from cloudsched.emulator import CloudTasksEmulator  # noqa: PLC0415 - imported only by tests that use it

    with CloudTasksEmulator(**cloud_tasks_settings) as emulator:
        yield emulator
