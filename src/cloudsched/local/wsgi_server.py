"""The local stack's WSGI server, in threads of this process.

A connection takes a thread only once a request begins to arrive on it, and there are always threads left: neither idle
connections nor half-sent requests keep other clients waiting.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Self
from wsgiref.types import WSGIApplication

from cloudsched.config.imports import require_extra
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.ports.service_threads import ServiceThread, report_recovery
from cloudsched.errors import Misconfigured

with require_extra("An app that runs its own tasks", "server"):
    from cheroot.errors import MaxSizeExceeded
    from cheroot.server import HTTPConnection, HTTPRequest
    from cheroot.server import comma_separated_headers as list_headers  # type: ignore[attr-defined]  # not in its stub
    from cheroot.wsgi import Gateway_10, Server

log = own_logger(__name__)

THREADS = 32
"""The number of threads at first, and the number that is added when all are busy.

They are for clients, and for deliveries, whose handlers may call the API.
"""
MAX_THREADS = 512
"""The most requests that are read or served at the same time."""
MAX_IDLE_CONNECTIONS = 512
"""The most connections that wait for a request: beyond that the one that has waited longest is closed. A process may
often have no more than 1,024 open files."""
GRACE_SECONDS = 2
"""The seconds for requests in progress to finish when the server is stopped."""

MAX_BODY_BYTES = 16 * 1024 * 1024
"""The most bytes read of a body, with chunk headers. The API accepts far fewer."""
_CHUNK_SIZE = 64 * 1024


class _Gateway(Gateway_10):
    """Closes the connection after a chunked body: no rest of one may be taken for the connection's next request."""

    def respond(self) -> None:
        request: Any = self.req
        request.close_connection = request.close_connection or request.chunked_read
        try:
            super().respond()
        except SystemExit as error:  # which would end cheroot's thread
            raise RuntimeError(f"A request tried to end the process: {error!r}") from error
        if request.chunked_read:
            with suppress(OSError, ValueError, MaxSizeExceeded):  # else a client that still sends would miss the answer
                while request.rfile.read(_CHUNK_SIZE):
                    pass


_REPEATABLE = frozenset(each.title() for each in list_headers) - {b"Transfer-Encoding"}


class _Headers(dict[bytes, bytes]):
    """The headers of a request. cheroot would take the last of two, where a proxy may have taken the first."""

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if name in self and name not in _REPEATABLE and not name.startswith((b"Forwarded", b"X-Forwarded-")):
            raise ValueError(f"The header {name.decode('latin-1')} is given twice.")
        if b"_" not in name:
            super().__setitem__(name, value)


class _Request(HTTPRequest):
    """A request in which no two parties can read two different ones.

    Its Content-Length, if it has one, must be a number of bytes (RFC 9110, section 8.6), and stand alone (RFC 9112,
    section 6.3). A header with an underscore is dropped, as by other servers: apps could not tell it from another one.
    """

    def read_request_headers(self) -> bool:
        self.inheaders = _Headers()
        if not super().read_request_headers():  # type: ignore[no-untyped-call]  # cheroot's stub lacks types
            return False
        if {b"Content-Length", b"Transfer-Encoding"} <= self.inheaders.keys():
            self.simple_response("400 Bad Request", "Content-Length and Transfer-Encoding exclude each other.")
            return False
        length: bytes = self.inheaders.get(b"Content-Length", b"0")
        if not length.isdigit():  # cheroot would take -1, and read for as long as the client keeps the connection
            self.simple_response("400 Bad Request", "Malformed Content-Length Header.")
            return False
        return True


class _Connection(HTTPConnection):
    RequestHandlerClass = _Request

    def close(self) -> None:
        """Drop what a client that is gone did not take, or Python 3.13 prints a traceback when it frees the memory."""
        super().close()
        with suppress(OSError):
            self.wfile.close()


