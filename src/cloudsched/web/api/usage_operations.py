"""The operation that shows usage and its cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import StringConstraints

from cloudsched.domain.documents.usage import Month, UsageCounts
from cloudsched.domain.responses import overview_responses as responses
from cloudsched.errors import InvalidInput
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.config.settings import Prices
    from cloudsched.engine.usage.usage_report import UsageReport


class UsageQuery(bodies.OwnerPageQuery):
    """The owner, the handler and the month whose usage to show."""

    handler: str | None = None
    """Only this handler's usage."""
    month: Month | None = None
    """The month in UTC, such as ``2026-11``. The current one if omitted."""
    by: Literal["OWNER", "HANDLER", "LABEL"] | None = None
    """Answer one sum for each owner, handler or value of a label (`sums`), over all pages, in place of the rows. It
    takes a read for each sheet of the month: one for each 100 tasks or so. By label it also takes one for each task,
    of at most 10,000."""
    label_key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """With `by=LABEL`, the key of the label, such as `team` of `team=shop`. The labels are those that the tasks have
    now. What was used without one, also by deleted tasks, has an empty name."""


@operation("GET", "/v1/usage", "Usage", query=UsageQuery, response_schema="UsagePage")
def get_usage(call: ApiCall, query: UsageQuery) -> Response:
    """Show the usage of a month, by owner and handler.

    It has executions, queries and tokens with their estimates, the Firestore and Cloud Tasks operations
    that running the tasks needed, and their cost by the deployment's prices. Users see their own. Each
    request adds the changes since the last one, with one read for each task that has changed. A page has
    at most `pageSize` owners. As long as the response has a `nextPageToken`, repeat the request with it.
    """
    container = call.app.container
    owner = call.caller.resolve_listed_owner(query.owner)
    page_token = query.page_token or None
    found = container.many_tasks.usage.show(owner, query.month, limit=query.page_size, page_token=page_token)

    prices = container.settings.prices
    sums: tuple[responses.UsageSum, ...] | None = None
    if (query.by == "LABEL") != (query.label_key is not None):
        raise InvalidInput("labelKey", "goes with by=LABEL, and by=LABEL with it", "Give both, or none.")
    if query.by is not None and query.handler is None:
        by_name = _sum_by(container.many_tasks.usage, query, owner, found.month)
        sums = tuple(responses.UsageSum(name=name, **_to_fields(by_name[name], prices)) for name in sorted(by_name))
        found = replace(found, rows=(), next_page_token=None)
    rows: list[responses.UsageRow] = []
    total = UsageCounts()
    for each in found.rows:
        if query.handler not in {None, each.handler}:
            continue
        amounts = _to_fields(each.counts, prices)
        rows.append(responses.UsageRow(owner=each.owner, handler=each.handler, month=each.month, **amounts))
        total += each.counts

    if sums is not None:
        total = sum(by_name.values(), UsageCounts())

    page = responses.UsagePage(
        sums=sums,
        month=found.month,
        usage=tuple(rows),
        total=responses.UsageAmounts(**_to_fields(total, prices)),
        summed_until=found.summed_until,
        is_complete=found.is_complete,
        prices=prices.per_million,
        next_page_token=found.next_page_token,
    )
    return json_response(page.to_wire())


def _sum_by(usage: UsageReport, query: UsageQuery, owner: str | None, month: str) -> dict[str, UsageCounts]:
    if query.by is None or query.by == "LABEL":
        return usage.sum_by_label(query.label_key or "", owner, month)
    return usage.sum_by(query.by, owner, month)


def _to_fields(counts: UsageCounts, prices: Prices) -> dict[str, Any]:
    dollars = prices.cost(responses.to_amounts(counts))
    operations = {"queue_operations": 2 * counts.dispatches, "requests": counts.dispatches}
    known = counts.model_dump(exclude={"dispatches"})
    return {**known, **operations, "dollars": round(dollars, 9)}
