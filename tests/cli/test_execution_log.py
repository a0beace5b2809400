"""``cloudsched tasks logs``: below each execution, what its handler has logged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.cli.conftest import CommandResult

from cloudsched import App
from cloudsched.testing import Simulation

log = logging.getLogger("tests.talk")
log.setLevel(logging.INFO)


@pytest.fixture(name="app")
def make_app() -> App:
    """An app with a handler that logs."""
    app = App()

    @app.handler("talk")
    def talk() -> None:
        log.info("it begins")
        log.warning("it heard %s", "hello\x1b[2J")

    return app


def test_the_lines_of_an_execution_are_printed_below_it(tasks: Callable[..., CommandResult], sim: Simulation) -> None:
    """Without what a terminal would obey."""
    sim.app.create(id="t", owner="ada", handler="talk")
    sim.advance(timedelta(minutes=2))
    lines = tasks("logs", "t").out.splitlines()
    assert [line[23:] for line in lines[1:]] == ["it begins", "WARNING it heard hello [2J"]
