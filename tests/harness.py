"""The real parts that stories are told with: an HTTP client, processes that are ended whatever happens, conditions."""

import atexit
import codecs
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from werkzeug.test import Client, TestResponse

from cloudsched.engine.ports.procedure import LongCall, Procedure

ROOT = Path(__file__).parents[1]
START = datetime(2027, 1, 1, 7, 30, tzinfo=UTC)
SECRET = "sentinel-secret-0123456789"  # noqa: S105 - it is looked for where it must not be
WAIT_SECONDS = 150.0
"""How long a test waits for what a process does. One call to the queue that takes too long, on a busy machine, is made
up for by the sweep, a minute later: that is a promise kept, and no failure."""
PORTS = range(20_000, 30_000)
"""Below those that systems give away by themselves, to servers that take any port and to all clients."""


class LocalClient(Client):
    """Sends requests within this process as if from this machine, on which a simulation's API is open."""

    def open(self, *arguments: Any, **options: Any) -> TestResponse:
        options.setdefault("environ_base", {"REMOTE_ADDR": "127.0.0.1"})
        return super().open(*arguments, **options)


def in_steps(deliver: Callable[[bytes, str], object], name: str = "") -> Callable[[bytes, str], Procedure[object]]:
    """Return an executor for a queue in this process that calls a function, as it calls a handler of that name."""

    def plan(body: bytes, token: str) -> Procedure[object]:
        result: object = yield LongCall(partial(deliver, body, token), name)
        return result

    return plan


def wait_until(
    condition: Callable[[], object], what: str | Callable[[], str] = "it is so", seconds: float = WAIT_SECONDS
) -> None:
    """Wait until something is so, `WAIT_SECONDS` at most: for all tests that wait for a real process, thread or page.

    What has taken longer is asked less often: the processes that are waited for need the processor.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, f"{what if isinstance(what, str) else what()}: not so after {seconds} s"
        time.sleep(max(0.002, min(0.1, waited / 10)))


@contextmanager
def heed(signum: int, handler: Any = signal.SIG_DFL) -> Iterator[None]:  # noqa: ANN401 - as for signal.signal
    """Handle a signal that this process ignores because the one that started it did; processes inherit that, too."""
    is_ignored = signal.getsignal(signum) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signum, handler)
    try:
        yield
    finally:
        if is_ignored:
            signal.signal(signum, signal.SIG_IGN)


def free_port() -> int:
    """Return a port of this machine that nobody listens on, and that is given to nobody else while this process lives.

    The system gives none of `PORTS` to those who take any. Other processes of the tests see that one is reserved by its
    number's being taken for UDP.
    """
    for port in PORTS:
        reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            reservation.bind(("127.0.0.1", port))
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
        else:
            atexit.register(reservation.close)
            return port
    raise OSError(f"none of {PORTS} is free")


def new_project() -> str:
    """Return the id of a project that the shared Firestore emulator has not had, not even from an earlier run."""
    return f"demo-{os.urandom(10).hex()}"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Any
    headers: Mapping[str, str]


def request(
    url: str, method: str, path: str, content: object = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """Send one request: `content` as JSON, or as it is if it is bytes; in a chunk if the headers say so."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_SECONDS)
    try:
        data = content if isinstance(content, bytes) or content is None else json.dumps(content).encode()
        said = dict(headers or {})
        connection.request(method, path, data, said, encode_chunked="Transfer-Encoding" in said)
        response = connection.getresponse()
        text = response.read()
        with suppress(ValueError):
            return Reply(response.status, json.loads(text), dict(response.getheaders()))
        return Reply(response.status, text, dict(response.getheaders()))
    finally:
        connection.close()


class Process:
    """A program in a process group of its own, and what it says."""

    def __init__(self, *command: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._process = subprocess.Popen(  # noqa: S603 - the tests' own commands
            command,
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """What it has said so far, without the beginning of a character whose end is still to come."""
        return codecs.getincrementaldecoder("utf-8")().decode(os.pread(self._output.fileno(), 1 << 20, 0))

    def signal(self, signum: int) -> None:
        self._process.send_signal(signum)

    def kill(self) -> None:
        """End it, and all that it has started, without a chance to do anything about it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        wait_until(lambda: self._process.pid not in _running().values(), "all of them are gone, and their sockets")

    def wait(self, seconds: float = WAIT_SECONDS) -> int:
        """Wait for its end; return its exit code."""
        return self._process.wait(seconds)

    def wait_for(self, pattern: str, seconds: float = WAIT_SECONDS) -> re.Match[str]:
        """Wait until it has said something; return that."""
        wait_until(lambda: re.search(pattern, self.output) or self._process.poll() is not None, pattern, seconds)
        match = re.search(pattern, self.output)
        assert match, self.output
        return match

    def family(self) -> set[int]:
        """Return this process and all that come from it, in whatever group they are."""
        parents = _running(parents=True)
        found = {self._process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def end(self) -> None:
        self.kill()
        self._output.close()


def run_to_end(
    command: Sequence[str | Path], *, check: bool = False, timeout: int = 250, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program, and return its exit code and what it has said."""
    return subprocess.run(  # noqa: S603 - the tests' own programs
        command, check=check, timeout=timeout, capture_output=True, text=True, **options
    )


@contextmanager
def process(*command: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Iterator[Process]:
    """Run a program for as long as the ``with`` lasts at most."""
    program = Process(*command, env=env, cwd=cwd)
    try:
        yield program
    finally:
        program.end()


@dataclass(frozen=True, slots=True)
class Function:
    url: str
    port: int
    process: Process


@contextmanager
def function(target: str, env: Mapping[str, str], source: Path | None = None, port: int = 0) -> Iterator[Function]:
    """Serve one function as it is when deployed: functions-framework, with gunicorn."""
    port = port or free_port()
    arguments = (f"--target={target}", f"--source={source or ROOT / 'functions' / 'main.py'}", f"--port={port}")
    wait_until(lambda: not _answers(port), "the one before has let go of the port")  # a thread of it may outlive it
    command = (sys.executable, "-m", "functions_framework", *arguments, "--host=127.0.0.1")
    with process(*command, env={**env, "THREADS": "4"}) as server:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(port), f"{target} on {port}: {server.output}")
        yield Function(url, port, server)


def still_running(pids: set[int]) -> set[int]:
    """Return those processes that still run; the dead whom nobody has looked after do not count."""
    return pids & _running().keys()


def _running(*, parents: bool = False) -> dict[int, int]:
    """Return all processes of this machine, each with its group, or with its parent."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
                if state != "Z":
                    found[int(folder.name)] = int(parent if parents else group)
    return found


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
