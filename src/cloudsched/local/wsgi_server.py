"""The WSGI server of this package: waitress, with one rule for connections that cost their clients nothing.

waitress reads all requests in one thread, and only a complete one takes a thread of the application. It has
limits on the size of headers and bodies. This adds that each connection has a deadline, and that beyond so
many of them, the oldest whose request is not complete is closed.
"""

from __future__ import annotations

import logging
import socket
import time
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self

from cloudsched.config.imports import require_extra
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import Misconfigured
from cloudsched.local.fair_limit import iterate_superfluous
from cloudsched.local.request_parser import MAX_BODY_BYTES, MAX_HEADER_BYTES, RequestParser
from cloudsched.web.waiting_room import ROOM, SOCKET, WaitingRoom

try:
    import resource
except ImportError:  # pragma: no cover - on Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable
    from wsgiref.types import WSGIApplication

with require_extra("An app that runs its own tasks", "server"):
    from waitress.adjustments import Adjustments
    from waitress.channel import HTTPChannel
    from waitress.server import TcpWSGIServer
    from waitress.task import ThreadedTaskDispatcher, WSGITask

log: Final = own_logger(__name__)
_log_of_connections = own_logger(f"{__name__}.connections")
_log_of_connections.setLevel(logging.WARNING)  # that a client is gone is no news

PLACES = 400
"""The most connections without a complete request. Each 160 kB of an unfinished body count as one more.

They never have more than two fifths of the files that the process may have open, often 1,024.
"""
_PLACE_BYTES = 160_000
THREADS = 16
"""The most requests that are served at the same time while they keep the processor busy, beside those that wait
for work. More Python threads would only slow each other down."""
MAX_THREADS = 512
"""The most while they mostly wait, as deliveries do, whose handlers call the API."""
_FULL = 0.8
"""The seconds of the processor in `LOOK_SECONDS` from which it counts as busy."""
PROBES = frozenset({"/ready", "/health"})
"""The paths of requests that are served before all others.

Without that, a supervisor would end a process that is only busy.
"""
HEADER_SECONDS = 20.0
"""How long a request's headers may take to arrive."""
REQUEST_SECONDS = 60.0
"""How long a whole request may take to arrive, a client to read an answer, and a connection to be idle."""
LOOK_SECONDS = 1.0
"""The interval at which the deadlines are checked."""
_ACCEPTS = 16
"""The number of connections that are accepted in a row before data on others is read."""
ACCEPT_PAUSE = 1.0
"""How long no connection is accepted after the system has refused one, in seconds."""
_LOG_INTERVAL = 60.0
"""The least interval between two log lines about the same problem, in seconds."""
GRACE_SECONDS = 2
"""How long requests in progress may take to finish when the server stops, in seconds."""


class WebServer:
    """A context that serves one application: it listens from the start, and responds after `serve`."""

    def __init__(
        self, application: WSGIApplication, host: str = "127.0.0.1", port: int = 0, *, root_path: str = ""
    ) -> None:
        """Take the application, and where it is. `root_path` is the path before it that a proxy removes."""
        self._application = application
        self._host = host
        self._port = port
        self._root_path = root_path
        self.room = WaitingRoom(MAX_THREADS)
        """The place where claims wait for work."""

    @property
    def address(self) -> str:
        """The ``host:port`` once the server listens."""
        if ":" in self._host:
            return f"[{self._host}]:{self._port}"
        return f"{self._host}:{self._port}"

    def __enter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listener = socket.create_server(
                (self._host, self._port),
                family=family,
                backlog=1024,
                dualstack_ipv6=self._host == "::" and socket.has_dualstack_ipv6(),
            )
        except OSError as error:
            raise Misconfigured(f"Cannot listen on {self.address}: {error}. Choose another port, or 0.") from error

        self._port = listener.getsockname()[1]
        self._server = _Server(self._application, listener, self._root_path, self.room)
        self._thread = ServiceThread("cloudsched-web-server", self._server.poll, at_end=self._server.shut_down)
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def serve(self) -> None:
        """Start to respond, also on connections made before this call."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the server. A second call does nothing."""
        self._thread.stop()
        if self._thread.ident is None:
            self._server.shut_down()
        elif self._thread.is_alive():
            with suppress(OSError):  # it has just ended
                self._server.pull_trigger()
            self._thread.join(GRACE_SECONDS + 1)


