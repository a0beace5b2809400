"""What a run says of what is red, and of what a module of tests leaves behind."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.run import leftovers, network, second_look, tiers

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("row", [*tiers.CHECK, *tiers.ALL, *tiers.KEPT])
def test_what_does_not_run_each_time_exists(row: str) -> None:
    """A test that is renamed does not come back into the five minutes unnoticed, nor is a row about nothing."""
    path, _, start = row.partition("::")
    assert (TESTS / path).exists()
    assert not start or f"def {start.partition('[')[0]}" in (TESTS / path).read_text("utf-8")


@pytest.mark.parametrize(("passes", "rows", "ends"), [(True, 0, "flaky"), (True, 2, "failed"), (False, 0, "failed")])
def test_what_is_red_is_red_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, passes: bool, rows: int, ends: str
) -> None:
    """Red once and green alone is flaky, and said; the third time it is red."""
    monkeypatch.setattr(second_look, "LIST", tmp_path / "flaky.md")
    (tmp_path / "flaky.md").write_text("| 2026-11-25 | `tests/a.py::b` | a race |\n" * rows, "utf-8")
    monkeypatch.setattr(second_look, "passes_alone", lambda _: passes)
    report = pytest.TestReport("tests/a.py::b", ("tests/a.py", 1, "b"), {}, "failed", "why", "call")
    terminal = SimpleNamespace(stats={"failed": [report], "passed": []})
    config = SimpleNamespace(
        getoption=lambda _: True, pluginmanager=SimpleNamespace(get_plugin=lambda _: terminal), stash={}
    )
    session = SimpleNamespace(config=config, exitstatus=pytest.ExitCode.TESTS_FAILED)
    second_look.pytest_sessionfinish(session)  # type: ignore[arg-type]
    assert terminal.stats == {ends: [report], "passed": []}
    assert session.exitstatus == (pytest.ExitCode.OK if ends == "flaky" else pytest.ExitCode.TESTS_FAILED)


def test_a_run_sees_no_network_but_loopback() -> None:
    """Neither its tests nor what they start, unless they ask the world; then a failure says on which day."""
    if not network.is_cut_off():
        pytest.skip("Only root can cut off the network, on Linux.")
    names = [sys.executable, "-c", "import socket; print([name for _, name in socket.if_nameindex()])"]
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    assert subprocess.check_output(names, text=True) == "['lo']\n"  # noqa: S603 - our own command
    own = Path("/proc/thread-self/ns/net").readlink()
    with pytest.raises(AssertionError) as caught, network.ask_world():
        assert Path("/proc/thread-self/ns/net").readlink() == own
    assert re.search(r"as it was on \d{4}-\d\d-\d\d", caught.value.__notes__[0])
    assert Path("/proc/thread-self/ns/net").readlink() == own


LEFTOVERS = {
    "logger root: level 10, was 30": (
        "logging.getLogger().setLevel(logging.DEBUG)",
        "logging.getLogger().level == logging.WARNING",
    ),
    "environment variable LEFT: added": ("os.environ['LEFT'] = 'a secret'", "'LEFT' not in os.environ"),
    "handler of SIGUSR1: 1, was 0": (
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL",
    ),
    "thread cloudsched-left": (
        "ServiceThread('cloudsched-left', lambda: 0.01).start()",
        "wait_until(lambda: len(threading.enumerate()) == 1) is None",
    ),
    "thread lost has ended": (
        "lost = ServiceThread('lost', lambda: None); lost.run = lambda: None; lost.start(); lost.join()",
        "find_faults() == {}",
    ),
    "module in sys.modules left: added": ("sys.modules['left'] = ModuleType('left')", "'left' not in sys.modules"),
    "state sys.path: added '/left'": ("sys.path.append('/left')", "'/left' not in sys.path"),
}
"""What is said of something that a test leaves; how it does; what the next one finds."""
IMPORTS = """import logging, os, signal, sys, threading, time
from types import ModuleType
from tests.harness import wait_until
from cloudsched.engine.concurrency.service_threads import ServiceThread, find_faults
"""


def test_a_module_that_leaves_something_behind_fails_and_the_next_one_does_not(tmp_path: Path) -> None:
    """It is said what; that which fixtures of the whole run leave, or which a test takes back, is no fault."""
    (tmp_path / "conftest.py").write_text(
        "import os, pytest\npytest_plugins = 'tests.run.process_state'\n"
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
