"""Which web pages may call the API (CORS; Fetch standard, section 3.2): none, unless their origin is listed.

A request that a browser sends for a page of another origin carries that ``Origin``, and is refused unless the origin is
listed, even if a browser would send it without a preflight. So no page can use the open API of a developer's machine.
Credentials mode is not allowed: callers authenticate by headers, and there are no cookies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

from cloudsched.domain.local_requests import is_same_origin
from cloudsched.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Sequence

    from werkzeug.wrappers import Request

_METHODS = "GET, POST, PUT, PATCH, DELETE"
_HEADERS = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Api-Key, traceparent"
_EXPOSED_HEADERS = "ETag, Location, Retry-After"
_MAX_AGE_SECONDS = 600


def respond_to_preflight(request: Request, origins: Sequence[str]) -> Response | None:
    """Return the response to a preflight request; None if the request is not one."""
    if request.method != "OPTIONS" or "Access-Control-Request-Method" not in request.headers:
        return None
    require_allowed_origin(request, origins)
    headers = {
        "Access-Control-Allow-Methods": _METHODS,
        "Access-Control-Allow-Headers": _HEADERS,
        "Access-Control-Max-Age": str(_MAX_AGE_SECONDS),
    }
    return Response(status=204, headers=headers)


def require_allowed_origin(request: Request, origins: Sequence[str]) -> None:
    """Check that a request comes from no page, from a page of this host, or from a listed origin.

    Raises:
        Forbidden: It comes from a page of another origin.
    """
    origin = request.headers.get("Origin")
    if origin is None or _is_listed(origin, origins) or is_same_origin(origin, request.host):
        return
    raise Forbidden("Pages of this origin may not call the API; its operator lists those that may.")


def add_headers(request: Request, response: Response, origins: Sequence[str]) -> None:
    """Add the headers that let a listed page read the response."""
    if not origins:
        return
    response.headers.add("Vary", "Origin")
    origin = request.headers.get("Origin")
    if origin is not None and _is_listed(origin, origins):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = _EXPOSED_HEADERS


def _is_listed(origin: str, origins: Sequence[str]) -> bool:
    return origin in origins or "*" in origins
