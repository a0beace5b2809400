"""The HTTP API: plain REST under ``/v1``, JSON in camelCase, errors as RFC 9457 problems.

`operations.py` collects the operations. Each is a function with ``@operation``. A request passes these steps:
check its origin (CORS), match it to an operation, authenticate the caller and check its right, give it its
allowance of search (`domain.recurrence.allowance`), and parse the parameters and the body. Then the function
runs on the app as that caller sees it. Other owners' tasks are hidden, and a task in another state than
``If-Match`` names is refused.

No web page may call the API unless its origin is listed (CORS, Fetch standard, section 3.2). A request that a
browser sends for a page of another origin carries that ``Origin``, and is refused unless the origin is listed,
even if a browser would send it without a preflight. So no page can use the open API of a developer's machine.
Credentials mode is not allowed: callers authenticate by headers, and there are no cookies.
"""

from __future__ import annotations

import time
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, cast

from werkzeug.exceptions import MethodNotAllowed
from werkzeug.exceptions import NotFound as HttpNotFound
from werkzeug.routing import BaseConverter, Map, Rule
from werkzeug.wrappers import Request, Response

from cloudsched.domain.local_requests import find_foreign_page, is_same_origin
from cloudsched.domain.recurrence.allowance import REQUEST_BYTES, REQUEST_STEPS, limit_search
from cloudsched.domain.transitions.validation_errors import Faults
from cloudsched.engine.authority import Authority
from cloudsched.errors import CloudschedError, Forbidden, InvalidInput, MissingExtra, NotFound
from cloudsched.web.api.etags import includes_tag, parse_if_match, require_tags
from cloudsched.web.api.idempotency_keys import read_idempotency_key
from cloudsched.web.api.operation import ApiCall, Operation
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.api.parse import parse_parameters, read_json_object, validate_model
from cloudsched.web.api.problems import render_problem
from cloudsched.web.api.request_bodies import NoParameters, PageQuery, ValidateQuery
from cloudsched.web.api.responses import choose_format
from cloudsched.web.api.visibility import Visibility
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.auth.roles import NOBODY, Caller, Right

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.app import App
    from cloudsched.domain.documents.document import WireModel

_METHODS = "GET, POST, PUT, PATCH, DELETE"
_HEADERS = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Api-Key, traceparent"
_EXPOSED_HEADERS = "ETag, Link, Location, Retry-After"
_MAX_AGE_SECONDS = 600
_NOT_MODIFIED = 304
_WITH_BODIES = frozenset({"POST", "PUT", "PATCH"})


def respond_to_preflight(request: Request, origins: Sequence[str]) -> Response | None:
    """Return the response to a preflight request. None if the request is not one."""
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
    """Check that a request comes from no page, a page of this host, or a listed origin. Raises Forbidden."""
    origin = request.headers.get("Origin")
    if origin is None:
        is_foreign = find_foreign_page(request.method, dict(request.headers)) is not None
    else:
        is_foreign = not (_is_listed(origin, origins) or is_same_origin(origin, request.host))
    if is_foreign:
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


class _IdConverter(BaseConverter):
    """One segment of a path. What ends in ``.ics`` is the calendar of a task or feed, with its own routes."""

    regex = r"[^/]+(?<!\.ics)"
    part_isolating = True


def _make_rule(operation: Operation) -> Rule:
    rule = operation.path.replace("{", "<").replace("}", ">")
    return Rule(rule, methods=[operation.method], endpoint=operation, strict_slashes=False)


_FIXED_PATHS: Final = {
    path: [each.method for each in OPERATIONS if each.path == path]
    for path in (each.path for each in OPERATIONS)
    if "{" not in path
}
"""The methods of paths without parameters. ``Allow`` names them, though a task may be called ``draft``, too."""
_ROUTES = Map(map(_make_rule, OPERATIONS), merge_slashes=False, converters={"default": _IdConverter})
API_PATHS: Final = frozenset(each.path.split("/")[1] for each in OPERATIONS)
"""The first segments of the API's paths. Below a mount, all other paths belong to other applications."""
_LINKS = "/v1/links/"
_SECRETS = frozenset({"feedSecret", "linkToken", "answerToken"})
"""The parts of paths that are credentials."""


_OTHER_VERBS: Final = {
    **dict.fromkeys(("run", "start", "execute", "invoke"), "trigger"),
    **dict.fromkeys(("stop", "abort"), "cancel"),
    **dict.fromkeys(("disable", "suspend"), "pause"),
    **dict.fromkeys(("enable", "unpause"), "resume"),
}
"""The last segments of paths in other schedulers' APIs, and ours."""
_CLOSE: Final = 0.7


def _explain_unknown(path: str) -> str:
    """Return the nearest path of the API, or the address of its description."""
    said = f"There is no {path[:100]}."
    *first, last = path.strip("/").split("/")
    given = [*first, _OTHER_VERBS.get(last, last)]
    for known in (each.path.strip("/").split("/") for each in OPERATIONS):
        if len(known) == len(given) and all(map(_is_meant, known, given)):
            return f"{said} Did you mean /{'/'.join(known)}? All paths are in /openapi.json."
    return f"{said} All paths are in /openapi.json."


