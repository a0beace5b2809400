"""A new executor process imports and builds what its first dispatch needs, and nothing else.

What is imported here is what a cold start waits for; ``python -m benchmarks.coldstart`` says how long.
"""

from __future__ import annotations

import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.coldstart import ColdExecutor
from benchmarks.local_services import Services
from tests.harness import SECRET, START
from tests.stories.first_dispatch_modules import FRAMEWORK, OWN

from cloudsched import Settings
from cloudsched.emulator import CloudTasksEmulator, MovableClock

if TYPE_CHECKING:
    from collections.abc import Iterator

UNBUILT = {
    "assistant",
    "batch_change",
    "budget",
    "calendar",
    "contact_secrets",
    "draft_responses",
    "held_batch",
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
    settings = Settings(project=f"demo-{uuid.uuid4().hex[:12]}", secret=SECRET)
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


def list_allowed() -> set[str]:
    """Return the modules of cloudsched that the list names, and the packages that they are in."""
    modules = {f"{room}.{name}".strip(".") for room, names in OWN.items() for name in names.split()}
    packages = {module[:end] for module in modules for end, letter in enumerate(module) if letter == "."}
    return {"cloudsched"} | {f"cloudsched.{name}" for name in modules | packages}


def test_only_the_listed_libraries_are_imported(report: dict[str, Any]) -> None:
    """Google's generated clients, and what serves callers, deliveries or fetching, cost the first dispatch nothing."""
    passing = {"__main__", "main", "handlers", "cloudsched", "google", "google.cloud", *sys.stdlib_module_names}
    more = {
        name
        for name in report["modules"]
        if name not in passing
        and name.partition(".")[0] not in passing - {"google"}
        and not any(name == each or name.startswith(f"{each}.") for each in FRAMEWORK)
    }
    assert more == set(), "import these where they are needed, or list them with what needs them"


def test_only_the_listed_modules_of_ours_are_imported(report: dict[str, Any]) -> None:
    """A module that the executor does not need for a plain handler is imported when something else asks for it."""
    imported = {name for name in report["modules"] if name.partition(".")[0] == "cloudsched"}
    assert imported - list_allowed() == set(), "import these where they are needed, or list them"
    assert list_allowed() - imported == set(), "nothing imports these any more: take them off the list"


def test_the_executor_needs_no_generated_client(report: dict[str, Any]) -> None:
    """The list itself stays strict: whatever is added to it, these are never on the way."""
    clients = ("google.cloud.firestore", "google.cloud.tasks", "google.api_core", "google.auth", "proto", "requests")
    assert not [name for name in report["modules"] if name.startswith(clients)]


def test_validators_are_built_for_what_is_read_and_written_only(report: dict[str, Any]) -> None:
    """Building pydantic's validator of a model takes a millisecond and more, so those of other documents wait."""
    built = {name.rpartition(".")[0] for name in report["validators"]}
    assert built & {f"cloudsched.domain.documents.{each}" for each in UNBUILT} == set()
    assert "cloudsched.domain.documents.task.Task" in report["validators"]
