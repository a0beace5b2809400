"""A new executor process imports and builds what its first dispatch needs, and nothing else.

What is imported here is what a cold start waits for; ``python -m benchmarks.coldstart`` says how long.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

import pytest
from tests.harness import SECRET, START, new_project
from tests.installs import find_declared
from tests.local_services import Services
from tests.stories.cold_executor import ColdExecutor

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
CLIENTS = ("google.cloud.firestore", "google.cloud.tasks", "google.api_core", "google.auth", "proto", "requests")
OF_OTHER_PROCESSES = {
    *("cli", "client", "dashboard", "drafts", "emulator", "local", "outbox", "testing", "worker"),
    *("adapters.delivery", "adapters.language_models", "adapters.quickjs", "adapters.sqlite"),
    *("engine.assistant", "engine.delivery", "engine.pull", "web.auth"),
}
"""Rooms of ours that serve callers, workers, deliveries or the local stack."""
UNBUILT = {
    "assistant",
    "batch_change",
    "budget",
    "calendar",
    "contact_secrets",
    "journal",
    "overview_responses",
    "person",
    "person_job",
    "responses",
    "script",
    "source",
    "stored_script",
    "usage_responses",
    "usage_sheet",
    "worker_presence",
}
"""The modules of documents that a dispatch to a handler neither reads nor writes, except as parts of others."""


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
            walk = threads.submit(emulator.advance, timedelta(minutes=1))
            yield executor.run(task)
            walk.result(60)
        finally:
            executor.close()


def test_no_library_is_imported_that_a_dispatch_does_not_need(report: dict[str, Any]) -> None:
    """What serves callers, deliveries or fetching costs the first dispatch nothing."""
    more = find_declared(report["modules"]) - LIBRARIES - OF_FLASK
    assert more == set(), "import these where they are needed, or list them with what a dispatch needs"


def test_the_executor_needs_no_generated_client(report: dict[str, Any]) -> None:
    """Whatever is added above, these are never on the way."""
    assert not [name for name in report["modules"] if name.startswith(CLIENTS)]


def test_nothing_that_other_processes_run_is_imported(report: dict[str, Any]) -> None:
    """A room that a plain handler does not need is imported when something else asks for it."""
    rooms = tuple(f"cloudsched.{room}." for room in OF_OTHER_PROCESSES)
    assert not [name for name in report["modules"] if f"{name}.".startswith(rooms)]
    assert not [room for room in OF_OTHER_PROCESSES if not find_spec(f"cloudsched.{room}")], "it has moved"


def test_validators_are_built_for_what_is_read_and_written_only(report: dict[str, Any]) -> None:
    """Building pydantic's validator of a model takes a millisecond and more, so those of other documents wait."""
    built = {name.rpartition(".")[0] for name in report["validators"]}
    assert built & {f"cloudsched.domain.documents.{each}" for each in UNBUILT} == set()
    assert "cloudsched.domain.documents.task.Task" in report["validators"]
