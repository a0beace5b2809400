"""The usage of a month, by owner and handler: sum it up, and report it.

A pass notes what the tasks have counted that were stored since the pass before. It reads each of them
once, however often it has run. A pass that ends early, or whose process dies, is continued by the next
one.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.owner_usage import UsageFront, UsageSheet, find_task, read_row
from cloudsched.domain.documents.usage import UsageCounts, month_of
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, iterate_pages
from cloudsched.engine.usage.ledger import UsageLedger, sum_sheets
from cloudsched.errors import InvalidInput, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import VersionedRecord
    from cloudsched.engine.ports.store import Store

MAX_TASKS: Final = 2000
"""The number of tasks that are read at a time. The next call continues."""
MAX_TASKS_OF_REQUEST: Final = 200
MAX_SHEETS_OF_REQUEST: Final = 25
"""The number of tasks that a request reads, and of sheets that it writes, but for the last page's last: about a
thirtieth of a second of the processor."""
MAX_BYTES_OF_REQUEST: Final = 2 * MAX_PAGE_BYTES
"""The most bytes of these tasks as they are stored, but for the last page's last."""
MAX_LABELLED: Final = 10_000
"""The most tasks that are read to sum up by their labels."""
_PAGE: Final = 200
_PAGE_OF_REQUEST: Final = 25


