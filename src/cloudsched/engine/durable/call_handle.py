"""The handle that `ctx.call` returns: it gives access to the result of a call, but is not the result itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from cloudsched.engine.durable.calls import wait_for_results
from cloudsched.engine.durable.not_a_value import NotAValue
from cloudsched.errors import CallFailed

if TYPE_CHECKING:
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.engine.durable.durable_run import DurableRun

R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X")


class CallHandle(NotAValue, Generic[R_co]):
    """A call that a durable handler started: a separate task, which runs while the handler does other things.

    Pass it to `Context.gather`, get its `result`, or return it in place of its result. It can be stored in lists, sets
    and dicts, and compared with other calls.
    """

    def __init__(self, durable_run: DurableRun, number: int, handler: str) -> None:
        self.durable_run = durable_run
        self.handler = handler
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
        (outcome,) = self.durable_run.perform(f"the result of {self!r}", wait_for_results, [self.number])
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome

    def __repr__(self) -> str:
        return f"<Call {self.number} of {self.handler!r}>"

    def tell_misuse(self) -> str:
        """Return what is wrong with using the handle as the result."""
        return "A Call is not the result of the call. Use call.result() to get the result."

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"A Call has no attribute {name!r}. {self.tell_misuse()}")

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, CallHandle) else super().__eq__(other)

    __hash__ = object.__hash__
