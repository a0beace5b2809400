"""The types of handlers for type checkers: the payload of a handler, and the result of a call of it.

A payload is the parameter after the context, or the first one of a handler without a context. Parameters with
`Depends` follow it. In a handler without a payload they are keyword-only (``def report(ctx: Context, *, db:
Annotated[…])``), and such a handler is called by its name (``ctx.call("report")``): its type cannot be told
from that of a forgotten payload.
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from cloudsched.domain.documents.task import Task
from cloudsched.engine.durable.durable_run import CallHandle, Misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.task_arguments import CallFields, NewTaskFields, RunArguments
    from cloudsched.engine.durable.durable_run import DurableRun

P = ParamSpec("P")
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class AnyContext:
    """The common base of `Context` and `AsyncContext`: a handler may take one of them first."""

    if not TYPE_CHECKING:  # type checkers would allow every name

        def __getattr__(self, name: str) -> NoReturn:
            """Say what to write instead of a name that a context does not have. Trying again cannot help."""
            from cloudsched.domain.transitions.task_draft import TaskDraft  # noqa: PLC0415 - needed only for errors

            near = get_close_matches(name, dir(self), cutoff=0.8)
            hint = f"ctx.{near[0]}" if near else "what help(Context) has"
            field = TaskDraft.other_names.get(name.replace("_", ""), name)
            if field in {*Task.model_fields, *vars(Task)}:
                hint = f"ctx.task.{field}"
            elif name.startswith("log"):
                hint = "logging.getLogger(__name__).info(…), as everywhere"
            raise Misuse(f"A context has no {name!r}. Write {hint}.")


C = TypeVar("C", bound=AnyContext)


class Calls(AnyContext):
    """The part of a `Context` that calls other handlers."""

    durable_run: DurableRun

    @overload
    def call(
        self,
        handler: Callable[[], Coroutine[Any, Any, R]],
        **fields: Unpack[CallFields],
    ) -> CallHandle[R]: ...
    @overload
    def call(
        self,
        handler: Callable[Concatenate[C, T, ...], Coroutine[Any, Any, R]],
        payload: T,
        **fields: Unpack[CallFields],
    ) -> CallHandle[R]: ...
    @overload
    def call(
        self,
        handler: Callable[[C], Coroutine[Any, Any, R]],
        **fields: Unpack[CallFields],
    ) -> CallHandle[R]: ...
    @overload
    def call(
        self,
        handler: Callable[Concatenate[T, ...], Coroutine[Any, Any, R]],
        payload: T,
        **fields: Unpack[CallFields],
    ) -> CallHandle[R]: ...
    @overload
    def call(self, handler: Callable[[], R], **fields: Unpack[CallFields]) -> CallHandle[R]: ...
    @overload
    def call(
        self, handler: Callable[Concatenate[C, T, ...], R], payload: T, **fields: Unpack[CallFields]
    ) -> CallHandle[R]: ...
    @overload
    def call(self, handler: Callable[[C], R], **fields: Unpack[CallFields]) -> CallHandle[R]: ...
    @overload
    def call(
        self, handler: Callable[Concatenate[T, ...], R], payload: T, **fields: Unpack[CallFields]
    ) -> CallHandle[R]: ...
    @overload
    def call(self, handler: str, payload: Any = None, **fields: Any) -> CallHandle[Any]: ...  # noqa: ANN401 - as the handler takes it
    def call(self, handler: str | Callable[..., Any], payload: Any = None, **fields: Any) -> CallHandle[Any]:
        """Start a call of another handler: a task of its own, whose parent is this task.

        Args:
            handler: The handler: the function itself, so that type checkers know its payload and its result,
                or its registered name.
            payload: Its payload: an instance of its model, or a JSON object (a dict) that fits the model.
            **fields: Other fields of its task (`TaskDraft`): title, priority, expected_duration …, and retry,
                as a policy, a number of retries, True or False. It starts at once, and belongs to the same
                owner unless `owner` names another, who is to be asked or told.

        Raises:
            InvalidInput: There is no such handler, or the payload or a field is not valid.
            LimitExceeded: Too many calls are in progress, or they are nested too deeply.

        >>> ctx.call("remind", {"about": "Tea"}, owner="ada").result()
        'Tea'
        """
        from cloudsched.engine.durable.calls import start_call, wait_for_results  # noqa: PLC0415 - few handlers make calls

        what = f"ctx.call({getattr(handler, '__name__', handler)!r})"
        entry = self.durable_run.perform(what, start_call, handler, payload, fields)
        return CallHandle(self.durable_run, entry.number, entry.name, wait_for_results)


class CreateWithPayload(Protocol[T_contra]):
    """Creates a task of a handler that takes a payload."""

    def __call__(
        self,
        payload: T_contra,
        *,
        owner: str = ...,
        schedule: Schedule | datetime | str | None = ...,
        **fields: Unpack[NewTaskFields],
    ) -> Task:
        """Create a task of this handler, or edit the one of the same id and owner. See `App.create`."""
        ...


class CreateWithoutPayload(Protocol):
    """Creates a task of a handler that takes no payload."""

    def __call__(
        self,
        *,
        owner: str = ...,
        schedule: Schedule | datetime | str | None = ...,
        **fields: Unpack[NewTaskFields],
    ) -> Task:
        """Create a task of this handler, or edit the one of the same id and owner. See `App.create`."""
        ...


class RunWithPayload(Protocol[T_contra]):
    """Runs a handler that takes a payload."""

    def __call__(self, payload: T_contra, *, owner: str = ..., **fields: Unpack[NewTaskFields]) -> Task:
        """Create a task of this handler that runs once, now. See `App.run_now`."""
        ...


class RunWithoutPayload(Protocol):
    """Runs a handler that takes no payload."""

    def __call__(self, *, owner: str = ..., **fields: Unpack[NewTaskFields]) -> Task:
        """Create a task of this handler that runs once, now. See `App.run_now`."""
        ...


class _Create:
    """The type of `create`, as the handler's signature says."""

    @overload
    def __get__(self, handler: Callable[[], Any], kind: object) -> CreateWithoutPayload: ...
    @overload
    def __get__(
        self,
        handler: Callable[Concatenate[C, T, ...], Any],
        kind: object,
    ) -> CreateWithPayload[T]: ...
    @overload
    def __get__(self, handler: Callable[Concatenate[C, ...], Any], kind: object) -> CreateWithoutPayload: ...
    @overload
    def __get__(self, handler: Callable[Concatenate[T, ...], Any], kind: object) -> CreateWithPayload[T]: ...
    def __get__(self, handler: Any, kind: object) -> Any:
        raise NotImplementedError


