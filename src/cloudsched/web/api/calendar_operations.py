"""The operations that show tasks as calendars. A feed's address holds its secret: calendar programs cannot log in."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from cloudsched.domain.documents import responses
from cloudsched.errors import InvalidInput, Misconfigured, NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import operation
from cloudsched.web.api.responses import json_response
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from cloudsched.domain.documents.calendar import Feed
    from cloudsched.web.api.operation import ApiCall

_CACHED_FOR = 900
"""For how many seconds a program need not ask again."""


@operation(
    "POST",
    "/v1/feeds",
    "Calendars",
    right=Right.WRITE,
    body=bodies.NewFeed,
    body_is_optional=True,
    success_statuses=(201,),
    response_schema="NewFeedAddress",
)
def create_feed(call: ApiCall, body: bodies.NewFeed) -> Response:
    """Create a feed: an owner's tasks as a calendar to subscribe to.

    The response has the address, with a secret that is shown only here; whoever has it can read the feed. An owner may
    have 20 feeds.
    """
    owner = call.caller.resolve_owner(body.owner)
    if owner is None:
        raise InvalidInput("owner", "is missing", "Say whose tasks the feed shows.")
    root = call.public_root
    if root is None:
        raise Misconfigured("No feed can be made: set CLOUDSCHED_PUBLIC_URL to the address that programs reach.")
    feed, secret = call.app.container.many_tasks.feeds.create(
        str(owner), body.categories, body.labels, by=call.authority
    )
    shown = responses.NewFeedAddress(**_feed_fields(feed), url=f"{root}/v1/feeds/{secret}.ics")
    return json_response(shown.to_wire(), 201)


@operation("GET", "/v1/feeds", "Calendars", query=bodies.OwnerQuery, response_schema="Feeds")
def list_feeds(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List an owner's feeds.

    Without their addresses, which are stored nowhere.
    """
    owner = call.caller.resolve_owner(query.owner)
    if owner is None:
        raise InvalidInput("owner", "is missing", "Say whose feeds to list.")
    feeds = tuple(responses.Feed(**_feed_fields(feed)) for feed in call.app.container.many_tasks.feeds.list(str(owner)))
    return json_response(responses.Feeds(feeds=feeds).to_wire())


@operation(
    "DELETE",
    "/v1/feeds/{feedId}",
    "Calendars",
    right=Right.WRITE,
    success_statuses=(204,),
    error_statuses=(404, 409),
)
def delete_feed(call: ApiCall) -> Response:
    """Revoke a feed.

    Its address shows nothing any more. Programs may keep what they have for some hours.
    """
    key = call.path["feedId"]
    if not call.caller.can_see(call.app.container.many_tasks.feeds.get(key).owner):
        raise NotFound("feed", key)
    call.app.container.many_tasks.feeds.revoke(key, by=call.authority)
    return Response(status=204)


@operation(
    "GET",
    "/v1/feeds/{feedSecret}.ics",
    "Calendars",
    right=None,
    is_link=True,
    success_statuses=(200, 304),
    response_schema="text/calendar",
    error_statuses=(404,),
)
def get_feed(call: ApiCall) -> Response:
    """Get a feed as iCalendar text.

    Occurrences from 30 days ago to 90 days ahead, in UTC, with what became of the past ones. The secret is all that it
    takes. With `If-None-Match`, an unchanged feed is answered with 304.
    """
    try:
        return _calendar_response(call.app.container.many_tasks.feeds.render(call.path["feedSecret"]))
    except NotFound:
        raise NotFound("feed", "…") from None


@operation(
    "GET",
    "/v1/tasks/{taskId}.ics",
    "Calendars",
    success_statuses=(200, 304),
    response_schema="text/calendar",
    error_statuses=(404,),
)
def get_task_calendar(call: ApiCall) -> Response:
    """Get a task as iCalendar text, to add to a calendar.

    Events with the task's rule, where every program reads it alike; otherwise its occurrences of the next 90 days, with
    a last event if more follow.
    """
    return _calendar_response(call.app.container.many_tasks.feeds.render_task(call.app.get(call.task_id)))


def _feed_fields(feed: Feed) -> dict[str, Any]:
    return {name: getattr(feed, name) for name in responses.Feed.model_fields}


def _calendar_response(text: str) -> Response:
    headers = {
        "Content-Type": "text/calendar; charset=utf-8",
        "Cache-Control": f"private, max-age={_CACHED_FOR}",
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": 'inline; filename="tasks.ics"',
    }
    response = Response(text, 200, headers)
    response.set_etag(hashlib.sha256(text.encode()).hexdigest()[:32])
    return response
