"""Give a handler's function its handle: the functions that create its tasks."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from cloudsched.domain.documents.authority import SYSTEM_OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.typed_calls import HandlerFunction

P = ParamSpec("P")
R = TypeVar("R")


def add_handle(
    function: Callable[P, R], create_task: Callable[..., Task], run_task: Callable[..., Task]
) -> HandlerFunction[P, R]:
    """Set ``create`` and ``run_now`` of a handler's function, and return the function.

    A method or another callable object cannot have them, and stays as it is.
    """

    def create(payload: Any = None, *, owner: str = SYSTEM_OWNER, **fields: Any) -> Task:  # noqa: ANN401 - as the handler takes it
        """Create a task of this handler, or edit the one of the same id and owner; see `App.create`."""
        given = fields if payload is None else {"payload": payload, **fields}
        return create_task(handler=function, owner=owner, **given)

    def run_now(payload: Any = None, *, owner: str = SYSTEM_OWNER, **fields: Any) -> Task:  # noqa: ANN401 - the same
        """Create a task of this handler that runs once, now; see `App.run_now`."""
        return run_task(function, payload, owner=owner, **fields)

    if inspect.isfunction(function):
        vars(function).update(create=create, run_now=run_now)
    return cast("HandlerFunction[P, R]", function)
