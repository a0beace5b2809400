"""The operations on the messages in owners' inboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses.count import Count
from cloudsched.domain.transitions.suspend import is_awaited
from cloudsched.errors import NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import (
    json_response,
    page_response,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from werkzeug.wrappers import Response

    from cloudsched.domain.documents.execution import Message


MAX_UNREAD = 1000
"""The largest number of unread messages that are counted."""


@operation(
    "GET",
    "/v1/inboxes/{owner}/messages",
    "Inboxes",
    query=bodies.InboxQuery,
    response_schema="MessagePage",
)
def list_messages(call: ApiCall, query: bodies.InboxQuery) -> Response:
    """List the messages in an owner's inbox, the newest first.

    As long as the response has a `nextPageToken`, repeat the request with it.
    """
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    page = call.app.inbox(owner, **query.to_arguments())
    found: Iterable[Message] = page.items
    if query.awaited:
        load, now = call.app.container.store.load, call.app.container.clock.now()
        found = (each for each in found if each.event and is_awaited(load(each.task_id), each, now))
    return page_response(responses.MessagePage, page, (message.to_wire() for message in found))


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


@operation("GET", "/v1/inboxes/{owner}/unread", "Inboxes", response_schema="Count")
def count_unread_messages(call: ApiCall) -> Response:
    """Count an owner's unread messages.

    At most 1000 are counted.
    """
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    unread = call.app.container.store.inbox.count_unread(owner, MAX_UNREAD)
    return json_response(Count.up_to(unread, MAX_UNREAD).to_wire())
