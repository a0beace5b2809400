"""The operations on queues, workers, locks, counts, handlers, usage and budgets."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from werkzeug.wrappers import Response

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.owner_usage import MAX_QUERIES, Budget
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.pull import OfferEntry, Pull
from cloudsched.domain.documents.task import Task  # noqa: TC001 - pydantic reads them
from cloudsched.domain.responses import overview_responses as responses
from cloudsched.engine.pull import presence
from cloudsched.engine.queries import queues as queues_and_locks
from cloudsched.engine.storage.pages import bad_token
from cloudsched.errors import Forbidden
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation, read_owner
from cloudsched.web.api.parse import validate_model
from cloudsched.web.api.responses import json_response, page_response
from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from cloudsched.engine.sweep.shard_sweeps import SweepNote


@operation("GET", "/v1/queues", "Workers", query=bodies.AnyOwnerQuery, response_schema="QueueList")
def list_queues(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """List the queues in which tasks wait or workers listen.

    There is one entry for each queue and each skill that a waiting task requires. Users see their own.
    """
    container = call.app.container
    shown = queues_and_locks.list_queues(
        container.store, call.caller.resolve_listed_owner(query.owner), container.clock.now()
    )
    return json_response(responses.QueueList(queues=shown).to_wire())


@operation(
    "GET",
    "/v1/queues/{queue}/tasks",
    "Workers",
    query=bodies.OwnerPageQuery,
    response_schema="QueuedTaskPage",
)
def list_queued_tasks(call: ApiCall, query: bodies.OwnerPageQuery) -> Response:
    """List the tasks that wait in a queue, in the order in which workers get them. Nothing is claimed.

    As long as the response has a `nextPageToken`, repeat the request with it.
    """
    queue = validate_model(Pull, {"queue": call.path["queue"]}).queue
    owner = call.caller.resolve_listed_owner(query.owner)
    found = queues_and_locks.list_queued_tasks(
        call.app.container.store, queue, owner, query.page_size, query.page_token or None
    )
    shown = tuple(_make_queued_task(offer, task) for offer, task in found.items)
    return json_response(
        responses.QueuedTaskPage(tasks=shown, next_page_token=found.next_page_token).to_wire(),
    )


@operation("GET", "/v1/workers", "Workers", query=bodies.AnyOwnerQuery, response_schema="WorkerList")
def list_workers(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """List the workers that have asked for work in the last day.

    With an owner, the list has only workers that run nobody else's tasks. Users see these of their own.
    """
    container = call.app.container
    now = container.clock.now()
    shown = tuple(
        responses.WorkerNote(
            worker=one.worker,
            queue=one.queue,
            skills=one.skills,
            owner=one.serves,
            claimed_by=one.claimed_by,
            seen_at=one.seen_at,
            is_listening=presence.is_listening(one, now),
        )
        for one in presence.list_workers(container.store, call.caller.resolve_listed_owner(query.owner))
    )
    return json_response(responses.WorkerList(workers=shown).to_wire())


@operation("GET", "/v1/overview", "Tasks", query=bodies.AnyOwnerQuery, response_schema="OverviewCounts")
def get_overview(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Count tasks by status, open work, problems, the executions that ended in each recent hour, and what is due.

    The counts are kept for ten seconds. Each ends at 10,000. Users see those of their own tasks.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    counts, sweep = call.app.container.many_tasks.overview.count(owner)
    return json_response(counts.model_copy(update={"sweep": _make_sweep_state(call, sweep)}).to_wire())


@operation("GET", "/v1/changes", "Tasks", query=bodies.AnyOwnerQuery, response_schema="ChangeCursor")
def get_change_cursor(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Get a text that is different after any task has changed: a cheap check that a list is still up to date.

    It costs one read. The text also changes each minute, since tasks that were deleted leave no trace.
    Users see whether one of their own tasks has changed.
    """
    container = call.app.container
    last = container.store.search.find_last_change(call.caller.resolve_listed_owner(query.owner))
    minute = int(container.clock.now().timestamp()) // 60
    cursor = hashlib.sha256(f"{minute} {last}".encode()).hexdigest()[:16]
    return json_response(responses.ChangeCursor(cursor=cursor).to_wire())