class _Server(Server):
    """cheroot's server, which by itself gives each new connection one of a fixed number of threads."""

    ConnectionClass = _Connection

    @staticmethod
    def bind_socket(socket_: socket.socket, bind_addr: tuple[str, int]) -> socket.socket:
        """Bind the socket. Close it if its port is taken, which cheroot leaves to the garbage collector."""
        try:
            socket_.bind(bind_addr)
        except OSError:
            socket_.close()
            raise
        return socket_

    @property
    def interrupt(self) -> BaseException | None:
        """Return nothing: no request stops the server."""
        return None

    @interrupt.setter
    def interrupt(self, error: BaseException) -> None:
        """Log what ended one of cheroot's threads. By itself cheroot would stop for it. Others take its place."""
        log.error("A thread of the web server has ended; another takes its place", exc_info=error)

    def process_conn(self, conn: HTTPConnection) -> None:
        """Serve a connection on which a request begins to arrive. Let a new one wait for that."""
        if conn.last_used is None:
            self._connections.put(conn)  # type: ignore[attr-defined]  # missing in cheroot's stub
            self._close_longest_idle()
            return
        self._keep_threads_idle()
        super().process_conn(conn)

    def _keep_threads_idle(self) -> None:
        """Add threads if all are busy. cheroot's own `grow` waits for each to begin, for ever if one has ended."""
        pool: Any = self.requests
        pool._clear_dead_threads()  # noqa: SLF001 - cheroot counts them as idle
        if pool.qsize < pool.idle:
            return
        try:
            for _ in range(min(THREADS, pool.max - len(pool._threads))):  # noqa: SLF001 - as `grow` does
                pool._threads.append(pool._spawn_worker())  # noqa: SLF001 - the same
        except RuntimeError:  # the system gives no more threads
            log.exception("The web server gets no more threads; requests wait for those that it has")

    def stop(self) -> None:
        """Stop at once. By itself cheroot notices only when a client connects, or after `expiration_interval`."""
        if self.ready:
            connections: Any = self._connections  # type: ignore[attr-defined]  # the same
            connections._stop_requested = True  # noqa: SLF001 - cheroot's own `stop` sets it, and then waits
            with suppress(OSError):
                socket.create_connection(self.socket.getsockname()[:2], timeout=1).close()
        super().stop()

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:  # noqa: FBT001, FBT002 - cheroot's signature
        """Log an error. A client that has disconnected is none."""
        is_disconnect = isinstance(sys.exc_info()[1], ConnectionError)
        log.log(logging.DEBUG if is_disconnect else level, "%s", msg, exc_info=traceback and not is_disconnect)

    def _close_longest_idle(self) -> None:
        connections: Any = self._connections  # type: ignore[attr-defined]  # the same
        selector = connections._selector  # noqa: SLF001 - cheroot has no limit of its own on these
        idle = [(conn.last_used, fd, conn) for fd, conn in selector.connections if conn is not self]
        if len(idle) > MAX_IDLE_CONNECTIONS:
            _, fd, conn = min(idle, key=lambda entry: entry[0])
            selector.unregister(fd)
            conn.close()


class WebServer:
    """A context that serves one application: it listens from the start, and responds after `serve`."""

    def __init__(self, application: WSGIApplication, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self._port = port
        self._server = _Server(
            (host, port),
            application,
            numthreads=THREADS,
            max=MAX_THREADS,
            request_queue_size=1024,
            shutdown_timeout=GRACE_SECONDS,
        )
        self._server.gateway = _Gateway
        self._server.max_request_body_size = MAX_BODY_BYTES
        self._ready: Future[None] = Future()
        self._serving = threading.Event()
        # The workers inherit its daemon flag: a handler that hangs does not keep the process alive.
        self._thread = ServiceThread("cloudsched-web-server", self._serve)

    @property
    def address(self) -> str:
        """The ``host:port`` once the server listens."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._ready.result()
        except OSError as error:
            raise Misconfigured(f"Cannot listen on {self.address}: {error}. Choose another port, or 0.") from error
        self._port = self._server.bind_addr[1]
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def serve(self) -> None:
        """Start to respond, also on connections made before this call."""
        self._serving.set()

    def stop(self) -> None:
        """Stop the server. A second call does nothing."""
        self._thread.stop()
        self._serving.set()
        stopping = threading.Thread(target=self._server.stop, name="web-server-stop", daemon=True)
        stopping.start()
        stopping.join(GRACE_SECONDS + 1)

    def _serve(self) -> float | None:
        """Listen, wait until it may respond, and respond until it is stopped."""
        if not self._ready.done():
            try:
                self._server.prepare()
            except BaseException as error:  # noqa: BLE001 - raised again in `__enter__`
                self._ready.set_exception(error)
                return None
            self._ready.set_result(None)
        self._serving.wait()
        report_recovery()
        self._server.serve()
        return None
