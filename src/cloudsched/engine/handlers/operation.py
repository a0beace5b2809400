"""An operation of an `AsyncContext` that its handler has asked for, and has not awaited yet."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cloudsched.engine.durable.not_a_value import NotAValue

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

T = TypeVar("T")


class Operation(NotAValue, Coroutine[Any, Any, T]):
    """What an ``async def`` method of the context returns: it does nothing until it is awaited.

    It can be awaited, and given to a task or a `asyncio.TaskGroup`, as any coroutine. Python only warns of one that was
    forgotten, on the standard error, and takes it for true: an approval that nobody gave.

    Args:
        what: The operation, as the handler wrote it, such as ``ctx.wait_for('approved')``.
        coroutine: Does it.
        begin: Called once, when somebody awaits it.
    """

    def __init__(self, what: str, coroutine: Coroutine[Any, Any, T], begin: Callable[[Operation[Any]], None]) -> None:
        self.what = what
        self._coroutine = coroutine
        self._begin = begin

    def tell_misuse(self) -> str:
        """Return what is wrong with using it as its result."""
        return f"{self.what} has no result before it is awaited. Write: await {self.what}"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self.tell_misuse()} (it has no attribute {name!r})")

    def __repr__(self) -> str:
        return f"<{self.what}, not awaited>"

    def __await__(self) -> Generator[Any, None, T]:
        self._begin(self)
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:  # noqa: ANN401 - as a coroutine takes it
        """Begin it, or go on, as a task does."""
        self._begin(self)
        return self._coroutine.send(value)

    def throw(
        self,
        error: type[BaseException] | BaseException,
        value: object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> Any:  # noqa: ANN401 - what it yields
        """Raise an error in it, such as a task's cancellation."""
        self._begin(self)
        del value, traceback  # of older forms of this call
        return self._coroutine.throw(error)

    def close(self) -> None:
        """Give it up."""
        self._coroutine.close()
