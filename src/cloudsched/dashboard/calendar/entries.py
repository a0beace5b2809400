"""What a calendar shows on a day: its past and due occurrences, and their numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import BAD, Status, show_status
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.words import join_phrases, only_if
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Json

_DUE: Final = Status("due", "Due", "due")
_LATE: Final = Status("late", "Late", "timeout")
MOST_COUNTED: Final = 10_000
"""The largest number that the API counts."""
BUSY: Final = 6
"""A task that is due more often than this on a day is busy that day, and goes into the bars."""


@dataclass(frozen=True, slots=True)
class Bin:
    """The numbers of occurrences in a part of the time."""

    ran: int = 0
    failed: int = 0
    due: int = 0
    late: int = 0
    """Those due in the past that have not begun."""
    skipped: int = 0
    """Those that a decision kept from running: skipped, expired or cancelled."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An occurrence in a calendar, past or to come."""

    at: datetime
    task_id: str
    title: str
    href: str
    status: Status
    kind: str
    """Its field in a `Bin`: ``ran``, ``failed``, ``skipped``, ``late`` or ``due``."""


def read_entries(answer: Json, now: datetime) -> Iterator[Entry]:
    """Yield the API's answers as entries."""
    for each in answer["ran"]:
        href = f"tasks/{each['taskId']}/executions/{each['id']}"
        at = parse_instant(each["scheduledFor"])
        yield Entry(at, each["taskId"], each["title"], href, show_status(each["status"]), _find_kind(each["status"]))
    for each in answer["due"]:
        at = parse_instant(each["utc"])
        href = f"tasks/{each['taskId']}"
        if at <= now:  # nobody has begun it, a worker that does not come for example
            yield Entry(at, each["taskId"], each["title"], href, _LATE, "late")
        else:
            yield Entry(at, each["taskId"], each["title"], href, _DUE, "due")


def _find_kind(status: str) -> str:
    if status in BAD:
        return "failed"
    if status in NOT_RUN_STATUSES:
        return "skipped"
    return "ran"


def find_busy(entries: Sequence[Entry]) -> set[str]:
    """Return the tasks that are busy on a day, from all entries of the day."""
    times = Counter(each.task_id for each in entries)
    return {task_id for task_id, count in times.items() if count > BUSY}


def count_entries(entries: Sequence[Entry]) -> Bin:
    """Return the number of entries of each kind."""
    return Bin(**Counter(each.kind for each in entries))


@dataclass(frozen=True, slots=True)
class DayTotals:
    """The facts about a day: the occurrences that were listed, and those that were counted."""

    found: Bin
    """The listed occurrences."""
    ended: tuple[int, int] | None
    """The numbers of failures and of other ends. None if these were not counted."""
    is_past_listed: bool = True
    """True if all executions that ended were listed."""
    is_future_listed: bool = True
    """True if all due occurrences were listed."""

    @property
    def is_past_known(self) -> bool:
        """Return whether all executions that ended were listed or counted."""
        return self.is_past_listed or self.ended is not None

    @property
    def past(self) -> tuple[int, int]:
        """Return the numbers of failures and of other ends, whether they ran or not. Listed open ones count, too."""
        if self.ended is None or self.is_past_listed:
            return self.found.failed, self.found.ran + self.found.skipped
        return self.ended

    @property
    def failed(self) -> int:
        """Return the number of failures."""
        return self.past[0]

    @property
    def others(self) -> int:
        """Return the number that ended otherwise."""
        return self.past[1]

    @property
    def waiting(self) -> int:
        """Return the number of those that have not begun."""
        return self.found.due + self.found.late

    def write(self) -> str:
        """Return the day in words."""
        return join_phrases(self.write_others(), self.write_failed())

    def write_failed(self) -> str:
        """Return the number of failures, in words. Empty if there are none."""
        return only_if(self.failed, f"{self._write_least(self.failed)} failed")

    def write_others(self) -> str:
        """Return the rest of the day in words. It is never "nothing" unless the whole day was requested."""
        late = only_if(self.found.late, f"{self.found.late:,} late")
        said = join_phrases(self._write_past(), late, self._write_due())
        return said or only_if(not self.failed, "nothing")

    def _write_past(self) -> str:
        if self.is_past_listed:
            return join_phrases(
                only_if(self.found.ran, f"{self.found.ran:,} ran"),
                only_if(self.found.skipped, f"{self.found.skipped:,} not run"),
            )
        if self.ended is None and not self.others:
            return "more is not counted"
        return only_if(self.others, f"{self._write_least(self.others)} ended")

    def _write_due(self) -> str:
        due = self.found.due
        if self.is_future_listed:
            return only_if(due, f"{due:,} due")
        return f"at least {due:,} due" if due else "what is due is not counted"

    def _write_least(self, count: int) -> str:
        is_least = not self.is_past_listed and (self.ended is None or count >= MOST_COUNTED)
        return f"{only_if(is_least, 'at least ')}{count:,}"


def add_totals(days: Sequence[DayTotals]) -> DayTotals:
    """Return the totals of several days together."""
    found = Bin(**{each.name: sum(getattr(day.found, each.name) for day in days) for each in fields(Bin)})
    ended = None
    if all(each.is_past_known for each in days):
        ended = (sum(each.failed for each in days), sum(each.others for each in days))
    return DayTotals(
        found,
        ended,
        is_past_listed=all(each.is_past_listed for each in days),
        is_future_listed=all(each.is_future_listed for each in days),
    )
