"""Budgets: warn when an owner has used most of one, pause the tasks when it is used up, and resume them.

A task whose owner has a budget knows that (`Task.has_budget`), and each of its starts asks first: what is
used beyond a budget is at most what was running when it was used up. The answer is exact, since it counts
what the tasks have counted themselves, up to the latest commit. Tasks learn of a budget when they are
created or revived, by whomever, from the task that calls them or that they follow, and when the budget is
set.

The sweep looks every five minutes. A deployment without budgets pays nothing for this but a few reads
then, and one a minute in each process that creates tasks: only where some owner has a budget, each
creation asks for that of its owner (`MAX_UNAWARE`).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic.alias_generators import to_camel
from typing_extensions import override

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.owner_usage import UsageFront
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER, ERASE_HANDLER, EXPORT_HANDLER
from cloudsched.domain.documents.task import FieldChange, HistoryEntry, NeedCause, Task, TaskStatus, Trouble
from cloudsched.domain.documents.usage import Amounts, month_of
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.explanation.findings import Finding, Reason
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.responses.overview_responses import Need, NeedAct
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.engine.state.record_changes import change_record, find_record, iterate_records, note_act
from cloudsched.engine.storage.pages import Page, iterate_items, make_token, read_token
from cloudsched.engine.usage.usage_limit import Looks, UsageLimit
from cloudsched.engine.usage.usage_watch import is_due
from cloudsched.errors import InvalidInput, NotAllowed, NotFound, VersionConflict
from cloudsched.features.budgets.budget import ENFORCED_EVERY, Budget
from cloudsched.features.budgets.fields import LIMITED, MAX_AMOUNT
from cloudsched.features.budgets.holds import find_excess, hold, is_held_by_limit, release
from cloudsched.features.budgets.used_up_notices import tell_of_budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cloudsched.domain.documents.authority import Requesters
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler
    from cloudsched.runtime.container import Container

log: Final = own_logger(__name__)

MAX_CHANGES: Final = 500
"""The number of tasks of an owner that are paused or resumed at a time. The next look continues."""
MAX_UNSUMMED: Final = 20
"""The number of changed tasks that are read before a start. If there are more, they are summed up first."""
MAX_UNAWARE: Final = timedelta(minutes=1)
"""The time for which a process goes on as if nobody had a budget after it found none.

