"""A deadline for a complete response.

The timeout of `requests` applies to each read, so a response that sends a byte a second never reaches it.
Here the same number of seconds limits the whole response, from its first line to its last byte.
"""

from __future__ import annotations

import io
import time
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer
    from urllib3.poolmanager import PoolManager, ProxyManager


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket, with one timeout for everything that is read."""

    def __init__(self, sock: socket.socket) -> None:
        seconds = sock.gettimeout()
        self._socket = sock
        self._file = sock.makefile("rb", buffering=0)
        self._until = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the response does not end")
            self._socket.settimeout(left)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _DeadlineResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_DeadlineReader(sock))


class _Connection(HTTPConnection):
    response_class = _DeadlineResponse


class _SecureConnection(HTTPSConnection):
    response_class = _DeadlineResponse


class _ConnectionPool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecureConnectionPool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class DeadlineAdapter(HTTPAdapter):
    """A transport adapter that reads responses with a deadline."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Create the connection pool."""
        super().init_poolmanager(*arguments, **named)
        _set_pool_classes(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **named: Any) -> ProxyManager:
        """Return the connection pool for a proxy."""
        manager: ProxyManager = super().proxy_manager_for(proxy, **named)
        _set_pool_classes(manager)
        return manager


def _set_pool_classes(manager: PoolManager) -> None:
    manager.pool_classes_by_scheme = {"http": _ConnectionPool, "https": _SecureConnectionPool}
