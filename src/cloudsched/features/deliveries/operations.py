"""The operations that report deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.responses import api_responses as responses
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

    The inbox is not among them: it has the notices as soon as the execution has succeeded.
    """
    found = call.app.deliveries(call.task_id, call.path["executionId"])
    return json_response(responses.DeliveryList(deliveries=tuple(found)).to_wire())


@operation("GET", "/v1/deliveries", "Executions", query=bodies.OwnerPageQuery, response_schema="DeliveryPage")
def list_owner_deliveries(call: ApiCall, query: bodies.OwnerPageQuery) -> Response:
    """List the deliveries to an owner, with their channels and results, the newest first.

    Without an owner, the answer has the deliveries of all owners that have failed, once or for good, the
    latest first. It costs two reads for each. The inbox is not among them: it has its own list.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    page = report.list_deliveries(call.app.container.store, owner, query.page_size, query.page_token or None)
    shown = (
        responses.DeliveryEntry(
            **found.model_dump(),
            id=task.id,
            owner=task.owner,
            title=task.title,
            task_id=task.delivery.task_id,
            execution_id=task.delivery.execution_id,
            created_at=task.delivery.created_at,
            next_attempt_at=task.runs[0].due_at if task.runs and task.runs[0].lease is None else None,
        ).to_wire()
        for task, found in page.items
        if task.delivery is not None
    )
    return page_response(responses.DeliveryPage, page, shown)
