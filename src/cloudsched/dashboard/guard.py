"""The checks of every request, and the headers of every response.

A local server has no login of its own, so a page elsewhere must not reach it through the browser. So a name that was
rebound to this machine (`Host`) and a form of another site (`Origin`) are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.static_files import compress
from cloudsched.domain.local_requests import (
    find_detour,
    find_foreign_name,
    find_foreign_page,
    is_loopback,
    read_host_name,
)

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

LOCAL_HOSTS: Final = frozenset({"localhost"})
"""The names of this machine: every name and address that can mean no other. See `cloudsched.domain.local_requests`."""
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    **dict.fromkeys(("Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"), "same-origin"),
}


def find_refusal(request: Request, hosts: frozenset[str] | None, *, has_sign_in: bool = False) -> str | None:
    """Return the reason why a request is refused. None if it is not.

    With no `hosts`, a proxy checks them. If nobody signs in, a local server answers to its own machine only.
    """
    refusal = None
    if hosts == LOCAL_HOSTS:
        refusal = find_foreign_name(request.host)
        if not has_sign_in:
            refusal = refusal or _find_elsewhere(request)
    elif hosts is not None and read_host_name(request.host) not in hosts:
        refusal = f"This server does not answer to the name {read_host_name(request.host)!r}."
    return refusal or find_foreign_page(request.method, dict(request.headers), needs_origin=True)


def finish(request: Request, response: Response) -> Response:
    """Give a response the headers that keep browsers strict, and compress it."""
    response.headers.update(_HEADERS)
    return compress(request, response)


def _find_elsewhere(request: Request) -> str | None:
    if request.remote_addr and not is_loopback(request.remote_addr):
        return "This server is local: it answers only to its own machine."
    return find_detour(request.headers.keys())
