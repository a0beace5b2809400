"""The budget of an owner: the number of queries for a month. ``budgets/{owner}``."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Final

from pydantic import Field

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.usage import Month  # noqa: TC001 - the same

ENFORCED_EVERY: Final = timedelta(minutes=5)
"""The interval at which budgets are enforced."""
WARNING_SHARE: Final = 0.8
"""The part of a budget at whose use its operator is warned."""
MAX_QUERIES: Final = 10**12


class Budget(Record):
    """The budget of an owner, and the usage when it was last looked at. The id is the owner."""

    collection: ClassVar[str] = "budgets"
    is_exported: ClassVar[bool] = True
    is_kept: ClassVar[bool] = True

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
        """Return it with the usage of a month, as its sheets have it. The usage of deleted sheets is kept."""
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
