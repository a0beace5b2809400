"""The operations on delivered messages: inboxes, and the deliveries of executions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses.api_responses import DeliveryList
from cloudsched.errors import NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import (
    json_response,
    page_response,
)

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.domain.documents.task import Task
    from cloudsched.web.api.responses import Json


MAX_UNREAD = 1000
"""The largest number of unread messages that are counted."""


@operation(
    "GET",
    "/v1/inboxes/{owner}/messages",
    "Inboxes",
    query=bodies.PageQuery,
    response_schema="MessagePage",
)
def list_messages(call: ApiCall, query: bodies.PageQuery) -> Response:
    """List the messages in an owner's inbox, the newest first.

    As long as the response has a `nextPageToken`, repeat the request with it.
    """
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    page = call.app.inbox(owner, **query.to_arguments())
    return page_response(responses.MessagePage, page, (message.to_wire() for message in page.items))


@operation("POST", "/v1/inboxes/{owner}/messages/{messageId}/read", "Inboxes", response_schema="Message")
def mark_message_read(call: ApiCall) -> Response:
    """Mark a message as read.

    `readAt` is the instant at which it was first marked. A repetition changes nothing.
    """
    owner = call.path["owner"]
    key = call.path["messageId"]
    call.caller.require_inbox(owner)
    call.authority.require_owner(owner)
    message = call.app.container.store.inbox.mark_read(owner, key, call.app.container.clock.now())
    if message is None:
        raise NotFound("message", key)
    return json_response(message.to_wire())


@operation("GET", "/v1/inboxes/{owner}/unread", "Inboxes", response_schema="UnreadCount")
def count_unread_messages(call: ApiCall) -> Response:
    """Count an owner's unread messages.

    At most 1000 are counted.
    """
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    unread = call.app.container.store.inbox.count_unread(owner, MAX_UNREAD)
    return json_response(responses.UnreadCount(unread=unread).to_wire())


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
    return json_response(DeliveryList(deliveries=tuple(found)).to_wire())


@operation("GET", "/v1/deliveries", "Executions", query=bodies.OwnerPageQuery, response_schema="DeliveryPage")
def list_owner_deliveries(call: ApiCall, query: bodies.OwnerPageQuery) -> Response:
    """List the deliveries to an owner, with their channels and results, the newest first.

    Without an owner, the answer has the deliveries of all owners that have failed, once or for good, the
    latest first. It costs two reads for each. The inbox is not among them: it has its own list.
    """
    from cloudsched.engine.queries import delivery_report as report  # noqa: PLC0415 - imported only when used

    owner = call.caller.resolve_listed_owner(query.owner)
    page = report.list_deliveries(call.app.container.store, owner, query.page_size, query.page_token or None)
    shown = (_show_delivery(task, found) for task, found in page.items)
    return page_response(responses.DeliveryPage, page, filter(None, shown))


def _show_delivery(task: Task, found: responses.DeliveryReport) -> Json | None:
    if task.delivery is None:
        return None
    entry = responses.DeliveryEntry(
        **found.model_dump(),
        id=task.id,
        owner=task.owner,
        title=task.title,
        task_id=task.delivery.task_id,
        execution_id=task.delivery.execution_id,
        created_at=task.delivery.created_at,
    )
    if task.runs and task.runs[0].lease is None:
        entry = entry.model_copy(update={"next_attempt_at": task.runs[0].due_at})
    return entry.to_wire()
