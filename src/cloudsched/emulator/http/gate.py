"""Which HTTP requests are answered: none that a page elsewhere makes a browser send, and control only with its key.

A page anywhere can make its reader's browser send requests to this machine. It cannot read the answers, but a request
that moves the clock or creates a task has done its work by then; and under a name that the page's owner lets point to
this machine (DNS rebinding), it can read them as well.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from cloudsched.domain.local_requests import (
    find_detour,
    find_foreign_name,
    find_foreign_page,
    is_loopback,
    read_host_name,
)
from cloudsched.emulator.http.rest import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

_PUBLIC: Final = frozenset({"/healthz", "/oauth2/v3/certs", "/oauth2/v1/certs"})
"""What needs no key: a probe, and the public keys of tokens."""


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

        A server on a loopback address is called by a name of this machine, and by no proxy. On any other address a
        program may use what name it likes, and a browser an address or a name of this machine.
        """
        host = headers.get("Host", "")
        if is_loopback(self._host):
            refusal = find_foreign_name(host) or find_detour(headers)
        else:
            is_from_browser = "Origin" in headers or "Sec-Fetch-Site" in headers
            refusal = find_foreign_name(host) if is_from_browser and not self._is_own(read_host_name(host)) else None
        refusal = refusal or find_foreign_page(method, headers)
        return None if refusal is None else _refuse(403, refusal)

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
        return name == self._host or _is_address(name)


def _refuse(status: int, message: str) -> Reply:
    return Reply(status, {"error": {"code": status, "message": message}})


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
