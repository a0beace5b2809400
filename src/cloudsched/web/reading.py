"""What comes in with a request: bodies, query parameters, instants. Whatever is wrong becomes an `InvalidInput`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cloudsched.app import MAX_PAGE
from cloudsched.domain.isotime import FIRST_YEAR, LAST_YEAR
from cloudsched.domain.task import TaskStatus
from cloudsched.engine.ports import TaskQuery
from cloudsched.errors import InvalidInput
from cloudsched.web.problems import PayloadTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from werkzeug.wrappers import Request

MAX_BODY = 1024 * 1024
"""How many bytes of a request's body are read."""
_QUERY_NAMES = {
    "owner": "owner",
    "status": "status",
    "handler": "handler",
    "dueFrom": "due_from",
    "dueUntil": "due_until",
}


def body_bytes(request: Request) -> bytes:
    """Return a request's body.

    Raises:
        PayloadTooLarge: It is longer than `MAX_BODY`.
    """
    hint = f"At most {MAX_BODY} bytes are taken."
    if (request.content_length or 0) > MAX_BODY:
        raise PayloadTooLarge("(body)", f"has {request.content_length} bytes", hint)
    data = request.stream.read(MAX_BODY + 1)
    if len(data) > MAX_BODY:
        raise PayloadTooLarge("(body)", "is too large", hint)
    return data


def json_object(request: Request, allowed: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a request's body, which is one JSON object.

    Raises:
        InvalidInput: It is not, or has a field besides the `allowed` ones.
    """
    data = body_bytes(request)
    try:
        content = json.loads(data.decode(), parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except RecursionError as error:
        raise InvalidInput("(body)", "is nested too deep", "Flatten it.") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidInput("(body)", f"is not JSON: {error}", "Send one JSON object, in UTF-8.") from error
    if not isinstance(content, dict):
        raise InvalidInput("(body)", "is not a JSON object", "Send one JSON object, {…}.")
    if allowed is not None:
        for name in content.keys() - set(allowed):
            raise InvalidInput(name, "is not a field of this request", f"Fields: {', '.join(sorted(allowed))}.")
    return content


def _no_constant(name: str) -> Any:  # noqa: ANN401 - the signature of json's hook
    raise ValueError(f"{name} is not JSON (RFC 8259, section 6)")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} is there twice")
    return content


def parameters(request: Request, allowed: Iterable[str]) -> dict[str, str]:
    """Return the query parameters, each of them once and none but the `allowed` ones."""
    known = set(allowed)
    for name in request.args:
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise InvalidInput(name, "is not a query parameter here", f"There are: {names}.")
        if len(request.args.getlist(name)) > 1:
            raise InvalidInput(name, "is given twice", "Give it once.")
    return request.args.to_dict()


def paging(given: dict[str, str]) -> dict[str, Any]:
    """Return the page size and token that a list request asks for."""
    return {
        "limit": whole_number("pageSize", given.get("pageSize", "50"), MAX_PAGE),
        "page_token": given.get("pageToken") or None,
    }


def whole_number(field: str, value: object, maximum: int) -> int:
    """Return a number that came as JSON or as text.

    Raises:
        InvalidInput: It is not a whole one, from 1 to `maximum`.
    """
    text = str(value)
    is_number = text.isascii() and text.isdigit() and len(text) < 10  # noqa: PLR2004 - no more digits than are needed
    if not is_number or not 1 <= int(text) <= maximum:
        raise InvalidInput(field, f"is {value!r}", f"Give a whole number from 1 to {maximum}.")
    return int(text)


def task_query(given: dict[str, str]) -> TaskQuery:
    """Return which tasks a list request asks for."""
    wanted: dict[str, Any] = {_QUERY_NAMES[name]: given[name] for name in _QUERY_NAMES if name in given}
    for name in ("due_from", "due_until"):
        if name in wanted:
            wanted[name] = instant("dueFrom" if name == "due_from" else "dueUntil", wanted[name])
    if "status" in wanted:
        try:
            wanted["status"] = TaskStatus(wanted["status"])
        except ValueError:
            known = ", ".join(TaskStatus)
            raise InvalidInput("status", f"is {wanted['status']!r}", f"One of {known}.") from None
    return TaskQuery(**wanted)


def instant(field: str, value: object) -> datetime:
    """Return an instant that came as RFC 3339 text with an offset.

    Raises:
        InvalidInput: It is not that.
    """
    hint = "Give RFC 3339 with an offset, as in 2027-01-01T09:00:00Z."
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        at = None
    if at is None:
        raise InvalidInput(field, f"is {value!r}, which is not an instant", hint)
    if at.tzinfo is None:
        raise InvalidInput(field, "has no offset from UTC", hint)
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise InvalidInput(field, f"is {value!r}", f"Give a year from {FIRST_YEAR} to {LAST_YEAR}.")
    return at.astimezone(UTC)
