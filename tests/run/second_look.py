"""A second look at what is red: each failed test once more, alone in a fresh process, with `--second-look`.

Red again is red. Green alone is a flaky test: the run is green, says so in its last lines, and asks for a row in
flaky.md. The third row of one test is one too many, and the run is red. More failures than `MOST` are no coincidence.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("flaky.md")
MOST = 10
"""How many tests are looked at again."""
ROWS = 3
"""As many times, and it is no flaky test any more but a broken one."""
SECONDS = 600


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run each test that fails once more, alone; one that passes then is flaky, not red"
    parser.getgroup("cloudsched").addoption("--second-look", action="store_true", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look at what failed again, before the summary is written."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if not session.config.getoption("--second-look") or hasattr(session.config, "workerinput") or terminal is None:
        return
    stats: dict[str, list[pytest.TestReport]] = terminal.stats
    failed = {each.nodeid: each for name in ("failed", "error") for each in stats.get(name, []) if is_test(each)}
    if len(failed) > MOST:
        return
    flaky = {nodeid for nodeid in failed if passes_alone(nodeid) and count_rows(nodeid) + 1 < ROWS}
    for name in ("failed", "error"):
        stats["flaky"] = [*stats.get("flaky", []), *(each for each in stats.get(name, []) if each.nodeid in flaky)]
        stats[name] = [each for each in stats.get(name, []) if each.nodeid not in flaky]
    for name in ("failed", "error", "flaky"):
        if not stats[name]:
            del stats[name]
    if flaky and not stats.keys() & {"failed", "error"} and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = pytest.ExitCode.OK


def is_test(report: object) -> bool:
    """Return whether a report is of a test that can be run again, not of a module that cannot be imported."""
    return isinstance(report, pytest.TestReport) and "::" in report.nodeid


def passes_alone(nodeid: str) -> bool:
    """Run one test in a fresh process."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", nodeid]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=SECONDS)  # noqa: S603
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def count_rows(nodeid: str) -> int:
    """Return how often a test has been seen flaky so far, by the list."""
    return len(re.findall(rf"^\|[^|]*\| `{re.escape(nodeid)}` \|", LIST.read_text("utf-8"), re.MULTILINE))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why flaky tests failed, and name them in the last lines."""
    reports: Iterable[pytest.TestReport] = terminalreporter.stats.get("flaky", [])
    for report in reports:
        terminalreporter.section(f"flaky: {report.nodeid}", "_")
        terminalreporter.write_line(report.longreprtext)
    for report in reports:
        terminalreporter.write_line(
            f"FLAKY {report.nodeid} (alone: passed). Mend its cause; write a row into {LIST.name}."
        )
