"""Hand dispatches to the process that runs the tasks of a data folder, through a socket in the folder.

No dispatch is lost. A process that begins to run the tasks listens first and reads the store afterwards, so
it finds what was committed before. The next such process finds a dispatch that nobody hears.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import CloudschedError, Misconfigured, QueueUnavailable
from cloudsched.local.data_folder import SOCKET_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

log: Final = own_logger(__name__)

_MAX_PATH: Final = 100
"""The longest path of a socket: systems accept 104 bytes, some a few more."""
_SEND_SECONDS: Final = 1.0
"""How long the process that runs the tasks may take to accept a dispatch, in seconds."""
_LISTEN_SECONDS: Final = 1.0
"""How long the thread listens before it checks whether to stop, in seconds."""
_STOP: Final = b"stop"


class HandOverDispatcher:
    """A `Dispatcher` that queues what this process runs, and hands over what another process does."""

    def __init__(self, folder: Path, queue: Dispatcher) -> None:
        self._folder = folder
        self._queue = queue
        self._runner: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether this process runs the tasks. One that it has forked does not."""
        return self._runner == os.getpid()

    @is_running.setter
    def is_running(self, value: bool) -> None:
        self._runner = os.getpid() if value else None

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch, or hand it over.

        If nobody runs the tasks now, the next who does finds it in the store.
        """
        if self.is_running:
            self._queue.create(message)
            return

        fields = {
            "name": message.name,
            "at": message.at.isoformat(),
            "priority": message.priority.value,
            "body": message.body.decode(),
        }
        data = json.dumps(fields).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_SEND_SECONDS)
            try:
                with _SocketPath(self._folder) as path:
                    sender.sendto(data, path)
            except (FileNotFoundError, ConnectionRefusedError):
                return
            except OSError as error:
                raise QueueUnavailable("The process that runs this folder's tasks", str(error)) from error

    def close(self) -> None:
        """Close this process's queue."""
        self._queue.close()


class HandOverListener:
    """Takes what other processes hand over, in a thread of its own."""

    def __init__(self, folder: Path, accept: Callable[[str, bytes, datetime, Priority], None]) -> None:
        self._folder = folder
        self._accept = accept
        self._thread: ServiceThread | None = None

    def start(self) -> None:
        """Listen. Raises Misconfigured if the folder's path is too long for a socket, or allows none."""
        found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            with suppress(FileNotFoundError):  # of a process that was killed
                (self._folder / SOCKET_NAME).unlink()
            with _SocketPath(self._folder) as path:
                found.bind(path)
            (self._folder / SOCKET_NAME).chmod(0o600)
        except OSError as error:
            found.close()
            raise Misconfigured(f"No socket can be made in {self._folder}: {error}. Name another folder.") from error
        found.settimeout(_LISTEN_SECONDS)
        self._thread = ServiceThread("cloudsched-hand-over", partial(self._take, found), at_end=found.close)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening. The next process finds in the store what is handed over from now on."""
        if self._thread is None:
            return
        self._thread.stop()
        self._thread = None
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
            _SocketPath(self._folder) as path,
        ):
            sender.settimeout(_SEND_SECONDS)
            sender.sendto(_STOP, path)
        with suppress(OSError):
            (self._folder / SOCKET_NAME).unlink()

    def _take(self, found: socket.socket) -> float | None:
        """Take one dispatch. The sweep resends it if this fails."""
        try:
            data = found.recv(1 << 18)
        except TimeoutError:
            return 0.0
        if data == _STOP:
            return None
        try:
            fields: dict[str, Any] = json.loads(data)
            at = datetime.fromisoformat(fields["at"])
            self._accept(fields["name"], fields["body"].encode(), at, Priority(fields["priority"]))
        except (CloudschedError, ValueError, KeyError, TypeError) as error:
            log.warning("a dispatch that was handed over is ignored: %s", error)
        return 0.0


class _SocketPath:
    """A context with the path of a folder's socket, as short as a system accepts it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def __enter__(self) -> str:
        path = str(self._folder / SOCKET_NAME)
        if len(os.fsencode(path)) <= _MAX_PATH or not Path("/proc/self/fd").is_dir():
            return path
        self._descriptor = os.open(self._folder, os.O_RDONLY)
        return f"/proc/self/fd/{self._descriptor}/{SOCKET_NAME}"

    def __exit__(self, *_error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
