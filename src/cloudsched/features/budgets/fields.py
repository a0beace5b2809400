"""What a task says of its owner's budget, and of its own limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict

from pydantic import Field

from cloudsched.domain.documents.document import Integer, WireModel

if TYPE_CHECKING:
    from cloudsched.domain.documents.usage import Amounts

MAX_AMOUNT: Final = 10**12
"""The largest number of queries or tokens that a limit may allow. In a budget it stands for any number."""
LIMITED: Final = {"queries": "max_queries_per_month", "tokens": "max_tokens_per_month"}
"""What is limited, and the field of a budget or a task that says how much of it a month has."""


class SpecBudgetFields(WireModel):
    """The fields that the owner of a task sets."""

    max_queries_per_month: Integer | None = Field(default=None, ge=1, le=MAX_AMOUNT)
    """The queries that its runs may use in a calendar month, in UTC. It is paused once they are used up."""
    max_tokens_per_month: Integer | None = Field(default=None, ge=1, le=MAX_AMOUNT)
    """The tokens of a language model that they may use, likewise."""


class TaskBudgetFields(WireModel):
    """The fields of a stored task."""

    has_budget: bool = False
    """True if each start of it first checks its owner's budget.

    It is set where an owner with a budget spends.
    """
    highest_limits: dict[str, int] | None = None
    """The limits that servers have set, by field. Users may set lower ones, and none higher."""

    has_limit: ClassVar[Any] = property(
        # One that was removed may still hold it.
        lambda task: task.max_queries_per_month or task.max_tokens_per_month or (task.hold and task.paused_until)
    )
    is_limited: ClassVar[Any] = property(lambda task: task.has_budget or task.has_limit)


class BudgetOptions(TypedDict, total=False):
    """The fields that a call or a creation may set, by their Python names."""

    max_queries_per_month: int | None
    max_tokens_per_month: int | None


def describe_excess(limits: object, used: Amounts) -> str:
    """Return what is used up of the limits of a budget or a task, such as "12 of 10 queries", or nothing."""
    amounts = [(what, amount, getattr(limits, LIMITED[what])) for what, amount in used._asdict().items()]
    return " and ".join(
        f"{amount:,} of {most:,} {what}"
        for what, amount, most in amounts
        if most is not None and most <= amount and most < MAX_AMOUNT
    )
