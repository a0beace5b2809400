"""The budget of an owner: the queries and tokens for a month. ``budgets/{owner}``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import Field

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.usage import Amounts, Month
from cloudsched.domain.explanation.findings import say_budget_used_up
from cloudsched.features.budgets.fields import LIMITED, MAX_AMOUNT, describe_excess

if TYPE_CHECKING:
    from cloudsched.domain.responses.count import Count

ENFORCED_EVERY: Final = timedelta(minutes=5)
"""The interval at which budgets are enforced."""
WARNING_SHARE: Final = 0.8
"""The part of a budget at whose use its operator is warned."""


class Budget(Record):
    """The budget of an owner, and the usage when it was last looked at. The id is the owner."""

    collection: ClassVar[str] = "budgets"
    is_exported: ClassVar[bool] = True
    is_kept: ClassVar[bool] = True

    max_queries_per_month: int = Field(default=MAX_AMOUNT, ge=0, le=MAX_AMOUNT)
    max_tokens_per_month: int = Field(default=MAX_AMOUNT, ge=0, le=MAX_AMOUNT)
    month: Month | None = None
    """The month of these numbers, in UTC."""
    queries: int = 0
    """The number of queries that were used in that month."""
    queries_before: int = 0
    """The part of it that no sheet has any more, since sheets were deleted with all else of the owner."""
    queries_in_sheets: int = 0
    """The other part."""
    tokens: int = 0
    """The number of tokens, and its parts."""
    tokens_before: int = 0
    tokens_in_sheets: int = 0
    summed_until: Instant | None = None
    warned_month: Month | None = None
    """The last month in which a warning was logged."""
    is_marked: bool = False
    """True if the tasks that existed when it was set know of it (`Task.has_budget`)."""
    is_ending: bool = False
    """True if it is being deleted, once everything that it has paused is resumed."""
    is_used_up: bool = False
    """True if the owner's tasks are paused, or are being paused or resumed, because of it."""
    is_told: bool = False
    """True if the owner was told of that."""

    def with_use(self, month: Month, in_sheets: Amounts) -> Budget:
        """Return it with the usage of a month, as its sheets have it. The usage of deleted sheets is kept."""
        changes: dict[str, object] = {"month": month}
        for what, in_sheet in in_sheets._asdict().items():
            before = getattr(self, f"{what}_before") if self.month == month else 0
            before += max(0, self.count_in_sheets(month, what) - in_sheet)  # sheets were deleted
            changes |= {what: before + in_sheet, f"{what}_before": before, f"{what}_in_sheets": in_sheet}

        changed = self.model_copy(update=changes)
        # The tasks that it has paused are resumed first.
        return changed.model_copy(update={"is_used_up": self.is_used_up or changed.has_none_left})

    def count_in_sheets(self, month: Month, what: str) -> int:
        """Return what is known of the sheets of a month."""
        known: int = getattr(self, f"{what}_in_sheets") if self.month == month else 0
        return known

    @property
    def excess(self) -> str:
        """What is used up of it in the month of its numbers, such as "12 of 10 queries", or nothing."""
        return describe_excess(self, Amounts(self.queries, self.tokens))

    @property
    def has_none_left(self) -> bool:
        """Return whether nothing is left of it for the month of its numbers."""
        return bool(self.excess)

    @property
    def is_nearly_used(self) -> bool:
        """Return whether most of it is used."""
        return any(
            getattr(self, field) < MAX_AMOUNT and getattr(self, what) >= WARNING_SHARE * getattr(self, field)
            for what, field in LIMITED.items()
        )

    @property
    def reason(self) -> str:
        """The reason why tasks are paused."""
        return say_budget_used_up(self.owner, self.excess, self.month)

    def say_waiting(self, count: Count) -> str:
        """Return the same for a number of tasks."""
        return say_budget_used_up(self.owner, self.excess, self.month, count.write("task waits", "tasks wait"))
