"""Which journal entries made an execution fail: a manual retry runs these again, and nothing else.

A failed step, call or event raises an exception in the handler. If that exception leaves the handler uncaught, in a
group, or as the cause of another exception, its entries are the failure cause. They are also the cause if the handler
fails in any other way before it requests another entry. A failure that the handler caught and continued from is not a
cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import FailureCause
from cloudsched.errors import CallFailed, ScriptFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class FailureTracker:
    """Tracks the failures that were raised in, or returned to, one attempt of a durable handler."""

    def __init__(self) -> None:
        self._noted: list[tuple[Exception, FailureCause]] = []

    def note(self, errors: Iterable[Exception], steps: Iterable[int], position: int) -> None:
        """Note the errors that report failed entries to the handler, and how many entries it had requested by then."""
        cause = FailureCause(steps=tuple(steps), position=position)
        self._noted += [(error, cause) for error in errors]

    def merge_since(self, since: int, position: int) -> None:
        """Merge the failures of the entries from `since` on into one, reported to the handler at `position`."""
        steps = sorted({step for _, cause in self._noted for step in cause.steps if step >= since})
        merged = FailureCause(steps=tuple(steps), position=position)
        self._noted = [(error, merged if min(cause.steps) >= since else cause) for error, cause in self._noted]

    def cause_of(self, error: BaseException | None, position: int | None) -> FailureCause | None:
        """Return the entries that made a handler fail: those of its error, of the errors in its group, or of its cause.

        If no noted failure is among these, it is the failure noted at `position`: the handler has requested no entry
        since. None if there is no such failure either.

        Args:
            error: The exception that left the handler; None if it returned a failure.
            position: How many entries it has requested; None if that is fewer than were recorded.
        """
        causes = list(self._find_causes(error, set())) or [each for _, each in self._noted if each.position == position]
        steps = {step for cause in causes for step in cause.steps}
        positions = [each.position for _, each in self._noted if steps & {*each.steps}]
        return FailureCause(steps=tuple(sorted(steps)), position=min(positions)) if steps else None

    def _find_causes(self, error: BaseException | None, seen: set[int]) -> Iterator[FailureCause]:
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            for noted, cause in self._noted:
                if noted is error or _is_rethrown_by_script(noted, error):
                    yield cause
                    return
            if isinstance(error, BaseExceptionGroup):
                for each in error.exceptions:
                    yield from self._find_causes(each, seen)
            error = error.__cause__


def _is_rethrown_by_script(noted: Exception, error: BaseException) -> bool:
    """Whether a script rethrew a failed call: the exception object is lost in a script, but the call's id is not."""
    if not isinstance(error, ScriptFailed) or not isinstance(noted, CallFailed):
        return False
    return bool(noted.task_id) and noted.task_id in error.problem
