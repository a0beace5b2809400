"""The table at the end of a run: how many tests and histories there were, and what took longest."""

from __future__ import annotations

import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterable

import pytest
from tests.run.order import describe_order
from tests.run.shards import write_table

SLOWEST = 10
_BEGAN = pytest.StashKey[float]()
_TAKEN = pytest.StashKey[dict[str, float]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Note when the run began."""
    session.config.stash[_BEGAN] = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, unless only a few tests were asked for, and how each failure is repeated."""
    stats = terminalreporter.stats
    reports = [each for some in stats.values() for each in some if isinstance(each, pytest.TestReport)]
    if not config.option.collectonly and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.stash[_TAKEN] = add_seconds(reports)
        terminalreporter.section("the run")
        for line in describe_run(reports, time.monotonic() - config.stash[_BEGAN], find_peak(), describe_order(config)):
            terminalreporter.write_line(line)
    failed = [
        each
        for name in ("failed", "error", "flaky")
        for each in stats.get(name, [])
        if each in reports and "::" in each.nodeid
    ]
    for report in failed:
        terminalreporter.write_line(f"alone: ./emulator.sh pytest '{report.nodeid}'")
    arguments = config.invocation_params.args
    has_shards = "each" in arguments  # as emulator.sh calls it
    for shard in sorted({find_shard(each) for each in failed} - {""}) if has_shards else ():
        given = " ".join(arguments[arguments.index("each") + 1 :])
        terminalreporter.write_line(f"with what ran before it: ./emulator.sh pytest --shard {shard} {given}".rstrip())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write down how long each file took, once the run has been looked at."""
    if config.getoption("--record") and _TAKEN in config.stash:
        write_table(config.stash[_TAKEN])


def find_shard(report: pytest.TestReport) -> str:
    """Return which process of how many has run a test; nothing if there was only one."""
    own: dict[str, object] | None = getattr(getattr(report, "node", None), "workerinput", None)
    return f"{int(str(own['workerid']).removeprefix('gw')) + 1}/{own['workercount']}" if own else ""


def add_seconds(reports: Iterable[pytest.TestReport]) -> dict[str, float]:
    """Return how long each test took, with its fixtures."""
    taken: dict[str, float] = defaultdict(float)
    for report in reports:
        taken[report.nodeid] += report.duration
    return taken


def find_peak() -> int:
    """Return how many megabytes the largest process had, of this one and those that have ended."""
    unit = 1024 if sys.platform == "linux" else 1024**2
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(each).ru_maxrss for each in whose) // unit


def describe_run(reports: Iterable[pytest.TestReport], seconds: float, peak: int, order: str) -> list[str]:
    reports = list(reports)
    taken = add_seconds(reports)
    called = [each for each in reports if each.when == "call"]
    histories = sum(int(str(value)) for each in called for name, value in each.user_properties if name == "histories")
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