class _Task(WSGITask):
    """A request and its response."""

    channel: _Connection

    def get_environment(self) -> dict[str, Any]:
        """Return the request's environment, with what a claim needs in order to wait for work."""
        return {**super().get_environment(), ROOM: self.channel.server.room, SOCKET: self.channel.socket}

    def execute(self) -> None:
        try:
            super().execute()
        except SystemExit as error:  # waitress would leave the client without an answer
            raise RuntimeError(f"A request tried to end the process: {error!r}") from error


class _Connection(HTTPChannel):
    """A connection, which waits for a request, for the rest of one, or for its client to read a response."""

    parser_class = RequestParser
    request: RequestParser | None
    task_class = _Task
    logger = _log_of_connections
    server: _Server

    def __init__(self, *args: Any, **options: Any) -> None:
        self.since = time.monotonic()
        """Since when it has waited for what it waits for."""
        self._is_arriving = False
        super().__init__(*args, **options)

    @property
    def places(self) -> int:
        """Return how many places it takes: none while its request is served."""
        if self.requests:
            return 0
        return 1 if self.request is None else 1 + self.request.body_bytes_received // _PLACE_BYTES

    def is_late(self, now: float) -> bool:
        """Return whether the client has taken too long to send a request or to read a response."""
        if self.requests and not self.total_outbufs_len:
            return False
        has_headers = self.request is not None and self.request.headers_finished
        return now - self.since > (HEADER_SECONDS if self._is_arriving and not has_headers else REQUEST_SECONDS)

    def recv(self, buffer_size: int) -> bytes:
        """Read the received data.

        A client that has ended in the middle of a request may still wait for an answer.
        """
        if self.request is not None and not self.socket.recv(1, socket.MSG_PEEK):  # type: ignore[union-attr]  # it is open
            self.request.fail("The request is cut off.")
            return b"\n"  # lets waitress look at it again
        return super().recv(buffer_size)

    def received(self, data: bytes) -> bool:
        """Read a part of a request. Its first byte, even of an empty line, starts the deadline."""
        if not self._is_arriving:
            self.since = time.monotonic()
            self._is_arriving = True
        self.server.has_grown |= self.places > 1
        return bool(super().received(data))

    def write_soon(self, data: Any) -> int:  # noqa: ANN401 - bytes or a file
        """Add to the answer. Its deadline starts whenever the client has read all that there was."""
        if not self.total_outbufs_len:
            self.since = time.monotonic()
            self._is_arriving = False
        return int(super().write_soon(data))


class _Threads(ThreadedTaskDispatcher):
    """Threads that start when all others are busy. waitress starts all of its own at once."""

    _limit = MAX_THREADS

    def add_task(self, task: Any) -> None:  # noqa: ANN401 - a connection; waitress says task
        """Queue the request that a connection has received for a thread, a probe before all others."""
        with self.lock:
            if task.requests[0].path in PROBES:
                self.queue.appendleft(task)
            else:
                self.queue.append(task)
            self.queue_cv.notify()
        self.resize(self._limit)

    def resize(self, limit: int) -> None:
        """Start the threads that requests wait for, up to a limit. Those beyond it end after their request."""
        self._limit = limit
        self.set_thread_count(min(max(len(self.threads) - self.stop_count, len(self.queue) + self.active_count), limit))

    def start_new_thread(self, target: Callable[[int], object], thread_no: int) -> None:
        try:
            super().start_new_thread(target, thread_no)
        except RuntimeError:  # the system gives no more threads: requests wait for those that there are
            self.threads.discard(thread_no)
            self.active_count -= 1


