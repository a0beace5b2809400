"""The calls of one attempt whose tasks are not created yet, and those that have not ended.

The task of a call is created after its entry is committed. Without room for it in its owner's quota the handler goes
on, and the call is tried again at its next commit, and whenever the handler resumes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import StepKind, StepStatus
from cloudsched.errors import QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.outcome import Suspend

MIN_QUOTA_PAUSE = timedelta(minutes=1)
MAX_QUOTA_PAUSE = timedelta(minutes=10)
"""How long a handler is suspended at least and at most before it tries again to make a call for which its owner's quota
had no room."""


class PendingCalls:
    """The calls of one attempt by their entry numbers.

    Args:
        make_call: Creates the task of a call; returns whether it is new.
        made: Up to which entry number all calls are known to have tasks.
    """

    def __init__(self, make_call: Callable[[Task], bool], made: int) -> None:
        self._make_call = make_call
        self._new = set[int]()
        self._waiting = set[int]()
        self._quota_refusal: QuotaExceeded | None = None
        self.made = made
        """Up to which entry number all calls are known to have tasks."""
        self.tasks: dict[int, Task] = {}
        """The tasks that are not created yet."""

    @property
    def waiting(self) -> list[int]:
        """The calls whose end is not recorded, in the order in which they were made."""
        return sorted(self._waiting)

    @property
    def waiting_count(self) -> int:
        """How many calls have an end that is not recorded."""
        return len(self._waiting)

    @property
    def is_refused(self) -> bool:
        """Whether the owner's quota had no room for a call when it was last tried."""
        return self._quota_refusal is not None

    def note(self, entries: Iterable[JournalEntry]) -> None:
        """Note which of the changed entries are calls that have not ended."""
        for entry in entries:
            is_waiting = entry.kind is StepKind.CALL and entry.status is StepStatus.WAITING
            (self._waiting.add if is_waiting else self._waiting.discard)(entry.number)

    def may_have_ended(self, number: int) -> bool:
        """Whether it makes sense to ask for a call's outcome: not if this attempt has only just made it."""
        return number not in self._new and number not in self.tasks

    def create(self) -> None:
        """Create the tasks, in order, until the owner's quota has no room: that one and those after it wait."""
        self._quota_refusal = None
        for number in sorted(self.tasks):
            try:
                is_new = self._make_call(self.tasks[number])
            except QuotaExceeded as refusal:
                self._quota_refusal = refusal
                return
            if is_new:
                self._new.add(number)
            del self.tasks[number]
            self.made = number

    def await_room(self, suspend: Suspend, now: datetime, first_started_at: Callable[[int], datetime]) -> Suspend:
        """Return the suspension that also ends when the owner's quota may have room for the calls.

        Args:
            suspend: The suspension.
            now: The present instant.
            first_started_at: Returns when the call with a number was requested.
        """
        refusal = self._quota_refusal
        if refusal is None:
            return suspend
        pause = min(max(now - first_started_at(min(self.tasks)), MIN_QUOTA_PAUSE), MAX_QUOTA_PAUSE)
        if refusal.retry_after is not None:
            pause = timedelta(seconds=refusal.retry_after)
        what = "a call waits" if len(self.tasks) == 1 else f"{len(self.tasks)} calls wait"
        return replace(
            suspend,
            reason=f"{suspend.reason}; {what} for room: {refusal}",
            until=min(suspend.until, now + pause),
            quota_refusal=str(refusal),
        )
