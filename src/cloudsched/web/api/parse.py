"""Parses bodies and query parameters of requests. Any invalid one raises `InvalidInput`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.transitions.task_draft import find_all_faults
from cloudsched.domain.transitions.validation_errors import WIRE, Faults, to_invalid_input
from cloudsched.errors import InvalidInput, InvalidSchedule
from cloudsched.web.api.problems import PayloadTooLarge, UnsupportedContent

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

V = TypeVar("V", bound=WireModel)

MAX_BODY = 1024 * 1024
"""The largest body of a request, in bytes."""
MAX_VALUES = 100_000
"""The largest number of values in the JSON of a request: numbers, texts, lists and objects."""
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_JSON_TYPES = frozenset({"", "application/json", "application/x-www-form-urlencoded"})
_SHOWN = 80
"""The number of characters of a name that an error repeats."""


def read_body(request: Request) -> bytes:
    """Return a request's body, with a ``Content-Length`` or chunked. Raises PayloadTooLarge or InvalidInput."""
    hint = f"At most {MAX_BODY} bytes are accepted."
    announced = request.content_length or 0
    if announced > MAX_BODY:
        raise PayloadTooLarge("(body)", f"has {announced} bytes", hint)
    try:
        data = request.stream.read(MAX_BODY + 1)
    except (OSError, ValueError) as error:  # from the server: the socket failed, or the chunks are malformed
        raise InvalidInput("(body)", f"cannot be read: {error}", "Send it again.") from error
    if len(data) > MAX_BODY:
        raise PayloadTooLarge("(body)", "is too large", hint)
    if len(data) < announced:
        raise InvalidInput("(body)", f"has {len(data)} bytes of {announced}", "Send it again.")
    return data


def read_json_object(request: Request, *, is_optional: bool = False) -> dict[str, Any]:
    """Return a request's JSON object. Empty if there is no body and it is optional. Raises InvalidInput."""
    data = read_body(request)
    if is_optional and not data:
        return {}
    _require_json_type(request)
    try:
        text = data.decode()
        _require_few_values(data)
        content = json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_reject_duplicates)
    except RecursionError as error:
        raise InvalidInput("(body)", "is nested too deep", "Flatten it.") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidInput("(body)", f"is not JSON: {error}", "Send one JSON object, in UTF-8.") from error
    if not isinstance(content, dict):
        raise InvalidInput("(body)", "is not a JSON object", "Send one JSON object, {…}.")
    return content


def _require_json_type(request: Request) -> None:
    """Check that a body does not claim to be of another type than JSON. Raises UnsupportedContent.

    A request without a type counts as JSON. So does the type of forms, which curl's ``-d`` sends by default.
    """
    kind = request.mimetype
    if kind in _JSON_TYPES or (kind.startswith("application/") and kind.endswith("+json")):
        return
    hint = "Send JSON, and Content-Type: application/json."
    raise UnsupportedContent("Content-Type", f"is {kind[:_SHOWN]}", hint)


def _require_few_values(data: bytes) -> None:
    """Check that a body has at most `MAX_VALUES`, before it is parsed. Raises InvalidInput.

    Commas in texts are counted only if there are many.
    """
    if _count_values(data) > MAX_VALUES and (count := _count_values(_TEXT.sub(b"", data))) > MAX_VALUES:
        hint = f"At most {MAX_VALUES} are accepted. Send large data as text, or in several requests."
        raise InvalidInput("(body)", f"has about {count} values", hint)


def _count_values(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _reject_constant(name: str) -> Any:  # noqa: ANN401 - the signature of json's hook
    raise ValueError(f"{name} is not JSON (RFC 8259, section 6)")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name {name[:_SHOWN]!r} appears twice")
            seen.add(name)
    return content


def parse_parameters(request: Request, model: type[V]) -> V:
    """Return the query parameters as an instance of the model. Raises InvalidInput."""
    known = {field.alias or name for name, field in model.model_fields.items()}
    names = ", ".join(sorted(known)) or "none"
    faults = Faults(
        InvalidInput(name, "is not a query parameter here", f"There are: {names}.")
        for name in request.args
        if name not in known
    )
    given = {name: values for name, values in request.args.lists() if name in known}
    faults += (InvalidInput(name, "is given twice", "Give it once.") for name, each in given.items() if len(each) > 1)
    with faults:
        parsed = validate_model(model, {name: values[0] for name, values in given.items()})
    faults.tell()
    since, until = (getattr(parsed, name, None) for name in ("since", "until"))
    if since is not None and until is not None and since > until:
        raise InvalidInput("from", "is after `until`", "Give the earlier instant as `from`.")
    return parsed


def validate_model(model: type[V], content: dict[str, Any]) -> V:
    """Return a request's content as an instance of its model. Raises InvalidInput, with all faults."""

    def parse(given: dict[str, Any]) -> V:
        try:
            return model.model_validate(given, context=WIRE)
        except InvalidSchedule as error:
            raise error.below("schedule") from None
        except ValidationError as error:
            raise to_invalid_input(error, model=model) from None

    try:
        return parse(content)
    except InvalidInput as error:
        raise find_all_faults(error, content, parse) from None
