"""The handle that `ctx.call` returns: it gives access to the result of a call, but is not the result itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar, overload

from cloudsched.errors import CallFailed, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.outcome import Outcome
    from cloudsched.engine.durable.durable_run import DurableRun

R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X")
_HINT = "Use call.result() to get the result."


H = TypeVar("H", bound="CallHandle[Any]")


class CallHandle(Generic[R_co]):
    """A call that a durable handler started: a separate task, which runs while the handler does other things.

    Pass it to `Context.gather`, get its `result`, or return it in place of its result. It can be stored in lists, sets
    and dicts, and compared with other calls.
    """

    def __init__(self, durable_run: DurableRun, number: int, handler: str) -> None:
        self._durable_run = durable_run
        self._handler = handler
        self.number = number

    @overload
    def result(self: CallHandle[Outcome]) -> Any: ...  # noqa: ANN401 - the content of what it returns
    @overload
    def result(self: CallHandle[X]) -> X: ...
    def result(self) -> Any:
        """Return what the called handler returned; the caller is suspended until then.

        Raises:
            CallFailed: The call did not succeed.
        """
        (outcome,) = self._durable_run.wait_for_results([self.number])
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome

    def __repr__(self) -> str:
        return f"<Call {self.number} of {self._handler!r}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"A Call has no attribute {name!r}. {_HINT}")

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, CallHandle) else self._raise_not_a_value()

    __hash__ = object.__hash__

    def _raise_not_a_value(self, *_: object) -> NoReturn:
        raise TypeError(f"A Call is not the result of the call. {_HINT}")

    def __bool__(self) -> NoReturn:
        raise TypeError(f"A Call has no truth value: it is not the result of the call. {_HINT}")

    def __str__(self) -> NoReturn:
        raise TypeError(f"A Call cannot be converted to text: it is not the result of the call. {_HINT}")

    def __format__(self, spec: str) -> NoReturn:
        raise TypeError(f"A Call cannot be converted to text: it is not the result of the call. {_HINT}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _raise_not_a_value
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __iter__ = __contains__ = __len__ = _raise_not_a_value


class RaceResult(NamedTuple, Generic[H]):
    """What `Context.race` returns: ``result, winner = ctx.race(first, second)``."""

    result: Any
    """What the winner's handler returned."""
    winner: H
    """The call that ended first, one of those that were passed."""


def require_racers(durable_run: object, calls: Sequence[CallHandle[Any]], *, cancel_losers: object) -> list[int]:
    """Return the numbers of the calls of a race.

    Raises:
        InvalidInput: There are none, one of them is given twice, or one belongs to another attempt or execution;
            or `cancel_losers` is not a bool.
    """
    if not isinstance(cancel_losers, bool):
        raise InvalidInput("cancel_losers", "is not a bool", "Give True or False, and each call as its own argument.")
    if not calls:
        raise InvalidInput("calls", "are missing: nobody can win a race of nothing", "Give at least one call.")
    numbers = list[int]()
    for place, call in enumerate(calls):
        if call._durable_run is not durable_run:  # noqa: SLF001 - its own file
            hint = "Pass only calls that this attempt of the handler has started with its own ctx.call."
            raise InvalidInput(f"calls.{place}", "is a call of another execution or attempt", hint)
        if call.number in numbers:
            raise InvalidInput(f"calls.{place}", "is given twice", "Pass each call once.")
        numbers.append(call.number)
    return numbers