def _is_meant(known: str, given: str) -> bool:
    return known.startswith("{") or SequenceMatcher(None, known, given[:100]).ratio() > _CLOSE


class ApiServer:
    """Serves the API for one app."""

    def __init__(self, app: App, *, only_links: bool = False, caller: Caller | None = None) -> None:
        """Take the app, whether to serve only what people open by a link, and the caller if it is known."""
        self._app = app
        self._caller = caller
        self._only_links = only_links

    def handle(self, request: Request) -> Response:
        """Return the response to a request. Errors become problem documents."""
        origins: tuple[str, ...] = ()
        try:
            origins = self._app.container.settings.access.origins
            response = respond_to_preflight(request, origins) or self._handle_checked(request, origins)
        except Exception as error:  # the caller gets a problem, or 500 and the log the reason
            if isinstance(error, MissingExtra) and self._caller is not None:
                raise  # to the app's own code, which may read what is missing
            response = render_problem(error, "#" if request.method in _WITH_BODIES else None, request.args)
        add_headers(request, response, origins)
        return response

    def _handle_checked(self, request: Request, origins: tuple[str, ...]) -> Response:
        if not request.path.startswith(_LINKS):  # nothing but the link itself gives those any rights
            require_allowed_origin(request, origins)
        try:
            endpoint, path = _ROUTES.bind_to_environ(request.environ).match()
        except HttpNotFound as error:
            error.description = _explain_unknown(request.path)
            raise
        except MethodNotAllowed as error:
            methods = _FIXED_PATHS.get(request.path, error.valid_methods)
            raise MethodNotAllowed(valid_methods=methods) from error

        operation = cast("Operation", endpoint)
        if self._only_links and not operation.is_link:
            raise HttpNotFound
        caller = self._authenticate(operation, request)
        with limit_search(REQUEST_STEPS, REQUEST_BYTES):
            return self._respond(operation, request, dict(path), caller)

    def _respond(
        self,
        operation: Operation,
        request: Request,
        path: dict[str, str],
        caller: Caller,
    ) -> Response:
        faults = Faults()
        query: WireModel = NoParameters()
        precondition = None
        with faults:
            query = parse_parameters(request, operation.parameters)
        with faults:
            precondition = parse_if_match(request) if operation.is_conditional else None
        with faults:
            if _NOT_MODIFIED in operation.success_statuses:
                require_tags("If-None-Match", request.headers.get("If-None-Match", "*"))
        with faults:
            if operation.accepts_idempotency_key:
                read_idempotency_key(request)
        visibility = Visibility(caller, precondition, is_change=operation.right is Right.WRITE)
        authority = Authority(
            caller.requesters,
            caller.sender,
            owner=caller.visible_owner,
            is_valid=lambda: caller.until is None or time.time() < caller.until,
            authorize=visibility.check_task,
        )
        app = self._app.acting_with(authority)
        call = ApiCall(app, caller, authority, visibility, request, path, _render_document)
        if faults:
            with faults:
                _check_body(operation, call)
            faults.tell()

        shown = {name: value for name, value in path.items() if name not in _SECRETS}
        with self._app.container.tracer.span(operation.name, **shown):
            try:
                response = self._run_operation(operation, call, query)
            except NotFound:
                visibility.equalize_time()
                raise
        if operation.right is Right.WRITE:
            self._app.container.note_change()
        if issubclass(operation.parameters, PageQuery):
            return choose_format(request, response)
        return response

    @staticmethod
    def _run_operation(operation: Operation, call: ApiCall, query: WireModel) -> Response:
        if _NOT_MODIFIED not in operation.success_statuses:
            return operation.respond(call, query)
        response = operation.respond(call, query)
        tag, _ = response.get_etag()
        if tag is not None and includes_tag(call.request.if_none_match, tag):
            call.request.environ["HTTP_IF_NONE_MATCH"] = response.headers["ETag"]
        return response.make_conditional(call.request)

    def _authenticate(self, operation: Operation, request: Request) -> Caller:
        if operation.right is None:
            return NOBODY
        caller = self._caller or authenticator_for(self._app.container.settings).authenticate(request)
        caller.require(operation.right)
        return caller


def _check_body(operation: Operation, call: ApiCall) -> None:
    """Check the body of a request whose query or headers are wrong, without effect. Raises InvalidInput."""
    for header in ("HTTP_IDEMPOTENCY_KEY", "HTTP_IF_MATCH"):
        call.request.environ.pop(header, None)
    try:
        if operation.query is ValidateQuery:
            operation.respond(call, ValidateQuery(validate_only="true"))
        elif operation.body_schema is not None and operation.right is Right.WRITE:
            validate_model(
                operation.body_schema, read_json_object(call.request, is_optional=operation.body_is_optional)
            )
    except InvalidInput:
        raise
    except CloudschedError:  # the query and the headers come first
        return


def _render_document(root: str) -> tuple[bytes, str]:
    from cloudsched.web.api.openapi import render_document  # noqa: PLC0415 - only when used

    return render_document(root)
