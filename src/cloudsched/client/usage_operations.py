"""The operations of the API on usage, as flows that both clients run."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, Flow, operation
from cloudsched.client.views import reader
from cloudsched.domain.documents.overview_responses import BudgetDetails, BudgetPage, UsagePage

if TYPE_CHECKING:
    from collections.abc import Mapping


class UsageOperations:
    """The methods of `Client` and `AsyncClient` for usage and budgets."""

    @operation
    def usage(
        self,
        month: str | None = None,
        *,
        owner: str | None = None,
        handler: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> Flow[UsagePage]:
        """Return what was used in a month, by owner and handler.

        Args:
            month: The month in UTC, such as ``2026-11``; the current one if None.
            owner: Only this owner's usage.
            handler: Only this handler's.
            page_size: The usage of so many owners.
            page_token: The `next_page_token` of the page before.
        """
        query: Mapping[str, str | None] = {
            "month": month,
            "owner": owner,
            "handler": handler,
            "pageSize": None if page_size is None else str(page_size),
            "pageToken": page_token,
        }
        given = {name: value for name, value in query.items() if value is not None}
        return (yield ApiRequest("GET", "/v1/usage", query=given)).read("usage", reader(UsagePage))

    @operation
    def budgets(
        self, *, owner: str | None = None, page_size: int | None = None, page_token: str | None = None
    ) -> Flow[BudgetPage]:
        """Return the budgets that there are, and how much of each is used, by owner.

        Args:
            owner: Only this owner's.
            page_size: The largest number of budgets.
            page_token: The `next_page_token` of the page before.
        """
        query: Mapping[str, str | None] = {
            "owner": owner,
            "pageSize": None if page_size is None else str(page_size),
            "pageToken": page_token,
        }
        given = {name: value for name, value in query.items() if value is not None}
        return (yield ApiRequest("GET", "/v1/budgets", query=given)).read("budgets", reader(BudgetPage))

    @operation
    def budget(self, owner: str) -> Flow[BudgetDetails]:
        """Return an owner's budget, and how much of it is used. Raises NotFound."""
        return (yield ApiRequest("GET", _budget_path(owner))).read("a budget", reader(BudgetDetails))

    @operation
    def put_budget(self, owner: str, max_queries_per_month: int) -> Flow[BudgetDetails]:
        """Set how many queries an owner's tasks may use in a month. For admins."""
        content = {"maxQueriesPerMonth": max_queries_per_month}
        answer = yield ApiRequest("PUT", _budget_path(owner), content, is_idempotent=True)
        return answer.read("a budget", reader(BudgetDetails))

    @operation
    def delete_budget(self, owner: str) -> Flow[None]:
        """Delete an owner's budget, and resume the tasks that it has paused. For admins."""
        yield ApiRequest("DELETE", _budget_path(owner))


def _budget_path(owner: str) -> str:
    return f"/v1/people/{quote(owner, safe='')}/budget"
