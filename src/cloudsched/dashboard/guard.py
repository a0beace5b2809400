"""Which requests are answered at all, and the headers of every answer.

A local server has no login of its own, so a page elsewhere must not reach it through the browser: a name that was
rebound to this machine (`Host`) and a form of another site (`Origin`) are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


def find_refusal(request: Request, hosts: frozenset[str] | None) -> str | None:
    """Return why a request is refused; None if it is not.

    Args:
        request: The request.
        hosts: The names by which this server may be called; None for any, behind a proxy that checks them.
    """
    if hosts is not None and _host_name(request.host) not in hosts:
        return f"This server is local: it does not answer to the name {_host_name(request.host)!r}."
    if request.method in _SAFE_METHODS:
        return None
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return None if site == "same-origin" else "A form of another site cannot change anything here."
    origin = request.headers.get("Origin", "")
    if not origin or urlsplit(origin).netloc != request.host:
        return "A request that changes something needs this page's own Origin."
    return None


def protect(response: Response) -> Response:
    """Give an answer the headers that keep browsers strict."""
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
