"""The payload of a draft, filled by the names of its fields from what was said, and checked by the handler's model."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.domain.documents.responses import MissingField
from cloudsched.engine.handlers.payload_fields import list_fields
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.engine.handlers.handler import Handler

_VALUE: Final = r"""(?P<value>"[^"]*"|“[^”]*”|„[^“]*“|'[^']*'|[^\s,;]+)"""
_LEAD: Final = r"(?:\s*[,;])?\s*(?:\b(?:with|and|where)\s+)?(?:\bthe\s+)?"
_ABOUT: Final = ("text", "message", "what", "topic", "subject", "task", "title", "question", "query", "prompt", "body")
"""The names of fields that hold what a task is about, the first ones first."""


class Filled(NamedTuple):
    """A payload, the text without the words that filled it, and what was assumed."""

    payload: dict[str, Any]
    rest: str
    assumptions: tuple[str, ...] = ()
    missing: tuple[MissingField, ...] = ()


def take_fields(handler: Handler, text: str, context: Mapping[str, Any]) -> Filled:
    """Return the fields of a handler's payload that a text or the context gives by name.

    ``city: Paris``, ``city = "New York"`` and ``city is Paris`` give the field ``city``; the text comes before the
    context.
    """
    payload: dict[str, Any] = {}
    for name in list_payload_fields(handler):
        label = re.escape(name) + "|" + r"\s+".join(map(re.escape, _split(name)))
        found = re.search(rf"{_LEAD}\b(?:{label})\s*(?:[:=]|\bis\b)\s*{_VALUE}", text, re.IGNORECASE)
        if found is not None:
            payload[name] = found["value"].strip("\"“”„'")
            text = f"{text[: found.start()]} {text[found.end() :]}"
        elif name in context:
            payload[name] = context[name]
    return Filled(payload, " ".join(text.split()))


def list_payload_fields(handler: Handler) -> dict[str, bool]:
    """Return the fields of a handler's payload, and whether each is required; none if it takes any."""
    return {} if handler.payload is None else list_fields(handler.payload.core_schema)


def find_field(handler: Handler, called: str) -> str | None:
    """Return the field of the payload that people call so: ``dueDate`` for "due date"."""
    wanted = "".join(_split(called)).casefold()
    return next((name for name in list_payload_fields(handler) if "".join(_split(name)).casefold() == wanted), None)


def complete_payload(handler: Handler, filled: Filled, title: str | None) -> Filled:
    """Return the payload as the handler's model accepts it, with what it is about; `missing` says what is wrong."""
    payload, assumptions = dict(filled.payload), list(filled.assumptions)
    if handler.payload is not None and title:
        fields = list_payload_fields(handler)
        open_field = next((name for name in _ABOUT if fields.get(name) and name not in payload), None)
        if open_field is not None:
            payload[open_field] = title
            assumptions.append(f"{open_field!r} is {title!r}.")
    checked = check_fields(handler, payload, filled.payload)
    return Filled(checked.payload, filled.rest, tuple(assumptions), checked.missing)


def check_fields(handler: Handler, payload: Mapping[str, Any], said: Iterable[str]) -> Filled:
    """Return a payload as the handler's model accepts it.

    A text that was said for a field may stand for a number, or for several texts with commas between them.
    """
    result = dict(payload)
    for name in said:
        value = result[name]
        if handler.payload is None or not isinstance(value, str):
            continue
        parsed = {**result, name: _parse_json(value)}
        listed = {**result, name: [part.strip() for part in value.split(",") if part.strip()]}
        is_wrong = _names(_find_problem(handler, result), name)
        if parsed[name] != value and (is_wrong or _find_problem(handler, parsed) is None):
            result = parsed
        elif is_wrong and not _names(_find_problem(handler, listed), name):
            result = listed
    problem = _find_problem(handler, result)
    return Filled(result, "", missing=() if problem is None else (to_missing(problem),))


def _find_problem(handler: Handler, payload: dict[str, Any]) -> InvalidInput | None:
    try:
        handler.check_payload(payload)
    except InvalidInput as error:
        return error
    return None


def _names(problem: InvalidInput | None, field: str) -> bool:
    return problem is not None and problem.field == f"payload.{field}"


def to_missing(error: InvalidInput) -> MissingField:
    """Return what an error says about a field."""
    text = f"{error.field} {error.problem}"
    return MissingField(field=error.field, code="invalid", reason=f"{text}. {error.hint}".rstrip())


def _split(name: str) -> list[str]:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).replace("_", " ").replace("-", " ").split()


def _parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except ValueError:
        return text
