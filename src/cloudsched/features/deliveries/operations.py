"""The operations that report deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery_channels import DeliveryStatus
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.transitions.notices import explain_untold
from cloudsched.features.deliveries import report
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response, page_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Response


@operation(
    "GET",
    "/v1/tasks/{taskId}/executions/{executionId}/deliveries",
    "Executions",
    response_schema="DeliveryList",
)
def list_deliveries(call: ApiCall) -> Response:
    """List the deliveries of an execution's result, by channel.

    They say who was told of a failure, in the inbox as well, or `untold` says why nobody was. The inbox is not among
    them otherwise: it has the notices as soon as the execution has succeeded.
    """
    found = call.app.deliveries(call.task_id, call.path["executionId"])
    untold = None
    if not any(each.is_failure and each.status is DeliveryStatus.SENT for each in found):
        untold = explain_untold(call.app.get(call.task_id), call.app.execution(call.task_id, call.path["executionId"]))
    return json_response(responses.DeliveryList(deliveries=tuple(found), untold=untold).to_wire())


@operation("GET", "/v1/deliveries", "Executions", query=bodies.DeliveryListQuery, response_schema="DeliveryPage")
def list_owner_deliveries(call: ApiCall, query: bodies.DeliveryListQuery) -> Response:
    """List the deliveries to an owner, with their channels and results, the newest first.

    Without an owner, the answer has the deliveries of all owners that have reached nobody yet: that have failed, once
    or for good, or for which no address could be used. The latest come first. It costs two reads for each. With
    `channel`, a page looks through at most 1,000 of them: it may be
    shorter, even empty. As long as the response has a `nextPageToken`, repeat the request with it. The inbox is not
    among them: it has its own list.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    filters = query.model_dump(include={"channel", "since", "until", "unreached"})
    page = report.list_deliveries(call.app.container.store, owner, **filters, **query.to_arguments())
    return page_response(responses.DeliveryPage, page, (each.to_wire() for each in page.items))