Tasks of the owner who gets the first one, created in that time, learn of it at the next look.
"""
_NOTE_ID: Final = "budgets"
_PAGE: Final = 100
_LIST: Final = "budgets"
_MAX_LOOKED_AT: Final = 1_000
"""The most budgets that an overview reads."""
_MAX_COUNTED: Final = 10_000
_NEVER_PAUSED: Final = frozenset({BATCH_CHANGE_HANDLER, ERASE_HANDLER, EXPORT_HANDLER})
"""The handlers that use nothing, and that owners may ask for whatever they have used."""


class Budgets(UsageLimit):
    """Keeps budgets, and enforces them.

    The time at which that was done last is noted for all processes: one that has just started reads it, once.
    """

    def __init__(self, container: Container) -> None:
        self._store = container.store
        self._clock = container.clock
        self._ledger = container.many_tasks.ledger
        self._summation = container.many_tasks.summation
        self._engine: Callable[[], EngineContext] = lambda: container.engine
        self._scheduler: Callable[[], Scheduler] = lambda: container.scheduler
        self._enforced_at: datetime | None = None
        self._looked_at: datetime | None = None
        self._has_found_none = False
        self._seen = dict[str, Budget]()  # as the starts of their owners' tasks have read them

    @classmethod
    def of(cls, container: Container) -> Budgets:
        """Return those of an app."""
        return cast("Budgets", container.usage_limit)

    @property
    def current_month(self) -> str:
        """The month whose use counts now, in UTC."""
        return month_of(self._clock.now())

    def get(self, owner: str) -> Budget:
        """Return an owner's budget. Raises NotFound."""
        found = self._find(owner)
        if found is None:
            raise NotFound("budget", owner)
        return found

    def _find(self, owner: str) -> Budget | None:
        stored = self._store.records.load(Budget, owner)
        return None if stored is None or stored.record.is_ending else stored.record

    def count_now(self, budget: Budget) -> Budget:
        """Return a budget with what is used of it now, which writes nothing.

        Costs three reads, and one for each task that has changed since it was summed up. If those are too many, it is
        returned as the last look has left it.
        """
        now = self._clock.now()
        changed = self._summation.list_unsummed(budget.owner, MAX_UNSUMMED)
        if changed is None:
            return budget
        month = self.current_month
        counted = budget.with_use(month, self._ledger.count(budget.owner, month, changed))
        return counted.model_copy(update={"summed_until": now})

    def list(self, owner: str | None, *, limit: int, page_token: str | None = None) -> Page[Budget]:
        """Return a page of the budgets of all owners, or of one, by owner.

        A read each. Raises InvalidInput.
        """
        if owner is not None:
            found = self._find(owner)
            return Page([] if found is None else [found])
        after = read_token(_LIST, page_token)[1] if page_token else ""
        page = self._store.records.list_all(Budget, limit=limit, after=after)
        more = make_token(_LIST, page[-1].created_at, page[-1].id) if len(page) == limit else None
        return Page([each for each in page if not each.is_ending], more)

    def put(
        self,
        owner: str,
        max_queries_per_month: int = MAX_AMOUNT,
        max_tokens_per_month: int = MAX_AMOUNT,
        *,
        by: Authority,
    ) -> tuple[Budget, bool]:
        """Set an owner's budget of queries, tokens or both, and enforce it at once.

        Return it, and whether it is new. Users may not: Forbidden.
        """
        by.require_server()

        is_new = False
        before: Budget | None = None

        def write(known: Budget | None) -> Budget:
            nonlocal is_new, before
            is_new = known is None
            before = None if known is None or known.is_ending else known
            now = self._clock.now()
            changes: dict[str, Any] = {
                "max_queries_per_month": max_queries_per_month,
                "max_tokens_per_month": max_tokens_per_month,
                "updated_at": now,
            }
            if known is None:
                return Budget(id=owner, owner=owner, created_at=now, **changes)
            return known.model_copy(update={**changes, "warned_month": None, "is_ending": False})

        after = change_record(self._store.records, Budget, owner, write)
        if fields := tuple(_compare_limits(before, after)):
            self._note(Action.BUDGET_SET, owner, by, fields)
        self._has_found_none = False
        self.enforce_for(owner)
        return self.get(owner), is_new

    def delete(self, owner: str, *, by: Authority) -> None:
        """Delete a budget, and resume what it has paused.

        The sweep does the rest. Raises Forbidden or NotFound.
        """
        by.require_server()
        self.get(owner)
        self._write(owner, lambda _: {"is_ending": True})
        self._note(Action.BUDGET_DELETED, owner, by)
        self.enforce_for(owner)

    def _note(self, action: Action, owner: str, by: Authority, fields: tuple[FieldChange, ...] = ()) -> None:
        """Note who did something to a budget, for the audit trail."""
        entry = HistoryEntry(at=self._clock.now(), action=action, by=by.actor, fields=fields)
        note_act(self._store.records, entry, owner=owner)

    @override
    def enforce(self, now: datetime) -> None:
        if not is_due(self._enforced_at, now, ENFORCED_EVERY):
            return
        stored = self._store.records.load(UsageFront, _NOTE_ID)
        noted_at = None if stored is None else stored.record.summed_at
        if not is_due(noted_at, now, ENFORCED_EVERY):
            self._enforced_at = noted_at
            return

        note = UsageFront(id=_NOTE_ID, owner=SYSTEM_OWNER, created_at=now, updated_at=now, summed_at=now)
        self._enforced_at = now
        with suppress(VersionConflict):  # another sweep looks
            version = self._store.records.write(note, None if stored is None else stored.version)
            if not self.enforce_all():  # the next sweep continues
                self._enforced_at = None
                self._store.records.write(note.model_copy(update={"summed_at": None}), version)

    def enforce_all(self) -> bool:
        """Enforce all budgets. Return whether that was all, or another look has to continue."""
        is_done = True
        for budget in iterate_records(partial(self._store.records.list_all, Budget, limit=_PAGE), _PAGE):
            is_done = self.enforce_for(budget.owner) and is_done
        return is_done

    def enforce_for(self, owner: str) -> bool:
        """Sum up what an owner has used, and warn, pause or resume. Return whether that was all."""
        stored = self._store.records.load(Budget, owner)
        if stored is None:
            return True
        if stored.record.is_ending:
            return self._end(owner)
        is_marked = stored.record.is_marked or self._mark_all(owner)
        front = self._summation.sum_up(owner, on_changed=self._mark)
        month = self.current_month
        used = self._ledger.count(owner, month, ())
        changes = {"summed_until": front.summed_at, "is_marked": is_marked}
        budget = self._write(owner, lambda known: {**known.with_use(month, used).__dict__, **changes})
        if budget is None:
            return True
        self._warn(budget, month)
        is_whole = is_marked and front.page_token is None
        if not budget.has_none_left:
            return self._let_go(budget) and is_whole
        is_whole = self._pause_all(budget) and is_whole
        self._tell(budget)
        return is_whole

    def _let_go(self, budget: Budget) -> bool:
        """Resume the tasks that a budget has paused if some of it is left again.

        Return whether that was all.
        """
        if budget.is_used_up:
            if not self._resume_all(budget.owner):
                return False
            self._write(budget.owner, lambda known: {"is_used_up": known.has_none_left, "is_told": False})
        return True

    def _end(self, owner: str) -> bool:
        if not self._resume_all(owner):
            return False
        stored = self._store.records.load(Budget, owner)
        if stored is not None and stored.record.is_ending:
            with suppress(VersionConflict):  # it was set again
                self._store.records.delete(Budget, owner, stored.version)
        return True

    @override
    def note_use(self, owner: str) -> None:
        """Keep an owner's use with their budget, before and after the sheets with it are deleted."""
        if self.has_budget(owner):
            month = self.current_month
            self._write(
                owner,
                lambda known: known.with_use(month, self._ledger.count(owner, month, ())).__dict__,
            )

    def find_known_refusal(self, owner: str) -> str | None:
        """Return why an owner may use no more, as far as is known, which costs one read.

        If a start was refused and no look has seen why, it is counted (`count_now`).
        """
        known = self._find(owner)
        if known is None:
            return None
        month = self.current_month
        seen = known.with_use(month, Amounts(*(known.count_in_sheets(month, each) for each in LIMITED)))
        if known.is_used_up and not seen.has_none_left:
            seen = self.count_now(known)
        return seen.reason if seen.has_none_left else None

    def has_budget(self, owner: str) -> bool:
        """Return whether an owner has a budget. Costs a read."""
        return self._find(owner) is not None

    @override
    def prepare(self, task: Task, now: datetime, after: Task | None = None) -> Task:
        """Return a task that knows of its owner's budget if there is one.

        Costs a read a minute, and one each time if any owner has a budget. None for the system's own
        tasks, which learn of a budget at the next look, nor for the calls and follow-ups of the same
        owner.
        """
        if task.revision == 1 and task.has_limit and task.defined_by is None:  # new, and written by a server
            limits = {field: most for field in LIMITED.values() if (most := getattr(task, field)) is not None}
            task = task.model_copy(update={"highest_limits": limits})
        if after is not None and task.owner == after.owner:
            is_told = after.has_budget
        elif after is not None and task.parent is not None:
            is_told = True  # whether the owner of such a call has a budget is not known here
        elif task.owner == SYSTEM_OWNER or self._has_nobody(now) or _is_exempt(task):
            return task
        else:
            is_told = not task.has_budget and self.has_budget(task.owner)

        return task.model_copy(update={"has_budget": True}) if is_told and not task.has_budget else task

    @override
    def settle(self, before: Task, task: Task, author: Requesters | None) -> Task:
        """Return an edited task whose limits servers may set. Users may set none above those of servers."""
        highest: dict[str, int | None] = {**(task.highest_limits or {})}
        for field in LIMITED.values():
            wanted, most = getattr(task, field), highest.get(field)
            if wanted == getattr(before, field):
                continue
            if author is None:
                highest[field] = wanted
            elif most is not None and (wanted is None or wanted > most):
                hint = "Give that or less. Only an admin may raise or remove it."
                raise InvalidInput(to_camel(field), f"has a limit of {most:,} that an admin has set", hint)
        left = {field: most for field, most in highest.items() if most is not None} or None
        return task if left == task.highest_limits else task.model_copy(update={"highest_limits": left})

    def _has_nobody(self, now: datetime) -> bool:
        """Return whether no owner has a budget, as far as this process has seen within `MAX_UNAWARE`."""
        if self._looked_at is None or not self._looked_at <= now < self._looked_at + MAX_UNAWARE:
            self._has_found_none = not self._store.records.list_all(Budget, limit=1)
            self._looked_at = now
        return self._has_found_none

    @override
    def make_looks(self, store: Store) -> Looks:
        from cloudsched.features.budgets.looks import BudgetLooks  # noqa: PLC0415 - only simulations need it

        return BudgetLooks(store, self.enforce_all)

    @override
    def find_excess(self, task: Task, running: Amounts) -> str | None:
        own = find_excess(task, self._clock.now(), running) if task.has_limit else None
        seen = self._seen.get(task.owner) if task.has_budget else None
        if own or seen is None:
            return own
        used = {"queries": seen.queries + running.queries, "tokens": seen.tokens + running.tokens}
        budget = seen.model_copy(update=used)
        return budget.reason if budget.has_none_left else None

    @override
    def find_refusal_of(self, task: Task) -> str | None:
        own = find_excess(task, self._clock.now()) if task.has_limit else None
        return own or (self.find_refusal(task.owner) if task.has_budget else None)

    @override
    def find_refusal(self, owner: str) -> str | None:
        """Return why an owner may use no more now, None if they may.

        Costs a read if there is no budget. Else four, and one for each task that has changed since it was
        summed up.
        """
        known = self._find(owner)
        if known is None:
            return None
        month = self.current_month
        limit = MAX_UNSUMMED
        while (changed := self._summation.list_unsummed(owner, limit)) is None:
            self._summation.sum_up(owner, on_changed=self._mark)
            limit *= 4  # it ends, however fast they change
        budget = self._seen[owner] = known.with_use(month, self._ledger.count(owner, month, changed))
        if not budget.has_none_left:
            return None
        if not known.is_used_up:  # so that the next look resumes what is paused now
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
                self._store.commit(
                    Commit(with_changes(stored.task, self._clock.now(), has_budget=True), stored),
                )

        for task in tasks:
            if not (task.has_budget or task.has_ended or task.deleted_at is not None or _is_exempt(task)):
                compare_and_set(f"task {task.id}", partial(self._store.load, task.id), mark)

    def _warn(self, budget: Budget, month: str) -> None:
        """Log once a month that most of a budget is used, or all of it."""
        if not budget.is_nearly_used or budget.warned_month == month:
            return
        details = {
            "owner": budget.owner,
            "queries": budget.queries,
            "maxQueries": budget.max_queries_per_month,
            "tokens": budget.tokens,
            "maxTokens": budget.max_tokens_per_month,
        }
        log.warning(
            "%s has used most of the budget of %s",
            budget.owner,
            month,
            extra={"action": "budget_nearly_used", **details},
        )
        self._write(budget.owner, lambda _: {"warned_month": month})

    def _pause_all(self, budget: Budget) -> bool:
        count, is_all = self._change_all(
            budget.owner,
            TaskStatus.ACTIVE,
            lambda task: task.handler not in _NEVER_PAUSED,
            partial(hold, reason=budget.reason),
        )
        if count and is_all:
            details = {
                "action": "budget_used_up",
                "owner": budget.owner,
                "queries": budget.queries,
                "tokens": budget.tokens,
                "tasks": count,
            }
            log.warning("%s has used up a budget: %d tasks are paused", budget.owner, count, extra=details)
        return is_all

    def _tell(self, budget: Budget) -> None:
        """Tell an owner once that a budget holds tasks, in a commit of one of them."""
        if budget.is_told:
            return
        paused = self._list(budget.owner, TaskStatus.PAUSED)
        held = list(islice(filter(_is_held_by_budget, paused), MAX_CHANGES))
        if not held:
            return
        with suppress(NotFound):  # the next look tells
            tell = partial(tell_of_budget, self._engine(), budget=budget, held=held)
            self._scheduler().change(held[0].id, tell, OWN_CODE)
            self._write(budget.owner, lambda _: {"is_told": True})

    def _resume_all(self, owner: str) -> bool:
        count, is_all = self._change_all(
            owner,
            TaskStatus.PAUSED,
            _is_held_by_budget,
            release,
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
        """Change an owner's wanted tasks, at most `MAX_CHANGES`.

        Return how many, and whether these were all.
        """
        count = 0
        for task in filter(is_wanted, self._list(owner, status)):
            if count == MAX_CHANGES:
                return count, False
            count += 1
            with suppress(NotAllowed, NotFound):  # it has ended, or waits for the sweep
                self._scheduler().change(task.id, decide, OWN_CODE)
        return count, True

    def _list(self, owner: str, status: TaskStatus) -> Iterator[Task]:
        query = TaskQuery(owner=owner, status=status)
        return iterate_items(lambda token: self._store.list_tasks(query, limit=_PAGE, page_token=token))

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


def _is_held_by_budget(task: Task) -> bool:
    return task.present_hold is not None and not is_held_by_limit(task)


def find_conditions(container: Container, task: Task, _person: object, now: datetime) -> Iterator[Finding]:
    """Yield whether a task has used up its limit, or its owner a budget."""
    own = find_excess(task, now) if task.has_limit else None
    theirs = Budgets.of(container).find_known_refusal(task.owner) if task.has_budget else None
    for reason in filter(None, (own, theirs)):
        yield Finding(reason=Reason.BUDGET_USED_UP, sentence=reason)


def _compare_limits(before: Budget | None, after: Budget) -> Iterator[FieldChange]:
    """Yield the limits that differ, those without end as none."""
    for name in ("max_queries_per_month", "max_tokens_per_month"):
        old, new = (None if each is None else getattr(each, name) for each in (before, after))
        texts = [None if value in {None, MAX_AMOUNT} else str(value) for value in (old, new)]
        if texts[0] != texts[1]:
            yield FieldChange(field=to_camel(name), before=texts[0], after=texts[1])


def find_causes(container: Container, owner: str | None) -> Iterator[Need]:
    """Yield the budgets that are used up, of all owners or of one.

    Costs a read each, and of each of them a count of its use and of the tasks that it holds.
    """
    records = container.store.records
    budgets: Iterable[Budget] = iterate_records(partial(records.list_all, Budget, limit=_PAGE), _PAGE)
    if owner is not None:
        budgets = filter(None, [find_record(records, Budget, owner)])
    for each in islice(budgets, _MAX_LOOKED_AT):
        if not each.is_used_up or each.is_ending or not each.has_none_left:
            continue
        query = TaskQuery(each.owner, trouble=Trouble.HELD)
        count = container.store.search.count_tasks(query, _MAX_COUNTED)
        if not count:
            continue
        whose = {"owner": each.owner}
        yield Need(
            cause=NeedCause.BUDGET_USED_UP,
            sentence=Budgets.of(container).count_now(each).say_waiting(count),
            count=count,
            subject=each.owner,
            path="tasks",
            query={"trouble": Trouble.HELD.value, "calls": "true", **whose},
            act=NeedAct(label="Raise", path="usage", query=whose),
        )
