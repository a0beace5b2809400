"""Another day: `pytest --at 2028-02-29` runs as it will that day, with every process that it starts.

libfaketime sets all their wall clocks ahead by the same number of seconds, so these agree and go on. Everything else
stays as it is: the monotonic clock, and the times of files, by which Python knows what it has compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

CLOCK = str(Path(__file__).with_name("clock"))
"""A folder with a `time.sleep` that works under libfaketime."""


def describe_clock() -> dict[str, str] | None:
    """Return the variables with which FAKETIME sets the wall clock of a process; nothing without libfaketime."""
    found = [*Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), *Path("/usr/local/lib").glob("faketime/*MT*")]
    variables = {
        "PYTHONPATH": _add_clock(os.environ),
        "LD_PRELOAD": str(found[0]) if found else "",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # or each wait for the interpreter's lock is over at once, and begins anew
        "NO_FAKE_STAT": "1",
    }
    return variables if found else None


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run as at ten o'clock UTC of that day (on Linux, with libfaketime)"
    parser.getgroup("cloudsched").addoption("--at", metavar="YYYY-MM-DD", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Begin again on that day, before anything is started."""
    day = config.getoption("--at")
    if day is None or "FAKETIME" in os.environ:
        return
    variables = describe_clock()
    if variables is None:
        raise pytest.UsageError("--at needs libfaketime. Install Debian's faketime.")
    ahead = datetime.fromisoformat(f"{day}T10:00:00+00:00") - datetime.now(UTC)
    environment = {**os.environ, **variables, "FAKETIME": f"{ahead.total_seconds():+.0f}"}
    os.execve(sys.executable, [sys.executable, "-m", "pytest", *config.invocation_params.args], environment)  # noqa: S606


def pytest_unconfigure() -> None:
    """Remove what libfaketime leaves of killed processes in memory: others of their numbers could not begin."""
    for each in Path("/dev/shm").glob("*faketime_*") if "FAKETIME" in os.environ else ():  # noqa: S108 - its own
        if not Path("/proc", each.name.rpartition("_")[2]).exists():
            each.unlink(missing_ok=True)


def pytest_configure() -> None:
    """Hand the clock to processes whose environment is written anew; one that is to have none needs no clock either."""
    if "FAKETIME" not in os.environ:
        return
    start: Any = subprocess.Popen.__init__
    clock = {name: os.environ[name] for name in (*(describe_clock() or {}), "FAKETIME")}

    def begin(self: Any, *arguments: Any, env: Mapping[str, str] | None = None, **options: Any) -> None:  # noqa: ANN401
        if env and "LD_PRELOAD" not in env:
            env = {**clock, **env, "PYTHONPATH": _add_clock(env)}
        start(self, *arguments, env=env, **options)

    subprocess.Popen.__init__ = begin  # type: ignore[assignment]


def _add_clock(environment: Mapping[str, str]) -> str:
    return os.pathsep.join(filter(None, [CLOCK, environment.get("PYTHONPATH")]))
