"""The usage of a month, by owner and handler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.usage import month_of
from cloudsched.engine.usage.ledger import sum_sheets
from cloudsched.engine.usage.summation import MAX_TASKS_OF_REQUEST
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.usage import UsageCounts
    from cloudsched.domain.documents.usage_sheet import UsageSheet
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.usage.ledger import UsageLedger
    from cloudsched.engine.usage.summation import UsageSummation

_TOKEN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9a-f]{24}-[0-9]{3}")


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What a handler used for an owner in a month."""

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
    """Whether all changes were read; if not, asking again reads on."""
    next_page_token: str | None = None


class UsageReport:
    """Shows usage, summed up anew."""

    def __init__(self, ledger: UsageLedger, summation: UsageSummation, clock: Clock) -> None:
        self._ledger = ledger
        self._summation = summation
        self._clock = clock

    def show(self, owner: str | None, month: str | None, *, limit: int, page_token: str | None = None) -> UsageRows:
        """Return the usage of a month (the current one if None), of an owner or of one owner after the other.

        Args:
            owner: Whose usage; None for that of all.
            month: Such as ``2026-11``.
            limit: Of how many owners at most.
            page_token: Where to continue.

        Raises:
            InvalidInput: The page token was made up, or belongs to another month.
            StoreUnavailable: The store did not answer.
        """
        now = self._clock.now()
        month = month or month_of(now)
        summed_until, is_complete = now, True
        if month >= month_of(now.replace(day=1) - timedelta(days=1)):
            front = self._summation.sum_up(owner, most=MAX_TASKS_OF_REQUEST)
            summed_until, is_complete = front.summed_at or front.created_at, front.page_token is None
        if owner is not None:
            rows = _to_rows(self._ledger.list_sheets(owner, month))
            return UsageRows(month, rows, summed_until, is_complete)
        if page_token and not (_TOKEN.fullmatch(page_token) and page_token.startswith(f"{month}-")):
            raise InvalidInput("pageToken", "is not a page token", "Use nextPageToken of the previous page, unchanged.")
        found, last = list[UsageRow](), None
        sheets = self._ledger.iterate_month(month, page_token or "")
        for number, (_, own) in enumerate(groupby(sheets, key=lambda each: each.owner)):
            if number == limit:
                return UsageRows(month, found, summed_until, is_complete, last)
            mine = list(own)
            found += _to_rows(mine)
            last = mine[-1].id
        return UsageRows(month, found, summed_until, is_complete)


def _to_rows(sheets: Sequence[UsageSheet]) -> list[UsageRow]:
    sums = sum_sheets(sheets)
    return [UsageRow(sheets[0].owner, sheets[0].month, handler, sums[handler]) for handler in sorted(sums)]
