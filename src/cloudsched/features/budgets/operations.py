"""The operations on budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from werkzeug.wrappers import Response

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.responses import overview_responses as responses
from cloudsched.errors import InvalidInput
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.features.budgets.fields import MAX_AMOUNT
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation, read_owner
from cloudsched.web.api.responses import json_response, page_response

if TYPE_CHECKING:
    from cloudsched.features.budgets.budget import Budget


class PutBudget(WireModel):
    """The limit of an owner's usage: of queries, tokens or both."""

    max_queries_per_month: Annotated[int, Field(strict=True, ge=0, le=MAX_AMOUNT)] = MAX_AMOUNT
    """The most queries in a calendar month, in UTC. 10^12, as if it is left out, is any number."""
    max_tokens_per_month: Annotated[int, Field(strict=True, ge=0, le=MAX_AMOUNT)] = MAX_AMOUNT
    """The most tokens of a language model, likewise."""


@operation("GET", "/v1/budgets", "Usage", query=bodies.OwnerPageQuery, response_schema="BudgetPage")
def list_budgets(call: ApiCall, query: bodies.OwnerPageQuery) -> Response:
    """List all budgets, and how much of each is used, by owner.

    The usage is counted as you ask, at three reads for each and one for each task that has changed since the last
    sweep's look. Users see their own. As long as the response has a `nextPageToken`, repeat the request with it.
    """
    budgets = Budgets.of(call.app.container)
    owner = call.caller.resolve_listed_owner(query.owner)
    found = budgets.list(owner, **query.to_arguments())
    shown = (_make_details(budgets, each).to_wire() for each in found.items)
    return page_response(responses.BudgetPage, found, shown)


@operation("GET", "/v1/people/{owner}/budget", "Usage", response_schema="BudgetDetails")
def get_budget(call: ApiCall) -> Response:
    """Get an owner's budget, and how much of it is used.

    The usage is counted as you ask; the sweep acts on it every five minutes. Users see their own.
    """
    return _show_budget(call, Budgets.of(call.app.container).get(read_owner(call)))


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
    """Set how many queries and tokens an owner's tasks may use in a month. For admins.

    What is left out has no limit. A warning is logged at 80 %. At 100 % the owner is told, and their tasks
    are paused, with the reason, until the next month begins or an admin raises the budget. Then the tasks'
    catch-up policies decide about the occurrences that came due meanwhile. The sweep looks every five
    minutes, so more may be used, by tasks that start until then or are running.
    """
    owner = read_owner(call)
    call.require_admin("change a budget")
    if not body.model_fields_set:
        raise InvalidInput("maxQueriesPerMonth", "is missing", "Give it, or maxTokensPerMonth, or both.")
    limits = body.max_queries_per_month, body.max_tokens_per_month
    budget, is_new = Budgets.of(call.app.container).put(owner, *limits, by=call.authority)
    return _show_budget(call, budget, 201 if is_new else 200)


@operation("DELETE", "/v1/people/{owner}/budget", "Usage", success_statuses=(204,), error_statuses=(409,))
def delete_budget(call: ApiCall) -> Response:
    """Delete an owner's budget, and resume the tasks that it has paused.

    For admins. Occurrences that came due meanwhile run late or are only recorded, as the tasks' `catchUp`
    says.
    """
    owner = read_owner(call)
    call.require_admin("change a budget")
    Budgets.of(call.app.container).delete(owner, by=call.authority)
    return Response(status=204)


def _show_budget(call: ApiCall, budget: Budget, status: int = 200) -> Response:
    return json_response(_make_details(Budgets.of(call.app.container), budget).to_wire(), status)


def _make_details(budgets: Budgets, budget: Budget) -> responses.BudgetDetails:
    month = budgets.current_month
    budget = budgets.count_now(budget)
    is_current = budget.month == month
    return responses.BudgetDetails(
        owner=budget.owner,
        max_queries_per_month=budget.max_queries_per_month,
        max_tokens_per_month=budget.max_tokens_per_month,
        month=month,
        queries=budget.queries if is_current else 0,
        tokens=budget.tokens if is_current else 0,
        is_used_up=budget.is_used_up,
        summed_until=budget.summed_until if is_current else None,
    )
