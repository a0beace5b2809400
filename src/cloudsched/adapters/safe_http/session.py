"""The sessions of `cloudsched.adapters.safe_http`, made by `requests` and `urllib3`."""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
)

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_REDIRECTS = 5
_LIFETIME = "cloudsched_lifetime"
"""The attribute of a response with the lifetime of its connection."""


class RequestLimits:
    """The longest time of requests, and the most that is read of their answers.

    Attributes:
        max_bytes: The most bytes of an answer, as received and as unpacked. None for no limit.
    """

    def __init__(
        self, max_seconds: float | None = None, max_bytes: int | None = None, *, for_one_call: bool = False
    ) -> None:
        self.max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._for_one_call = for_one_call
        self._end: float | None = None

    def left(self) -> float | None:
        """Return the seconds for a request that begins now, 0 if it may not begin, None for no limit."""
        if self._max_seconds is None or not self._for_one_call:
            return self._max_seconds
        if self._end is None:
            self._end = time.monotonic() + self._max_seconds
        return max(self._end - time.monotonic(), 0)


def build_session(reachable: Iterable[str], limits: RequestLimits) -> requests.Session:
    """Return the session that `cloudsched.adapters.safe_http.make_session` describes."""
    networks = [ip_network(network) for network in reachable]

    def is_allowed(address: Address) -> bool:
        return is_public(address) or any(address in network for network in networks)

    session = requests.Session()
    session.trust_env = False
    session.max_redirects = MAX_REDIRECTS
    session.mount("http://", _DirectAdapter(is_allowed, limits))
    session.mount("https://", _DirectAdapter(is_allowed, limits))
    return session


def mount_limits(session: requests.Session, limits: RequestLimits) -> requests.Session:
    """Return a session with limits, which may reach every address."""
    session.mount("http://", _Adapter(_allow_all, limits))
    session.mount("https://", _Adapter(_allow_all, limits))
    return session


def _allow_all(_: Address) -> bool:
    return True


class _Adapter(HTTPAdapter):
    """Opens connections to allowed addresses only, and keeps the limits of each request."""

    def __init__(self, is_allowed: Callable[[Address], bool], limits: RequestLimits) -> None:
        self._is_allowed = is_allowed
        self._limits = limits
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Make the connection pools. The constructor calls it, and so does unpickling an adapter."""
        is_allowed = self._is_allowed
        limits = self._limits

        class Plain(HTTPConnection):
            lifetime: _Lifetime | None = None

            def _new_conn(self) -> socket.socket:
                opened, self.lifetime = _connect(self, is_allowed, limits)
                return opened

            def request(self, *arguments: Any, **named: Any) -> None:
                if self.lifetime is not None:  # the connection is there from an earlier request
                    self.lifetime.start(limits.left())
                super().request(*arguments, **named)

            def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in urllib3's own class
                # A last answer closes this, and has yet to be read.
                lifetime = self.lifetime
                self.lifetime = None
                try:
                    response = super().getresponse()
                except BaseException:
                    self.lifetime = lifetime
                    raise
                is_last = self.sock is None
                self.lifetime = None if is_last else lifetime
                if lifetime is not None:
                    vars(response)[_LIFETIME] = lifetime, is_last
                    if lifetime.is_over:  # headers that are cut off look like the last ones
                        response.close()
                        lifetime.end()
                        raise TimeoutError("the answer took too long")
                return response

            def close(self) -> None:
                super().close()
                ended = self.lifetime
                self.lifetime = None
                if ended is not None:
                    ended.end()

        class Secure(Plain, HTTPSConnection):
            """The same, with TLS."""

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager = PoolManager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:  # noqa: ANN401 - as in requests
        response = super().build_response(req, resp)
        response.raw = _LimitedBody(resp, self._limits.max_bytes)
        return response


class _DirectAdapter(_Adapter):
    def proxy_manager_for(self, proxy: str, **_named: Any) -> NoReturn:  # noqa: ARG002 - the signature of requests
        """Refuse a proxy: its connections cannot be checked here."""
        raise InvalidInput("proxies", "names a proxy", "Requests for users are sent directly: leave it out.")


class _LimitedBody:
    """The body of an answer, with limits of the bytes received and unpacked. None is no limit."""

    def __init__(self, raw: HTTPResponse, max_bytes: int | None) -> None:
        self._raw = raw
        self._max_bytes = max_bytes
        self._lifetime, self._is_last = vars(raw).get(_LIFETIME, (None, False))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the body has
        return getattr(self._raw, name)

    def stream(self, amt: int = 65_536, decode_content: bool | None = None) -> Iterator[bytes]:  # noqa: FBT001 - urllib3's
        """Yield the body in pieces.

        Raise urllib3's errors once it is too long, packed twice, or takes too long.
        """
        packings = [each for each in self._raw.headers.get("Content-Encoding", "").split(",") if each.strip()]
        if self._max_bytes is None:
            limit = sys.maxsize
        else:
            limit = self._max_bytes
        if len(packings) > 1 and self._max_bytes is not None:
            raise DecodeError("it was packed more than once")
        unpacked = 0
        try:
            for part in self._raw.stream(min(amt, 65_536), decode_content):
                unpacked += len(part)
                if max(unpacked, self._raw.tell()) > limit:
                    raise DecodeError(f"it is longer than {limit} bytes")
                yield part
            if self._lifetime is not None and self._lifetime.is_over:
                raise ProtocolError("the answer took too long")
        finally:
            self._end_last()

    def close(self) -> None:
        """Close the body, and end what is left of its connection if that is not used again."""
        self._raw.close()
        self._end_last()

    def _end_last(self) -> None:
        if self._lifetime is not None and self._is_last:
            self._lifetime.end()


class _Lifetime:
    """Ends a connection after some time, whatever it is waiting for then: a handshake, a header or a body.

    It has a descriptor of its own, because TLS takes over that of the socket.
    """

    def __init__(self, connected: socket.socket, seconds: float) -> None:
        self._socket = connected.dup()
        self._timer: threading.Timer | None = None
        self.is_over = False
        """True if the connection was ended while it was in use, or since."""
        self.start(seconds)

    def start(self, seconds: float | None) -> None:
        """Extend the connection's lifetime from now on, for one more request."""
        if self._timer is not None:
            self._timer.cancel()
        if seconds is not None:
            self._timer = threading.Timer(max(seconds, 0), self._shut_down)
            self._timer.daemon = True
            self._timer.start()

    def _shut_down(self) -> None:
        self.is_over = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._socket.close()