def _make_sweep_state(call: ApiCall, note: SweepNote | None) -> responses.SweepState | None:
    if note is None or call.caller.visible_owner is not None:
        return None
    lag = max(0.0, (call.app.container.clock.now() - note.updated_at).total_seconds())
    counts = {name: getattr(note, name) for name in ("examined", "dispatched", "unsent", "failed")}
    hanging = call.app.container.hanging or None
    return responses.SweepState(finished_at=note.updated_at, lag=lag, hanging=hanging, **counts)


def _make_queued_task(offer: OfferEntry, task: Task | None) -> responses.QueuedTask:
    rank = int(offer.order.partition(" ")[0])
    return responses.QueuedTask(
        task_id=offer.task_id,
        owner=offer.owner,
        handler=offer.handler,
        title=None if task is None else task.title,
        skill=offer.queue_key.partition("/")[2] or None,
        priority=tuple(Priority)[rank],
        offered_at=queues_and_locks.get_offered_since(offer),
    )


def _decode_key(token: str | None) -> str:
    try:
        return bytes.fromhex(token or "").decode()
    except ValueError as error:
        raise bad_token() from error


class PutBudget(WireModel):
    """The limit of an owner's usage."""

    max_queries_per_month: Annotated[int, Field(strict=True, ge=0, le=MAX_QUERIES)]
    """The largest number of queries in a calendar month, in UTC."""


@operation("GET", "/v1/budgets", "Usage", query=bodies.OwnerPageQuery, response_schema="BudgetPage")
def list_budgets(call: ApiCall, query: bodies.OwnerPageQuery) -> Response:
    """List all budgets, and how much of each is used, by owner.

    Users see their own. As long as the response has a `nextPageToken`, repeat the request with it.
    """
    budgets = call.app.container.many_tasks.budgets
    owner = call.caller.resolve_listed_owner(query.owner)
    found = budgets.list(owner, **query.to_arguments())
    shown = (_make_details(each, budgets.current_month).to_wire() for each in found.items)
    return page_response(responses.BudgetPage, found, shown)


@operation("GET", "/v1/people/{owner}/budget", "Usage", response_schema="BudgetDetails")
def get_budget(call: ApiCall) -> Response:
    """Get an owner's budget, and how much of it is used.

    The usage is summed up when the budget is set, and every five minutes by the sweep. Users see their own.
    """
    return _show_budget(call, call.app.container.many_tasks.budgets.get(read_owner(call)))


@operation(
    "PUT",
    "/v1/people/{owner}/budget",
    "Usage",
    body=PutBudget,
    success_statuses=(200, 201),
    response_schema="BudgetDetails",
    error_statuses=(404, 409),
)
def put_budget(call: ApiCall, body: PutBudget) -> Response:
    """Set how many queries an owner's tasks may use in a month. For admins.

    A warning is logged at 80 %. At 100 % the owner's tasks are paused, with the reason, until the next
    month begins or an admin raises the budget. Then the tasks' catch-up policies decide about the
    occurrences that came due meanwhile. The sweep looks every five minutes, so more may be used, by tasks
    that start until then or are running.
    """
    owner = read_owner(call)
    _require_admin(call)
    budget, is_new = call.app.container.many_tasks.budgets.put(
        owner,
        body.max_queries_per_month,
        by=call.authority,
    )
    return _show_budget(call, budget, 201 if is_new else 200)


@operation("DELETE", "/v1/people/{owner}/budget", "Usage", success_statuses=(204,), error_statuses=(409,))
def delete_budget(call: ApiCall) -> Response:
    """Delete an owner's budget, and resume the tasks that it has paused.

    For admins. Occurrences that came due meanwhile run late or are only recorded, as the tasks' `catchUp`
    says.
    """
    owner = read_owner(call)
    _require_admin(call)
    call.app.container.many_tasks.budgets.delete(owner, by=call.authority)
    return Response(status=204)


def _require_admin(call: ApiCall, what: str = "change a budget") -> None:
    if call.caller.role is not Role.ADMIN:
        raise Forbidden(f"Only an admin may {what}.")


def _show_budget(call: ApiCall, budget: Budget, status: int = 200) -> Response:
    month = call.app.container.many_tasks.budgets.current_month
    return json_response(_make_details(budget, month).to_wire(), status)


def _make_details(budget: Budget, month: str) -> responses.BudgetDetails:
    is_current = budget.month == month
    return responses.BudgetDetails(
        owner=budget.owner,
        max_queries_per_month=budget.max_queries_per_month,
        month=month,
        queries=budget.queries if is_current else 0,
        is_used_up=budget.is_used_up,
        summed_until=budget.summed_until if is_current else None,
    )
