"""Which entries of its journal made an execution fail: a retry by hand does these again, and nothing else.

A handler is told of a failed step, call or event by an exception. If that leaves it uncaught, in a group, or as the
cause of another one, its entries are what the execution failed by. So they are where the handler says that it failed,
in whatever words, before it has asked for anything else. One that it caught and went on from is part of how it went on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import FailureCause
from cloudsched.errors import CallFailed, ScriptFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class FailureTracker:
    """What one attempt of a durable handler was told of that had failed."""

    def __init__(self) -> None:
        self._noted: list[tuple[Exception, FailureCause]] = []

    def note(self, errors: Iterable[Exception], steps: Iterable[int], position: int) -> None:
        """Note the errors by which a handler is told of failed entries, when it had asked for so many."""
        failed_by = FailureCause(steps=tuple(steps), position=position)
        self._noted += [(error, failed_by) for error in errors]

    def merge_since(self, since: int, position: int) -> None:
        """Take what failed from entry `since` on for one failure, of which the handler is told only now."""
        steps = sorted({step for _, failed_by in self._noted for step in failed_by.steps if step >= since})
        one = FailureCause(steps=tuple(steps), position=position)
        self._noted = [(error, one if min(each.steps) >= since else each) for error, each in self._noted]

    def cause_of(self, error: BaseException | None, position: int | None) -> FailureCause | None:
        """Return what made a handler fail: what the error that has left it is, holds or names as its cause.

        If that is none of what it was told of, and it has asked for nothing since it was told of a failure, it is that.

        Args:
            error: What has left it; None if it has returned that it failed.
            position: How many entries it has asked for; None if that is not all that was recorded.
        """
        found = list(self._find_causes(error, set())) or [each for _, each in self._noted if each.position == position]
        steps = {step for failed_by in found for step in failed_by.steps}
        told = [each.position for _, each in self._noted if steps & {*each.steps}]
        return FailureCause(steps=tuple(sorted(steps)), position=min(told)) if steps else None

    def _find_causes(self, error: BaseException | None, seen: set[int]) -> Iterator[FailureCause]:
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            for told, failed_by in self._noted:
                if told is error or _is_rethrown_by_script(told, error):
                    yield failed_by
                    return
            if isinstance(error, BaseExceptionGroup):
                for each in error.exceptions:
                    yield from self._find_causes(each, seen)
            error = error.__cause__


def _is_rethrown_by_script(noted: Exception, error: BaseException) -> bool:
    """Whether a script threw what it was told of a call: no exception passes through it, but the call's id does."""
    if not isinstance(error, ScriptFailed) or not isinstance(noted, CallFailed):
        return False
    return bool(noted.task_id) and noted.task_id in error.problem
