"""The operations on the service itself: its health, the caller, and the API's description."""

from __future__ import annotations

from importlib.metadata import version

from werkzeug.wrappers import Response

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.responses.api_responses import CallerInfo, Health
from cloudsched.engine.concurrency.service_threads import find_faults, hide_names
from cloudsched.errors import NotReady
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import CACHE_HEADERS, json_response
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.auth.roles import Right


@operation("GET", "/health", "Service", right=None, response_schema="Health")
def health(call: ApiCall) -> Response:
    """Check that this process is alive (liveness).

    It also reports the state of the circuit breakers to other services, threads that cannot do their
    work, and handlers that hang.
    """
    container = call.app.container
    health = Health(
        status="ok",
        circuits=container.circuits.states,
        faults=find_faults(),
        hanging=hide_names(container.hanging) or None,
    )
    return json_response(health.to_wire())


@operation("GET", "/ready", "Service", right=None, response_schema="Health")
def ready(call: ApiCall) -> Response:
    """Check that the store can be reached, and that all threads do their work (readiness).

    The status is 503 if the store cannot be reached, a thread of this process cannot do its work, or the
    API is not configured. It is 503, too, if no due work has started for a minute, whichever process of a
    data folder should start it. It also reports the release that answers, the time zone data with
    which this process plans, and, as the fault ``clock``, that a clock was ahead and came back.
    """
    authenticator_for(call.app.container.settings)
    call.app.container.store.check()
    if faults := find_faults():
        raise NotReady(faults)
    note = call.app.container.load_sweep()
    if note is not None and note.clock_fault:
        faults["clock"] = note.clock_fault
    health = Health(
        status="ready",
        circuits=call.app.container.circuits.states,
        faults=faults,
        hanging=hide_names(call.app.container.hanging) or None,
        release=version("cloudsched"),
        time_zone_data=time_zones.in_use.release,
    )
    return json_response(health.to_wire())


@operation("GET", "/v1/caller", "Service", response_schema="CallerInfo")
def show_caller(call: ApiCall) -> Response:
    """Get the caller, its rights, and the API's time.

    A user interface can then offer only actions that the API allows, and count from the API's time.
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


@operation(
    "GET",
    "/openapi.json",
    "Service",
    right=None,
    success_statuses=(200, 304),
    response_schema="OpenApi",
)
def openapi(call: ApiCall) -> Response:
    """Get this document.

    It is OpenAPI 3.1.
    """
    text, tag = call.render_document(call.request.root_path)
    response = Response(text, headers={"Content-Type": "application/json", **CACHE_HEADERS})
    response.set_etag(tag)
    return response
