"""The command line's fixtures, and one for the commands of calendars."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.cli.command_fixtures import *  # noqa: F403 - they are listed there
from tests.cli.conftest import CommandResult


@pytest.fixture
def calendars(run_command: Callable[..., CommandResult], url: str) -> Callable[..., CommandResult]:
    """Type a `cloudsched admin calendars` command."""
    return lambda *words: run_command("admin", "calendars", "--url", url, *words)
