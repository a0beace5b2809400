"""A new executor process imports and builds what its first dispatch needs, and nothing else.

What is imported here is what a cold start waits for; ``python -m benchmarks.coldstart`` says how long.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.cold_executor import ColdExecutor
from benchmarks.local_services import Services
from tests.harness import SECRET, START, new_project
from tests.installs import find_declared
from tests.instants import MINUTE

from cloudsched import Settings
from cloudsched.emulator import CloudTasksEmulator, MovableClock

LIBRARIES = {
    "functions-framework",
    "grpcio",
    "protobuf",
    "pydantic",
    "typing-extensions",
    "tzdata",
    "werkzeug",
}
"""The libraries that a dispatch needs, of those that some install declares."""
OF_FLASK = {"click", "flask", "jinja2", "markupsafe"}
"""What functions-framework brings along."""


@pytest.fixture(scope="module")
def report(firestore_address: str) -> Iterator[dict[str, Any]]:
    """The report of a new process that has served one dispatch of the functions that are deployed."""
    settings = Settings(project=new_project(), secret=SECRET)
    queue = f"projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
    with (
        CloudTasksEmulator(clock=MovableClock(START, frozen=True), queues=[queue]) as emulator,
        ThreadPoolExecutor() as threads,
    ):
        settings = replace(settings, tasks_emulator=emulator.address)
        executor = ColdExecutor(Services(firestore_address, emulator.address, settings))
        try:
            task = executor.create_task()
            walk = threads.submit(emulator.advance, MINUTE)
            yield executor.run(task)
            walk.result(60)
        finally:
            executor.close()


def test_no_library_is_imported_that_a_dispatch_does_not_need(report: dict[str, Any]) -> None:
    """What serves callers, deliveries or fetching costs the first dispatch nothing."""
    more = find_declared(report["modules"]) - LIBRARIES - OF_FLASK
    assert more == set(), "import these where they are needed, or list them with what a dispatch needs"
