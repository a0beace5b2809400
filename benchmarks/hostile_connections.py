"""Measure what clients that never finish a request do to HTTP servers that can serve a WSGI application.

    python -m benchmarks.hostile_connections

Each server runs in a process of its own that may have so many files open, with the limits that it has itself, set as
tightly as ours. It serves an application that reads its requests, with 64 threads if their number is fixed.

* half-sent: so many connections send a part of their headers, or of a body, and then a byte every three seconds. One
  that is closed is made again. Meanwhile `/ready` is asked on new connections, for two seconds at most each time.
* endless: a header, a request line, many headers, and a chunk's extension, of 300 MB each, one after the other.
* no files: the application has all files open that the process may have, and twenty clients connect.

The other server is waitress alone, on which ours is built.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

THREADS, FILES, SECONDS = 64, 1024, 5
"""Of a server: its threads, and the files it may have open; and how long each attack is watched."""
HALF_SENT = (600, 1_100, 2_000, 5_000)
ENDLESS = 300 * 10**6
HEADERS = b"GET /ready HTTP/1.1\r\nHost: localhost\r\nX-a"
BODY = b"POST /ready HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
_LINE = b"a" * 10**6
_FILLERS: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "a header": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-a: ", lambda _: _LINE),
    "a request line": (b"GET /", lambda _: _LINE),
    "many headers": (
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        lambda part: b"".join(b"X-%d-%d: %b\r\n" % (part, line, _LINE[:1000]) for line in range(1000)),
    ),
    "a chunk's extension": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;a=",
        lambda _: _LINE,
    ),
}
_leaked: list[int] = []


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Read the request and answer. ``/leak`` leaves this process no file to open."""
    if environ["PATH_INFO"] == "/leak":
        with suppress(OSError):
            while True:
                _leaked.append(os.open(os.devnull, os.O_RDONLY))
    length = environ.get("CONTENT_LENGTH")
    if length or "HTTP_TRANSFER_ENCODING" in environ:
        environ["wsgi.input"].read(int(length or 1_000_000))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


def _run_cloudsched(port: int) -> None:
    from cloudsched.local.wsgi_server import WebServer  # noqa: PLC0415 - each server is imported where it runs

    with WebServer(application, port=port) as server:
        server.serve()
        threading.Event().wait()


def _run_waitress(port: int) -> None:
    import waitress  # noqa: PLC0415 - likewise

    waitress.serve(
        application,
        host="127.0.0.1",
        port=port,
        threads=THREADS,
        asyncore_use_poll=True,
        connection_limit=800,
        channel_timeout=20,
        cleanup_interval=1,
        max_request_header_size=32 * 1024,
        max_request_body_size=2 * 1024 * 1024,
    )


SERVERS: dict[str, Callable[[int], None]] = {"cloudsched": _run_cloudsched, "waitress": _run_waitress}


class Target:
    """A running server: its port, its process and its log."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self._log = log

    def read_log(self) -> bytes:
        """Return all that it has written."""
        return self._log.read_bytes()

    def measure_processor(self) -> float:
        """Return the seconds of the processor that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure_memory(self) -> int:
        """Return the most memory that it has had, in MB."""
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) // 1000


@contextmanager
def run_server(name: str, files: int) -> Iterator[Target]:
    """Run a server for as long as the context lasts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limit = f'ulimit -n {files} && exec "$0" "$@"'
    python = [sys.executable, "-m", "benchmarks.hostile_connections", name, str(port)]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen(["bash", "-c", limit, *python], stdout=log, stderr=log)  # noqa: S603, S607 - ours
        target = Target(process, port, Path(log.name))
        try:
            until = time.monotonic() + 30
            while ask(port) is None:
                if time.monotonic() > until or process.poll() is not None:
                    raise RuntimeError(target.read_log().decode(errors="replace"))
            yield target
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


def ask(port: int, path: str = "/ready") -> float | None:
    """Return how many seconds the answer to a request took, None if there was none within two seconds."""
    begin = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return time.monotonic() - begin if b"200" in connection.recv(1000)[:20] else None
    except OSError:
        return None


def measure_half_sent(name: str, count: int) -> str:
    """Return how `/ready` answers while so many connections send their requests byte by byte."""
    with run_server(name, FILES) as target, ExitStack() as parts:
        stop = threading.Event()
        threads = [threading.Thread(target=_send_slowly, args=(target.port, count // 4, stop)) for _ in range(4)]
        for each in threads:
            each.start()
            parts.callback(each.join)
        parts.callback(stop.set)
        time.sleep(2)
        took: list[float | None] = []
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            took.append(ask(target.port))
            time.sleep(0.01)
        answered = sorted(each for each in took if each is not None)
        if len(answered) < len(took) / 2:
            return f"{len(answered)} of {len(took)}"
        lost = f", {len(took) - len(answered)} of {len(took)} lost" if len(answered) < len(took) else ""
        return f"{answered[int(len(answered) * 0.99)] * 1000:.0f} ms{lost}"


def _send_slowly(port: int, count: int, stop: threading.Event) -> None:
    connections: dict[int, socket.socket] = {}
    while not stop.is_set():
        for number in range(count):
            try:
                if number in connections:
                    connections[number].send(b"a")
                else:
                    connections[number] = socket.create_connection(("127.0.0.1", port), 0.2)
                    connections[number].send(BODY if number % 2 else HEADERS)
            except OSError:  # the server has closed it, or accepts no more
                if number in connections:
                    connections.pop(number).close()
            if stop.is_set():
                break
        stop.wait(3)
    for each in connections.values():
        each.close()


def measure_endless(name: str) -> str:
    """Return the memory that endless parts of a request take, and the longest that `/ready` took meanwhile."""
    with run_server(name, FILES) as target:
        before, worst = target.measure_memory(), 0.0
        for first, fill in _FILLERS.values():
            sender = threading.Thread(target=_send_without_end, args=(target.port, first, fill))
            sender.start()
            while sender.is_alive():
                worst = max(worst, ask(target.port) or 2)
                time.sleep(0.01)
        return f"{target.measure_memory() - before} MB, {worst * 1000:.0f} ms"


def _send_without_end(port: int, first: bytes, fill: Callable[[int], bytes]) -> None:
    until = time.monotonic() + 20
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(first)
        for part in range(ENDLESS // 10**6):
            if time.monotonic() > until:
                break
            connection.sendall(fill(part))


def measure_without_files(name: str) -> str:
    """Return what a server logs, and what it takes of a core, while it cannot accept a connection."""
    with run_server(name, 256) as target, ExitStack() as parts:
        ask(target.port, "/leak")
        before, begin = target.read_log(), target.measure_processor()
        for _ in range(20):
            with suppress(OSError):
                parts.enter_context(socket.create_connection(("127.0.0.1", target.port), 1))
        time.sleep(SECONDS)
        log = target.read_log()[len(before) :]
        used = (target.measure_processor() - begin) / SECONDS
        return f"{log.count(b'%c' % 10) / SECONDS:,.0f} lines/s, {used:.0%}"


def main() -> None:
    """Measure the servers and print a line for each."""
    if sys.argv[1:]:
        name, port = sys.argv[1:]
        SERVERS[name](int(port))
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("server", *(f"{count:,} half-sent" for count in HALF_SENT), "endless", "no files", sep=" | ")
    for name in SERVERS:
        slow = [measure_half_sent(name, count) for count in HALF_SENT]
        rest = measure_endless(name), measure_without_files(name)
        print(name, *slow, *rest, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