class UsageSummation:
    """Sums up what the tasks of an owner, or all tasks, have used."""

    def __init__(self, store: Store, clock: Clock, ledger: UsageLedger) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger

    def sum_up(
        self,
        owner: str | None,
        *,
        is_request: bool = False,
        at_most_every: timedelta = timedelta(0),
        on_changed: Callable[[Sequence[Task]], None] = lambda _: None,
    ) -> UsageFront:
        """Note what has changed, and return the progress.

        Costs two reads, and if anything has changed, one for each such task, one or two operations for
        each sheet, and a write. At most 2,000 tasks are read, for a request fewer, and the next call
        continues. Nothing is done within `at_most_every` after the last pass.
        """
        key = front_id(owner)
        now = self._clock.now()
        stored = self._store.records.load(UsageFront, key)
        new = UsageFront(id=key, owner=owner or SYSTEM_OWNER, created_at=now, updated_at=now)
        front = new if stored is None else stored.record
        if front.page_token is None:
            if front.summed_at is not None and timedelta(0) <= now - front.summed_at < at_most_every:
                return front
            mark = self._store.search.find_last_change(owner)
            if mark == front.done and front.summed_at is not None:
                return front.model_copy(update={"summed_at": now})
            front = front.model_copy(update={"pending": mark, "pass_began_at": now})
        return self._save(self._continue(front, owner, on_changed, is_request=is_request), stored)

    def list_unsummed(self, owner: str, limit: int) -> Sequence[Task] | None:
        """Return the tasks of an owner that changed since they were summed up, a read each. None if too many."""
        stored = self._store.records.load(UsageFront, front_id(owner))
        since = "" if stored is None else stored.record.done
        changed = partial(self._store.search.list_changed, owner, since, limit=min(limit, _PAGE))
        found: list[Task] = []
        for page in iterate_pages(lambda token: changed(page_token=token)):
            found += page.items
            if page.next_page_token is not None and len(found) >= limit:
                return None
        return found

    def _continue(
        self,
        front: UsageFront,
        owner: str | None,
        on_changed: Callable[[Sequence[Task]], None],
        *,
        is_request: bool,
    ) -> UsageFront:
        token = front.page_token
        size = sheets = 0
        limit, most = (_PAGE_OF_REQUEST, MAX_TASKS_OF_REQUEST) if is_request else (_PAGE, MAX_TASKS)
        for _ in range(most // limit):
            try:
                page = self._store.search.list_changed(owner, front.done, limit=limit, page_token=token)
            except InvalidInput:  # a token of an earlier version
                return front.model_copy(update={"page_token": None})
            sheets += self._ledger.note(page.items)
            on_changed(page.items)
            token = page.next_page_token
            size = size + page.size
            if token is None:
                ended = {"done": front.pending, "page_token": None, "summed_at": front.pass_began_at}
                return front.model_copy(update=ended)
            if is_request and (size >= MAX_BYTES_OF_REQUEST or sheets >= MAX_SHEETS_OF_REQUEST):
                break
        return front.model_copy(update={"page_token": token})

    def _save(self, front: UsageFront, stored: VersionedRecord[UsageFront] | None) -> UsageFront:
        front = front.model_copy(update={"updated_at": self._clock.now()})
        with suppress(VersionConflict):  # another pass has come as far, and the next one continues from there
            self._store.records.write(front, None if stored is None else stored.version)
        return front


def front_id(owner: str | None) -> str:
    """Return the id of the front of an owner's tasks, or of all tasks."""
    return "all" if owner is None else hashlib.sha256(owner.encode()).hexdigest()[:32]


_TOKEN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9a-f]{24}-[0-9]{3}")


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of a handler for an owner in a month."""

    owner: str
    month: str
    handler: str
    counts: UsageCounts


@dataclass(frozen=True, slots=True)
class UsageRows:
    """The usage of some owners in a month."""

    month: str
    rows: Sequence[UsageRow]
    summed_until: datetime
    """Everything that was counted before this instant is in the sums."""
    is_complete: bool
    """True if all changes were read. If not, asking again reads on."""
    next_page_token: str | None = None


class UsageReport:
    """Shows usage, summed up anew."""

    def __init__(self, store: Store, ledger: UsageLedger, summation: UsageSummation, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._summation = summation
        self._clock = clock

    def show(
        self,
        owner: str | None,
        month: str | None,
        *,
        limit: int,
        page_token: str | None = None,
    ) -> UsageRows:
        """Return the usage of a month (this one if None), of an owner or one after the other.

        Raises InvalidInput.
        """
        now = self._clock.now()
        month = month or month_of(now)
        summed_until = now
        is_complete = True
        if month >= month_of(now.replace(day=1) - timedelta(days=1)):
            front = self._summation.sum_up(owner, is_request=True)
            summed_until = front.summed_at or front.created_at
            is_complete = front.page_token is None
        if owner is not None:
            rows = _to_rows(self._ledger.list_sheets(owner, month))
            return UsageRows(month, rows, summed_until, is_complete)
        if page_token and not (_TOKEN.fullmatch(page_token) and page_token.startswith(f"{month}-")):
            raise InvalidInput(
                "pageToken",
                "is not a page token",
                "Use nextPageToken of the previous page, unchanged.",
            )
        found = list[UsageRow]()
        last = None
        sheets = self._ledger.iterate_month(month, page_token or "")
        for number, (_, own) in enumerate(groupby(sheets, key=lambda each: each.owner)):
            if number == limit:
                return UsageRows(month, found, summed_until, is_complete, last)
            mine = list(own)
            found += _to_rows(mine)
            last = mine[-1].id
        return UsageRows(month, found, summed_until, is_complete)

    def sum_by(self, group: Literal["OWNER", "HANDLER"], owner: str | None, month: str) -> dict[str, UsageCounts]:
        """Return what a month has used, by owner or by handler, over all owners or of one. Reads all their sheets."""
        sums: dict[str, UsageCounts] = {}
        for sheet in self._list_sheets(owner, month):
            for handler, counts in sum_sheets([sheet]).items():
                name = sheet.owner if group == "OWNER" else handler
                sums[name] = sums.get(name, UsageCounts()) + counts
        return sums

    def sum_by_label(self, key: str, owner: str | None, month: str) -> dict[str, UsageCounts]:
        """Return what a month has used by the value that the tasks' label with this key has now.

        What was used by tasks without that label, by deleted ones and without a task is under the empty text. It
        reads the sheets, and each task. Raises InvalidInput if these are too many.
        """
        used: dict[str, UsageCounts] = {}
        rest = UsageCounts()
        for sheet in self._list_sheets(owner, month):
            rest = sum((each.counts for each in sheet.sums), rest)
            for mark_key, row in json.loads(sheet.marks).items():
                task_id = find_task(mark_key)
                used[task_id] = used.get(task_id, UsageCounts()) + read_row(row)
                rest -= read_row(row)
            if len(used) > MAX_LABELLED:
                said = f"is for at most {MAX_LABELLED:,} tasks, and more have used something in {month}"
                raise InvalidInput("by", said, "Give an owner, or sum up by OWNER or HANDLER.")
        sums = {"": rest} if rest != UsageCounts() else {}
        values = self._find_values(key, [*used])
        for task_id, counts in used.items():
            value = values.get(task_id, "")
            sums[value] = sums.get(value, UsageCounts()) + counts
        return sums

    def _find_values(self, key: str, task_ids: Sequence[str]) -> dict[str, str]:
        """Return the value of each task's first label with this key, of those that have one."""
        prefix = f"{key}="
        found = dict[str, str]()
        for begin in range(0, len(task_ids), _PAGE):
            for each in self._store.load_many(task_ids[begin : begin + _PAGE]):
                for label in each.task.labels:
                    if label.startswith(prefix):
                        found.setdefault(each.task.id, label.removeprefix(prefix))
        return found

    def _list_sheets(self, owner: str | None, month: str) -> Iterable[UsageSheet]:
        if owner is None:
            return self._ledger.iterate_month(month)
        return self._ledger.list_sheets(owner, month)


def _to_rows(sheets: Sequence[UsageSheet]) -> list[UsageRow]:
    sums = sum_sheets(sheets)
    return [UsageRow(sheets[0].owner, sheets[0].month, handler, sums[handler]) for handler in sorted(sums)]
