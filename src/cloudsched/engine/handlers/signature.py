"""What a handler's function takes, read from its annotations when it is registered."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from cloudsched.engine.durable.async_functions import is_async
from cloudsched.engine.handlers.async_context import AsyncContext
from cloudsched.engine.handlers.context import Context
from cloudsched.engine.handlers.dependencies import Depends, find_marker, read_dependencies
from cloudsched.engine.handlers.payload_fields import find_secret_field
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTEXTS = (Context, AsyncContext)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler takes, and how it is called."""

    takes_context: bool
    payload: TypeAdapter[Any] | None
    is_async: bool
    dependencies: dict[str, Depends]


def _explain_extra_parameters(parameters: list[inspect.Parameter], hints: dict[str, Any]) -> str:
    """Describe the mistake in a handler that seems to take more than a context and a payload."""
    late = next((parameter.name for parameter in parameters[1:] if hints.get(parameter.name) is Context), None)
    if late is not None:
        return f"has its Context in {late!r}, after another parameter; make it the first."
    first = parameters[0].name
    if first not in hints:
        return f"has a first parameter {first!r} without an annotation; annotate it: `{first}: Context`."
    return "has too many required parameters; a handler takes a Context, a payload, both or neither."


def _read_markers(name: str, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> dict[str, Depends]:
    """Return the dependencies among the parameters, by name."""
    markers = {each.name: find_marker(each, hints.get(each.name)) for each in parameters}
    found = {key: marker for key, marker in markers.items() if marker is not None}
    for marker in found.values():
        read_dependencies(name, marker.dependency)
    if any(each.kind is each.POSITIONAL_ONLY for each in parameters if each.name in found):
        raise Misconfigured(f"Handler {name!r} has a dependency before a `/`; dependencies are passed by name.")
    return found


def read_signature(name: str, function: Callable[..., Any]) -> Signature:
    """Return what a handler takes, and how it is called. Raises Misconfigured."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Misconfigured(f"Handler {name!r} is a generator; write a function that returns its result.")
    is_asynchronous = is_async(function)
    try:
        hints = get_type_hints(function, include_extras=True)
    except TypeError as error:
        raise Misconfigured(f"Handler {name!r} is a {type(function).__name__}; write a plain function.") from error
    except NameError as error:
        raise Misconfigured(
            f"Handler {name!r}: {error}. Its annotations are read at run time: import the name outside TYPE_CHECKING."
        ) from error
    every = list(inspect.signature(function).parameters.values())
    dependencies = _read_markers(name, every, hints)
    parameters = [each for each in every if each.name not in dependencies]
    takes_context = bool(parameters) and hints.get(parameters[0].name) in _CONTEXTS
    if takes_context and hints[parameters[0].name] is AsyncContext and not is_asynchronous:
        raise Misconfigured(f"Handler {name!r} takes an AsyncContext; write it with `async def`, or take a Context.")
    rest = parameters[1:] if takes_context else parameters
    required = [parameter for parameter in rest if parameter.default is parameter.empty]
    if len(required) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in required):
        raise Misconfigured(f"Handler {name!r} {_explain_extra_parameters(rest, hints)}")
    if not rest or rest[0].kind in {rest[0].VAR_POSITIONAL, rest[0].VAR_KEYWORD, rest[0].KEYWORD_ONLY}:
        return Signature(takes_context, None, is_asynchronous, dependencies)
    if rest[0].name not in hints:
        raise Misconfigured(
            f"Handler {name!r}: annotate {rest[0].name!r} with its pydantic model (or a first parameter with Context)."
        )
    annotation = hints[rest[0].name]
    try:
        adapter = TypeAdapter[Any](annotation)
    except (PydanticUserError, NameError) as error:
        reason = error.message if isinstance(error, PydanticUserError) else error
        raise Misconfigured(f"Handler {name!r}: pydantic cannot validate {rest[0].name!r}: {reason}") from error
    secret = find_secret_field(annotation)
    if secret is not None:
        raise Misconfigured(
            f"Handler {name!r}: the payload's {secret} is a secret, and payloads are stored and shown. Take the "
            "secret's name instead, and read the secret in the handler."
        )
    return Signature(takes_context, adapter, is_asynchronous, dependencies)
