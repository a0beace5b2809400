"""The usage of an owner's tasks in a month.

A sheet keeps the last known counts of each task (its marks), so noting them twice changes nothing, and a process that
dies in between loses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.usage import Month, UsageCounts

if TYPE_CHECKING:
    from datetime import datetime

MAX_MARKS: Final = 2000
"""The most tasks that one sheet has marks for, at most 400 bytes each, so that its document stays below 1
MiB."""


class UsageMark(WireModel):
    """The last known usage of a task in a sheet's month, while it had one handler."""

    task_id: str
    since: Instant
    """The time at which the task was created: another one of the same id counts anew."""
    handler: str
    counts: UsageCounts
    gone_at: Instant | None = None
    """The time at which the task was deleted."""

    @property
    def key(self) -> tuple[str, datetime, str]:
        """The key that tells the mark from others."""
        return self.task_id, self.since, self.handler


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
    marks: tuple[UsageMark, ...] = ()
    settled: tuple[HandlerUsage, ...] = ()
    """The usage of tasks that are gone, and whose marks are no longer needed."""


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
