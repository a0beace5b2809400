"""The app of the tests of pull workers, which replaces the empty one of all tests."""

from __future__ import annotations

import pytest
from tests.features.pull.harness import work_app

from cloudsched import App


@pytest.fixture
def app_and_runs() -> tuple[App, list[str]]:
    """An app whose handler ``work`` is for the queue ``gpu``, and the list of the tasks that it has run."""
    return work_app()


@pytest.fixture
def app(app_and_runs: tuple[App, list[str]]) -> App:
    """An app whose handler ``work`` is for the queue ``gpu``."""
    return app_and_runs[0]


@pytest.fixture
def run_ids(app_and_runs: tuple[App, list[str]]) -> list[str]:
    """The ids of the tasks that the handler ``work`` of `app` has run."""
    return app_and_runs[1]
