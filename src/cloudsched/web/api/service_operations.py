"""The public operations: the service's health and the description of its API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.responses import CallerInfo, Health
from cloudsched.web.api.operation import operation
from cloudsched.web.api.responses import json_response
from cloudsched.web.auth.authentication import authenticator_for, is_open_to
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.web.api.call import ApiCall


@operation("GET", "/healthz", "Service", right=None, response_schema="Health")
def healthz(call: ApiCall) -> Response:
    """Check that this process is alive.

    Liveness. Also reports the state of the circuit breakers to other services.
    """
    return json_response(Health(status="ok", circuits=call.app.container.circuits.states).to_wire())


@operation("GET", "/readyz", "Service", right=None, response_schema="Health")
def readyz(call: ApiCall) -> Response:
    """Check that the store can be reached.

    Readiness. 503 if the store cannot be reached or the API is not configured.
    """
    authenticator_for(call.app.container.settings)
    call.app.container.store.check()
    return json_response(Health(status="ready", circuits=call.app.container.circuits.states).to_wire())


@operation("GET", "/v1/caller", "Service", response_schema="CallerInfo")
def show_caller(call: ApiCall) -> Response:
    """Get who is calling, what they may do, and the API's time.

    A page for people offers nothing that the API would refuse, and counts from the API's time.
    """
    caller = call.caller
    info = CallerInfo(
        role=caller.role,
        owner=caller.owner,
        sees_all=caller.visible_owner is None,
        may_change=caller.has_right(Right.WRITE),
        now=call.app.container.clock.now(),
    )
    return json_response(info.to_wire())


@operation("GET", "/openapi.json", "Service", right=None, response_schema="OpenApi")
def openapi(call: ApiCall) -> Response:
    """Get this document.

    OpenAPI 3.1. Where the API requires authentication, it names no handlers.
    """
    return json_response(call.build_document(_public_handlers(call), call.request.root_path))


@operation("GET", "/docs", "Service", right=None, response_schema="text/html")
def reference(call: ApiCall) -> Response:
    """Get this document as a page for people.

    An HTML page that needs no scripts.
    """
    from cloudsched.web.api.docs_page import render_page  # noqa: PLC0415 - only requests for it pay for the import

    return render_page(call.build_document(_public_handlers(call), call.request.root_path))


def _public_handlers(call: ApiCall) -> tuple[str, ...] | None:
    """Return the names of the app's handlers if the API is open to the caller, else None."""
    settings = call.app.container.settings
    if settings.access.is_configured or not is_open_to(settings, call.request):
        return None
    return tuple(sorted(handler.name for handler in call.app.container.registry))
