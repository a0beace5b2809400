"""When a simulation has to enforce budgets, so that it need not look every five minutes of a year."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from cloudsched.domain.documents.usage import month_of, start_of_next_month
from cloudsched.engine.usage.usage_limit import Looks
from cloudsched.errors import CloudschedError
from cloudsched.features.budgets.budget import ENFORCED_EVERY, Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.store import Store

_MOST_BUDGETS: Final = 10_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BudgetLooks(Looks):
    """Checks of the budgets of one store.

    Args:
        store: The store itself, so that the search for due checks counts as no operation.
        enforce_all: Enforces all budgets. It returns whether that was all.
    """

    def __init__(self, store: Store, enforce_all: Callable[[], bool]) -> None:
        self._enforce_all = enforce_all
        self._store = store
        self._seen: str | None = None
        """The last change of any task before the last check that found nothing left to do."""
        self._month = ""
        """The month of that check."""
        self._looked_at: datetime | None = None

    @override
    def find_next(self, now: datetime) -> datetime | None:
        try:
            budgets = self._store.records.list_all(Budget, limit=_MOST_BUDGETS)
            if not budgets:
                return None
            if self._store.search.find_last_change(None) != self._seen:
                earliest = now
                if now == self._looked_at:  # not twice at once
                    earliest += timedelta(microseconds=1)
                return earliest + (_EPOCH - earliest) % ENFORCED_EVERY
            if any(each.is_used_up or each.is_ending for each in budgets):
                return now if month_of(now) != self._month else start_of_next_month(now)
        except CloudschedError:  # a store that a test lets fail
            pass
        return None

    @override
    def look(self, now: datetime) -> None:
        self._looked_at = now
        try:
            seen = self._store.search.find_last_change(None)
            if self._enforce_all():
                self._seen = seen
                self._month = month_of(now)
        except CloudschedError:
            self._seen = None
