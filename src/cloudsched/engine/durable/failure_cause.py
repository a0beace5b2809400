"""Which entries of its journal made an execution fail: a retry by hand does these again, and nothing else.

A handler is told of a failed step, call or event by an exception. If that leaves it uncaught, in a group, or as the
cause of another one, its entries are what the execution failed by. So they are where the handler says that it failed,
in whatever words, before it has asked for anything else. One that it caught and went on from is part of how it went on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import FailedBy
from cloudsched.errors import CallFailed, ScriptFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Failures:
    """What one attempt of a durable handler was told of that had failed."""

    def __init__(self) -> None:
        self._told: list[tuple[Exception, FailedBy]] = []

    def tell(self, errors: Iterable[Exception], steps: Iterable[int], asked: int) -> None:
        """Note the errors by which a handler is told of failed entries, when it had asked for so many."""
        failed_by = FailedBy(steps=tuple(steps), asked=asked)
        self._told += [(error, failed_by) for error in errors]

    def together(self, since: int, asked: int) -> None:
        """Take what failed from entry `since` on for one failure, of which the handler is told only now."""
        steps = sorted({step for _, failed_by in self._told for step in failed_by.steps if step >= since})
        one = FailedBy(steps=tuple(steps), asked=asked)
        self._told = [(error, one if min(each.steps) >= since else each) for error, each in self._told]

    def behind(self, error: BaseException | None, asked: int | None) -> FailedBy | None:
        """Return what made a handler fail: what the error that has left it is, holds or names as its cause.

        If that is none of what it was told of, and it has asked for nothing since it was told of a failure, it is that.

        Args:
            error: What has left it; None if it has returned that it failed.
            asked: How many entries it has asked for; None if that is not all that was recorded.
        """
        found = list(self._named_by(error, set())) or [each for _, each in self._told if each.asked == asked]
        steps = {step for failed_by in found for step in failed_by.steps}
        told = [each.asked for _, each in self._told if steps & {*each.steps}]
        return FailedBy(steps=tuple(sorted(steps)), asked=min(told)) if steps else None

    def _named_by(self, error: BaseException | None, seen: set[int]) -> Iterator[FailedBy]:
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            for told, failed_by in self._told:
                if told is error or _is_what_a_script_saw(told, error):
                    yield failed_by
                    return
            if isinstance(error, BaseExceptionGroup):
                for each in error.exceptions:
                    yield from self._named_by(each, seen)
            error = error.__cause__


def _is_what_a_script_saw(told: Exception, error: BaseException) -> bool:
    """Whether a script threw what it was told of a call: no exception passes through it, but the call's id does."""
    if not isinstance(error, ScriptFailed) or not isinstance(told, CallFailed):
        return False
    return bool(told.task_id) and told.task_id in error.problem
