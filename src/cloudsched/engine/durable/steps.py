"""One attempt of one step: calls its function with a timeout, and converts its result to JSON and back.

A replay returns the result that was decoded from JSON, so the first run returns the decoded result, too: code that
works once works in every replay. If the function has a return annotation, JSON is decoded as that type.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.engine.durable.async_functions import call_function, is_async
from cloudsched.errors import InvalidInput, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


@dataclass(slots=True)
class Usage:
    """The usage that a handler reported."""

    queries: int = 0
    tokens: int = 0


class _StepAttempt:
    """One call of a step's function that is asynchronous or has a timeout."""

    def __init__(self) -> None:
        self.has_timed_out = False


_STEP_ATTEMPT: contextvars.ContextVar[_StepAttempt | None] = contextvars.ContextVar("try", default=None)


def require_not_timed_out() -> None:
    """Check that the caller is not the function of a step that timed out.

    Raises:
        WorkflowError: It is, and the handler has continued without it.
    """
    attempt = _STEP_ATTEMPT.get()
    if attempt is not None and attempt.has_timed_out:
        raise WorkflowError(
            "This step took longer than its timeout and was abandoned: it can no longer use its context."
        )


def in_step_attempt() -> bool:
    """Whether the caller belongs to a step's function that is asynchronous or has a timeout."""
    return _STEP_ATTEMPT.get() is not None


def call_with_timeout(function: Callable[[], Any], timeout: timedelta | None) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function and drain the iterator if it returns one; abandon it after `timeout`.

    An asynchronous function runs on the event loop, and is cancelled. Python cannot stop any other from outside: an
    abandoned one continues in its own thread, and its result is ignored.
    The next use of its context raises `WorkflowError` in it.

    Raises:
        TimeoutError: It took longer than `timeout`.
    """
    if is_async(function):
        return _call_async(function, timeout)
    if timeout is None:
        return drain_iterator(call_function(function))
    outcomes: list[tuple[Any, BaseException | None]] = []
    context, attempt = contextvars.copy_context(), _StepAttempt()
    context.run(_STEP_ATTEMPT.set, attempt)

    def work() -> None:
        try:
            outcomes.append((context.run(lambda: drain_iterator(call_function(function))), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            outcomes.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(min(timeout.total_seconds(), threading.TIMEOUT_MAX))
    attempt.has_timed_out = True
    if not outcomes:
        raise TimeoutError(f"The step took longer than {timeout}.")
    result, error = outcomes[0]
    if error is not None:
        raise error
    return result


def _call_async(function: Callable[[], Any], timeout: timedelta | None) -> Any:  # noqa: ANN401 - the same
    """Run an asynchronous function on the event loop; it is cancelled when it takes longer than `timeout`."""
    from cloudsched.engine.durable.event_loop import run_coroutine  # noqa: PLC0415 - imports asyncio

    context, attempt = contextvars.copy_context(), _StepAttempt()
    context.run(_STEP_ATTEMPT.set, attempt)
    try:
        return drain_iterator(run_coroutine(function, timeout, context))
    finally:
        attempt.has_timed_out = True


def drain_iterator(result: Any) -> Any:  # noqa: ANN401 - the same
    """Return the result, or a list of all items if it is a generator or another iterator."""
    return list(result) if isinstance(result, Iterator) else result


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
    """Whether JSON is decoded as something that is encoded as the same JSON."""
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
    first = error.errors(include_url=False)[0]
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