class _Server(TcpWSGIServer):
    channel_class = _Connection
    task_dispatcher: _Threads
    active_channels: dict[int, _Connection]  # type: ignore[assignment]  # all are made by `channel_class`

    def __init__(
        self, application: WSGIApplication, listener: socket.socket, root_path: str, room: WaitingRoom
    ) -> None:
        self.room = room
        self.has_grown = False
        """Whether more places may be taken since the last count."""
        self._sockets: dict[int, Any] = {}
        self._looks_at = self._accepts_at = self._logs_at = self._used = 0.0

        super().__init__(
            application,
            map=self._sockets,
            _sock=listener,
            dispatcher=_Threads(),
            adj=Adjustments(
                sockets=[listener],
                asyncore_use_poll=True,
                clear_untrusted_proxy_headers=False,  # the application refuses them where they matter
                ident=None,
                inbuf_overflow=MAX_BODY_BYTES,  # a file would take a descriptor
                log_socket_errors=False,
                max_request_body_size=MAX_BODY_BYTES,
                max_request_header_size=MAX_HEADER_BYTES,
                outbuf_high_watermark=1024 * 1024,  # the unread bytes beyond which the application has to wait
                recv_bytes=64 * 1024,
                server_name="localhost",
                url_prefix=root_path,
            ),
            sockinfo=(listener.family, listener.type, listener.proto, listener.getsockname()),
            bind_socket=False,
        )

    def poll(self) -> float:
        """Close the connections that are too many, or late. Then wait briefly for events, and handle them."""
        now = time.monotonic()
        if self.has_grown:  # a count after each event takes a fifth of the server's time in an attack
            self.has_grown = False
            waiting = sorted(self.active_channels.values(), key=attrgetter("since"))
            places = [(each.addr[0], each) for each in waiting for _ in range(each.places)]
            for each in iterate_superfluous(places, _count_places()):
                each.handle_close()
        if now >= self._looks_at:
            self._looks_at = now + LOOK_SECONDS
            self.has_grown = True  # by those whose requests have ended
            for each in tuple(self.active_channels.values()):
                if each.is_late(now):
                    each.handle_close()
            before, self._used = self._used, time.process_time()
            self.task_dispatcher.resize(THREADS + self.room.count if self._used - before > _FULL else MAX_THREADS)
        self.asyncore.loop(timeout=LOOK_SECONDS, use_poll=True, map=self._sockets, count=1)
        return 0.0

    def readable(self) -> bool:
        """Return whether it accepts connections. waitress asks this before each wait."""
        return self.accepting and time.monotonic() >= self._accepts_at

    def handle_accept(self) -> None:
        """Accept many connections in a row. waitress accepts one, and then waits for a busy processor."""
        for _ in range(_ACCEPTS):
            count = len(self.active_channels)
            super().handle_accept()
            if len(self.active_channels) == count:
                break
            self.has_grown = True

    def accept(self) -> tuple[socket.socket, Any] | None:
        """Accept a connection, and none for a while if the system refuses one."""
        try:
            return super().accept()
        except OSError as error:  # there is no file descriptor left, or no memory
            now = time.monotonic()
            self._accepts_at = now + ACCEPT_PAUSE
            if now >= self._logs_at:
                self._logs_at = now + _LOG_INTERVAL
                log.log(
                    logging.ERROR,
                    "The web server cannot accept a connection beside its %d others, and tries again: %s",
                    len(self.active_channels),
                    error,
                    extra={"action": "accept_failed"},
                )
            return None

    def shut_down(self) -> None:
        """Accept nothing more, let requests in progress finish for a while, and close everything."""
        self.accepting = False
        self.room.close()
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and any(
            each.requests or each.total_outbufs_len for each in self.active_channels.values()
        ):
            self.asyncore.loop(timeout=0.1, use_poll=True, map=self._sockets, count=1)
        self.task_dispatcher.set_thread_count(0)
        self.asyncore.close_all(self._sockets)


def _count_places() -> int:
    """Return how many places there are: a process may have few files open."""
    if resource is None:
        return PLACES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return PLACES if soft == resource.RLIM_INFINITY else min(PLACES, soft * 2 // 5)
