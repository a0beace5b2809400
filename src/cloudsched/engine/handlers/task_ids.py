"""The ids of tasks that follow from what their payloads are about, so that creating one again edits it.

``@app.handler("remind", task_id=lambda payload: f"remind-{payload.order}")``: a creation without an id of its own takes
this one. If users may name the handler, the id begins with a hash of the owner, so that no user can take the id of
another user's task.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cloudsched.domain.documents.json_limits import exception_text
from cloudsched.domain.documents.task import TaskId, owner_id_prefix
from cloudsched.errors import InvalidInput, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable

_TASK_ID: TypeAdapter[str] = TypeAdapter(TaskId, config=ConfigDict(defer_build=True))
_EXAMPLE = 'task_id=lambda payload: f"remind-{payload.order}"'


def validate_task_id(name: str, function: Any) -> Callable[[Any], str | None] | None:  # noqa: ANN401 - a caller's option
    """Return the ``task_id`` option of a handler.

    Raises:
        Misconfigured: It is not a function of one argument.
    """
    if function is None:
        return None
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise Misconfigured(f"Handler {name!r}: task_id is {function!r}; give a function of the payload: {_EXAMPLE}.")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise Misconfigured(f"Handler {name!r}: task_id takes one argument, the payload: {_EXAMPLE}.") from error
    except ValueError:  # a built-in without a signature
        pass
    return function  # type: ignore[no-any-return]  # as far as it can be checked


def derive_task_id(
    name: str,
    function: Callable[[Any], str | None],
    payload: Any,  # noqa: ANN401 - whatever the handler takes
    owner: str,
    *,
    is_for_users: bool,
) -> str | None:
    """Return the id of a task with this payload; None if the function returns None.

    Raises:
        InvalidInput: The function raises, or returns something that cannot be an id.
    """
    try:
        chosen = function(payload)
    except Exception as error:
        problem = f"makes the task_id of handler {name!r} raise {type(error).__name__}: {exception_text(error)}"
        raise InvalidInput("payload", problem) from error
    if chosen is None:
        return None
    try:
        return _TASK_ID.validate_python(f"{owner_id_prefix(owner) if is_for_users else ''}{chosen}")
    except ValidationError as error:
        problem = f"is {str(chosen)[:200]!r}, says the task_id of handler {name!r}"
        raise InvalidInput("id", problem, "It must be 1 to 128 letters, digits, hyphens and underscores.") from error
