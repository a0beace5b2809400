"""The usage of an owner's tasks in a month.

A sheet keeps the last known counts of each task (its marks), so noting them twice changes nothing, and a process that
dies in between loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, NamedTuple

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.usage import Month, UsageCounts

MAX_MARKS: Final = 2000
"""The most tasks that one sheet has marks for, at most 400 bytes each, so that its document stays below 1
MiB."""


_COUNTED: Final = tuple(UsageCounts.model_fields)


class UsageMark(NamedTuple):
    """The last known usage of a task in a sheet's month, while it had one handler."""

    key: str
    """The task, the time at which it was created, as another one of the same id counts anew, and the handler."""
    handler: str
    counts: UsageCounts
    gone_at: str | None
    """The time at which the task was deleted."""

    @classmethod
    def of(
        cls, task_id: str, since: datetime, handler: str, counts: UsageCounts, gone_at: datetime | None = None
    ) -> UsageMark:
        """Return the mark of what a task has counted."""
        key = "\n".join((task_id, write_instant(since), handler))
        return cls(key, handler, counts, None if gone_at is None else write_instant(gone_at))

    def to_row(self) -> list[object]:
        """Return it as the JSON of a sheet has it at its key."""
        return [self.gone_at, *(getattr(self.counts, name) for name in _COUNTED)]


def find_task(key: str) -> str:
    """Return the id of the task in the key of a mark."""
    return key.partition("\n")[0]


def read_row(row: Sequence[Any]) -> UsageCounts:
    """Return the counts of a mark's row."""
    return UsageCounts.build(**dict(zip(_COUNTED, row[1:], strict=True)))


def write_instant(at: datetime) -> str:
    """Return an instant as marks have it, in the order of time."""
    return at.astimezone(UTC).isoformat()


class HandlerUsage(WireModel):
    """A handler's share."""

    handler: str
    counts: UsageCounts


class UsageSheet(Record):
    """A part of the usage of an owner's tasks in a month. ``usage/{id}``."""

    collection: ClassVar[str] = "usage"
    max_per_owner: ClassVar[int] = 100_000

    month: Month
    number: int
    """The number of the sheet. An owner has as many sheets a month as its tasks need."""
    is_full: bool = False
    """True if it takes no further tasks, now or later, since others have been sent to another sheet."""
    sums: tuple[HandlerUsage, ...] = ()
    """The usage of all its tasks together, also of those that are gone and whose marks are no longer needed."""
    marks: str = "{}"
    """The rows of the marks by their keys, as JSON: they are read to note more, and a look at the sums need not."""


class UsageFront(Record):
    """The progress of summing up the usage of an owner's tasks, or of all tasks. ``usageFronts/{id}``."""

    collection: ClassVar[str] = "usageFronts"

    done: str = ""
    """Every task that was stored before this mark of the store (`SearchStore.find_last_change`) is summed
    up."""
    pending: str = ""
    """The value that `done` gets when the pass that is under way ends."""
    page_token: str | None = None
    """The page at which the pass continues, or None between passes."""
    summed_at: Instant | None = None
    """The time at which the last finished pass began."""
    pass_began_at: Instant | None = None
