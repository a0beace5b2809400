"""Tell owners once that their tasks are paused, because a limit or a budget is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.usage import month_of, start_of_next_month
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.notices import InboxMessage, say_instant
from cloudsched.features.deliveries.failure_notices import add_notice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.features.budgets.budget import Budget

_LATER: Final = "catchUp says what of all that comes due until then still runs."


def tell_of_limit(engine: EngineContext, commit: Commit, now: datetime) -> Commit:
    """Return the commit that pauses a task by its own limit, with the message to its owner."""
    task = commit.task
    body = f"{task.message}\n\nIt goes on by itself {say_instant(task, start_of_next_month(now))}. {_LATER}"
    notice = InboxMessage(f"Paused: {task.delivery_title or task.title}", body)
    about = f"{task.id}-limit-{_name(task, now)}"
    return add_notice(engine, commit, about, notice, [task], now)


def tell_of_budget(engine: EngineContext, task: Task, now: datetime, budget: Budget, held: Sequence[Task]) -> Commit:
    """Return the commit of one of the tasks that a budget holds, with the message to their owner."""
    body = (
        f"Your budget is used up: {budget.excess} of {budget.month}. It has paused your tasks.\n\n"
        f"These go on by themselves {say_instant(task, start_of_next_month(now))}, or earlier if an admin raises "
        f"the budget. {_LATER}"
    )
    notice = InboxMessage("Your tasks are paused", body)
    about = f"budget-{_name(budget, now)}"
    return add_notice(engine, Commit(with_changes(task, now)), about, notice, held, now)


def _name(limits: Task | Budget, now: datetime) -> str:
    """Return a name for the month and its limits: a message about the same is not sent twice."""
    return f"{month_of(now)}-{limits.max_queries_per_month or 0}-{limits.max_tokens_per_month or 0}"
