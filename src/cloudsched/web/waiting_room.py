"""Where claims wait for work: each occupies a thread of the web server, so their number is limited.

A server that knows its threads puts a `WaitingRoom` into each request's environment, and closes it when
it stops. Behind any other server no claim waits.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudsched.config.settings import count_server_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from wsgiref.types import WSGIApplication, WSGIEnvironment

T = TypeVar("T")
ROOM: Final = "cloudsched.waiting_room"
"""The key of the environment under which a server puts its waiting room."""
SOCKET: Final = "gunicorn.socket"
"""The key of the environment under which a server puts the client's socket."""
LOOK_SECONDS: Final = 1.0
"""The interval at which a waiting claim looks whether its client is there and, without a listener, for work."""


class WaitingRoom:
    """Places for requests that wait: half of a server's threads. The others are for requests that do not."""

    def __init__(self, threads: int) -> None:
        self._places = threads // 2
        self._lock = threading.Lock()
        self._waiting: dict[threading.Event, None] = {}
        self.is_closed: bool = False

    @property
    def count(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def close(self) -> None:
        """Release all who wait, and let nobody in from now on."""
        self.is_closed = True
        for each in tuple(self._waiting):
            each.set()

    def enter(self, woken: threading.Event, *, is_user: bool = False) -> bool:
        """Take a place, and return whether there was one. `close` sets the event.

        Users get in while half of the places are free, so that they cannot keep workers out.
        """
        places = self._places // 2 if is_user else self._places
        with self._lock:
            if self.is_closed or self.count >= places:
                return False
            self._waiting[woken] = None
            return True

    def leave(self, woken: threading.Event) -> None:
        """Give a place back."""
        del self._waiting[woken]


PROCESS_ROOM: Final = WaitingRoom(count_server_threads())
"""The room of a process whose server's threads the variable ``THREADS`` gives, as it does for functions."""


def serve_with_room(application: WSGIApplication, threads: int) -> WSGIApplication:
    """Return an application that knows the number of threads in which it is served."""
    room = WaitingRoom(threads)
    return lambda environ, start_response: application({**environ, ROOM: room}, start_response)


def try_until_found(
    attempt: Callable[[], Sequence[T]],
    seconds: float,
    environ: WSGIEnvironment,
    listen: Callable[[Callable[[], None]], AbstractContextManager[None]] | None,
    *,
    is_user: bool = False,
) -> tuple[Sequence[T], bool]:
    """Try until an attempt finds anything or the time is over. Return what it found, and whether it could wait.

    With `listen` it tries again when it is told to, otherwise every second. It ends once the client has
    gone, as far as the server knows, or the server stops.
    """
    woken = threading.Event()
    room: WaitingRoom = environ.get(ROOM, PROCESS_ROOM)
    if not seconds or not environ.get("wsgi.multithread") or not room.enter(woken, is_user=is_user):
        return attempt(), not seconds

    until = time.monotonic() + seconds
    try:
        with nullcontext() if listen is None else listen(woken.set):
            found = attempt()
            while not found and (left := until - time.monotonic()) > 0:
                is_told = woken.wait(min(left, LOOK_SECONDS))
                woken.clear()  # what comes during the attempt is for the next one
                if room.is_closed or _is_gone(environ):
                    break
                if is_told or listen is None:
                    found = attempt()
        return found, True
    finally:
        room.leave(woken)


def _is_gone(environ: Mapping[str, Any]) -> bool:
    """Return whether the client has closed its connection, or will send nothing more on it."""
    connection = environ.get(SOCKET)
    if connection is None:
        return False
    flags = socket.MSG_PEEK | getattr(socket, "MSG_DONTWAIT", 0)  # on Windows, the sockets do not wait
    try:
        return not socket.socket.recv(connection, 1, flags)  # that of TLS takes no flags
    except BlockingIOError:
        return False
    except OSError:
        return True
