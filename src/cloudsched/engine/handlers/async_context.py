"""The context of an ``async def`` handler: it forwards to the `Context` in the attempt's thread."""

# ruff: noqa: ASYNC109, ANN401 - the signatures are those of `Context`; a timeout is recorded, and not
# asyncio's

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, NoReturn, Unpack, cast, overload

from typing_extensions import TypeVar

from cloudsched.domain.documents.authority import DEFAULT_SENDERS, EventSender
from cloudsched.domain.documents.journal import StepKind
from cloudsched.engine.durable.arguments import deadline, parse_wait
from cloudsched.engine.durable.durable_run import CallHandle, Misuse, NotAValue, R_co, X, method_of_call
from cloudsched.engine.durable.step_attempt import is_in_step_attempt, require_not_timed_out
from cloudsched.engine.durable.steps import StepRequest
from cloudsched.engine.durable.user_calls import run_on_loop
from cloudsched.engine.durable.waits import sleep_until
from cloudsched.engine.handlers.operation_turns import OperationTurns
from cloudsched.engine.handlers.typed_calls import AnyContext, C, R
from cloudsched.errors import CallFailed, WorkflowError

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from random import Random
    from types import TracebackType
    from uuid import UUID

    from cloudsched.domain.documents.policy import RetryPolicy
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.domain.transitions.task_arguments import CallFields
    from cloudsched.engine.durable.event_loop import Blocking
    from cloudsched.engine.durable.race import RaceResult
    from cloudsched.engine.handlers.context import Context

T = TypeVar("T")
E = TypeVar("E", default=Any)
"""The type of an event that the handler has declared, or any JSON."""
Method = TypeVar("Method", bound="Callable[..., Coroutine[Any, Any, Any]]")


def _awaited(method: Method) -> Method:
    """Wrap a method so that it returns an `AwaitedOperation`, which detects that it was never awaited."""

    @wraps(method)
    def begin(self: AsyncContext, *args: Any, **kwargs: Any) -> AwaitedOperation[Any]:
        name = ""
        if args and isinstance(args[0], str):
            name = repr(args[0])
        elif args or kwargs:
            name = "…"
        return self._expect(f"ctx.{method.__name__}({name})", method(self, *args, **kwargs))

    return cast("Method", begin)


