"""The operations that show tasks as calendars: feeds to subscribe to, and a task as iCalendar text."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from cloudsched.domain.responses import api_responses as responses
from cloudsched.errors import InvalidInput, Misconfigured, NotFound
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from cloudsched.people.documents import Feed
    from cloudsched.people.feeds import Feeds


_CACHED_FOR = 900
"""The seconds for which a calendar program may show its copy."""


@operation(
    "POST",
    "/v1/feeds",
    "Calendars",
    body=bodies.NewFeed,
    body_is_optional=True,
    success_statuses=(201,),
    response_schema="NewFeedAddress",
)
def create_feed(call: ApiCall, body: bodies.NewFeed) -> Response:
    """Create a feed: an owner's tasks as a calendar to subscribe to.

    The response has the address, with a secret that is shown only here. Whoever has it can read the feed.
    An owner may have 20 feeds.
    """
    owner = call.caller.resolve_owner(body.owner)
    if owner is None:
        raise InvalidInput("owner", "is missing", "Say whose tasks the feed shows.")
    root = call.public_root
    if root is None:
        raise Misconfigured("Set CLOUDSCHED_PUBLIC_URL to the address that programs reach. A feed needs it.")
    feed, secret = _feeds(call).create(str(owner), body.categories, body.labels, by=call.authority)

    shown = responses.NewFeedAddress(**_feed_fields(feed), url=f"{root}/v1/feeds/{secret}.ics")
    return json_response(shown.to_wire(), 201)


@operation("GET", "/v1/feeds", "Calendars", query=bodies.OwnerQuery, response_schema="FeedList")
def list_feeds(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List an owner's feeds.

    The answer does not have their addresses, which are stored nowhere.
    """
    owner = call.caller.resolve_owner(query.owner)
    if owner is None:
        raise InvalidInput("owner", "is missing", "Say whose feeds to list.")
    feeds = tuple(responses.Feed(**_feed_fields(feed)) for feed in _feeds(call).list(str(owner)))
    return json_response(responses.FeedList(feeds=feeds).to_wire())


@operation("DELETE", "/v1/feeds/{feedId}", "Calendars", success_statuses=(204,), error_statuses=(409,))
def delete_feed(call: ApiCall) -> Response:
    """Revoke a feed.

    Its address shows nothing any more. Calendar programs may keep the events that they have for some hours.
    """
    key = call.path["feedId"]
    if not call.caller.can_see(_feeds(call).get(key).owner):
        raise NotFound("feed", key)
    _feeds(call).revoke(key, by=call.authority)
    return Response(status=204)


@operation(
    "GET",
    "/v1/feeds/{feedSecret}.ics",
    "Calendars",
    right=None,
    is_link=True,
    success_statuses=(200, 304),
    response_schema="text/calendar",
)
def get_feed(call: ApiCall) -> Response:
    """Get a feed as iCalendar text.

    It has occurrences from 30 days ago to 90 days ahead, in UTC, with the outcomes of the past ones. The
    secret in the path is the only credential. With `If-None-Match`, the answer for an unchanged feed is 304.
    """
    try:
        return _calendar_response(_feeds(call).render(call.path["feedSecret"]))
    except NotFound:
        raise NotFound("feed", "…") from None


@operation(
    "GET",
    "/v1/tasks/{taskId}.ics",
    "Calendars",
    success_statuses=(200, 304),
    response_schema="text/calendar",
)
def get_task_calendar(call: ApiCall) -> Response:
    """Get a task as iCalendar text, to add to a calendar.

    It has events with the task's rule, if all calendar programs read the rule alike. Otherwise it has the
    task's occurrences of the next 90 days, with a last event if more follow.
    """
    return _calendar_response(_feeds(call).render_task(call.app.get(call.task_id)))


def _feeds(call: ApiCall) -> Feeds:
    return PeopleWiring.of(call.app.container).feeds


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