def _connect(
    connection: HTTPConnection, is_allowed: Callable[[Address], bool], limits: RequestLimits
) -> tuple[socket.socket, _Lifetime | None]:
    begin = time.monotonic()
    host = connection.host.strip("[]")
    max_seconds = limits.left()

    if max_seconds == 0:
        raise ConnectTimeoutError(connection, f"there was no time left for {host}")

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
    if not isinstance(timeout, int | float):
        return None
    return float(timeout)


Address: TypeAlias = IPv4Address | IPv6Address

_GLOBAL_UNICAST: Final = ip_network("2000::/3")
"""The only part of IPv6 that is assigned for global unicast (iana.org/assignments/ipv6-address-space).
Everything outside of it is refused: loopback, ``fc00::/7``, ``fe80::/10``, the deprecated site-local
``fec0::/10``, multicast, NAT64 (``64:ff9b::/96``), and whatever is assigned there in the future."""

_SPECIAL_IPV4_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared address space of carriers
        "127.0.0.0/8",  # loopback
        # Not IANA's: Azure's host (learn.microsoft.com, "What is IP address 168.63.129.16?").
        "168.63.129.16/32",
        "169.254.0.0/16",  # link-local: metadata servers
        "172.16.0.0/12",  # private
        # IETF protocol assignments, with the two anycast addresses that are globally reachable.
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # deprecated 6to4 relay anycast
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast (iana.org/assignments/ipv4-address-space)
        "240.0.0.0/4",  # reserved, with the limited broadcast address
    )
)
_SPECIAL_IPV6_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        # IETF protocol assignments: Teredo, benchmarking, ORCHID, and the anycast services among them.
        "2001::/23",
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address that cannot be seen behind it
        "3fff::/20",  # documentation
    )
)
"""The blocks that are not globally reachable, from the IANA special-purpose address registries
(iana.org/assignments/iana-ipv4-special-registry, iana.org/assignments/iana-ipv6-special-registry), read in
November 2026, the IPv6 one as updated on 2025-10-09. It omits IPv6 blocks outside of `_GLOBAL_UNICAST`.
The table is our own because the answer of ``ipaddress.is_global`` changes with Python's patch release
(github.com/python/cpython/issues/ 113171)."""


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet and is reachable from everywhere alike."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4_NETWORKS)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_IPV6_NETWORKS)
