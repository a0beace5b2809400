"""Sheets: what an owner's tasks have used in a month, and how far it is summed up.

A sheet keeps the last known counts of each task (its marks): to note them twice changes nothing, and a process that
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
"""For how many tasks one sheet has marks, at most 400 bytes each, so that its document stays below 1 MiB."""


class UsageMark(WireModel):
    """What was last known of a task's usage in a sheet's month, while it had one handler."""

    task_id: str
    since: Instant
    """When the task was created: another one of the same id counts anew."""
    handler: str
    counts: UsageCounts
    gone_at: Instant | None = None
    """When the task was deleted."""

    @property
    def key(self) -> tuple[str, datetime, str]:
        """The key that tells the mark from others."""
        return self.task_id, self.since, self.handler


class HandlerUsage(WireModel):
    """A handler's share."""

    handler: str
    counts: UsageCounts


class UsageSheet(Record):
    """Some of what an owner's tasks have used in a month. ``usage/{id}``."""

    collection: ClassVar[str] = "usage"
    max_per_owner: ClassVar[int] = 100_000

    month: Month
    number: int
    """An owner has as many sheets a month as its tasks need."""
    is_full: bool = False
    """Whether it takes no further tasks, now or later: others have been sent to another sheet."""
    marks: tuple[UsageMark, ...] = ()
    settled: tuple[HandlerUsage, ...] = ()
    """Of tasks that are gone, and whose marks are no longer needed."""


class UsageFront(Record):
    """How far the usage of an owner's tasks, or of all tasks, is summed up. ``usageFronts/{id}``."""

    collection: ClassVar[str] = "usageFronts"

    done: str = ""
    """Every task that was stored before this mark of the store (`SearchStore.find_last_change`) is summed up."""
    pending: str = ""
    """What `done` will be when the pass that is under way has come to its end."""
    page_token: str | None = None
    """Where it continues; None between passes."""
    summed_at: Instant | None = None
    """When the last pass that came to its end had begun."""
    pass_began_at: Instant | None = None
