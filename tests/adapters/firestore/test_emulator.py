"""Finding Google's Firestore emulator, and leaving nothing of it behind."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.harness import wait_until

from cloudsched.adapters.firestore.emulator import INSTALL_HINT, EmulatorNotFound, FirestoreEmulator, find_emulator
from cloudsched.errors import StoreUnavailable

_STAND_IN = """
import http.server, subprocess, sys
port = int(sys.argv[-1].partition("=")[2])
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(str(child.pid).encode())
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
"""Answers as the emulator does, with the id of a process that it started, as launchers start java."""


def stand_in() -> FirestoreEmulator:
    return FirestoreEmulator("a test's own", (sys.executable, "-c", _STAND_IN))


def child_of(address: str) -> int:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", "/")
    pid = int(connection.getresponse().read())
    connection.close()
    return pid


def runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - no path of ours
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def make_tool(path: Path, text: str = "exit 1") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def make_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_without_an_emulator_the_reason_and_an_install_hint_are_given(tools: Path, tmp_path: Path) -> None:
    found = find_emulator(None, home=tmp_path)
    assert found == EmulatorNotFound(
        "there is no gcloud on the PATH, and firebase-tools has not downloaded one", INSTALL_HINT
    )
    assert list(tools.iterdir()) == []


def test_the_gcloud_sdk_is_found_through_its_link(tools: Path, tmp_path: Path) -> None:
    sdk = tmp_path / "sdk"
    make_tool(sdk / "bin" / "gcloud", "echo called > called; exit 1")
    (tools / "gcloud").symlink_to(sdk / "bin" / "gcloud")
    make_tool(tools / "java")
    found = find_emulator(None, home=tmp_path)
    assert isinstance(found, EmulatorNotFound)
    assert found.reason.startswith("the gcloud SDK has no Firestore emulator installed")
    jar = make_file(sdk / "platform" / "cloud-firestore-emulator" / "cloud-firestore-emulator.jar")
    found = find_emulator(None, home=tmp_path)
    assert isinstance(found, FirestoreEmulator)
    assert str(jar) in found.reason
    assert found.command[0] == str(tools / "java")
    assert str(jar) in found.command


@pytest.mark.usefixtures("tools")
def test_missing_java_is_reported(tmp_path: Path) -> None:
    make_file(tmp_path / ".cache" / "firebase" / "emulators" / "cloud-firestore-emulator-v1.jar")
    found = find_emulator(None, home=tmp_path)
    assert isinstance(found, EmulatorNotFound)
    assert "no java" in found.reason


def test_an_address_is_used_and_left_running() -> None:
    with stand_in() as running:
        found = find_emulator(running.address)
        assert isinstance(found, FirestoreEmulator)
        with found:
            assert found.start() == running.address
        assert isinstance(find_emulator(running.address), FirestoreEmulator)


def test_an_address_where_nothing_responds_is_reported() -> None:
    with socket.socket() as deaf:  # it has the port, so that nobody else can, and does not listen
        deaf.bind(("127.0.0.1", 0))
        found = find_emulator(f"127.0.0.1:{deaf.getsockname()[1]}")
    assert isinstance(found, EmulatorNotFound)
    assert "nothing responds there" in found.reason


def test_it_is_stopped_with_everything_that_it_started() -> None:
    emulator = stand_in()
    child = child_of(emulator.start())
    assert runs(child)
    emulator.stop()
    wait_until(lambda: not runs(child))
    emulator.stop()
    with emulator:  # and may be started again
        assert child_of(emulator.address) != child


def test_it_outlives_the_thread_that_started_it() -> None:
    emulator = stand_in()
    thread = threading.Thread(target=emulator.start)
    thread.start()
    thread.join()
    try:
        assert runs(child_of(emulator.address))
    finally:
        emulator.stop()


def test_an_emulator_that_exits_at_once_reports_its_output() -> None:
    emulator = FirestoreEmulator("a test's own", ("/bin/sh", "-c", "echo This needs Java 11; exit 3"))
    with pytest.raises(StoreUnavailable, match="This needs Java 11"):
        emulator.start()
    emulator.stop()


_OWNER = """
import sys
from cloudsched.adapters.firestore.emulator import FirestoreEmulator, find_emulator
emulator = find_emulator()
print(emulator.start(), emulator._process.pid, flush=True)
sys.stdin.read()
"""


def test_googles_emulator_ends_when_its_parent_is_killed(firestore_address: str) -> None:
    if not isinstance(find_emulator(), FirestoreEmulator):
        pytest.skip(f"{firestore_address} was given, and there is none to start")
    owner = subprocess.Popen(  # noqa: S603 - our own interpreter, our own script
        (sys.executable, "-c", _OWNER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    address, group = owner.stdout.readline().split()
    assert isinstance(find_emulator(address), FirestoreEmulator)
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()

    def group_is_gone() -> bool:
        try:
            os.killpg(int(group), 0)
        except ProcessLookupError:
            return True
        return False

    wait_until(group_is_gone)
    assert isinstance(find_emulator(address), EmulatorNotFound)
