"""Which HTTP requests are answered: none that a page elsewhere makes a browser send, and control only with its key.

A page anywhere can make its reader's browser send requests to this machine. It cannot read the answers, but a request
that moves the clock or creates a task has done its work by then; and under a name that the page's owner lets point to
this machine (DNS rebinding), it can read them as well.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cloudsched.emulator.http.rest import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_PUBLIC: Final = frozenset({"/healthz", "/oauth2/v3/certs", "/oauth2/v1/certs"})
"""What needs no key: a probe, and the public keys of tokens."""
_NOT_FROM_PAGES: Final = "A page of another site may not change anything here."


class Gate:
    """Refuses requests.

    Args:
        host: The address that the server listens on.
        key: What the control API requires as ``X-Api-Key`` or as a bearer token; empty for nothing.
    """

    def __init__(self, host: str, key: str = "") -> None:
        self._host = host.lower()
        self._key = key

    def find_refusal(self, method: str, headers: Mapping[str, str]) -> Reply | None:
        """Return the answer to a request that a page elsewhere may have caused; None if it is welcome.

        A server on a loopback address is called by an address or as localhost, and by no other name. On any other
        address a program may use what name it likes, and a browser may not.
        """
        name = _read_name(headers.get("Host", ""))
        is_from_browser = "Origin" in headers or "Sec-Fetch-Site" in headers
        if not self._is_own(name) and (is_from_browser or _is_loopback(self._host)):
            return _refuse(403, f"This server does not answer to the name {name!r}: call it by its address.")
        if method in _SAFE_METHODS:
            return None
        site = headers.get("Sec-Fetch-Site")
        if site is not None:
            return None if site == "same-origin" else _refuse(403, _NOT_FROM_PAGES)
        origin = headers.get("Origin")
        if origin is not None and _read_netloc(origin) != headers.get("Host", "").lower():
            return _refuse(403, _NOT_FROM_PAGES)
        return None

    def check_key(self, path: str, headers: Mapping[str, str]) -> Reply | None:
        """Return the answer to a request for the control API without its key; None if it has it, or needs none."""
        if not self._key or path in _PUBLIC:
            return None
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        given = headers.get("X-Api-Key") or (token.strip() if scheme.lower() == "bearer" else "")
        if hmac.compare_digest(given.encode(errors="surrogateescape"), self._key.encode()):
            return None
        return _refuse(401, "The control API requires its key, as X-Api-Key or as a bearer token.")

    def _is_own(self, name: str) -> bool:
        if name in {"", "localhost", self._host} or name.endswith(".localhost"):
            return True
        return _is_address(name)


def _refuse(status: int, message: str) -> Reply:
    return Reply(status, {"error": {"code": status, "message": message}})


def _read_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host


def _read_netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host.partition("%")[0]).is_loopback)
