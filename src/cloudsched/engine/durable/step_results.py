"""The result of a step as JSON, and back.

A replay returns the result that was decoded from JSON, so the first run returns the decoded result, too: code that
works once works in every replay. If the function has a return annotation, JSON is decoded as that type.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.first_error import find_first_error
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable


def encode_result(result: Any, function: Callable[..., Any]) -> dict[str, Any]:  # noqa: ANN401 - the same
    """Return the fields that store a step's result: JSON that decodes as the function's return annotation.

    Model fields are stored by alias, as on the wire, or by name where aliases do not round-trip. A result that does not
    match the annotation is stored as plain JSON.

    Raises:
        InvalidInput: It cannot be encoded as JSON, or matches the annotation but cannot be decoded as it.
    """
    value = to_json_value("result", result)
    adapter = None if value is None else _find_adapter(function)
    if adapter is None or _round_trips(adapter, value, by_name=False):
        return {"result": value}
    with suppress(ValueError):
        named = to_jsonable_python(result, by_alias=False, round_trip=True)
        if _round_trips(adapter, named, by_name=True) and _read(adapter, named, by_name=True) == result:
            return {"result": named, "is_by_name": True}
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        if _matches_annotation(adapter, result):
            problem = f"cannot be decoded from JSON as the function's return annotation: {_first_error(error)}"
            hint = "Let its model accept its own JSON (say, with the same alias both ways), or remove the annotation."
            raise InvalidInput("result", problem, hint) from error
    return {"result": value}


def _round_trips(adapter: TypeAdapter[Any], value: Any, *, by_name: bool) -> bool:  # noqa: ANN401 - any JSON
    """Return whether JSON is decoded as something that is encoded as the same JSON."""
    try:
        back = _read(adapter, value, by_name=by_name)
        return bool(to_jsonable_python(back, by_alias=not by_name, round_trip=by_name) == value)
    except ValueError:
        return False


def _matches_annotation(adapter: TypeAdapter[Any], result: Any) -> bool:  # noqa: ANN401 - whatever a function returned
    try:
        adapter.validate_python(result, strict=True)
    except ValidationError:
        return False
    return True


def _first_error(error: ValidationError) -> str:
    first = find_first_error(error)
    return f"{'.'.join(map(str, first['loc'])) or 'the whole result'}: {first['msg']}"


def decode_result(value: Any, function: Callable[..., Any], *, by_name: bool = False) -> Any:  # noqa: ANN401 - the same
    """Return a result decoded as the function's return annotation; as plain JSON if it has none that fits."""
    adapter = None if value is None else _find_adapter(function)
    if adapter is None:
        return value
    try:
        return _read(adapter, value, by_name=by_name)
    except ValidationError:
        return value


def _read(adapter: TypeAdapter[Any], value: Any, *, by_name: bool) -> Any:  # noqa: ANN401 - the same
    return adapter.validate_python(value, by_alias=False, by_name=True) if by_name else adapter.validate_python(value)


def _find_adapter(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    return _build_adapter(function) if "return" in getattr(function, "__annotations__", {}) else None


@lru_cache(maxsize=1024)
def _build_adapter(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    try:
        return TypeAdapter(get_type_hints(function, include_extras=True)["return"])
    except (NameError, TypeError, PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return None