class AsyncContext(AnyContext):
    """One attempt at one occurrence, as its ``async def`` handler sees it: a `Context` that is awaited.

    You await what may wait for the store: `step`, `sleep`, `wait_for`, `gather`, `race`, `progress` and
    `heartbeat`. `call` starts a call at once and returns it. Awaiting that gives its result. The journal
    records one durable operation after the other: those that are awaited together, by `asyncio.gather` for example,
    are made in the order of their start. To run work in parallel, use `call` and `gather`, or `asyncio.gather`
    within one step.

    Attributes:
        task: The task as it was when the attempt started.
        execution_id: The same on every retry of the occurrence. Use it as an idempotency key for other
            services.
        scheduled_for: The occurrence's instant, in UTC.
        attempt: The number of this attempt, counted from 1.
    """

    def __init__(self, context: Context, blocking: Blocking) -> None:
        self._context = context
        self._blocking = blocking
        self._turns = OperationTurns(context.durable_run.find_next)
        self._refused: WorkflowError | None = None
        self._expected: dict[int, AwaitedOperation[Any]] = {}
        self.task: Task = context.task
        self.execution_id: str = context.execution_id
        self.scheduled_for: datetime = context.scheduled_for
        self.attempt: int = context.attempt

    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        retry: RetryPolicy | int | bool | None = None,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> T: ...
    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        retry: RetryPolicy | int | bool | None = None,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> T: ...
    @_awaited
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retry: RetryPolicy | int | bool | None = None,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call a function once and record its result. See `Context.step`.

        An ``async def`` function runs on the event loop and is cancelled at its `timeout`. Any other runs in
        the attempt's own thread, so it may block.
        """
        step = StepRequest(name, function, args, kwargs, self.task.retry if retry is None else retry, timeout)
        return await self._durable(f"ctx.step({name!r})", step, (StepKind.STEP, name))

    @overload
    async def gather(
        self,
        *calls: AsyncCallHandle[T],
        return_failures: Literal[False] = False,
    ) -> list[T]: ...
    @overload
    async def gather(self, *calls: AsyncCallHandle[T], return_failures: bool) -> list[T | CallFailed]: ...
    @_awaited
    async def gather(self, *calls: AsyncCallHandle[Any], return_failures: bool = False) -> list[Any]:
        """Wait until all calls have ended, and return their results in the order of the arguments.

        See `Context`.
        """
        return await self._durable(  # type: ignore[no-any-return] # what `Context.gather` returns
            "ctx.gather", partial(self._context.gather, *calls, return_failures=return_failures)
        )

    @_awaited
    async def race(
        self,
        *calls: AsyncCallHandle[T],
        cancel_losers: bool = True,
    ) -> RaceResult[T, AsyncCallHandle[T]]:
        """Wait until the first of the calls has ended, and return its result and that call. See `Context`."""
        return await self._durable(  # type: ignore[no-any-return] # what `Context.race` returns
            "ctx.race", partial(self._context.race, *calls, cancel_losers=cancel_losers), (StepKind.RACE, "")
        )

    @_awaited
    async def sleep(self, until: timedelta | datetime) -> None:
        """Wait for a duration, or until an aware instant, while no function runs. See `Context`."""
        instant = partial(deadline, parse_wait("until", until))
        perform: Any = self._context.durable_run.perform
        sleep = partial(perform, "ctx.sleep", sleep_until, instant)
        await self._durable("ctx.sleep", sleep, (StepKind.SLEEP, ""))

    @overload
    async def wait_for(
        self,
        event: str,
        model: type[E] | None = None,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        question: str | None = None,
        channels: Sequence[str] = (),
        with_sender: Literal[False] = False,
    ) -> E: ...
    @overload
    async def wait_for(
        self,
        event: str,
        model: type[E] | None = None,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        question: str | None = None,
        channels: Sequence[str] = (),
        with_sender: Literal[True],
    ) -> tuple[E, EventSender]: ...
    @_awaited
    async def wait_for(
        self,
        event: str,
        model: type[Any] | None = None,
        timeout: timedelta | None = None,
        *,
        by: Sequence[str] = DEFAULT_SENDERS,
        question: str | None = None,
        channels: Sequence[str] = (),
        with_sender: bool = False,
    ) -> Any:
        """Return the payload of an event that is sent to this execution from outside.

        See `Context.wait_for`.
        """
        function: Any = self._context.wait_for
        asked = {"by": by, "question": question, "channels": channels, "with_sender": with_sender}
        request = partial(function, event, model, timeout, **asked)
        return await self._durable(f"ctx.wait_for({event!r})", request, (StepKind.EVENT, event))

    @_awaited
    async def progress(self, text: str) -> None:
        """Record how far the work is, and renew the lease. See `Context.progress`."""
        await self._request(partial(self._context.progress, text))

    @_awaited
    async def heartbeat(self) -> bool:
        """Renew the lease.

        Return False if the task was cancelled or the lease is lost. See `Context.heartbeat`.
        """
        return bool(await self._request(self._context.heartbeat))

    @overload
    def call(
        self, handler: Callable[[], Coroutine[Any, Any, R]], **fields: Unpack[CallFields]
    ) -> AsyncCallHandle[R]: ...
    @overload
    def call(
        self,
        handler: Callable[Concatenate[C, T, ...], Coroutine[Any, Any, R]],
        payload: T,
        **fields: Unpack[CallFields],
    ) -> AsyncCallHandle[R]: ...
    @overload
    def call(
        self, handler: Callable[[C], Coroutine[Any, Any, R]], **fields: Unpack[CallFields]
    ) -> AsyncCallHandle[R]: ...
    @overload
    def call(
        self,
        handler: Callable[Concatenate[T, ...], Coroutine[Any, Any, R]],
        payload: T,
        **fields: Unpack[CallFields],
    ) -> AsyncCallHandle[R]: ...
    @overload
    def call(self, handler: Callable[[], R], **fields: Unpack[CallFields]) -> AsyncCallHandle[R]: ...
    @overload
    def call(
        self, handler: Callable[Concatenate[C, T, ...], R], payload: T, **fields: Unpack[CallFields]
    ) -> AsyncCallHandle[R]: ...
    @overload
    def call(self, handler: Callable[[C], R], **fields: Unpack[CallFields]) -> AsyncCallHandle[R]: ...
    @overload
    def call(
        self, handler: Callable[Concatenate[T, ...], R], payload: T, **fields: Unpack[CallFields]
    ) -> AsyncCallHandle[R]: ...
    @overload
    def call(self, handler: str, payload: Any = None, **fields: Any) -> AsyncCallHandle[Any]: ...
    def call(
        self,
        handler: str | Callable[..., Any],
        payload: Any = None,
        **fields: Any,
    ) -> AsyncCallHandle[Any]:
        """Start a call of another handler at once. Awaiting it gives its result. See `Context.call`."""
        self._require_turn(f"ctx.call({getattr(handler, '__name__', handler)!r})")
        return AsyncCallHandle(self, self._context.call(handler, payload, **fields))

    def now(self) -> datetime:
        """Return the present instant, which a replay repeats. See `Context.now`."""
        self._require_turn("ctx.now()")
        return self._context.now()

    def uuid(self) -> UUID:
        """Return a new UUID, the same in every replay and retry. See `Context.uuid`."""
        self._require_turn("ctx.uuid()")
        return self._context.uuid()

    @property
    def random(self) -> Random:
        """A random source that repeats itself in every replay. See `Context.random`."""
        self._require_turn("ctx.random")
        return self._context.random

    def version(self, name: str, newest: int) -> int:
        """Return the version of a changed piece of code that this execution follows.

        See `Context.version`.
        """
        self._require_turn(f"ctx.version({name!r})")
        return self._context.version(name, newest)

    def time_left(self) -> timedelta:
        """Return the time that the lease still lasts. See `Context.time_left`."""
        return self._context.time_left()

    def notify(self, title: str, body: str) -> None:
        """Send a message to the owner's web inbox if this attempt succeeds. See `Context.notify`."""
        self._context.notify(title, body)

    def used(self, *, queries: int = 0, tokens: int = 0) -> None:
        """Add to the recorded usage of this attempt, or of the step. See `Context.used`."""
        self._context.used(queries=queries, tokens=tokens)

    def check_complete(self) -> None:
        """Raise WorkflowError if the handler left anything unawaited, or ignored a refusal."""
        self.check_refused()
        for operation in self._expected.values():
            raise WorkflowError(
                f"The handler never awaited {operation.what}, so it did nothing. Write: await {operation.what}"
            )
        current = self._turns.current
        if current is not None:
            raise WorkflowError(f"The handler returned while {current} was in progress: await it.")

    def close(self) -> None:
        """Drop the operations that were never awaited, and the refusal, after the handler has ended."""
        for operation in self._expected.values():
            operation.close()
        self._expected.clear()
        self._refused = None

    def check_refused(self, cause: BaseException | None = None) -> None:
        """Raise the refusal of an operation, if there was one, with the error that followed as its cause."""
        if self._refused is not None:
            raise self._refused from cause

    def _expect(self, what: str, coroutine: Coroutine[Any, Any, Any]) -> AwaitedOperation[Any]:
        operation = AwaitedOperation(what, coroutine, self._begin)
        self._expected[id(operation)] = operation
        return operation

    def _begin(self, operation: AwaitedOperation[Any]) -> None:
        self._expected.pop(id(operation), None)

    def _require_turn(self, what: str) -> None:
        """Check that no other operation is in progress, before one that cannot wait for its turn."""
        if is_in_step_attempt():
            return  # what a step may not do, the durable run refuses
        current = self._turns.current
        if self._refused is None and current is not None:
            self._refused = WorkflowError(
                f"{what} is requested while {current} is in progress. The journal records the order of a handler's "
                "operations, and this one is not awaited, so it cannot wait for its turn: request it before or after. "
                "To run work in parallel, use ctx.call and ctx.gather, or asyncio.gather within one step."
            )
        if self._refused is not None:
            raise self._refused

    async def _durable(
        self, what: str, operation: StepRequest | Callable[[], Any], recorded: tuple[StepKind, str] | None = None
    ) -> Any:
        from cloudsched.engine.durable.event_loop import shield  # noqa: PLC0415 - imports asyncio

        self.check_refused()
        if is_in_step_attempt():  # the durable run refuses it
            return await self._make(operation)
        await self._take_turn(what, recorded)
        try:
            outcome = await shield(partial(self._make, operation))
        except CancelledError:  # it goes on
            self._turns.abandon()
            raise
        self._turns.give_back()
        return outcome.unwrap()

    async def _take_turn(self, what: str, recorded: tuple[StepKind, str] | None) -> None:
        try:
            await self._turns.take(what, recorded)
        except WorkflowError as refusal:
            self._refused = self._refused or refusal
            raise

    async def _make(self, operation: StepRequest | Callable[[], Any]) -> Any:
        if isinstance(operation, StepRequest):
            return await run_on_loop(operation.plan(self._context.durable_run), self._blocking)
        return await self._request(operation)

    async def _request(self, function: Callable[[], Any]) -> Any:
        require_not_timed_out()
        return await self._blocking.request(function)

    async def _result(self, call: CallHandle[Any]) -> Any:
        return await self._durable(f"the result of {call!r}", partial(CallHandle.wait, call))


