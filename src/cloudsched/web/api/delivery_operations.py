"""The operation that says how far the results of an execution have come on their way to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.responses import Deliveries
from cloudsched.web.api.operation import operation
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.web.api.call import ApiCall


@operation(
    "GET",
    "/v1/tasks/{taskId}/executions/{executionId}/deliveries",
    "Executions",
    response_schema="Deliveries",
    error_statuses=(404,),
)
def list_deliveries(call: ApiCall) -> Response:
    """List the deliveries of an execution.

    How far its result has come, by channel. The inbox is not among them: it has what was notified as soon as the
    execution has succeeded.
    """
    found = call.app.deliveries(call.task_id, call.path["executionId"])
    return json_response(Deliveries(deliveries=tuple(found)).to_wire())
