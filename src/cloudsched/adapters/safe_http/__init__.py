"""Fetch URLs that users name, without letting them reach what only this process can reach (SSRF).

A handler runs inside a network. Beside it are a metadata server that gives out credentials
(cloud.google.com/compute/docs/metadata/overview), other people's services, and this machine itself. So a URL
from a user may lead to public addresses only. The check is made when a connection is opened, on the address
that it is opened to:

* A name is resolved once, and the address that was checked is the one that is connected to, so DNS rebinding
  (a name that changes its address between check and connection) gains nothing.
* All addresses of a name must be public.
* A redirect opens a connection like any other.
* A session may limit the time of a request, and the bytes that are received and unpacked. A server that sends
  a byte now and then is cut off like a silent one.
* The spelling of an address (decimal, octal, IPv4 within IPv6) does not matter, since the text is not what is
  checked.
* No proxy is used: those of the environment (``HTTP_PROXY``) and passwords from ``.netrc`` are ignored, and a
  request that names one is refused, because a proxy connects to any address it is given.

Importing this is cheap: `requests` is imported when the first session is made, because a handler's module is
imported by every process, and most of them fetch nothing.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cloudsched.adapters.safe_http.session import is_public
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    import requests

__all__ = ["is_public", "limit_session", "make_session", "require_reachable_url"]


def make_session(
    reachable: Iterable[str] = (),
    *,
    max_seconds: float | None = None,
    max_bytes: int | None = None,
    for_one_call: bool = False,
) -> requests.Session:
    """Return a session that connects to public addresses and to these networks only.

    A request to any other address, or through a proxy, raises InvalidInput before anything is sent. The
    lookup of a host's name counts for `max_seconds`, but cannot be interrupted. `max_bytes` holds for an
    answer as received and as unpacked. More of them is a `requests.exceptions.ContentDecodingError`. With
    `for_one_call`, the seconds are for all requests of the session together, with those after redirects.
    """
    from cloudsched.adapters.safe_http.session import RequestLimits, build_session  # noqa: PLC0415 - see the module's docstring

    return build_session(reachable, RequestLimits(max_seconds, max_bytes, for_one_call=for_one_call))


def limit_session(session: requests.Session, *, max_seconds: float, max_bytes: int) -> requests.Session:
    """Limit the time of each request and the size of each answer, in a session that may reach every address.

    It is for addresses that the operator gives, such as a model's: a server that sends a byte now and then,
    or without an end, is cut off there as well.
    """
    from cloudsched.adapters.safe_http.session import RequestLimits, mount_limits  # noqa: PLC0415 - see the module's docstring

    return mount_limits(session, RequestLimits(max_seconds, max_bytes))


def require_reachable_url(url: str, reachable: Iterable[str] = (), *, allows_http: bool = False) -> None:
    """Check a URL before any connection: its form, and the address if it has one in place of a name.

    For development, `allows_http` allows this machine, and URLs without TLS.
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
