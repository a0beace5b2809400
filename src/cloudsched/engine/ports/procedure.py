"""Procedures: engine code written once, whoever makes the calls in it that may take long.

A procedure is a generator. It does its own work between its yields, and yields a call where it has to wait: for the
store to commit, or for code of the user. `run_procedure` makes each call in its own thread, at once. A queue that
delivers in its own process runs many procedures in one thread instead: it commits for many of them together, and lets
other threads make the calls that take long.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from cloudsched.errors import Portable

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import Commit, VersionedTask

T = TypeVar("T")


class Call(Protocol):
    """A call that a procedure waits for."""

    def make(self) -> Any:  # noqa: ANN401 - whatever is called
        """Make the call in this thread, and return its result."""
        ...


@dataclass(frozen=True, slots=True)
class StoreCommit:
    """A commit of the store."""

    make: Callable[[], VersionedTask]
    commit: Commit


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class LongCall:
    """A call of code of the user, which may take long."""

    make: Callable[[], Any]
    name: str = ""
    """The name of the code. Calls of one name take about the same time."""
    hangs: Callable[[], bool] = _never
    """Returns whether the time is over in which it should have returned: its thread is not to be counted on."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait of a moment, for the time at which a handler may be called. A queue may do something else meanwhile."""

    make: Callable[[], object]
    seconds: float


T_co = TypeVar("T_co", covariant=True)


class Throwing(Protocol[T_co]):
    """A generator or a coroutine."""

    def throw(self, error: BaseException, /) -> T_co:
        """Raise an error where it has yielded, and return what it yields next."""
        ...


class EndOfIteration(Portable, Exception):
    """Carries an exception of the code that was called through procedures, which would take it for their own end."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(error)


def to_thrown(error: BaseException) -> BaseException:
    """Return what is raised in a procedure for an exception of its call."""
    return EndOfIteration(error) if issubclass(type(error), StopIteration | GeneratorExit) else error


def from_thrown(error: BaseException) -> BaseException:
    """Return the exception of the call for what was raised in a procedure."""
    return error.error if type(error) is EndOfIteration else error


Procedure: TypeAlias = Generator[Any, Any, T]
"""A generator that yields calls, is sent their results, and returns a result of its own."""


def make_procedure(call: Callable[[], T], name: str = "") -> Procedure[T]:
    """Return the procedure that makes one call, which may take long, and returns its result."""
    result: T = yield LongCall(call, name)
    return result


def run_procedure(procedure: Procedure[T]) -> T:
    """Run a procedure in this thread, and return its result."""
    advance: Callable[[], Call] = partial(next, procedure)
    while True:
        try:
            call = advance()
        except StopIteration as stop:
            result: T = stop.value
            return result
        try:
            advance = partial(procedure.send, call.make())
        except BaseException as error:  # noqa: BLE001 - raised where the procedure has yielded
            advance = throw_into(procedure, to_thrown(error))
        del call  # it may hold an error, and an error holds this function's variables


def throw_into(procedure: Throwing[T], error: BaseException) -> Callable[[], T]:
    """Return the call that raises an error where a generator or a coroutine has yielded. Call it once.

    It then lets go of the error, whose traceback has the variables of all functions that it went through. Whoever calls
    this is one of them. If the call kept the error, all of these would stay until garbage is collected.
    """
    held = [error]
    return lambda: procedure.throw(held.pop())
