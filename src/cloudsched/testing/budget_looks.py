"""When a simulation looks at budgets: as often as the sweep does in production, but only when it could find something.

The sweep looks every five minutes. In a simulation a look follows a change of any task, at the next full five minutes,
and the first instant of a month if tasks are paused; so years in which nothing happens still pass in no time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.budget import Budget
from cloudsched.engine.usage.watch import BUDGETS_EVERY
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.usage.budgets import Budgets

_PAGE: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BudgetLooks:
    """Looks at the budgets of one store.

    Args:
        store: The store itself, so that asking whether there is something to do counts as no operation.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: str | None = None
        """The last change of any task before the last look that found nothing left to do."""
        self._month = ""
        """The month of that look."""
        self._looked_at: datetime | None = None

    def find_next(self, now: datetime) -> datetime | None:
        """Return when to look next; None if no look could find anything, for example because there is no budget."""
        try:
            budgets = list(self._list_budgets())
            if not budgets:
                return None
            if self._store.search.find_last_change() != self._seen:
                earliest = now if now != self._looked_at else now + timedelta(microseconds=1)  # not twice at once
                return earliest + (_EPOCH - earliest) % BUDGETS_EVERY
            if any(each.is_used_up or each.is_ending for each in budgets):
                return now if _month(now) != self._month else _find_next_month(now)
        except CloudschedError:  # a store that a test lets fail
            pass
        return None

    def look(self, budgets: Budgets, now: datetime) -> None:
        """Enforce all budgets; what fails is done in the next look."""
        self._looked_at = now
        try:
            seen = self._store.search.find_last_change()
            if budgets.enforce_all():
                self._seen, self._month = seen, _month(now)
        except CloudschedError:
            self._seen = None

    def _list_budgets(self) -> Iterator[Budget]:
        after = ""
        while True:
            page = self._store.records.list_all(Budget, limit=_PAGE, after=after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].id


def _month(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m}"


def _find_next_month(now: datetime) -> datetime:
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)
