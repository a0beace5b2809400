"""Find Google's Firestore emulator on this machine, and start and stop it.

`find_emulator` tries, in this order: an address given by the caller, the gcloud SDK's emulator, and the one
that firebase-tools has downloaded. The last two are Java archives and need a ``java`` on the PATH.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from cloudsched.errors import StoreUnavailable

INSTALL_HINT = (
    "Install Java 11 or newer, and either the gcloud SDK with `gcloud components install cloud-firestore-emulator` "
    "(Debian: `apt install google-cloud-cli-firestore-emulator`) or firebase-tools with "
    "`firebase setup:emulators:firestore`; or set FIRESTORE_EMULATOR_HOST to the host:port of a running one."
)

START_TIMEOUT_SECONDS = 60.0
"""The longest wait for a response of the emulator after its start: about one second on an idle machine."""

_JAVA_OPTIONS = ("-Duser.language=en", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The emulator runs for a test run or an afternoon: the C1 compiler alone and the serial collector take half
the CPU time and two thirds of the memory (docs.oracle.com/en/java/javase/17/docs/specs/man/java.html)."""
_GCLOUD_JAR = Path("platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")
_GCLOUD_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
_FIREBASE_FOLDER = Path(".cache/firebase/emulators")
_FIREBASE_JARS = "cloud-firestore-emulator-*.jar"

_WATCHDOG_SCRIPT = """
exec 3<&0
"$@" </dev/null & pid=$!
{ read -r _ <&3; kill -9 $pid; } >/dev/null 2>&1 &
wait $pid
"""
"""Runs a command and kills it at the end of standard input: the kernel closes that pipe however this process
ends."""


@dataclass(frozen=True, slots=True)
class EmulatorNotFound:
    """No usable emulator was found."""

    reason: str
    """The missing part."""
    hint: str = INSTALL_HINT


@dataclass(slots=True)
class FirestoreEmulator:
    """An emulator that is running or can be started. Use it in a ``with``, or call `start` and `stop`."""

    reason: str
    """The kind of emulator, and the place where it was found."""
    command: tuple[str, ...] = ()
    """The command that starts it, without host and port. Empty if it is already running."""
    address: str = ""
    """``host:port`` while it is running, else empty."""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _output: IO[bytes] | None = field(default=None, repr=False)

    def start(self) -> str:
        """Start it on a free loopback port, wait until it responds, and return its address.

        If it fails to, the error includes the end of its output.
        """
        if self.address:
            return self.address
        port = _find_free_port()
        self._start(port)
        self.address = f"127.0.0.1:{port}"
        return self.address

    def _start(self, port: int) -> None:
        arguments = (*self.command, "--host=127.0.0.1", f"--port={port}")
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        self._process = subprocess.Popen(  # noqa: S603 - the command was found by this module
            ("/bin/sh", "-c", _WATCHDOG_SCRIPT, "firestore-emulator", *arguments),
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that `stop` kills the whole group, and Ctrl-C does not reach it
        )
        try:
            self._wait_until_ready(port)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it and every process that it started. An emulator that was already running is left alone."""
        if self._process is None:
            return
        try:
            # Its data is only in memory: there is nothing to save.
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait()
            if self._output is not None:
                self._output.close()
            self._process = None
            self._output = None
            self.address = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _wait_until_ready(self, port: int) -> None:
        process = self._process
        give_up_at = time.monotonic() + START_TIMEOUT_SECONDS
        while not _is_responding("127.0.0.1", port):
            if process is None or process.poll() is not None:
                raise StoreUnavailable(
                    "The Firestore emulator", f"it exited at once. Its output: {self._read_output()}"
                )
            if time.monotonic() > give_up_at:
                reason = f"it did not respond within {START_TIMEOUT_SECONDS:.0f} s. Its output: {self._read_output()}"
                raise StoreUnavailable("The Firestore emulator", reason)
            time.sleep(0.02)

    def _read_output(self) -> str:
        if self._output is None:
            return ""
        self._output.seek(0)
        return self._output.read()[-1000:].decode(errors="replace").strip()


def find_emulator(
    address: str | None = None,
    *,
    home: Path | None = None,
) -> FirestoreEmulator | EmulatorNotFound:
    """Find an emulator that is running or can be started."""
    if address:
        return _find_at(address)
    gcloud = shutil.which("gcloud")
    jar = _find_gcloud_jar(gcloud) if gcloud else None
    if jar is not None:
        return _with_java(f"the gcloud SDK has one ({jar})", ("-cp", str(jar), _GCLOUD_MAIN, "start"))
    jar = _find_firebase_jar((home or Path.home()) / _FIREBASE_FOLDER)
    if jar is not None:
        return _with_java(f"firebase-tools has one ({jar})", ("-jar", str(jar)))
    sdk = "there is no gcloud on the PATH"
    if gcloud:
        sdk = "the gcloud SDK has no Firestore emulator installed"
    return EmulatorNotFound(f"{sdk}, and firebase-tools has not downloaded one")


def _find_at(address: str) -> FirestoreEmulator | EmulatorNotFound:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return EmulatorNotFound(f"FIRESTORE_EMULATOR_HOST is {address!r}, which is not host:port")
    if not _is_responding(host.strip("[]"), int(port)):
        return EmulatorNotFound(f"FIRESTORE_EMULATOR_HOST names {address}, but nothing responds there")
    return FirestoreEmulator(
        f"FIRESTORE_EMULATOR_HOST names one that is running at {address}",
        address=address,
    )


def _with_java(reason: str, arguments: tuple[str, ...]) -> FirestoreEmulator | EmulatorNotFound:
    java = shutil.which("java")
    if java is None:
        return EmulatorNotFound(f"{reason}, but there is no java on the PATH to run it")
    return FirestoreEmulator(reason, (java, *_JAVA_OPTIONS, *arguments))


def _find_gcloud_jar(gcloud: str) -> Path | None:
    jar = Path(gcloud).resolve().parent.parent / _GCLOUD_JAR
    return jar if jar.is_file() else None


def _find_firebase_jar(folder: Path) -> Path | None:
    def version(jar: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", jar.stem)]

    return max(folder.glob(_FIREBASE_JARS), key=version, default=None)


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _is_responding(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
