"""The usage of an owner's tasks in a month, and their budget.

A sheet keeps the last known counts of each task (its marks), so noting them twice changes nothing, and a
process that dies in between loses nothing. A budget (``budgets/{owner}``) has the number of queries for a
month.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Final

from pydantic import Field

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.usage import Month, UsageCounts

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


WARNING_SHARE: Final = 0.8
"""The part of a budget at whose use its operator is warned."""
MAX_QUERIES: Final = 10**12


class Budget(Record):
    """The budget of an owner, and the usage when it was last checked. The id is the owner."""

    collection: ClassVar[str] = "budgets"
    is_exported: ClassVar[bool] = True

    max_queries_per_month: int = Field(ge=0, le=MAX_QUERIES)
    month: Month | None = None
    """The month of these numbers, in UTC."""
    queries: int = 0
    """The number of queries that were used in that month."""
    queries_before: int = 0
    """The part of it that no sheet has any more, since sheets were deleted with all else of the owner."""
    queries_in_sheets: int = 0
    """The other part."""
    summed_until: Instant | None = None
    warned_month: Month | None = None
    """The last month in which a warning was logged."""
    is_marked: bool = False
    """True if the tasks that existed when it was set know of it (`Task.has_budget`)."""
    is_ending: bool = False
    """True if it is being deleted, once everything that it has paused is resumed."""
    is_used_up: bool = False
    """True if the owner's tasks are paused, or are being paused or resumed, because of it."""

    def with_use(self, month: Month, in_sheets: int) -> Budget:
        """Return the budget with a month's usage, as its sheets have it.

        The usage of deleted sheets is kept.
        """
        before, known = (self.queries_before, self.queries_in_sheets) if self.month == month else (0, 0)
        before += max(0, known - in_sheets)  # sheets were deleted
        queries = before + in_sheets
        changes: dict[str, object] = {
            "month": month,
            "queries": queries,
            "queries_before": before,
            "queries_in_sheets": in_sheets,
            # The tasks that it has paused are resumed first.
            "is_used_up": self.is_used_up or queries >= self.max_queries_per_month,
        }
        return self.model_copy(update=changes)

    @property
    def has_none_left(self) -> bool:
        """Return whether nothing is left of it for the month of its numbers."""
        return self.queries >= self.max_queries_per_month

    @property
    def reason(self) -> str:
        """The reason why tasks are paused."""
        used = f"{self.queries:,} of {self.max_queries_per_month:,} queries of {self.month}"
        return f"Its owner's budget is used up ({used}); it resumes next month, or when an admin raises the budget."
