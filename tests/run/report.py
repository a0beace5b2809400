"""The table at the end of a run: how many tests and histories there were, and what took longest."""

from __future__ import annotations

import resource
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from tests.run.order import describe_order

if TYPE_CHECKING:
    from collections.abc import Iterable

SLOWEST = 10
_BEGAN = pytest.StashKey[float]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Note when the run began."""
    session.config.stash[_BEGAN] = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, unless only a few tests were asked for."""
    if config.option.collectonly or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    reports = [each for some in terminalreporter.stats.values() for each in some if isinstance(each, pytest.TestReport)]
    terminalreporter.section("the run")
    for line in describe_run(reports, time.monotonic() - config.stash[_BEGAN], find_peak(), describe_order(config)):
        terminalreporter.write_line(line)


def find_peak() -> int:
    """Return how many megabytes the largest process had, of this one and those that have ended."""
    unit = 1024 if sys.platform == "linux" else 1024**2
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(each).ru_maxrss for each in whose) // unit


def describe_run(reports: Iterable[pytest.TestReport], seconds: float, peak: int, order: str) -> list[str]:
    """Return the lines of the table."""
    taken: dict[str, float] = defaultdict(float)
    histories = 0
    for report in reports:
        taken[report.nodeid] += report.duration
        if report.when == "call":
            histories += sum(int(str(value)) for name, value in report.user_properties if name == "histories")
    rows = [
        ("tests", f"{len(taken):,}"),
        ("histories", f"{histories:,}"),
        ("seconds", f"{seconds:,.0f}, of tests {sum(taken.values()):,.0f}"),
        ("memory", f"{peak:,} MB in the largest process"),
        ("order", order),
    ]
    slowest = sorted(taken.items(), key=lambda each: -each[1])[:SLOWEST]
    return [
        *(f"{name:12}{value}" for name, value in rows),
        "slowest, in seconds:",
        *(f"{time_taken:10.1f}  {nodeid}" for nodeid, time_taken in slowest),
    ]
