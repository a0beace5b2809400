"""What a calendar shows on a day: its past and due occurrences, and their numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import BAD, OFFERED, OPEN, Status, show_status
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.upcoming import BUSY
from cloudsched.dashboard.words import join_phrases, only_if, show_unseen, write_count
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Json

_DUE: Final = Status("due", "Due", "due")
_LATE: Final = Status("late", "Not started", "timeout")
_LATE_FROM: Final = timedelta(minutes=3)
"""A run that starts this much later than it was due is late."""


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
    open: int = 0
    """Those that have begun and not ended."""
    offered: int = 0
    """Those that wait for their first worker."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the numbers, in the order of the fields."""
        return self.ran, self.failed, self.due, self.late, self.skipped, self.open, self.offered


@dataclass(frozen=True, slots=True)
class Entry:
    """An occurrence in a calendar, past or to come."""

    at: datetime
    task_id: str
    title: str
    """As it is shown, so that there is room for what is written out in it."""
    href: str
    status: Status
    kind: str
    """Its field in a `Bin`: ``ran``, ``failed``, ``skipped``, ``open``, ``offered``, ``late`` or ``due``."""
    handler: str = ""
    started: datetime | None = None
    """The time at which it started, if that was late."""
    count: int = 1
    """The number of occurrences that share its record."""
    until: datetime | None = None
    """The last of these."""


def read_entries(answer: Json, now: datetime) -> Iterator[Entry]:
    """Yield the API's answers as entries."""
    for each in answer["ran"]:
        href = f"tasks/{each['taskId']}/executions/{each['id']}"
        at = parse_instant(each["scheduledFor"])
        started = parse_instant(each["startedAt"]) if each.get("startedAt") else None
        is_late = started is not None and started - at > _LATE_FROM and each.get("trigger", "SCHEDULE") == "SCHEDULE"
        covers = each.get("covers") or {}
        yield Entry(
            at,
            each["taskId"],
            show_unseen(each["title"]),
            href,
            show_status(each["status"]),
            _find_kind(each["status"]),
            handler=each.get("handler") or "",
            started=started if is_late else None,
            count=covers.get("count", 1),
            until=parse_instant(covers["until"]) if covers else None,
        )
    for each in answer["offered"]:
        title = show_unseen(each.get("title") or each["taskId"])
        at = parse_instant(each["offeredAt"])
        yield Entry(at, each["taskId"], title, f"tasks/{each['taskId']}", OFFERED, "offered", handler=each["handler"])
    for each in (*answer["due"], *answer.get("busyDue", ())):
        at = parse_instant(each["utc"])
        status, kind = _DUE, "due"
        if at <= now:  # nobody has begun it, a worker that does not come for example
            status, kind = _LATE, "late"
        yield Entry(at, each["taskId"], show_unseen(each["title"]), f"tasks/{each['taskId']}", status, kind)


def _find_kind(status: str) -> str:
    if status in BAD:
        return "failed"
    if status in NOT_RUN_STATUSES:
        return "skipped"
    return "open" if status in OPEN else "ran"


def find_busy(entries: Sequence[Entry]) -> set[str]:
    """Return the tasks that have no marks of their own on a day: busy ones, and those of a handler that fails often.

    So what fails rarely keeps its mark.
    """
    times: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for each in entries:
        times[each.task_id] += each.count
        if each.kind == "failed":
            failures[each.handler] += 1
    return {
        each.task_id
        for each in entries
        if times[each.task_id] > BUSY or (each.kind == "failed" and failures[each.handler] > BUSY)
    }


def count_entries(entries: Sequence[Entry]) -> Bin:
    """Return the number of occurrences of each kind."""
    counts: Counter[str] = Counter()
    for each in entries:
        counts[each.kind] += each.count
    return Bin(**counts)


def find_most(bins: Iterable[Bin]) -> int:
    """Return what a full bar counts, above its line or below. What was skipped is cut there: it may be thousands."""
    return max((max(each.ran + each.late + each.due, each.failed) for each in bins), default=0)


def write_scale(bins: Sequence[Bin]) -> str:
    """Return what a full bar counts, in words, and what is more than that."""
    most = find_most(bins)
    is_cut = any(each.ran + each.late + each.due + each.skipped > most for each in bins)
    cut = only_if(is_cut, "; bars of skipped runs are cut there")
    return only_if(most, f"a full bar is {write_count(most, 'run', 'runs')}{cut}")


def add_bins(bins: Iterable[Bin]) -> Bin:
    """Return the numbers of several parts together."""
    return Bin(*map(sum, zip(Bin().numbers, *(each.numbers for each in bins), strict=True)))


@dataclass(frozen=True, slots=True)
class DayTotals:
    """The numbers of a day, or of several."""

    found: Bin
    is_past_whole: bool = True
    """True if all that ended is counted."""
    is_future_whole: bool = True
    """True if all that is due is counted."""
    is_open_whole: bool = True
    """True if all that is open is counted."""

    def write(self) -> str:
        """Return the numbers in words."""
        return join_phrases(self.write_others(), self.write_failed())

    def write_failed(self) -> str:
        """Return the number of failures, in words. Empty if there are none."""
        return only_if(self.found.failed, f"{self._least(self.is_past_whole)}{self.found.failed:,} failed")

    def write_others(self) -> str:
        """Return the other numbers in words. They are never "nothing" unless everything was counted."""
        found = self.found
        said = join_phrases(
            only_if(found.ran, f"{self.write_succeeded()} succeeded"),
            self.write_rest(),
            self.write_due(),
            only_if(not self.is_future_whole and not found.due, "what is due is not counted"),
        )
        return said or only_if(not found.failed, "nothing" if self.is_past_whole else "more is not counted")

    def write_succeeded(self) -> str:
        """Return the number of what succeeded. Empty if nothing has."""
        return only_if(self.found.ran, f"{self._least(self.is_past_whole)}{self.found.ran:,}")

    def write_rest(self) -> str:
        """Return what was skipped, is open, offered or late, in words. Empty if nothing is."""
        found = self.found
        waiting = write_count(found.offered, "waits for a worker", "wait for a worker")
        return join_phrases(
            only_if(found.skipped, f"{self._least(self.is_past_whole)}{found.skipped:,} skipped"),
            only_if(found.open, f"{self._least(self.is_open_whole)}{found.open:,} open"),
            only_if(found.offered, f"{self._least(self.is_open_whole)}{waiting}"),
            only_if(found.late, f"{found.late:,} not started"),
        )

    def write_due(self) -> str:
        """Return the number of what is due, in words. Empty if nothing is."""
        return only_if(self.found.due, f"{self._least(self.is_future_whole)}{self.found.due:,} due")

    @staticmethod
    def _least(is_whole: bool) -> str:  # noqa: FBT001 - one of its two
        return only_if(not is_whole, "at least ")


def add_totals(days: Sequence[DayTotals]) -> DayTotals:
    """Return the totals of several days together."""
    return DayTotals(
        add_bins(each.found for each in days),
        is_past_whole=all(each.is_past_whole for each in days),
        is_future_whole=all(each.is_future_whole for each in days),
        is_open_whole=all(each.is_open_whole for each in days),
    )
