"""The ledger: notes what tasks have counted in sheets, one or more for each owner and month.

It notes the last known counts of each task, and counts only grow: noting them again, out of order, or at
the same time as others changes nothing. The first sheet of a month takes new tasks until it is full. From
then on the task's id decides between the others, so a task's deletion needs two sheets at most. A deleted
task's counts are noted right after its deletion was decided, and added to a sum a day later.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.owner_usage import (
    MAX_MARKS,
    HandlerUsage,
    UsageMark,
    UsageSheet,
    find_task,
    read_row,
    write_instant,
)
from cloudsched.domain.documents.system_tasks import ERASE_HANDLER
from cloudsched.domain.documents.usage import Amounts, UsageCounts, month_of
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.state.record_changes import change_record, iterate_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

log: Final = own_logger(__name__)

OTHER_SHEETS: Final = 500
"""The number of sheets besides the first: enough for a million tasks of one owner in a month."""
SETTLED_AFTER: Final = timedelta(days=1)
"""The time from a task's deletion until its counts are added to the sum."""
NOTED_UNTIL: Final = SETTLED_AFTER / 2
"""The time after its deletion in which a task's counts are still noted. Later ones have been noted before."""
_PAGE: Final = 50


class UsageLedger:
    """Writes and reads sheets."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def note(self, tasks: Iterable[Task]) -> int:
        """Note what tasks have used: a read for each sheet that is concerned, and a write if it changes.

        Return the number of those sheets. Counts that are noted once more, as after Contended, are not counted twice.
        """
        now = self._clock.now()
        found = defaultdict[tuple[str, str], list[UsageMark]](list)
        for task in tasks:
            if task.handler == ERASE_HANDLER or (task.deleted_at is not None and task.deleted_at < now - NOTED_UNTIL):
                continue
            for each in task.usage:
                mark = UsageMark.of(task.id, task.created_at, each.handler, each.counts, task.deleted_at)
                found[task.owner, each.month].append(mark)
        sheets = len(found)
        for (owner, month), marks in found.items():
            by_number = defaultdict[int, list[UsageMark]](list)
            for mark in self._write(owner, month, 0, marks):
                by_number[_choose_sheet(find_task(mark.key))].append(mark)
            sheets += len(by_number)
            for number, rest in by_number.items():
                if left := self._write(owner, month, number, rest):
                    what = {"action": "usage_not_noted", "owner": owner, "month": month, "tasks": len(left)}
                    log.error(
                        "The usage of %d tasks of one owner is not noted: too many",
                        len(left),
                        extra=what,
                    )
        return sheets

    def add(self, owner: str, source: str, counts: UsageCounts) -> None:
        """Add what was used without a task, such as by drafts: a read and a write. Raises Contended."""
        now = self._clock.now()
        month = month_of(now)
        since = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        mark = UsageMark.of(source, since, source, counts)
        if self._write(owner, month, 0, (mark,), adds=True):
            self._write(owner, month, _choose_sheet(source), (mark,), adds=True)

    def count(self, owner: str, month: str, changed: Iterable[Task]) -> Amounts:
        """Return what a month has used: what the owner's sheets have, and tasks that changed since."""
        sheets = self.list_sheets(owner, month)
        counts = [*sum_sheets(sheets).values()]
        new = [
            UsageMark.of(task.id, task.created_at, each.handler, each.counts)
            for task in changed
            for each in task.usage
            if each.month == month
        ]
        known = {key: row for sheet in sheets for key, row in json.loads(sheet.marks).items()} if new else {}
        for mark in new:
            before = read_row(known[mark.key]) if mark.key in known else UsageCounts()
            counts.append(mark.counts.latest(before) - before)
        return Amounts(sum(each.queries for each in counts), sum(each.tokens for each in counts))

    def list_sheets(self, owner: str, month: str) -> Sequence[UsageSheet]:
        """Return an owner's sheets of a month. Reads only those."""
        sheets = iterate_records(
            partial(self._records.list, UsageSheet, owner, limit=_PAGE),
            _PAGE,
            f"{month}-",
        )
        return list(takewhile(lambda each: each.month == month, sheets))

    def iterate_owner(self, owner: str) -> Iterator[UsageSheet]:
        """Yield all sheets of an owner, the earliest month first."""
        return iterate_records(partial(self._records.list, UsageSheet, owner, limit=_PAGE), _PAGE)

    def iterate_month(self, month: str, after: str = "") -> Iterator[UsageSheet]:
        """Yield the sheets of a month, those of one owner after the other, those after an id."""
        read = partial(self._records.list_all, UsageSheet, limit=_PAGE)
        return takewhile(lambda each: each.month == month, iterate_records(read, _PAGE, after or f"{month}-"))

    def _write(
        self, owner: str, month: str, number: int, marks: Sequence[UsageMark], *, adds: bool = False
    ) -> Sequence[UsageMark]:
        """Write marks into a sheet, or with `adds` add them to those.

        Return the marks that it has no room for.
        """
        key = sheet_id(month, owner, number)

        left: Sequence[UsageMark] = ()

        def write(known: UsageSheet | None) -> UsageSheet | None:
            nonlocal left
            now = self._clock.now()
            before = known or UsageSheet(
                id=key, owner=owner, created_at=now, updated_at=now, month=month, number=number
            )
            after, left = _add_marks(before, marks, now - SETTLED_AFTER, adds=adds)
            return known if after == before else after.model_copy(update={"updated_at": now})

        change_record(self._records, UsageSheet, key, write)
        return left


def sheet_id(month: str, owner: str, number: int) -> str:
    """Return the id of a sheet: those of a month are together, and in it those of an owner."""
    return f"{month}-{hashlib.sha256(owner.encode()).hexdigest()[:24]}-{number:03}"


def sum_sheets(sheets: Iterable[UsageSheet]) -> dict[str, UsageCounts]:
    """Return what sheets of one month and owner have together, by handler."""
    sums = dict[str, UsageCounts]()
    for sheet in sheets:
        for each in sheet.sums:
            sums[each.handler] = sums.get(each.handler, UsageCounts()) + each.counts
    return sums


def _choose_sheet(task_id: str) -> int:
    return 1 + int(hashlib.sha256(task_id.encode()).hexdigest()[:8], 16) % OTHER_SHEETS


def _add_marks(
    sheet: UsageSheet, marks: Sequence[UsageMark], gone_before: datetime, *, adds: bool
) -> tuple[UsageSheet, Sequence[UsageMark]]:
    """Return a sheet with marks, without those of tasks that went before an instant, and what it has no room for."""
    settled = write_instant(gone_before)
    known = {key: row for key, row in json.loads(sheet.marks).items() if row[0] is None or row[0] >= settled}
    sums = sum_sheets([sheet])
    left = list[UsageMark]()
    is_full = sheet.is_full
    for mark in marks:
        before = known.get(mark.key)
        if before is None and (is_full or len(known) >= MAX_MARKS):
            is_full = True
            left.append(mark)
            continue
        old = UsageCounts() if before is None else read_row(before)
        new = old + mark.counts if adds else mark.counts.latest(old)
        gone_at = mark.gone_at if before is None else before[0] or mark.gone_at
        known[mark.key] = mark._replace(counts=new, gone_at=gone_at).to_row()
        sums[mark.handler] = sums.get(mark.handler, UsageCounts()) + (new - old)
    changes = {
        "sums": tuple(HandlerUsage(handler=name, counts=counts) for name, counts in sums.items()),
        "marks": json.dumps(known, ensure_ascii=False, separators=(",", ":")),
        "is_full": is_full,
    }
    return sheet.model_copy(update=changes), left
