"""The operations that show what was used, and that limit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from werkzeug.wrappers import Response

from cloudsched.domain.documents import overview_responses as responses
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.owner_usage import MAX_QUERIES
from cloudsched.domain.documents.task import Owner  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.usage import Month, UsageCounts
from cloudsched.errors import Forbidden
from cloudsched.web.api.operation import operation
from cloudsched.web.api.people_operations import read_owner
from cloudsched.web.api.request_bodies import PageQuery
from cloudsched.web.api.responses import json_response, page_response
from cloudsched.web.auth.roles import Right, Role

if TYPE_CHECKING:
    from cloudsched.config.features import Prices
    from cloudsched.domain.documents.owner_usage import Budget
    from cloudsched.web.api.operation import ApiCall


class UsageQuery(PageQuery):
    """Whose usage to show, and of which month."""

    owner: Owner | None = None
    """Only this owner's."""
    handler: str | None = None
    """Only this handler's."""
    month: Month | None = None
    """The month in UTC, such as ``2026-11``; the current one if left out."""


class BudgetListQuery(PageQuery):
    """Whose budgets to list."""

    owner: Owner | None = None
    """Only this owner's."""


class PutBudget(WireModel):
    """How much an owner's tasks may use."""

    max_queries_per_month: Annotated[int, Field(strict=True, ge=0, le=MAX_QUERIES)]
    """How many queries in a calendar month, in UTC."""


@operation("GET", "/v1/usage", "Usage", query=UsageQuery, response_schema="UsagePage")
def get_usage(call: ApiCall, query: UsageQuery) -> Response:
    """Show what was used in a month, by owner and handler.

    Executions, queries and tokens with their estimates, the Firestore and Cloud Tasks operations that running the tasks
    needed, and what that costs by the deployment's prices. Users see their own. It sums up what has changed since the
    last time: a read for each task that has. A page has so many owners; as long as the response has a `nextPageToken`,
    repeat the request with it.
    """
    container, caller = call.app.container, call.caller
    owner = query.owner if caller.visible_owner is None else str(caller.resolve_owner(query.owner))
    found = container.many_tasks.usage.show(
        owner, query.month, limit=query.page_size, page_token=query.page_token or None
    )
    rows = [each for each in found.rows if query.handler in {None, each.handler}]
    prices = container.settings.prices
    page = responses.UsagePage(
        month=found.month,
        usage=tuple(
            responses.UsageRow(
                owner=each.owner, handler=each.handler, month=each.month, **_to_fields(each.counts, prices)
            )
            for each in rows
        ),
        total=responses.UsageAmounts(**_to_fields(sum((each.counts for each in rows), start=UsageCounts()), prices)),
        summed_until=found.summed_until,
        is_complete=found.is_complete,
        prices=prices.per_million,
        next_page_token=found.next_page_token,
    )
    return json_response(page.to_wire())


@operation("GET", "/v1/budgets", "Usage", query=BudgetListQuery, response_schema="BudgetPage")
def list_budgets(call: ApiCall, query: BudgetListQuery) -> Response:
    """List the budgets that there are, and how much of each is used, by owner.

    Users see their own. As long as the response has a `nextPageToken`, repeat the request with it.
    """
    budgets, caller = call.app.container.many_tasks.budgets, call.caller
    owner = query.owner if caller.visible_owner is None else str(caller.resolve_owner(query.owner))
    found = budgets.list(owner, **query.to_arguments())
    shown = (_make_details(each, budgets.current_month).to_wire() for each in found.items)
    return page_response(responses.BudgetPage, found, shown)


@operation("GET", "/v1/people/{owner}/budget", "Usage", response_schema="BudgetDetails", error_statuses=(404,))
def get_budget(call: ApiCall) -> Response:
    """Get an owner's budget, and how much of it is used.

    It is summed up when it is set, and every five minutes by the sweep. Users see their own.
    """
    return _show_budget(call, call.app.container.many_tasks.budgets.get(read_owner(call)))


@operation(
    "PUT",
    "/v1/people/{owner}/budget",
    "Usage",
    right=Right.WRITE,
    body=PutBudget,
    success_statuses=(200, 201),
    response_schema="BudgetDetails",
    error_statuses=(404, 409),
)
def put_budget(call: ApiCall, body: PutBudget) -> Response:
    """Set how many queries an owner's tasks may use in a month. For admins.

    At 80 % of it a warning is logged. When it is used up, the owner's tasks are paused, with the reason, until the next
    month begins or an admin raises it; then their catch-up policies decide what becomes of what came due. The sweep
    looks every five minutes, so more may be used: what runs until then, and what is running.
    """
    owner = read_owner(call)
    _require_admin(call)
    budget, is_new = call.app.container.many_tasks.budgets.put(owner, body.max_queries_per_month, by=call.authority)
    return _show_budget(call, budget, 201 if is_new else 200)


@operation(
    "DELETE",
    "/v1/people/{owner}/budget",
    "Usage",
    right=Right.WRITE,
    success_statuses=(204,),
    error_statuses=(404, 409),
)
def delete_budget(call: ApiCall) -> Response:
    """Delete an owner's budget, and resume the tasks that it has paused.

    For admins. What came due meanwhile runs late or is recorded, as the tasks' `catchUp` says.
    """
    owner = read_owner(call)
    _require_admin(call)
    call.app.container.many_tasks.budgets.delete(owner, by=call.authority)
    return Response(status=204)


def _require_admin(call: ApiCall) -> None:
    if call.caller.role is not Role.ADMIN:
        raise Forbidden("Only an admin may change a budget.")


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


def _to_fields(counts: UsageCounts, prices: Prices) -> dict[str, Any]:
    dollars = prices.cost(responses.to_amounts(counts))
    operations = {"queue_operations": 2 * counts.dispatches, "requests": counts.dispatches}
    known = counts.model_dump(exclude={"dispatches"})
    return {**known, **operations, "dollars": round(dollars, 9)}
