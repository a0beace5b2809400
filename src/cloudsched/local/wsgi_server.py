"""The WSGI server of this package: waitress, with limits that unauthenticated clients cannot exhaust.

waitress reads all requests in one thread, and only a complete one takes a thread of the application. It has
limits on the size of headers and bodies. This adds what it lacks: a deadline for a whole request, room for a
new connection at the expense of the one that has waited longest, and a pause when the process has no file
descriptor left.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self

from cloudsched.config.imports import require_extra
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import Misconfigured
from cloudsched.local.request_parser import MAX_BODY_BYTES, MAX_HEADER_BYTES, RequestParser
from cloudsched.web.waiting_room import ROOM, SOCKET, WaitingRoom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import WSGIApplication

with require_extra("An app that runs its own tasks", "server"):
    from waitress.adjustments import Adjustments
    from waitress.channel import HTTPChannel
    from waitress.server import TcpWSGIServer
    from waitress.task import ThreadedTaskDispatcher, WSGITask

log: Final = own_logger(__name__)
_log_of_connections = own_logger(f"{__name__}.connections")
_log_of_connections.setLevel(logging.WARNING)  # that a client is gone is no news

MAX_IDLE_CONNECTIONS = 400
"""The most connections on which no request is served: idle, or within a request or a response.

One more closes the one that has waited longest. They never have more than two fifths of the files that the
process may have open, often 1,024.
"""
THREADS = 8
"""The most requests that are served at the same time while they keep the processor busy."""
MAX_THREADS = 512
"""The most while they mostly wait, as deliveries do, whose handlers call the API."""
PROBES = frozenset({"/ready", "/health"})
"""The paths of requests that are served before all others.

