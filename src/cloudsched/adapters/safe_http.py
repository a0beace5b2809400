"""Fetch URLs that users name, without letting them reach what only this process can reach (SSRF).

A handler runs inside a network. Beside it are a metadata server that gives out credentials
(cloud.google.com/compute/docs/metadata/overview), other people's services, and this machine itself. So a URL from a
user may lead to public addresses only. The check is made when a connection is opened, on the address that it is opened
to:

* a name is resolved once, and the address that was checked is the one that is connected to, so DNS rebinding (a name
  that changes its address between check and connection) gains nothing;
* all addresses of a name must be public;
* a redirect opens a connection like any other;
* a session may limit how long a connection lasts: a server that sends a byte now and then is cut off like a silent one;
* the spelling of an address (decimal, octal, IPv4 within IPv6) does not matter, since the text is not what is checked;
* no proxy is used: those of the environment (``HTTP_PROXY``) and passwords from ``.netrc`` are ignored, and a request
  that names one is refused, because a proxy connects to any address it is given.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Address = IPv4Address | IPv6Address

MAX_REDIRECTS = 5

_GLOBAL_UNICAST: Final = ip_network("2000::/3")
"""The only part of IPv6 that is assigned for global unicast (iana.org/assignments/ipv6-address-space). Everything
outside of it is refused: loopback, ``fc00::/7``, ``fe80::/10``, the deprecated site-local ``fec0::/10``, multicast,
NAT64 (``64:ff9b::/96``), and whatever is assigned there in the future."""

_SPECIAL_IPV4_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared address space of carriers
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # not IANA's: Azure's host (learn.microsoft.com, "What is IP address 168.63.129.16?")
        "169.254.0.0/16",  # link-local: metadata servers
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocol assignments, with the two anycast addresses that are globally reachable
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
        "2001::/23",  # IETF protocol assignments: Teredo, benchmarking, ORCHID, and the anycast services among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address that cannot be seen behind it
        "3fff::/20",  # documentation
    )
)
"""The blocks that are not globally reachable, from the IANA special-purpose address registries
(iana.org/assignments/iana-ipv4-special-registry, iana.org/assignments/iana-ipv6-special-registry), read in November
2026, the IPv6 one as updated on 2025-10-09. IPv6 blocks outside of `_GLOBAL_UNICAST` are left out. The table is our own
because the answer of ``ipaddress.is_global`` changes with Python's patch release (github.com/python/cpython/issues/
113171)."""


def make_session(reachable: Iterable[str] = (), *, max_seconds: float | None = None) -> requests.Session:
    """Return a session that connects to public addresses and to these networks only.

    A request to any other address, or through a proxy, raises InvalidInput before anything is sent.

    Args:
        reachable: Networks that are not public but are allowed, such as ``10.1.0.0/16``.
        max_seconds: How long a connection may last, from the lookup of its host's name to the end of the last answer.
            The lookup itself cannot be interrupted; the resolver's own limit holds for it.
    """
    networks = [ip_network(network) for network in reachable]

    def is_allowed(address: Address) -> bool:
        return is_public(address) or any(address in network for network in networks)

    session = requests.Session()
    session.trust_env = False
    session.max_redirects = MAX_REDIRECTS
    session.mount("http://", _Adapter(is_allowed, max_seconds))
    session.mount("https://", _Adapter(is_allowed, max_seconds))
    return session


def require_reachable_url(url: str, reachable: Iterable[str] = (), *, allows_http: bool = False) -> None:
    """Check a URL as far as that is possible before a connection: its form, and an address in place of a name.

    Args:
        url: The URL.
        reachable: Networks that are not public but are allowed.
        allows_http: Whether it may lead to this machine, and without TLS: for development.

    Raises:
        InvalidInput: It cannot be reached from here, or may not be.
    """
    hint = "Give one as https://example.com/hook."
    try:
        parts = urlsplit(url)
        has_valid_port = parts.port != 0
    except ValueError:
        raise InvalidInput("webhook.url", "is not a URL", hint) from None
    if (
        parts.scheme not in ({"https", "http"} if allows_http else {"https"})
        or not parts.hostname
        or not has_valid_port
    ):
        raise InvalidInput("webhook.url", "is not an https URL", hint)
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("webhook.url", "contains a user or a password", hint)
    try:
        address = ip_address(parts.hostname.partition("%")[0])
    except ValueError:
        return  # a name: what it leads to is checked at each connection
    networks = [ip_network(network) for network in reachable]
    if not (allows_http or is_public(address) or any(address in network for network in networks)):
        hint = "Give an address of the public internet. CLOUDSCHED_REACHABLE lets the operator allow others."
        raise InvalidInput("webhook.url", "is an address that may not be reached from here", hint)


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet and is reachable from everywhere alike."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4_NETWORKS)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_IPV6_NETWORKS)


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

        class Secure(HTTPSConnection):
            lifetime: _Lifetime | None = None

            def _new_conn(self) -> socket.socket:
                opened, self.lifetime = _connect(self, is_allowed, max_seconds)
                return opened

            def close(self) -> None:
                super().close()
                _end(self.lifetime)

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
