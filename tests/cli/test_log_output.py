"""Log lines of the local stack and of its handlers, each with its task."""

from __future__ import annotations

import io
import logging
import logging.config
from collections.abc import Callable

import pytest
from tests.instants import DAY

from cloudsched import App
from cloudsched.cli.log_output import configure_stack_logging
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.testing import Simulation

own = logging.getLogger("my.handlers")


@pytest.fixture
def listen(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> Callable[[io.StringIO], io.StringIO]:
    """Send log lines to a stream, as `cloudsched dev` does."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    root, package = logging.getLogger(), logging.getLogger("cloudsched")
    for log in (root, package):
        monkeypatch.setattr(log, "level", log.level)
        monkeypatch.setattr(log, "handlers", [])

    def begin(stream: io.StringIO) -> io.StringIO:
        monkeypatch.setattr("sys.stderr", stream)
        configure_stack_logging(MovableClock(sim.now, frozen=True))
        return stream

    return begin


def shout(app: App, sim: Simulation) -> None:
    """Run a handler that logs, and fails twice."""

    @app.handler("log-and-fail", retry=1)
    def log_and_fail() -> None:
        own.info("about to fail")
        own.warning("really")
        raise ValueError("first line\nsecond\x1b[2J line")

    try:
        app.create(owner="ada", title="Shout", handler="log-and-fail", id="t")
        sim.advance(DAY)
    finally:
        app.container.registry.registrations.handlers.pop("log-and-fail")  # the app is shared by the module


def test_failures_have_their_traceback_and_handlers_their_lines(
    app: App, sim: Simulation, listen: Callable[[io.StringIO], io.StringIO]
) -> None:
    """Without a terminal, output is plain: time, task, event; a failure's traceback below it, without escapes."""
    heard = listen(io.StringIO())
    shout(app, sim)
    text = heard.getvalue()
    assert "\x1b" not in text
    lines = text.splitlines()
    events = [line.partition(" t ")[2] for line in lines if not line.startswith("  ")]
    (execution,) = sim.executions("t")
    said = f"{execution.id} of 'log-and-fail', task t: ValueError: first line second [2J line"
    assert [line for line in events if "started" not in line] == [
        "created",
        "log-and-fail (attempt 1): about to fail",
        "log-and-fail (attempt 1): WARNING really",
        f"retrying {said}",
        "log-and-fail (attempt 2): about to fail",
        "log-and-fail (attempt 2): WARNING really",
        "failed_task",
        f"failed {said}",
    ]
    assert lines.count("  Traceback (most recent call last):") == 2
    assert any(line.endswith("in log_and_fail") for line in lines)


def test_a_later_configuration_of_the_root_logger_loses_none_of_our_lines(
    app: App, sim: Simulation, listen: Callable[[io.StringIO], io.StringIO]
) -> None:
    """Such as one that a handler's module makes when it is loaded again."""
    heard = listen(io.StringIO())
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}})
    logging.basicConfig(level=logging.CRITICAL, force=True)
    shout(app, sim)
    assert "failed" in heard.getvalue()
