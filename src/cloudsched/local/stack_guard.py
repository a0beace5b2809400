"""Check who may use the clock and the mailbox of the local stack, which are not part of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.local_requests import find_detour, find_foreign_name, find_foreign_page
from cloudsched.errors import Forbidden
from cloudsched.web.auth.authentication import KEY_PREFIX, authenticator_for
from cloudsched.web.auth.roles import Right, Role

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from cloudsched.config.settings import Settings


def require_caller(request: Request, settings: Settings, *, only_admins: str | None = None) -> None:
    """Check that a request comes from this machine and, if the stack has keys, from a caller of its API.

    `only_admins` says why only an admin may. A key may also come as a bearer token. Raises Forbidden,
    Unauthenticated, or whatever else the authenticator raises.
    """
    refusal = find_foreign_name(request.host) or find_foreign_page(request.method, dict(request.headers))
    if refusal is None and not settings.access.is_configured:
        refusal = find_detour(request.headers.keys())
    if refusal is not None:
        raise Forbidden(refusal)
    if not settings.access.is_configured:
        return

    bearer = getattr(request.authorization, "token", None) or ""
    if bearer.startswith(KEY_PREFIX):
        request.environ.setdefault("HTTP_X_API_KEY", bearer)
    caller = authenticator_for(settings).authenticate(request)
    caller.require(Right.READ)
    if only_admins is not None and caller.role is not Role.ADMIN:
        raise Forbidden(only_admins)
