"""What a run says at its end, and what it looks for that was left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.run import dates, emulator, leftovers, second_look, tiers

from cloudsched.adapters.firestore.emulator import FirestoreEmulator

TESTS = Path(__file__).parents[1]
LISTEN = """import socket, time
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    time.sleep(600)
"""
TELL_DAY = """import datetime, subprocess, sys
TELL = "import datetime, time; time.sleep(0.01); print(datetime.datetime.now(datetime.UTC).date())"
def test_day():
    assert str(datetime.datetime.now(datetime.UTC).date()) == "2028-02-29"
    for env in (None, {"PATH": "/usr/bin"}):
        assert subprocess.check_output([sys.executable, "-c", TELL], env=env, text=True).strip() == "2028-02-29"
"""


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[leftovers.Before]:
    """The state before a run that has just begun, in a home and a checkout of its own."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(leftovers, "ROOT", tmp_path)
    monkeypatch.setattr(leftovers, "PATIENCE", 0.1)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)  # noqa: S603, S607 - Git
    state = leftovers.Before()
    yield state
    state.close()


def test_nothing_is_left_behind(before: leftovers.Before, tmp_path: Path) -> None:
    """Processes that have ended, files that are gone, and the tools' own folders do not count."""
    subprocess.run([sys.executable, "-c", ""], check=True)
    with tempfile.TemporaryDirectory():
        (tmp_path / ".cache").mkdir()
        (before.temporary / "cloudsched-dev-0").mkdir()
    assert before.list_leftovers() == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_and_its_port_are_found(before: leftovers.Before) -> None:
    """Also if it has left the session of its parent."""
    with subprocess.Popen(  # noqa: S603 - Python
        [sys.executable, "-c", LISTEN], start_new_session=True, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        port = process.stdout.readline().strip()
        found = before.list_leftovers()
        process.kill()
    assert len(found) == 1
    assert found[0].startswith(f"a process: {process.pid} ")
    assert found[0].endswith(f"(listens on {port})")


def test_files_are_found(before: leftovers.Before, tmp_path: Path) -> None:
    """In the folder for temporary files, at home and in the checkout."""
    folder = tempfile.mkdtemp(prefix="a")
    secrets = before.temporary / "cloudsched-dev-0"
    secrets.mkdir()
    (secrets / "forgotten.env").touch()
    (tmp_path / "forgotten.txt").touch()
    expected = [
        f"a file: {folder}",
        f"a file: {secrets}",
        f"a file: {tmp_path / 'forgotten.txt'}",
        "a change in the checkout: ?? forgotten.txt",
    ]
    assert before.list_leftovers() == expected


class _Emulator(FirestoreEmulator):
    """One that only counts how often it is started."""

    def start(self) -> str:
        self.reason += " started"
        self.address = "127.0.0.1:1"
        return self.address

    def stop(self) -> None:
        self.address = ""


def test_the_processes_of_a_run_share_one_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that asks starts it, it ends with the run, and one that was given is taken instead."""
    one = _Emulator("it was")
    monkeypatch.setattr(emulator, "find_emulator", lambda: one)
    monkeypatch.delenv("FIRESTORE_EMULATOR_HOST", raising=False)
    shared = emulator.SharedEmulator()
    try:
        monkeypatch.setenv(emulator.ASK_AT, str(shared.port))
        assert one.reason == "it was"
        assert [emulator.find_address() for _ in range(3)] == ["127.0.0.1:1"] * 3
        assert one.reason == "it was started"
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:2")
        assert emulator.find_address() == "127.0.0.1:2"
    finally:
        shared.close()
    assert not one.address
    monkeypatch.delenv("FIRESTORE_EMULATOR_HOST")
    assert emulator.find_address() is None, "the run has ended"


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


LEFTOVERS = {
    "logger root: level 10, was 30": (
        "logging.getLogger().setLevel(logging.DEBUG)",
        "logging.getLogger().level == logging.WARNING",
    ),
    "logger cloudsched.own: handlers added <NullHandler": (
        "logging.getLogger('cloudsched.own').addHandler(logging.NullHandler())",
        "not logging.getLogger('cloudsched.own').handlers",
    ),
    "state logging.disable: 50, was 0": ("logging.disable()", "not logging.root.manager.disable"),
    "environment variable LEFT: added": ("os.environ['LEFT'] = 'a secret'", "'LEFT' not in os.environ"),
    "state the working directory: /, was": ("os.chdir('/')", "os.getcwd() != '/'"),
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
from cloudsched.engine.ports.service_threads import ServiceThread, find_faults
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


def test_a_run_is_on_the_day_that_was_asked_for(tmp_path: Path) -> None:
    """So are the processes that its tests start, whatever environment they give them; and they can sleep."""
    if dates.describe_clock() is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("There is no libfaketime. Install Debian's faketime.")
    (tmp_path / "test_day.py").write_text(TELL_DAY)
    env = {name: value for name, value in os.environ.items() if name != "FAKETIME"}
    path = os.pathsep.join(filter(None, [str(TESTS.parent), env.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.run.dates", "--at", "2028-02-29", "test_day.py"]
    done = subprocess.run(  # noqa: S603 - pytest
        command, cwd=tmp_path, env={**env, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
