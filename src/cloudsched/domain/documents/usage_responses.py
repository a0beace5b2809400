"""The API's responses about usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import AwareDatetime, Field

from cloudsched.domain.documents.responses import ApiResponse, Page

if TYPE_CHECKING:
    from cloudsched.domain.documents.usage import UsageCounts


class UsageAmounts(ApiResponse):
    """How much was used."""

    executions: int = Field(ge=0)
    """Executions that ended and had started; one that is retried by hand ends once more."""
    queries: int = Field(ge=0)
    """What the handlers have reported."""
    estimated_queries: float = Field(ge=0)
    """What the tasks had estimated for these executions."""
    tokens: int = Field(ge=0)
    """Tokens of a language model, as the handlers have reported them."""
    estimated_tokens: float = Field(ge=0)
    reads: int = Field(ge=0)
    """Documents read in Firestore to run the tasks."""
    writes: int = Field(ge=0)
    """Documents written."""
    deletes: int = Field(ge=0)
    """Documents deleted."""
    queue_operations: int = Field(ge=0)
    """Cloud Tasks operations: creations and deliveries."""
    requests: int = Field(ge=0)
    """Requests to the executor."""
    dollars: float = Field(ge=0)
    """What all this costs, by the deployment's prices."""


class UsageRow(UsageAmounts):
    """What a handler used for an owner in a month."""

    owner: str
    handler: str
    month: str


class UsagePage(ApiResponse):
    """What was used in a month."""

    month: str
    """In UTC, such as ``2026-11``."""
    usage: tuple[UsageRow, ...]
    """By owner and handler."""
    total: UsageAmounts
    """The sum of these rows."""
    summed_until: AwareDatetime
    """Everything that was counted before this instant is in it."""
    is_complete: bool
    """Whether all that has changed was read: if not, there was too much; ask again."""
    prices: dict[str, float]
    """US dollars for a million of each."""
    next_page_token: str | None = None
    """Fetches the usage of further owners."""


class BudgetDetails(ApiResponse):
    """How many queries an owner's tasks may use in a month."""

    owner: str
    max_queries_per_month: int = Field(ge=0)
    month: str
    """The month of `queries`, in UTC."""
    queries: int = Field(ge=0)
    """What was used in that month."""
    is_used_up: bool
    """Whether the owner's tasks are paused because of it."""
    summed_until: AwareDatetime | None = None
    """When that was summed up last."""


class BudgetPage(Page):
    """Some of a list of budgets."""

    budgets: tuple[BudgetDetails, ...]


def to_amounts(counts: UsageCounts) -> dict[str, float]:
    """Return counts by the names of their prices."""
    return {
        "read": counts.reads,
        "write": counts.writes,
        "delete": counts.deletes,
        "queueOperation": 2 * counts.dispatches,
        "request": counts.dispatches,
        "query": counts.queries,
        "token": counts.tokens,
    }