class _Run:
    @overload
    def __get__(self, handler: Callable[[], Any], kind: object) -> RunWithoutPayload: ...
    @overload
    def __get__(self, handler: Callable[Concatenate[C, T, ...], Any], kind: object) -> RunWithPayload[T]: ...
    @overload
    def __get__(self, handler: Callable[Concatenate[C, ...], Any], kind: object) -> RunWithoutPayload: ...
    @overload
    def __get__(self, handler: Callable[Concatenate[T, ...], Any], kind: object) -> RunWithPayload[T]: ...
    def __get__(self, handler: Any, kind: object) -> Any:
        raise NotImplementedError


class HandlerFunction(Generic[P, R_co]):
    """The type of a function with ``@app.handler`` for type checkers. At run time it is the function itself.

    Attributes:
        create: Creates a task of this handler, in the app that registered it last.
        run_now: Creates a task of this handler that runs once, now.
    """

    __name__: str
    __qualname__: str
    create: ClassVar[_Create] = _Create()
    run_now: ClassVar[_Run] = _Run()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function, as any other."""
        raise NotImplementedError


def add_handle(
    function: Callable[P, R], create_task: Callable[..., Task], run_task: Callable[..., Task]
) -> HandlerFunction[P, R]:
    """Set ``create`` and ``run_now`` of a handler's function, and return the function.

    A method or another callable object cannot have them, and stays as it is.
    """

    def create(payload: Any = None, **fields: Unpack[NewTaskFields]) -> Task:  # noqa: ANN401 - as the handler takes it
        """Create a task of this handler, or edit the one of the same id and owner. See `App.create`."""
        given = {} if payload is None else {"payload": payload}
        return create_task(handler=function, **given, **fields)

    def run_now(payload: Any = None, **fields: Unpack[RunArguments]) -> Task:  # noqa: ANN401 - the same
        """Create a task of this handler that runs once, now. See `App.run_now`."""
        return run_task(function, payload, **fields)

    if inspect.isfunction(function):
        vars(function).update(create=create, run_now=run_now)
    return cast("HandlerFunction[P, R]", function)
