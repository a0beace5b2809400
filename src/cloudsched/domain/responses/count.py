"""A number as it was counted, exact or the least that it is, and the numbers of runs."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from cloudsched.domain.documents.run_counts import CountedAs, classify_run, has_started_late
from cloudsched.domain.responses.api_responses import ApiResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.execution import Execution


class Count(ApiResponse):
    """The number of what was counted. From the store to the page it is one value, so that no bound is forgotten."""

    value: int = Field(ge=0)
    at_least: bool = False
    """True if there may be more, because counting stopped at a bound."""

    @classmethod
    def up_to(cls, found: int, most: int) -> Count:
        """Return what was found by a count that stops at `most`."""
        return cls(value=found, at_least=found >= most)

    def write(self, one: str, many: str) -> str:
        """Return the number with its noun, such as ``at least 10,000 tasks``."""
        return f"{'at least ' if self.at_least else ''}{self.value:,} {one if self.value == 1 else many}"

    def __add__(self, other: Count) -> Count:
        """Return the number of both."""
        return Count(value=self.value + other.value, at_least=self.at_least or other.at_least)

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self.value)


_NONE: Final = Count(value=0)


@dataclass(frozen=True)  # without slots, so vars() has its numbers
class RunCounts:
    """The numbers of runs that have ended, in a part of the time."""

    ran: int = 0
    """Those that succeeded."""
    failed: int = 0
    """Those that failed or timed out."""
    skipped: Count = _NONE
    """The occurrences that were skipped, cancelled or expired. One record may cover many, and not know how many."""
    calls: int = 0
    """Those that other runs made, however they ended. None of the other numbers has them."""
    late: int = 0
    """Those that started `LATE` or more after they were due. They are among those that ran or failed."""

    def __add__(self, other: RunCounts) -> RunCounts:
        return RunCounts(*map(operator.add, vars(self).values(), vars(other).values()))


def count_occurrences(execution: Execution) -> Count:
    """Return the number that a record counts for: of skipped occurrences, as many as it covers."""
    if execution.covers is None or classify_run(execution) is not CountedAs.SKIPPED:
        return Count(value=1)
    return Count(value=execution.covers.count, at_least=execution.covers.is_at_least)


def count_runs(executions: Iterable[Execution]) -> RunCounts:
    """Return the numbers of some executions, as stores count theirs."""
    total = RunCounts()
    for each in executions:
        counted_as = classify_run(each)
        if counted_as is None:
            continue
        number: Any = count_occurrences(each) if counted_as is CountedAs.SKIPPED else 1
        total += RunCounts(**{counted_as.value: number}, late=int(has_started_late(each)))
    return total
