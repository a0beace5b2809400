"""When a simulation has to enforce budgets, so that it need not look every five minutes of a year."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.owner_usage import Budget
from cloudsched.engine.usage.budgets import BUDGETS_EVERY, Budgets
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from cloudsched.engine.ports.store import Store

_MOST_BUDGETS: Final = 10_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BudgetLooks:
    """Checks of the budgets of one store.

    Args:
        store: The store itself, so that the search for due checks counts as no operation.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: str | None = None
        """The last change of any task before the last check that found nothing left to do."""
        self._month = ""
        """The month of that check."""
        self._looked_at: datetime | None = None

    def find_next(self, now: datetime) -> datetime | None:
        """Return the instant of the next check. None if it could find nothing, as when there is no budget."""
        try:
            budgets = self._store.records.list_all(Budget, limit=_MOST_BUDGETS)
            if not budgets:
                return None
            if self._store.search.find_last_change(None) != self._seen:
                earliest = now
                if now == self._looked_at:  # not twice at once
                    earliest += timedelta(microseconds=1)
                return earliest + (_EPOCH - earliest) % BUDGETS_EVERY
            if any(each.is_used_up or each.is_ending for each in budgets):
                return now if _month(now) != self._month else _find_next_month(now)
        except CloudschedError:  # a store that a test lets fail
            pass
        return None

    def look(self, budgets: Budgets, now: datetime) -> None:
        """Enforce all budgets. Failures are left to the next check."""
        self._looked_at = now
        try:
            seen = self._store.search.find_last_change(None)
            if budgets.enforce_all():
                self._seen = seen
                self._month = _month(now)
        except CloudschedError:
            self._seen = None


def _month(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m}"


def _find_next_month(now: datetime) -> datetime:
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)
