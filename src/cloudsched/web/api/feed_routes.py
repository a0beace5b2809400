"""Feeds and calendars over HTTP. A feed's address holds its secret: calendar programs cannot log in."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, cast

from werkzeug.wrappers import Response

from cloudsched.errors import InvalidInput, NotFound
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from cloudsched.domain.documents.feed import Feed
    from cloudsched.web.api import request_bodies as bodies
    from cloudsched.web.api.call import ApiCall

_CACHED_FOR = 900
"""For how many seconds a program need not ask again."""


def create_feed(call: ApiCall) -> Response:
    """Create a feed; only this response has its address."""
    body = cast("bodies.NewFeed", call.read_body())
    owner = call.caller.resolve_owner(body.owner)
    if owner is None:
        raise InvalidInput("owner", "is missing", "Say whose tasks the feed shows.")
    feed, secret = call.app.feeds.create(str(owner), body.categories)
    root = call.app.settings.public_url or call.request.url_root.rstrip("/")
    return json_response({**_feed_to_json(feed), "url": f"{root}/v1/feeds/{secret}.ics"}, 201)


def list_feeds(call: ApiCall) -> Response:
    """List an owner's feeds, without their addresses."""
    owner = call.caller.resolve_owner(cast("bodies.OwnerQuery", call.query).owner)
    if owner is None:
        raise InvalidInput("owner", "is missing", "Say whose feeds to list.")
    return json_response({"feeds": [_feed_to_json(feed) for feed in call.app.feeds.list(str(owner))]})


def delete_feed(call: ApiCall) -> Response:
    """Revoke a feed."""
    key = call.path["feedId"]
    if not call.caller.can_see(call.app.feeds.get(key).owner):
        raise NotFound("feed", key)
    call.app.feeds.revoke(key)
    return Response(status=204)


def get_feed(call: ApiCall) -> Response:
    """Return a feed's calendar to whoever knows its secret."""
    try:
        return _calendar_response(call.app.feeds.render(call.path["feedSecret"]))
    except NotFound:
        raise NotFound("feed", "…") from None


def get_task_calendar(call: ApiCall) -> Response:
    """Return one task as a calendar."""
    return _calendar_response(call.app.feeds.render_task(call.app.get(call.task_id)))


def _feed_to_json(feed: Feed) -> dict[str, object]:
    return {
        "id": feed.id,
        "owner": feed.owner,
        "categories": list(feed.categories),
        "createdAt": feed.to_wire()["createdAt"],
    }


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
