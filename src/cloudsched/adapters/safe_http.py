"""Fetching what users name by URL, without being turned against what only this process can reach.

A handler runs inside a network: beside it are a metadata server that gives out credentials
(cloud.google.com/compute/docs/metadata/overview), other people's services, and this very machine. So a URL from a user
may lead to public addresses only. The check is made where a connection is opened, on the address that it is opened to:

* a name is resolved once, and what was checked is what is connected to, so a name that changes its address in between
  (DNS rebinding) gains nothing;
* a name with several addresses needs all of them to be public;
* a redirect opens a connection like any other;
* no spelling of an address (decimal, octal, IPv4 within IPv6) matters, since it is not the text that is looked at;
* proxies and passwords of the environment (``HTTP_PROXY``, ``.netrc``) are not used.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final

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
_IPV4_EMBEDDING_NETWORKS: Final = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))
"""IPv6 networks whose addresses stand for IPv4 ones (NAT64, 6to4, Teredo): where they lead is not to be seen."""


def make_session(reachable: Iterable[str] = ()) -> requests.Session:
    """Return a session that reaches public addresses, and these networks besides.

    What it may not reach raises InvalidInput, before anything is sent.

    Args:
        reachable: Networks that are not public and may be reached all the same, such as ``10.1.0.0/16``.
    """
    networks = [ip_network(network) for network in reachable]

    def is_allowed(address: Address) -> bool:
        return is_public(address) or any(address in network for network in networks)

    made = requests.Session()
    made.trust_env = False
    made.max_redirects = MAX_REDIRECTS
    made.mount("http://", _Adapter(is_allowed))
    made.mount("https://", _Adapter(is_allowed))
    return made


def is_public(address: Address) -> bool:
    """Return whether an address is one of the public internet, reachable from everywhere alike."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if any(address in network for network in _IPV4_EMBEDDING_NETWORKS):
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


class _Adapter(HTTPAdapter):
    """Opens connections to allowed addresses only."""

    def __init__(self, is_allowed: Callable[[Address], bool]) -> None:
        self._is_allowed = is_allowed
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Make the pools; called by the constructor, and when an adapter is unpickled."""
        is_allowed = self._is_allowed

        class Plain(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return _connect(self, is_allowed)

        class Secure(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return _connect(self, is_allowed)

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager = PoolManager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}


def _connect(connection: HTTPConnection, is_allowed: Callable[[Address], bool]) -> socket.socket:
    """Resolve a host, check where it leads, and connect there."""
    host = connection.host.strip("[]")
    try:
        found = socket.getaddrinfo(host, connection.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NameResolutionError(host, connection, socket.gaierror(str(error))) from error
    places = [str(info[4][0]) for info in found]
    if not all(is_allowed(ip_address(place.partition("%")[0])) for place in places):
        hint = "Give an address of the public internet. CLOUDSCHED_REACHABLE lets the operator allow others."
        raise InvalidInput("url", f"leads {host!r} to an address that may not be reached from here", hint)
    failure: OSError | None = None
    for place in places:
        try:
            return socket.create_connection((place, connection.port), _timeout_seconds(connection))
        except TimeoutError as error:
            raise ConnectTimeoutError(connection, f"{host} did not answer in time") from error
        except OSError as error:
            failure = error
    raise NewConnectionError(connection, f"{host} cannot be reached: {failure}") from failure


def _timeout_seconds(connection: HTTPConnection) -> float | None:
    timeout = connection.timeout
    return float(timeout) if isinstance(timeout, int | float) else None
