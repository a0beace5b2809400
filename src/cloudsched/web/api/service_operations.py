"""The public operations: the service's health, the caller, the API's description, and the page that shows it."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from werkzeug.wrappers import Response

from cloudsched.domain.documents.responses import CallerInfo, Health
from cloudsched.domain.recurrence.time_zones import version
from cloudsched.engine.ports.service_threads import find_faults
from cloudsched.errors import NotReady
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response
from cloudsched.web.auth.authentication import authenticator_for, is_open_to
from cloudsched.web.auth.roles import Right


@operation("GET", "/health", "Service", right=None, response_schema="Health")
def health(call: ApiCall) -> Response:
    """Check that this process is alive (liveness).

    It also reports the state of the circuit breakers to other services, and threads that cannot do their work.
    """
    return _report_life(call)


@operation("GET", "/ready", "Service", right=None, response_schema="Health")
def ready(call: ApiCall) -> Response:
    """Check that the store can be reached, and that all threads do their work (readiness).

    The status is 503 if the store cannot be reached, a thread of this process cannot do its work, or the API is not
    configured. It also reports the time zone data with which this process plans.
    """
    return _report_readiness(call)


@operation("GET", "/healthz", "Service", right=None, response_schema="Health")
def healthz(call: ApiCall) -> Response:
    """Check that this process is alive, as `/health` does.

    Cloud Run reserves paths that end in z. There, only `/health` reaches the API.
    """
    return _report_life(call)


@operation("GET", "/readyz", "Service", right=None, response_schema="Health")
def readyz(call: ApiCall) -> Response:
    """Check that the store can be reached, and that all threads do their work, as `/ready` does.

    Cloud Run reserves paths that end in z. There, only `/ready` reaches the API.
    """
    return _report_readiness(call)


def _report_life(call: ApiCall) -> Response:
    states = call.app.container.circuits.states
    return json_response(Health(status="ok", circuits=states, faults=find_faults()).to_wire())


def _report_readiness(call: ApiCall) -> Response:
    authenticator_for(call.app.container.settings)
    call.app.container.store.check()
    if faults := find_faults():
        raise NotReady(faults)
    states = call.app.container.circuits.states
    return json_response(Health(status="ready", circuits=states, time_zone_data=version()).to_wire())


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


@operation("GET", "/openapi.json", "Service", right=None, response_schema="OpenApi")
def openapi(call: ApiCall) -> Response:
    """Get this document.

    It is OpenAPI 3.1. Where the API requires authentication, it names no handlers.
    """
    return json_response(call.build_document(_public_handlers(call), call.request.root_path))


@operation("GET", "/docs", "Service", right=None, response_schema="text/html")
def reference(call: ApiCall) -> Response:
    """Get this document as a page for people.

    An HTML page that needs no scripts.
    """
    return render_page(call.build_document(_public_handlers(call), call.request.root_path))


def _public_handlers(call: ApiCall) -> tuple[str, ...] | None:
    """Return the names of the app's handlers if the API is open to the caller, else None."""
    settings = call.app.container.settings
    if settings.access.is_configured or not is_open_to(settings, call.request):
        return None
    return tuple(sorted(handler.name for handler in call.app.container.registry))


Json = dict[str, Any]

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
summary { cursor: pointer; padding: .4rem 0 }
code, pre { font: 14px/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
pre { overflow: auto; padding: .8rem; border: 1px solid #8885 }
table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid #8885; padding: .3rem .6rem; vertical-align: top }
.method { display: inline-block; width: 4.5rem; font-weight: bold }
"""


def render_page(document: Json) -> Response:
    """Return the page. Its policy forbids loading or running anything, whatever the document contains."""
    info = document["info"]
    operations = "".join(
        _render_operation(method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    schemas = "".join(
        _render_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())
    )
    title = f"{info['title']} {info['version']}"
    root = document["servers"][0]["url"].rstrip("/")
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>"
        f'<p>{escape(info["description"])} For programs: <a href="{escape(root)}/openapi.json">openapi.json</a>.</p>'
        f"<h2>Operations</h2>{operations}<h2>Schemas</h2>{schemas}</html>"
    )
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(text, headers=headers)


def _render_operation(method: str, path: str, operation: Json) -> str:
    parameters = "".join(
        _render_row(f"{each['name']} ({each['in']})", each["description"], each["schema"])
        for each in operation["parameters"]
    )
    bodies = "".join(
        _render_row(f"body: {kind}", "", content["schema"])
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    )
    answers = "".join(_render_response(status, answer) for status, answer in operation["responses"].items())
    return (
        f'<details><summary><span class="method">{method}</span><code>{escape(path)}</code> — '
        f"{escape(operation['summary'])}</summary><table>{parameters}{bodies}{answers}</table></details>"
    )


def _render_response(status: str, answer: Json) -> str:
    schema: Json = next((content["schema"] for content in answer.get("content", {}).values()), {})
    return _render_row(status, answer["description"], schema)


def _render_row(name: str, about: str, schema: Json) -> str:
    return f"<tr><td><code>{escape(name)}</code><td>{escape(about)}<td>{_render_type(schema)}"


def _render_type(schema: Json) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    return f"<code>{escape(json.dumps(schema, ensure_ascii=False))}</code>" if schema else ""


def _render_schema(name: str, schema: Json) -> str:
    text = escape(json.dumps(schema, indent=2, ensure_ascii=False))
    return f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary><pre>{text}</pre></details>'
