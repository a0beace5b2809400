"""What a run says of what is red, and of what a module of tests leaves behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run import leftovers, network, tiers

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("row", [*tiers.CHECK, *tiers.ALL, *tiers.KEPT])
def test_what_does_not_run_each_time_exists(row: str) -> None:
    """A test that is renamed does not come back into the five minutes unnoticed, nor is a row about nothing."""
    path, _, start = row.partition("::")
    assert (TESTS / path).exists()
    assert not start or f"def {start.partition('[')[0]}" in (TESTS / path).read_text("utf-8")


def test_a_run_sees_no_network_but_loopback() -> None:
    """Nor does what it starts: only root can cut it off, on Linux, and `--all` asks the world."""
    if network.CUT_OFF not in os.environ:
        pytest.skip("The network is not cut off.")
    names = [sys.executable, "-c", "import socket; print([name for _, name in socket.if_nameindex()])"]
    assert subprocess.check_output(names, text=True) == "['lo']\n"  # noqa: S603 - our own command


LEFTOVERS = {
    "logger root": (
        "logging.getLogger().setLevel(logging.DEBUG)",
        "logging.getLogger().level == logging.WARNING",
    ),
    "environment variable LEFT": ("os.environ['LEFT'] = 'a secret'", "'LEFT' not in os.environ"),
    "handler of signal 10": (
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL",
    ),
    "thread cloudsched-left": (
        "ServiceThread('cloudsched-left', lambda: 0.01).start()",
        "wait_until(lambda: len(threading.enumerate()) == 1) is None",
    ),
    "lost": (
        "lost = ServiceThread('lost', lambda: None); lost.run = lambda: None; lost.start(); lost.join()",
        "True",
    ),
    "module left": (
        "sys.modules['left'] = ModuleType('left'); sys.modules['left'].__file__ = tempfile.gettempdir() + '/left.py'",
        "'left' not in sys.modules",
    ),
    "state sys.path": ("sys.path.append('/left')", "'/left' not in sys.path"),
}
"""What is said of something that a test leaves; how it does; what the next one finds."""
IMPORTS = """import logging, os, signal, sys, tempfile, threading, time
from types import ModuleType
from tests.harness import wait_until
from cloudsched.engine.concurrency.service_threads import ServiceThread
"""


def test_a_module_that_leaves_something_behind_fails_and_the_next_one_does_not(tmp_path: Path) -> None:
    """It is said what; that which fixtures of the whole run leave, or which a test takes back, is no fault."""
    (tmp_path / "conftest.py").write_text(
        "import os, pytest\npytest_plugins = 'tests.run.isolation'\n"
        "@pytest.fixture(scope='session')\ndef shared(): os.environ['SHARED'] = ''"
    )
    (tmp_path / "test_00.py").write_text(
        "import os\ndef test_one(): pass\ndef test_other(shared): pass\n"
        "def test_it_ends(own_process): os.environ['OWN'] = ''"
    )
    for number, (leave, expected) in enumerate(LEFTOVERS.values(), 1):
        (tmp_path / f"test_{number:02}a.py").write_text(f"{IMPORTS}def test_it(): {leave}")
        (tmp_path / f"test_{number:02}b.py").write_text(f"{IMPORTS}def test_it(): assert {expected}")
    done = subprocess.run(  # noqa: S603 - pytest
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(leftovers.ROOT), *sys.path])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(re.findall(r"test_(\d+a)\.py has left behind:\n  (.*)", done.stdout))
    assert sorted(found) == [f"{number:02}a" for number in range(1, len(LEFTOVERS) + 1)], done.stdout
    for said, expected in zip((found[each] for each in sorted(found)), LEFTOVERS, strict=True):
        assert said.startswith(expected)
    assert done.stdout.splitlines()[-1].startswith(f"{2 * len(LEFTOVERS) + 3} passed, {len(LEFTOVERS)} errors")
    assert "a secret" not in done.stdout