Without that, a supervisor would end a process that is only busy.
"""
_FULL = 0.8
"""The load of one core above which more Python threads only slow each other down."""
HEADER_SECONDS = 20.0
"""How long a request's headers may take to arrive."""
REQUEST_SECONDS = 60.0
"""How long a whole request may take to arrive.

Also the longest that a connection waits for a request, and that a client takes to read the rest of a
response.
"""
MAX_UNFINISHED_BYTES = 64 * 1024 * 1024
"""The most bytes of all bodies that are still arriving. Beyond that, the connection with the oldest is
closed."""
MAX_UNREAD_BYTES = 1024 * 1024
"""How many unread bytes of a response are buffered for a client before the application has to wait."""
_SMALL_BODY = 64 * 1024
"""Bodies up to this size are not counted, since the number of connections is limited."""
LOOK_SECONDS = 1.0
"""The interval at which the deadlines are checked."""
_ACCEPTS = 64
"""The largest number of connections that are accepted in a row before data on others is read."""
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
        self.room: WaitingRoom = WaitingRoom(MAX_THREADS)
        """The place where claims wait for work."""

    @property
    def address(self) -> str:
        """The ``host:port`` once the server listens."""
        if ":" in self._host:
            return f"[{self._host}]:{self._port}"
        return f"{self._host}:{self._port}"

    def __enter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        is_dual = self._host == "::" and socket.has_dualstack_ipv6()
        try:
            listener = socket.create_server(
                (self._host, self._port), family=family, backlog=1024, dualstack_ipv6=is_dual
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
        environ: dict[str, Any] = super().get_environment()
        return {**environ, ROOM: self.channel.server.room, SOCKET: self.channel.socket}

    def execute(self) -> None:
        try:
            super().execute()
        except SystemExit as error:  # waitress would leave the client without an answer
            raise RuntimeError(f"A request tried to end the process: {error!r}") from error
        finally:
            self.channel.begin_to_wait()


class _Connection(HTTPChannel):
    """A connection, which waits for a request, for the rest of one, or for its client to read a response."""

    parser_class = RequestParser
    request: RequestParser | None
    task_class = _Task
    logger = _log_of_connections
    server: _Server

    def __init__(self, *args: Any, **options: Any) -> None:
        self.begin_to_wait()
        self._sent = self.since
        super().__init__(*args, **options)

    def begin_to_wait(self) -> None:
        """Note that it waits for a request."""
        self.since = time.monotonic()
        self._is_arriving = False

    @property
    def is_idle(self) -> bool:
        """Return whether no request is being served."""
        return not self.requests

    @property
    def body_bytes(self) -> int:
        """Return the size of an unfinished body so far."""
        if self.request is None:
            return 0
        return self.request.body_bytes_received

    def is_late(self, now: float) -> bool:
        """Return whether the client has taken too long to send a request or to read a response."""
        if self.requests:
            return self.total_outbufs_len > 0 and now - self._sent > REQUEST_SECONDS
        has_headers = self.request is not None and self.request.headers_finished
        if self._is_arriving and not has_headers:
            return now - self.since > HEADER_SECONDS
        return now - self.since > REQUEST_SECONDS

    def write_soon(self, data: Any) -> int:  # noqa: ANN401 - bytes or a file
        """Add to the answer."""
        if not self.total_outbufs_len:
            self._sent = time.monotonic()
        added: int = super().write_soon(data)
        return added

    def send(self, data: bytes, do_close: bool = True) -> int:  # noqa: FBT001, FBT002 - waitress's signature
        """Send a part of the answer, as much as the client takes."""
        taken: int = super().send(data, do_close)
        if taken:
            self._sent = time.monotonic()
        return taken

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
        is_read = super().received(data)
        if self.body_bytes > _SMALL_BODY:
            self.server.limit_unfinished_bodies()
        return is_read


class _Threads(ThreadedTaskDispatcher):
    """Threads that start when all others are busy. The number of waitress's own is fixed."""

    def __init__(self, room: WaitingRoom) -> None:
        super().__init__()
        self._room = room
        self._looked_at = self._used = 0.0
        self._is_processor_free = True

    def add_task(self, task: Any) -> None:  # noqa: ANN401 - a connection; waitress says task
        """Queue the request that a connection has received for a thread, a probe before all others."""
        with self.lock:
            if task.requests[0].path in PROBES:
                self.queue.appendleft(task)
            else:
                self.queue.append(task)
            self.queue_cv.notify()
        limit = MAX_THREADS if self._look_for_room() else THREADS + self._room.count
        self.grow(limit)

    def grow(self, limit: int) -> None:
        """Start the threads that requests wait for, up to a limit."""
        count = len(self.threads)
        wanted = min(len(self.queue) + self.active_count, limit)
        if count < wanted:
            self.set_thread_count(wanted)

    def _look_for_room(self) -> bool:
        """Return whether the processor has room for more threads, which would otherwise compete for it."""
        now = time.monotonic()
        used = time.process_time()
        if now - self._looked_at >= LOOK_SECONDS / 10:
            self._is_processor_free = used - self._used < _FULL * (now - self._looked_at)
            self._looked_at = now
            self._used = used
        return self._is_processor_free

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
        settings = Adjustments(
            sockets=[listener],
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=False,  # the application refuses them where they matter
            ident=None,
            inbuf_overflow=MAX_BODY_BYTES,  # a file would take a descriptor
            log_socket_errors=False,
            max_request_body_size=MAX_BODY_BYTES,
            max_request_header_size=MAX_HEADER_BYTES,
            outbuf_high_watermark=MAX_UNREAD_BYTES,
            recv_bytes=_SMALL_BODY,
            server_name="localhost",
            url_prefix=root_path,
        )
        self.room = room
        self._sockets: dict[int, Any] = {}
        self._looks_at = self._accepts_at = self._logs_at = 0.0

        super().__init__(
            application,
            map=self._sockets,
            _sock=listener,
            dispatcher=_Threads(self.room),
            adj=settings,
            sockinfo=(listener.family, listener.type, listener.proto, listener.getsockname()),
            bind_socket=False,
        )

    def poll(self) -> float:
        """Wait briefly for events, and handle them."""
        self.asyncore.loop(timeout=LOOK_SECONDS, use_poll=True, map=self._sockets, count=1)
        return 0.0

    def readable(self) -> bool:
        """Return whether it accepts connections. waitress asks this before each wait."""
        now = time.monotonic()
        if now >= self._looks_at:
            self._looks_at = now + LOOK_SECONDS
            for each in [each for each in self.active_channels.values() if each.is_late(now)]:
                each.handle_close()
            self.task_dispatcher.grow(min(len(self.task_dispatcher.threads) + 1, MAX_THREADS))
        return self.accepting and now >= self._accepts_at

    def handle_accept(self) -> None:
        """Accept many connections in a row. waitress accepts one, and then waits for a busy processor."""
        self._has_accepted = True
        for _ in range(_ACCEPTS):
            if self._has_accepted:
                super().handle_accept()

    def accept(self) -> tuple[socket.socket, Any] | None:
        """Accept a connection, and close the one that has waited longest if there are too many."""
        idle = [each for each in self.active_channels.values() if each.is_idle]
        if len(idle) >= min(MAX_IDLE_CONNECTIONS, _count_descriptors() * 2 // 5):
            _close_oldest(idle)
        self._has_accepted = False
        try:
            found = super().accept()
        except OSError as error:  # there is no file descriptor left, or no memory
            self._make_room(idle, error)
            return None
        self._has_accepted = found is not None
        return found

    def _make_room(self, idle: list[_Connection], error: OSError) -> None:
        """Close a connection, or accept none for a while if all of them are in use."""
        now = time.monotonic()
        if idle:
            _close_oldest(idle)
        else:
            self._accepts_at = now + ACCEPT_PAUSE
        if now >= self._logs_at:
            self._logs_at = now + _LOG_INTERVAL
            text = "The web server cannot accept a connection beside its %d others, and tries again: %s"
            log.error(text, len(self.active_channels), error, extra={"action": "accept_failed"})

    def limit_unfinished_bodies(self) -> None:
        """Close the connection with the oldest unfinished body if all of them are too large together."""
        idle = [each for each in self.active_channels.values() if each.is_idle]
        large = [each for each in idle if each.body_bytes > _SMALL_BODY]
        if sum(each.body_bytes for each in large) > MAX_UNFINISHED_BYTES:
            _close_oldest(large)

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


def _close_oldest(connections: Iterable[_Connection]) -> None:
    min(connections, key=attrgetter("since")).handle_close()


def _count_descriptors() -> int:
    """Return how many files this process may have open."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    return soft
