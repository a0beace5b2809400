"""Budgets: warn when an owner has used most of one, pause the owner's tasks when it is used up, and resume them.

A task whose owner has a budget knows that (`Task.has_budget`), and each of its starts asks first: what is used beyond a
budget is at most what was running when it was used up. The answer is exact, since it counts what the tasks have
counted themselves, up to the latest commit. Tasks learn of a budget when they are created or revived, by whomever, from
the task that calls them or that they follow, and when the budget is set.

The sweep looks every five minutes. A deployment without budgets pays nothing for this but a few reads then, and one a
minute in each process that creates tasks: only where some owner has a budget, each creation asks for that of its owner
(`MAX_UNAWARE`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.owner_usage import WARNING_SHARE, Budget, UsageFront
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER, ERASE_HANDLER, EXPORT_HANDLER
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.documents.usage import month_of
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.recurrence.iso8601 import LAST_INSTANT
from cloudsched.domain.transitions.budget_pause import pause_for_budget, resume_from_budget
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.expiry import MIN_RETENTION
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.planning import find_budget_pause
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.engine.state.record_changes import change_record, iterate_records
from cloudsched.engine.storage.pages import Page, iterate_pages, make_token, read_token
from cloudsched.errors import CloudschedError, NotAllowed, NotFound, VersionConflict

if TYPE_CHECKING:
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.usage.ledger import UsageLedger
    from cloudsched.engine.usage.usage_report import UsageSummation

log = own_logger(__name__)

MAX_CHANGES: Final = 500
"""The number of tasks of an owner that are paused or resumed at a time. The next look continues."""
MAX_UNSUMMED: Final = 20
"""The number of changed tasks that are read before a start. If there are more, they are summed up first."""
MAX_UNAWARE: Final = timedelta(minutes=1)
"""The time for which a process goes on as if nobody had a budget after it found none. Tasks of the owner who gets the
first one, created in that time, learn of it at the next look."""
_NEVER: Final = (LAST_INSTANT, LAST_INSTANT)
_PAGE: Final = 100
_LIST: Final = "budgets"
_NEVER_PAUSED: Final = frozenset({BATCH_CHANGE_HANDLER, ERASE_HANDLER, EXPORT_HANDLER})
"""The handlers that use no queries, and that owners may ask for whatever they have used."""


class Budgets:
    """Keeps budgets, and enforces them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ledger: UsageLedger,
        summation: UsageSummation,
        change: Callable[[str, Callable[[Task, datetime], Commit]], Task],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._summation = summation
        self._change = change
        self._looked_at: datetime | None = None
        self.unused = _NEVER
        """From when until when this process goes on as if nobody had a budget."""

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
        """Return a page of the budgets of all owners, or of one, by owner. A read each. Raises InvalidInput."""
        if owner is not None:
            stored = self._store.records.load(Budget, owner)
            return Page([] if stored is None or stored.record.is_ending else [stored.record])
        after = read_token(_LIST, page_token)[1] if page_token else ""
        found = self._store.records.list_all(Budget, limit=limit, after=after)
        more = make_token(_LIST, found[-1].created_at, found[-1].id) if len(found) == limit else None
        return Page([each for each in found if not each.is_ending], more)

    def put(self, owner: str, max_queries_per_month: int, *, by: Authority) -> tuple[Budget, bool]:
        """Set an owner's budget, and enforce it at once. Return it, and whether it is new. Users may not: Forbidden."""
        by.require_server()

        is_new = False

        def write(known: Budget | None) -> Budget:
            nonlocal is_new
            is_new, now = known is None, self._clock.now()
            changes: dict[str, Any] = {"max_queries_per_month": max_queries_per_month, "updated_at": now}
            if known is None:
                return Budget(id=owner, owner=owner, created_at=now, **changes)
            return known.model_copy(update={**changes, "warned_month": None, "is_ending": False})

        change_record(self._store.records, Budget, owner, write)
        self.unused = _NEVER
        self.enforce(owner)
        return self.get(owner), is_new

    def delete(self, owner: str, *, by: Authority) -> None:
        """Delete a budget, and resume what it has paused. The sweep does the rest. Raises Forbidden or NotFound."""
        by.require_server()
        self.get(owner)
        self._write(owner, lambda _: {"is_ending": True})
        self.enforce(owner)

    def enforce_all(self) -> bool:
        """Enforce all budgets. Return whether that was all, or another look has to continue."""
        is_done = True
        for budget in iterate_records(partial(self._store.records.list_all, Budget, limit=_PAGE), _PAGE):
            is_done = self.enforce(budget.owner) and is_done
        return is_done

    def enforce(self, owner: str) -> bool:
        """Sum up what an owner has used, and warn, pause or resume. Return whether that was all."""
        stored = self._store.records.load(Budget, owner)
        if stored is None:
            return True
        if stored.record.is_ending:
            return self._end(owner)
        is_marked = stored.record.is_marked or self._mark_all(owner)
        front = self._summation.sum_up(owner, on_changed=self._mark)
        month = self.current_month
        used = self._ledger.count_queries(owner, month, ())
        changes = {"summed_until": front.summed_at, "is_marked": is_marked}
        budget = self._write(owner, lambda known: {**known.with_use(month, used).__dict__, **changes})
        if budget is None:
            return True
        self._warn(budget, month)
        is_whole = is_marked and front.page_token is None
        return (self._pause_all(budget) if budget.has_none_left else self._let_go(budget)) and is_whole

    def _let_go(self, budget: Budget) -> bool:
        """Resume the tasks that a budget has paused if some of it is left again. Return whether that was all."""
        if budget.is_used_up:
            if not self._resume_all(budget.owner):
                return False
            self._write(budget.owner, lambda known: {"is_used_up": known.has_none_left})
        return True

    def _end(self, owner: str) -> bool:
        if not self._resume_all(owner):
            return False
        stored = self._store.records.load(Budget, owner)
        if stored is not None and stored.record.is_ending:
            with suppress(VersionConflict):  # it was set again
                self._store.records.delete(Budget, owner, stored.version)
        return True

    def note_use(self, owner: str) -> None:
        """Keep an owner's use with their budget, before and after the sheets with it are deleted."""
        if self.has_budget(owner):
            month = self.current_month
            self._write(
                owner, lambda known: known.with_use(month, self._ledger.count_queries(owner, month, ())).__dict__
            )

    def has_budget(self, owner: str) -> bool:
        """Return whether an owner has a budget. Costs a read."""
        stored = self._store.records.load(Budget, owner)
        return stored is not None and not stored.record.is_ending

    def tell(self, task: Task) -> Task:
        """Return a task that is created or revived, marked as one that knows of its owner's budget if there is one.

        Costs a read a minute, and one each time if any owner has a budget. None for the system's own tasks, which learn
        of a budget at the next look.
        """
        is_free = task.has_budget or task.owner == SYSTEM_OWNER or self._has_nobody() or _is_exempt(task)
        return task if is_free or not self.has_budget(task.owner) else task.model_copy(update={"has_budget": True})

    def _has_nobody(self) -> bool:
        """Return whether no owner has a budget, as far as this process has seen within `MAX_UNAWARE`."""
        now = self._clock.now()
        if self._looked_at is None or not self._looked_at <= now < self._looked_at + MAX_UNAWARE:
            self.unused = _NEVER if self._store.records.list_all(Budget, limit=1) else (now, now + MAX_UNAWARE)
            self._looked_at = now
        return self.unused is not _NEVER

    def find_refusal(self, owner: str, running: int = 0) -> str | None:
        """Return why an owner may use no more now, None if they may. It is the one check before something is spent.

        Costs a read if there is no budget. Else four, and one for each task that has changed since it was summed up.
        `running` are the queries of an attempt that its task has not counted yet.
        """
        stored = self._store.records.load(Budget, owner)
        if stored is None or stored.record.is_ending:
            return None
        month = self.current_month
        limit = MAX_UNSUMMED
        while (changed := self._summation.list_unsummed(owner, limit)) is None:
            self._summation.sum_up(owner, on_changed=self._mark)
            limit *= 4  # it ends, however fast they change
        budget = stored.record.with_use(month, self._ledger.count_queries(owner, month, changed) + running)
        if not budget.has_none_left:
            return None
        if not stored.record.is_used_up:  # so that the next look resumes what is paused now
            self._write(owner, lambda _: {"is_used_up": True})
        return budget.reason

    def _mark_all(self, owner: str) -> bool:
        """Let an owner's tasks know of their budget, and return whether these were all."""
        count = 0
        for status in (TaskStatus.ACTIVE, TaskStatus.PAUSED):
            for task in self._list(owner, status):
                if count == MAX_CHANGES:
                    return False
                count += not task.has_budget
                self._mark((task,))
        return True

    def _mark(self, tasks: Iterable[Task]) -> None:
        """Let those of some tasks know of their owner's budget that may spend and do not know yet."""

        def mark(stored: VersionedTask | None) -> None:
            if stored is not None and not stored.task.has_budget:
                self._store.commit(Commit(with_changes(stored.task, self._clock.now(), has_budget=True), stored))

        for task in tasks:
            if not (task.has_budget or task.has_ended or task.deleted_at is not None or _is_exempt(task)):
                compare_and_set(f"task {task.id}", partial(self._store.load, task.id), mark)

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
        count, is_all = self._change_all(
            budget.owner,
            TaskStatus.ACTIVE,
            lambda task: task.handler not in _NEVER_PAUSED,
            partial(pause_for_budget, reason=budget.reason),
        )
        if count and is_all:
            details = {"action": "budget_used_up", "owner": budget.owner, "queries": budget.queries, "tasks": count}
            log.warning("%s has no queries left: %d tasks are paused", budget.owner, count, extra=details)
        return is_all

    def _resume_all(self, owner: str) -> bool:
        count, is_all = self._change_all(
            owner, TaskStatus.PAUSED, lambda task: find_budget_pause(task) is not None, resume_from_budget
        )
        if count and is_all:
            details = {"action": "budget_resumed", "owner": owner, "tasks": count}
            log.info("%s has a budget again: %d tasks are resumed", owner, count, extra=details)
        return is_all

    def _change_all(
        self,
        owner: str,
        status: TaskStatus,
        is_wanted: Callable[[Task], bool],
        decide: Callable[[Task, datetime], Commit],
    ) -> tuple[int, bool]:
        """Change an owner's wanted tasks, at most `MAX_CHANGES`. Return how many, and whether these were all."""
        count = 0
        for task in filter(is_wanted, self._list(owner, status)):
            if count == MAX_CHANGES:
                return count, False
            count += 1
            with suppress(NotAllowed, NotFound):  # it has ended, or waits for the sweep
                self._change(task.id, decide)
        return count, True

    def _list(self, owner: str, status: TaskStatus) -> Iterator[Task]:
        query = TaskQuery(owner=owner, status=status)
        for page in iterate_pages(lambda token: self._store.list_tasks(query, limit=_PAGE, page_token=token)):
            yield from page.items

    def _write(self, owner: str, decide: Callable[[Budget], dict[str, object]]) -> Budget | None:
        """Change a budget, if there is one. A change that changes nothing writes nothing."""

        def write(known: Budget | None) -> Budget | None:
            if known is None:
                return None
            changed = known.model_copy(update=decide(known))
            if changed == known.model_copy(update={"summed_until": changed.summed_until}):
                return known
            return changed.model_copy(update={"updated_at": self._clock.now()})

        return change_record(self._store.records, Budget, owner, write)


