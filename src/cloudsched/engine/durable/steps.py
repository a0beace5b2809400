"""One try of one step: calling its function within its time, and putting its result into JSON and back.

A replay is given what JSON kept, so the first time the handler is given that, too: what works once works always. Where
the function says what it returns, JSON is read as that again.
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
from cloudsched.errors import InvalidInput, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


@dataclass(slots=True)
class Usage:
    """What a handler says that something has cost."""

    queries: int = 0
    tokens: int = 0


class _StepAttempt:
    """One call of a step's function that has a time limit."""

    def __init__(self) -> None:
        self.has_timed_out = False


_STEP_ATTEMPT: contextvars.ContextVar[_StepAttempt | None] = contextvars.ContextVar("try", default=None)


def require_not_timed_out() -> None:
    """Check that whoever asks or says something is not a step's function that was given up.

    Raises:
        WorkflowError: It is, and the handler has gone on without it.
    """
    attempt = _STEP_ATTEMPT.get()
    if attempt is not None and attempt.has_timed_out:
        raise WorkflowError(
            "This step took longer than its timeout, and was given up: nothing of it is heard any more."
        )


def in_step_attempt() -> bool:
    """Whether this is the thread of a step's function that has a time limit."""
    return _STEP_ATTEMPT.get() is not None


def call_with_timeout(function: Callable[[], Any], timeout: timedelta | None) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function, and read what it returns to its end; give it up after `timeout`.

    Python cannot stop a function from outside: one that is given up goes on in a thread of its own, unheard. It is
    stopped by the next thing that it asks of its context.

    Raises:
        TimeoutError: It took longer.
    """
    if timeout is None:
        return drain_iterator(function())
    ended: list[tuple[Any, BaseException | None]] = []
    surroundings, attempt = contextvars.copy_context(), _StepAttempt()
    surroundings.run(_STEP_ATTEMPT.set, attempt)

    def work() -> None:
        try:
            ended.append((surroundings.run(lambda: drain_iterator(function())), None))
        except BaseException as error:  # noqa: BLE001 - it is raised again by whoever waits
            ended.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(min(timeout.total_seconds(), threading.TIMEOUT_MAX))
    attempt.has_timed_out = True
    if not ended:
        raise TimeoutError(f"It took longer than {timeout}.")
    result, error = ended[0]
    if error is not None:
        raise error
    return result


def drain_iterator(result: Any) -> Any:  # noqa: ANN401 - the same
    """Return an answer with nothing left to be done for it: of a generator or another iterator, all that it yields."""
    return list(result) if isinstance(result, Iterator) else result


def encode_result(result: Any, function: Callable[..., Any]) -> dict[str, Any]:  # noqa: ANN401 - the same
    """Return how a step's result is kept: as JSON that comes back as the function's annotation says.

    By its aliases, as on the wire; by the names of its fields where these do not go both ways. What is not what the
    function says is kept as it is.

    Raises:
        InvalidInput: It cannot be said as JSON, or does not come back.
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
            why = f"does not come back from JSON as what the function says that it returns: {_first_error(error)}"
            hint = "Let its model read what it writes (the same alias both ways, say), or leave out the annotation."
            raise InvalidInput("result", why, hint) from error
    return {"result": value}


def _round_trips(adapter: TypeAdapter[Any], value: Any, *, by_name: bool) -> bool:  # noqa: ANN401 - any JSON
    """Whether JSON is read as something that says the same again."""
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
    return f"{'.'.join(map(str, first['loc'])) or 'all of it'}: {first['msg']}"


def decode_result(value: Any, function: Callable[..., Any], *, by_name: bool = False) -> Any:  # noqa: ANN401 - the same
    """Return a result as a function's annotation says; as plain JSON where it says nothing that fits."""
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
