"""The rules of budgets and limits.

* U1: an attempt of a task that knows of its owner's budget is claimed only by a process that has asked, and when it
  asked, what all commits until then had counted was below the budget. So what is used beyond it is at most what was
  running, or being claimed, when it was used up. Each task of such an owner knows, whoever has created it.
* U2: no attempt of a task is claimed while what the task has counted in the month reaches its own limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tests.simulation.invariants_runs import fail

from cloudsched import App, Execution, Task
from cloudsched.domain.documents.usage import month_of
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.budgets.budget import Budget
from cloudsched.features.budgets.budgets import Budgets

if TYPE_CHECKING:
    from tests.simulation.world import Process, World


OWNERS = ("ada", "bob")


class BudgetInvariants:
    """Counts what tasks have committed, and what each process could know of it when it asked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._used: dict[str, dict[tuple[str, datetime], int]] = defaultdict(dict)
        self._asked: dict[tuple[Process, str], tuple[int, int]] = {}

    def on_read(self, budget: Budget) -> None:
        if self._world.current is not None:
            known = sum(self._used[budget.owner].values()), budget.max_queries_per_month
            self._asked[self._world.current, budget.owner] = known

    def on_commit(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:  # noqa: ARG002 - as for the others
        month = month_of(self._world.now)
        counts = sum(each.counts.queries for each in after.usage if each.month == month)
        self._used[after.owner][after.id, after.created_at] = counts
        self._check_knows(after)
        if before is None:
            return
        known = {run.lease.token_hash for run in before.runs if run.lease}
        for run in after.runs:
            if run.lease and run.lease.token_hash not in known:
                self._check_limit(before, month, run.execution_id)
                if before.has_budget:
                    self._check_claim(after, run.execution_id)

    def _check_knows(self, task: Task) -> None:
        has_budget = self._world.fault_profile.has_budgets and task.owner in OWNERS  # from the beginning to the end
        if has_budget and task.delivery is None and not (task.has_ended or task.has_budget):
            fail(f"U1: {task.id} does not know that {task.owner} has a budget")

    def _check_limit(self, task: Task, month: str, execution_id: str) -> None:
        own = (*task.usage, *task.used_by_calls)
        used, most = sum(each.counts.queries for each in own if each.month == month), task.max_queries_per_month
        if most is not None and used >= most:
            fail(f"U2: {task.id} {execution_id} is claimed with {used} of {most} queries used")

    def _check_claim(self, task: Task, execution_id: str) -> None:
        process = self._world.current
        asked = None if process is None else self._asked.get((process, task.owner))
        if asked is None:
            fail(f"U1: {task.id} {execution_id} is claimed without asking for the budget of {task.owner}")
        used, most = asked
        if used >= most:
            fail(f"U1: {task.id} {execution_id} is claimed with {used} of {most} queries used")


def set_budgets(world: World) -> None:
    """Store a budget for each owner, which is used up soon."""
    for owner in OWNERS:
        most = world.random.choice([2, 6, 15])
        times = {"created_at": world.now, "updated_at": world.now}
        world.real_store.records.write(Budget(id=owner, owner=owner, max_queries_per_month=most, **times), None)


def look_at_budgets(world: World, app: App) -> None:
    """Look as the sweep does every five minutes; or let an admin raise a budget."""
    budgets, owner = Budgets.of(app.container), world.random.choice(OWNERS)
    if world.random.random() < 0.7:
        budgets.enforce_for(owner)
    else:
        budgets.put(owner, world.random.choice([3, 10, 20, 40]), by=OWN_CODE)