def _is_exempt(task: Task) -> bool:
    return task.handler in _NEVER_PAUSED or task.delivery is not None


BUDGETS_EVERY: Final = timedelta(minutes=5)
"""The interval at which budgets are looked at."""
SUMS_EVERY: Final = timedelta(days=1)
"""The interval at which all tasks are summed up: at least once in the two months that a task's own counts last."""
_NOTE_ID: Final = "budgets"
_SLACK: Final = timedelta(seconds=10)
"""The tolerance of these intervals: a sweep comes every minute, and not to the second."""


class UsageWatch:
    """Looks after each sweep whether there is something to do.

    Its last time is noted for all processes: a process that has just started reads that, once.
    """

    def __init__(self, store: Store, clock: Clock, budgets: Budgets, summation: UsageSummation) -> None:
        self._store = store
        self._clock = clock
        self._budgets = budgets
        self._summation = summation
        self._budgets_at: datetime | None = None
        self._sums_at: datetime | None = None
        self._warned_at: datetime | None = None

    def run(self) -> None:
        """Do what is due. A failure is logged, and never makes a sweep fail."""
        now = self._clock.now()
        try:
            if _is_due(self._budgets_at, now, BUDGETS_EVERY):
                self._enforce(now)
            if _is_due(self._sums_at, now, SUMS_EVERY):
                front = self._summation.sum_up(None, at_most_every=SUMS_EVERY - _SLACK)
                self._sums_at = None if front.page_token else (front.summed_at or now)
                self._warn_if_behind(front, now)
        except CloudschedError as error:
            log.warning("usage is not summed up: %s", error, extra={"action": "usage_not_summed"})

    def _warn_if_behind(self, front: UsageFront, now: datetime) -> None:
        """Say once a day that a pass takes so long that ended tasks may be removed before they are summed up."""
        began_at = front.pass_began_at if front.page_token else None
        is_behind = began_at is not None and now - began_at > MIN_RETENTION / 2
        if began_at is not None and is_behind and _is_due(self._warned_at, now, SUMS_EVERY):
            self._warned_at = now
            about = {"action": "usage_behind", "since": began_at.isoformat()}
            log.warning("The tasks that changed since %s are still being summed up", began_at.isoformat(), extra=about)

    def _enforce(self, now: datetime) -> None:
        stored = self._store.records.load(UsageFront, _NOTE_ID)
        noted_at = None if stored is None else stored.record.summed_at
        if not _is_due(noted_at, now, BUDGETS_EVERY):
            self._budgets_at = noted_at
            return
        note = UsageFront(id=_NOTE_ID, owner=SYSTEM_OWNER, created_at=now, updated_at=now, summed_at=now)
        self._budgets_at = now
        with suppress(VersionConflict):  # another sweep looks
            version = self._store.records.write(note, None if stored is None else stored.version)
            if not self._budgets.enforce_all():  # the next sweep continues
                self._budgets_at = None
                self._store.records.write(note.model_copy(update={"summed_at": None}), version)


def _is_due(last: datetime | None, now: datetime, interval: timedelta) -> bool:
    return last is None or not timedelta(0) <= now - last < interval - _SLACK
