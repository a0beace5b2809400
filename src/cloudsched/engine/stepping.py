"""One try of one step: calling its function within its time, and putting its result into JSON and back.

A replay is given what JSON kept, so the first time the handler is given that, too: what works once works always. Where
the function says what it returns, JSON is read as that again.
"""

from __future__ import annotations

import contextvars
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


def called(function: Callable[[], Any], timeout: timedelta | None) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function; give it up after `timeout`.

    Python cannot stop a function from outside: one that is given up goes on in a thread of its own, unheard.

    Raises:
        TimeoutError: It took longer.
    """
    if timeout is None:
        return function()
    ended: list[tuple[Any, BaseException | None]] = []
    surroundings = contextvars.copy_context()

    def work() -> None:
        try:
            ended.append((surroundings.run(function), None))
        except BaseException as error:  # noqa: BLE001 - it is raised again by whoever waits
            ended.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(timeout.total_seconds())
    if not ended:
        raise TimeoutError(f"It took longer than {timeout}.")
    result, error = ended[0]
    if error is not None:
        raise error
    return result


def as_json(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return a result as JSON says it.

    Raises:
        InvalidInput: JSON cannot say it.
    """
    try:
        return to_jsonable_python(value, by_alias=True)
    except PydanticSerializationError as error:
        raise InvalidInput("result", str(error), "Return a pydantic model, or what JSON can say.") from error


def as_annotated(value: Any, function: Callable[..., Any]) -> Any:  # noqa: ANN401 - the same
    """Return a result as a function's annotation says; as plain JSON where it says nothing that fits."""
    if value is None or "return" not in getattr(function, "__annotations__", {}):
        return value
    adapter = _adapter(function)
    if adapter is None:
        return value
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return value


@lru_cache(maxsize=1024)
def _adapter(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    try:
        return TypeAdapter(get_type_hints(function, include_extras=True)["return"])
    except (NameError, TypeError, PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return None