class AsyncCallHandle(CallHandle[R_co]):
    """A call that an ``async def`` handler started.

    Await it to get its result, or pass it to `AsyncContext.gather`.
    """

    def __init__(self, context: AsyncContext, call: CallHandle[R_co]) -> None:
        super().__init__(call.durable_run, call.number, call.handler, call.read_results)
        self._context = context

    @overload
    def __await__(self: AsyncCallHandle[Outcome]) -> Generator[Any, None, Any]: ...
    @overload
    def __await__(self: AsyncCallHandle[X]) -> Generator[Any, None, X]: ...
    def __await__(self) -> Generator[Any, None, Any]:
        """Return what the called handler returned. Raise `CallFailed` if the call did not succeed."""
        return self._context._result(self).__await__()  # noqa: SLF001 - its own file

    @overload  # type: ignore[override] # awaited, unlike the handle of a plain handler
    async def result(self: AsyncCallHandle[Outcome]) -> Any: ...
    @overload
    async def result(self: AsyncCallHandle[X]) -> X: ...
    @method_of_call
    async def result(self) -> Any:
        """Return what awaiting the call returns."""
        return await self


class AwaitedOperation(NotAValue, Coroutine[Any, Any, T]):
    """The result of an ``async def`` method of the context: it does nothing until it is awaited.

    It can be awaited, and given to a task or a `asyncio.TaskGroup`, as any coroutine. Python only prints a
    warning of one that was forgotten, and takes it for true: an approval that nobody gave. `begin` is called
    once, when it is awaited.
    """

    def __init__(
        self,
        what: str,
        coroutine: Coroutine[Any, Any, T],
        begin: Callable[[AwaitedOperation[Any]], None],
    ) -> None:
        self.what = what
        self._coroutine = coroutine
        self._begin = begin

    def describe_misuse(self) -> str:
        """Return the message for a use of it as if it were its result."""
        return f"{self.what} has no result before it is awaited. Write: await {self.what}"

    def __getattr__(self, name: str) -> NoReturn:
        raise Misuse(f"{self.describe_misuse()} (it has no attribute {name!r})")

    def __repr__(self) -> str:
        return f"<{self.what}, not awaited>"

    def __await__(self) -> Generator[Any, None, T]:
        self._begin(self)
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:
        """Begin it, or go on, as a task does."""
        self._begin(self)
        return self._coroutine.send(value)

    def throw(
        self,
        error: type[BaseException] | BaseException,
        value: object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> Any:
        """Raise an error in it, such as a task's cancellation."""
        self._begin(self)
        del value, traceback  # of older forms of this call
        return self._coroutine.throw(error)

    def close(self) -> None:
        """Close the coroutine, which then never runs."""
        self._coroutine.close()
