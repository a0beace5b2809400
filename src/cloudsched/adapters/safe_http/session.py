"""The sessions of `cloudsched.adapters.safe_http`, made by `requests` and `urllib3`."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, NoReturn

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from cloudsched.adapters.safe_http.addresses import is_public
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cloudsched.adapters.safe_http.addresses import Address

MAX_REDIRECTS = 5


def build_session(reachable: Iterable[str], max_seconds: float | None) -> requests.Session:
    """Return the session that `cloudsched.adapters.safe_http.make_session` describes."""
    networks = [ip_network(network) for network in reachable]

    def is_allowed(address: Address) -> bool:
        return is_public(address) or any(address in network for network in networks)

    session = requests.Session()
    session.trust_env = False
    session.max_redirects = MAX_REDIRECTS
    session.mount("http://", _Adapter(is_allowed, max_seconds))
    session.mount("https://", _Adapter(is_allowed, max_seconds))
    return session


class _Adapter(HTTPAdapter):
    """Opens connections to allowed addresses only."""

    def __init__(self, is_allowed: Callable[[Address], bool], max_seconds: float | None) -> None:
        self._is_allowed = is_allowed
        self._max_seconds = max_seconds
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Make the connection pools; called by the constructor, and when an adapter is unpickled."""
        is_allowed, max_seconds = self._is_allowed, self._max_seconds

        class Plain(HTTPConnection):
            lifetime: _Lifetime | None = None

            def _new_conn(self) -> socket.socket:
                opened, self.lifetime = _connect(self, is_allowed, max_seconds)
                return opened

            def close(self) -> None:
                super().close()
                _end(self.lifetime)

        class Secure(Plain, HTTPSConnection):
            """The same, with TLS."""

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager = PoolManager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def proxy_manager_for(self, proxy: str, **_named: Any) -> NoReturn:  # noqa: ARG002 - the signature of requests
        """Refuse a proxy: its connections cannot be checked here.

        Raises:
            InvalidInput: Always.
        """
        raise InvalidInput("proxies", "names a proxy", "Requests for users are sent directly: leave it out.")


class _Lifetime:
    """Ends a connection after some time, whatever it is waiting for then: a handshake, a header or a body.

    It has a descriptor of its own, because TLS takes over that of the socket.
    """

    def __init__(self, connected: socket.socket, seconds: float) -> None:
        self._socket = connected.dup()
        self._timer = threading.Timer(max(seconds, 0), self._shut_down)
        self._timer.daemon = True
        self._timer.start()

    def _shut_down(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Forget the connection, which is closed."""
        self._timer.cancel()
        self._socket.close()


def _end(lifetime: _Lifetime | None) -> None:
    if lifetime is not None:
        lifetime.end()


def _connect(
    connection: HTTPConnection, is_allowed: Callable[[Address], bool], max_seconds: float | None
) -> tuple[socket.socket, _Lifetime | None]:
    """Resolve a host, check all its addresses, and connect to one of them."""
    begin, host = time.monotonic(), connection.host.strip("[]")

    def left() -> float | None:
        waits = _timeout_seconds(connection)
        if max_seconds is None:
            return waits
        rest = max(max_seconds - (time.monotonic() - begin), 0.001)
        return rest if waits is None else min(rest, waits)

    try:
        resolved = socket.getaddrinfo(host, connection.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NameResolutionError(host, connection, socket.gaierror(str(error))) from error
    addresses = [str(info[4][0]) for info in resolved]
    if not all(is_allowed(ip_address(each.partition("%")[0])) for each in addresses):
        hint = "Give an address of the public internet. CLOUDSCHED_REACHABLE lets the operator allow others."
        raise InvalidInput("url", f"leads {host!r} to an address that may not be reached from here", hint)
    failure: OSError | None = None
    for each in addresses:
        try:
            opened = socket.create_connection((each, connection.port), left())
        except TimeoutError as error:
            raise ConnectTimeoutError(connection, f"{host} did not answer in time") from error
        except OSError as error:
            failure = error
        else:
            opened.settimeout(_timeout_seconds(connection))
            passed = time.monotonic() - begin
            return opened, None if max_seconds is None else _Lifetime(opened, max_seconds - passed)
    raise NewConnectionError(connection, f"{host} cannot be reached: {failure}") from failure


def _timeout_seconds(connection: HTTPConnection) -> float | None:
    timeout = connection.timeout
    return float(timeout) if isinstance(timeout, int | float) else None
