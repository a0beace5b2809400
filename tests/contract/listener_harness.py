"""What the tests of listeners share: a counter of notifications, and a connection to Firestore that can be cut."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self

from tests.engine.harness import HOUR
from tests.harness import WAIT_SECONDS

from cloudsched.engine.ports.listener import Listener

LATE = HOUR
"""How long the waits are that it need not wait for: longer than any test may take."""


class NotificationCounter:
    def __init__(self) -> None:
        self.notifications = 0
        self._changed = threading.Condition()

    def notify(self) -> None:
        with self._changed:
            self.notifications += 1
            self._changed.notify_all()

    def wait(self, rings: int = 1) -> None:
        """Wait for this many notifications, and count from zero again."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.notifications >= rings, WAIT_SECONDS), (
                f"{self.notifications} of {rings} rings"
            )
            self.notifications = 0


@contextmanager
def open_listener(listener: Listener, lanes: Sequence[str], owner: str | None = None) -> Iterator[NotificationCounter]:
    """Start to listen, and return once the listener does."""
    bell = NotificationCounter()
    with listener.listen(lanes, owner, bell.notify):
        bell.wait()
        yield bell


class Proxy:
    """A proxy to an address, in this process, whose connections can be cut."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._target = host, int(port)
        self._entrance = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._entrance.getsockname()[1]}"
        self.is_passable = True
        self.refused = 0
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._entrance.shutdown(socket.SHUT_RDWR)
        self._entrance.close()
        self.cut()
        self._thread.join()

    def cut(self) -> None:
        """Close every connection."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        pumps = []
        with suppress(OSError):  # the entrance is closed
            while True:
                near, _ = self._entrance.accept()
                if not self.is_passable:
                    self.refused += 1
                    near.close()
                    continue
                pumps.append(threading.Thread(target=self._pump, args=(near,), daemon=True))
                pumps[-1].start()
        for pump in pumps:
            pump.join()

    def _pump(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._target) as far:
            self._open |= {near, far}
            with suppress(OSError):
                while True:
                    for ready in select.select([near, far], [], [])[0]:
                        data = ready.recv(65536)
                        if not data:
                            self._open -= {near, far}
                            return
                        (far if ready is near else near).sendall(data)
            self._open -= {near, far}
