"""Renders errors as RFC 9457 problem documents, one type for each kind of error.

A document is ``application/problem+json`` with ``type``, ``title``, ``status`` and ``detail``. For invalid
input it has ``field``, ``hint`` and ``errors``: all faults, each with its place. A problem
contains only data that the caller sent or may know.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from cloudsched.config.imports import explain_missing
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import (
    AwaitedEvent,
    CloudschedError,
    Forbidden,
    InvalidInput,
    KeyReused,
    LeaseLost,
    LimitExceeded,
    Misconfigured,
    MissingExtra,
    NotAllowed,
    NotAwaited,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
    UnreadableDocument,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

log: Final = own_logger(__name__)

TYPE_ROOT = "https://cloudsched.dev/problems/"
"""Problem types are names, not pages (RFC 9457, section 3.1.1)."""
RETRY_AFTER_SECONDS = 5


class PayloadTooLarge(InvalidInput):
    """The request's body is larger than this endpoint accepts."""


class UnsupportedContent(InvalidInput):
    """The request's body is of another type than JSON."""


_KINDS: tuple[tuple[type[CloudschedError], HTTPStatus], ...] = (
    (PayloadTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (UnsupportedContent, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (KeyReused, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidInput, HTTPStatus.BAD_REQUEST),
    (NotFound, HTTPStatus.NOT_FOUND),
    (NotAllowed, HTTPStatus.CONFLICT),
    (LeaseLost, HTTPStatus.CONFLICT),
    (LimitExceeded, HTTPStatus.CONFLICT),
    (PreconditionFailed, HTTPStatus.PRECONDITION_FAILED),
    (VersionConflict, HTTPStatus.CONFLICT),
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (QuotaExceeded, HTTPStatus.TOO_MANY_REQUESTS),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)


def render_problem(error: Exception, body: str | None = None, parameters: Container[str] = ()) -> Response:
    """Render an exception as a problem response. Unexpected ones are logged and become 500.

    `body` is the JSON Pointer of the part of the request's body that may be invalid, if it had one. The
    `parameters` are those of its query.
    """
    if isinstance(error, HTTPException) and error.code is not None:
        allow = {name: value for name, value in error.get_headers() if name == "Allow"}
        return _render(HTTPStatus(error.code), error.name, error.description or error.name, headers=allow)
    for kind, status in _KINDS:
        if isinstance(error, kind):
            return _render_known(error, status, body, parameters)

    # All others are the server's fault: the log has the details, and the caller none of them.
    if isinstance(error, ModuleNotFoundError):
        error = explain_missing("This request", error) or error
    if isinstance(error, MissingExtra):
        log.error("missing: %s", error, extra={"action": "missing_extra"})
        detail = "This API lacks a package for this; its log says which. Asking again does not help."
        return _render(HTTPStatus.NOT_IMPLEMENTED, "Missing extra", detail)
    if isinstance(error, Misconfigured):
        log.error("misconfigured: %s", error, extra={"action": "misconfigured"})
        detail = "The service is not set up; its log says what is missing."
        return _render(HTTPStatus.SERVICE_UNAVAILABLE, "Misconfigured", detail)
    if isinstance(error, UnreadableDocument):
        log.error("unreadable: %s", error, extra={"action": "unreadable", "document": error.key})
        return _render_known(error, HTTPStatus.INTERNAL_SERVER_ERROR)
    log.error("request failed", exc_info=error, extra={"action": "request_failed"})
    return _render(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error", "The server failed; its log says why.")


def _render_known(
    error: CloudschedError, status: HTTPStatus, body: str | None = None, parameters: Container[str] = ()
) -> Response:
    more: dict[str, object] = {}
    headers: dict[str, str] = {}

    if isinstance(error, InvalidInput):
        more = {"field": error.field, "hint": error.hint, "words": error.words}
        more["readings"] = list(error.readings)
        more["errors"] = [_show_fault(each, body, parameters) for each in error.faults]
        if isinstance(error, UnsupportedContent):
            headers = {"Accept": "application/json", "Accept-Patch": "application/merge-patch+json"}
    elif isinstance(error, NotAllowed | QuotaExceeded | UnreadableDocument):
        more = {"hint": error.hint}
        if isinstance(error, NotAwaited):
            more["awaited"] = [_show_awaited(each) for each in error.awaited]
        if isinstance(error, QuotaExceeded) and error.retry_after is not None:
            headers = {"Retry-After": str(error.retry_after)}
    elif isinstance(error, Unavailable) and error.is_retryable:
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    elif isinstance(error, Unauthenticated):
        headers = {"WWW-Authenticate": 'Bearer realm="cloudsched"'}

    shown = {key: value for key, value in more.items() if value or key == "field"}
    return _render(status, _make_title(error), str(error), shown, headers)


def _show_awaited(event: AwaitedEvent) -> dict[str, object]:
    shown: dict[str, object] = {"name": event.name, "executionId": event.execution_id, "by": [*event.by]}
    if event.until is not None:
        shown["until"] = event.until.isoformat().replace("+00:00", "Z")
    return shown


_HEADERS = frozenset({"Idempotency-Key", "If-Match", "If-None-Match", "Content-Type"})
"""The fields that are not part of a body."""


def _show_fault(error: InvalidInput, body: str | None, parameters: Container[str]) -> dict[str, str]:
    """Return one fault with its place: a header, a parameter of the query, or a JSON Pointer in the body.

    A pointer (RFC 6901) stands in a fragment (RFC 9457, section 3).
    """
    if error.field in _HEADERS:
        place = {"header": error.field}
    elif body is None or error.field in parameters:
        place = {"parameter": error.field}
    else:
        parts = error.path
        if parts is None:
            field = "" if error.field.startswith("(") else error.field
            parts = tuple(filter(None, field.split(".")))
        place = {"pointer": body + "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)}
    more = {"detail": error.problem, "hint": error.hint, "words": error.words}
    return {**place, **{name: text for name, text in more.items() if text or name == "detail"}}


def _make_title(error: CloudschedError) -> str:
    return re.sub("(?!^)([A-Z])", r" \1", type(error).__name__).capitalize()


def _render(
    status: HTTPStatus,
    title: str,
    detail: str,
    more: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    content = {
        "type": TYPE_ROOT + title.lower().replace(" ", "-"),
        "title": title,
        "status": status.value,
        "detail": detail,
        **(more or {}),
    }
    return Response(
        # Text from the request may contain lone surrogates, which are written as the escapes that they
        # came as.
        json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace"),
        status.value,
        {
            "Content-Type": "application/problem+json",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **(headers or {}),
        },
    )
