"""The check that a request comes from this machine, for the open API, its pages and the emulator.

A browser on this machine sends requests for pages from anywhere, and a proxy on it for people anywhere. So
the address of the peer is not enough:

* The name in ``Host`` must mean this machine. The owner of a name can let it point here for the browser of
  somebody who reads their page (DNS rebinding), but not with ``localhost`` or an address.
* No header may say that the request was forwarded. `find_forwarding_header` has a rule for their names, not a
  list, for no list is ever whole. A proxy that adds nothing cannot be recognized.
* A request that changes something must not come from a page of another origin.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_VENDORS: Final = (
    *(
        "akamai-",
        "cdn-",
        "cf-",
        "do-connecting-",
        "fastly-",
        "fly-",
        "ngrok-",
        "surrogate-",
        "tailscale-",
        "wl-",
    ),
    *(
        "x-akamai-",
        "x-amz-cf-",
        "x-amzn-",
        "x-appengine-",
        "x-arr-",
        "x-auth-request-",
        "x-azure-",
        "x-cloud-trace-",
    ),
    *(
        "x-coming-from",
        "x-envoy-",
        "x-goog-authenticated-",
        "x-goog-iap-",
        "x-google-",
        "x-nf-",
        "x-request-start",
    ),
    *("x-rewrite-", "x-scheme", "x-varnish", "x-vercel-"),
)
"""The first parts of the headers that the proxies of one maker add, such as ``CF-Ray`` and ``Fly-Region``."""
_WORDS: Final = re.compile(
    r"(?:^|-)(?:via|forward(?:ed)?|(?:un)?prox(?:y|ied)|original-(?:host|url|uri|proto|scheme)"
    r"|(?:client|real|remote|peer|user|socket|connecting|source|origin)?-?(?:ip(?:v?[46])?|ipaddress|addr|address)"
    r"|(?:client|remote|ssl|tls)-?cert|(?:client|real|remote|peer|source)-?port)(?:-|$)|-host(?:-|$)"
)
"""The words in a header's name by which a proxy says from whom, for whom or through what a request came."""


def is_loopback(host: str | None) -> bool:
    """Return whether a host is this machine: ``localhost`` or a loopback address of either family."""
    if host == "localhost":
        return True
    try:
        address = ip_address((host or "").partition("%")[0])
    except ValueError:
        return False
    mapped = None
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
    return (mapped or address).is_loopback


def is_local_name(name: str) -> bool:
    """Return whether a name in ``Host`` can only mean this machine: a loopback host or a ``localhost`` name.

    Browsers send the latter nowhere else (RFC 6761, section 6.3).
    """
    name = name.removesuffix(".")
    return is_loopback(name) or name.endswith(".localhost")


def read_host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without its port and in lower case, or "" if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether an ``Origin`` names the host that the request was sent to."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def find_foreign_name(host: str) -> str | None:
    """Return why a request is refused for the name in its ``Host``, or None if that is one of this machine's.

    A request without the header comes from no browser.
    """
    name = read_host_name(host)
    if not host or is_local_name(name):
        return None
    return (
        f"This server is local: it does not answer to the name {name[:200]!r}. Call it as localhost, with its port, on "
        "the machine that it runs on."
    )


def find_forwarding_header(names: Iterable[str]) -> str | None:
    """Return the first header that shows that a proxy forwarded the request, or None if there is none."""
    lowered = ((name, name.lower()) for name in names)
    return next((name for name, low in lowered if low.startswith(_VENDORS) or _WORDS.search(low)), None)


def find_detour(names: Iterable[str]) -> str | None:
    """Return why a request with these headers is refused, because a proxy forwarded it.

    None if none says so.
    """
    header = find_forwarding_header(names)
    if header is None:
        return None
    return (
        f"This server needs no credentials, so it answers only to its own machine, and the header {header[:100]!r} "
        "says that a proxy forwarded this request. Call it directly, as http://localhost with its port. Behind a "
        "proxy, such as Cloud Shell's, let it require keys: `cloudsched admin keys new`, and CLOUDSCHED_API_KEYS."
    )


def find_foreign_page(method: str, headers: Mapping[str, str], *, needs_origin: bool = False) -> str | None:
    """Return why a request is refused that a page of another origin may have sent, or None if it is not.

    One that changes nothing is not refused: the page cannot read the answer. `needs_origin` says that only
    browsers are served, which name the page's origin in every request that changes something.
    """
    site = headers.get("Sec-Fetch-Site")
    if method in _SAFE_METHODS or site == "same-origin":
        return None
    if site is not None:
        return "A page of another site may not change anything here."

    origin = headers.get("Origin")
    if origin is None and needs_origin:
        return "A request that changes something needs this page's own Origin."
    if origin is None or is_same_origin(origin, headers.get("Host", "")):
        return None
    return "A page of another site may not change anything here: the request's Origin is not this page's own."
