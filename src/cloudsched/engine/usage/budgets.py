"""Budgets: warn when an owner has used most of one, pause the owner's tasks when it is used up, and resume them.

The sweep looks every five minutes, so an owner can use more than the budget: what runs until then, and what was
running. A deployment without budgets pays nothing for this but a few reads every five minutes.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.batch_change import BATCH_CHANGE_HANDLER
from cloudsched.domain.documents.budget import WARNING_SHARE, Budget
from cloudsched.domain.documents.person_handlers import ERASE_HANDLER, EXPORT_HANDLER
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.usage import UsageCounts, month_of
from cloudsched.domain.transitions.budget_pause import pause_for_budget, resume_from_budget
from cloudsched.domain.transitions.planning import find_budget_pause
from cloudsched.engine.ports.pages import Page, make_token, read_token
from cloudsched.engine.ports.task_query import TaskQuery
from cloudsched.engine.state.compare_and_set import compare_and_set
from cloudsched.engine.usage.ledger import sum_sheets
from cloudsched.errors import NotAllowed, NotFound, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.lifecycle import Transition
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.usage.ledger import UsageLedger
    from cloudsched.engine.usage.summation import UsageSummation

log = logging.getLogger(__name__)

MAX_CHANGES: Final = 500
"""How many tasks of an owner are paused or resumed at a time; the next look continues."""
_PAGE: Final = 100
_LIST: Final = "budgets"
_NEVER_PAUSED: Final = frozenset({BATCH_CHANGE_HANDLER, ERASE_HANDLER, EXPORT_HANDLER})
"""What these do uses no queries, and owners may ask for it whatever they have used."""


class Budgets:
    """Keeps budgets, and enforces them.

    Args:
        store: Where they are stored.
        clock: The current time.
        ledger: Has the sums.
        summation: Sums up what was used.
        change: Changes a task as a decision says; see `Scheduler.change`.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ledger: UsageLedger,
        summation: UsageSummation,
        change: Callable[[str, Callable[[Task, datetime], Transition]], Task],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._summation = summation
        self._change = change

    @property
    def current_month(self) -> str:
        """The month whose use counts now, in UTC."""
        return month_of(self._clock.now())

    def get(self, owner: str) -> Budget:
        """Return an owner's budget. Raises NotFound."""
        stored = self._store.records.load(Budget, owner)
        if stored is None or stored.record.is_ending:
            raise NotFound("budget", owner)
        return stored.record

    def list(self, owner: str | None, *, limit: int, page_token: str | None = None) -> Page[Budget]:
        """Return a page of the budgets of all owners, or of one, by owner. Reads one record for each.

        Raises:
            InvalidInput: The page token was made up, or belongs to another list.
        """
        if owner is not None:
            stored = self._store.records.load(Budget, owner)
            return Page([] if stored is None or stored.record.is_ending else [stored.record])
        after = read_token(_LIST, page_token)[1] if page_token else ""
        found = self._store.records.list_all(Budget, limit=limit, after=after)
        more = make_token(_LIST, found[-1].created_at, found[-1].id) if len(found) == limit else None
        return Page([each for each in found if not each.is_ending], more)

    def put(self, owner: str, max_queries_per_month: int) -> tuple[Budget, bool]:
        """Set an owner's budget, and enforce it at once; return it and whether it is new."""

        def write(_: None) -> bool:
            now = self._clock.now()
            stored = self._store.records.load(Budget, owner)
            if stored is None:
                new = Budget(
                    id=owner,
                    owner=owner,
                    created_at=now,
                    updated_at=now,
                    max_queries_per_month=max_queries_per_month,
                )
                self._store.records.write(new, None)
                return True
            changes: dict[str, object] = {"max_queries_per_month": max_queries_per_month, "updated_at": now}
            changes |= {"warned_month": None, "is_ending": False}
            self._store.records.write(stored.record.model_copy(update=changes), stored.version)
            return False

        is_new = compare_and_set(f"budget of {owner}", lambda: None, write)
        self.enforce(owner)
        return self.get(owner), is_new

    def delete(self, owner: str) -> None:
        """Delete an owner's budget, and resume what it has paused; the sweep does what is left. Raises NotFound."""
        self.get(owner)
        self._write(owner, lambda _: {"is_ending": True})
        self.enforce(owner)

    def enforce_all(self) -> bool:
        """Enforce all budgets; return whether that was all, or another look has to continue.

        Raises:
            StoreUnavailable: The store did not answer.
        """
        after, is_done = "", True
        while True:
            page = self._store.records.list_all(Budget, limit=_PAGE, after=after)
            for budget in page:
                is_done = self.enforce(budget.owner) and is_done
            if len(page) < _PAGE:
                return is_done
            after = page[-1].id

    def enforce(self, owner: str) -> bool:
        """Sum up what an owner has used; warn, pause or resume. Return whether that was all."""
        stored = self._store.records.load(Budget, owner)
        if stored is not None and stored.record.is_ending:
            return self._end(owner)
        front = self._summation.sum_up(owner)
        month, used = self.current_month, self._sum(owner)

        def look(known: Budget) -> dict[str, object]:
            before, in_sheets = (known.queries_before, known.queries_in_sheets) if known.month == month else (0, 0)
            before += max(0, in_sheets - used)  # sheets were deleted
            queries = before + used
            return {
                "month": month,
                "queries": queries,
                "queries_before": before,
                "queries_in_sheets": used,
                "summed_until": front.summed_at,
                # What it has paused is resumed first.
                "is_used_up": known.is_used_up or queries >= known.max_queries_per_month,
            }

        budget = self._write(owner, look)
        if budget is None:
            return True
        self._warn(budget, month)
        if budget.queries >= budget.max_queries_per_month:
            return self._pause_all(budget) and front.page_token is None
        if not budget.is_used_up:
            return front.page_token is None
        if not self._resume_all(owner):
            return False
        self._write(owner, lambda known: {"is_used_up": known.queries >= known.max_queries_per_month})
        return front.page_token is None

    def _end(self, owner: str) -> bool:
        """Resume what a budget has paused, and delete it; return whether that was all."""
        if not self._resume_all(owner):
            return False
        stored = self._store.records.load(Budget, owner)
        if stored is not None and stored.record.is_ending:
            with suppress(VersionConflict):  # it was set again
                self._store.records.delete(Budget, owner, stored.version)
        return True

    def _sum(self, owner: str) -> int:
        sheets = self._ledger.list_sheets(owner, self.current_month)
        return sum(sum_sheets(sheets).values(), start=UsageCounts()).queries

    def _warn(self, budget: Budget, month: str) -> None:
        """Log once a month that most of a budget is used, or all of it."""
        if budget.queries < WARNING_SHARE * budget.max_queries_per_month or budget.warned_month == month:
            return
        details = {"owner": budget.owner, "queries": budget.queries, "maxQueries": budget.max_queries_per_month}
        log.warning(
            "%s has used %d of %d queries of %s",
            budget.owner,
            budget.queries,
            budget.max_queries_per_month,
            month,
            extra={"action": "budget_nearly_used", **details},
        )
        self._write(budget.owner, lambda _: {"warned_month": month})

    def _pause_all(self, budget: Budget) -> bool:
        """Pause an owner's tasks; return whether these were all."""
        count = 0
        for task in self._list(budget.owner, TaskStatus.ACTIVE):
            if task.handler in _NEVER_PAUSED:
                continue
            if count == MAX_CHANGES:
                return False
            count += 1
            with suppress(NotAllowed, NotFound):  # it has ended, or waits for the sweep
                self._change(task.id, partial(pause_for_budget, reason=budget.reason))
        if count:
            details = {"action": "budget_used_up", "owner": budget.owner, "queries": budget.queries, "tasks": count}
            log.warning("%s has no queries left: %d tasks are paused", budget.owner, count, extra=details)
        return True

    def _resume_all(self, owner: str) -> bool:
        """Resume the tasks that a budget has paused; return whether these were all."""
        count = 0
        for task in self._list(owner, TaskStatus.PAUSED):
            if find_budget_pause(task) is None:
                continue
            if count == MAX_CHANGES:
                return False
            count += 1
            with suppress(NotAllowed, NotFound):
                self._change(task.id, resume_from_budget)
        if count:
            details = {"action": "budget_resumed", "owner": owner, "tasks": count}
            log.info("%s has a budget again: %d tasks are resumed", owner, count, extra=details)
        return True

    def _list(self, owner: str, status: TaskStatus) -> Iterator[Task]:
        token: str | None = None
        while True:
            page = self._store.list_tasks(TaskQuery(owner=owner, status=status), limit=_PAGE, page_token=token)
            yield from page.items
            token = page.next_page_token
            if token is None:
                return

    def _write(self, owner: str, decide: Callable[[Budget], dict[str, object]]) -> Budget | None:
        """Change a budget, if there is one; a change that changes nothing writes nothing."""

        def write(_: None) -> Budget | None:
            stored = self._store.records.load(Budget, owner)
            if stored is None:
                return None
            changed = stored.record.model_copy(update=decide(stored.record))
            before = stored.record.model_copy(update={"summed_until": changed.summed_until})
            if changed != before:
                changed = changed.model_copy(update={"updated_at": self._clock.now()})
                self._store.records.write(changed, stored.version)
            return changed

        return compare_and_set(f"budget of {owner}", lambda: None, write)
