"""The operations on calendars and scripts, which owners keep by name, and those that show tasks as calendars."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from werkzeug.wrappers import Response

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.script import MAX_TOOLS, ScriptSource, ToolName
from cloudsched.domain.documents.task import LongText, Owner
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.schedules.calendar_days import WEEKDAYS, parse_days, to_date
from cloudsched.engine.owners.scripts import Scripts
from cloudsched.errors import InvalidInput, Misconfigured, NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.request_bodies import PutCalendar
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from cloudsched.domain.documents.calendar import Calendar, Feed
    from cloudsched.domain.documents.stored_script import StoredScript

_CACHED_FOR = 900
"""The number of seconds for which a program need not ask again."""


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

    The response has the address, with a secret that is shown only here. Whoever has it can read the feed. An owner may
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


@operation("GET", "/v1/feeds", "Calendars", query=bodies.OwnerQuery, response_schema="FeedList")
def list_feeds(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List an owner's feeds.

    The answer does not have their addresses, which are stored nowhere.
    """
    owner = call.caller.resolve_owner(query.owner)
    if owner is None:
        raise InvalidInput("owner", "is missing", "Say whose feeds to list.")
    feeds = tuple(responses.Feed(**_feed_fields(feed)) for feed in call.app.container.many_tasks.feeds.list(str(owner)))
    return json_response(responses.FeedList(feeds=feeds).to_wire())


@operation("DELETE", "/v1/feeds/{feedId}", "Calendars", success_statuses=(204,), error_statuses=(409,))
def delete_feed(call: ApiCall) -> Response:
    """Revoke a feed.

    Its address shows nothing any more. Calendar programs may keep the events that they have for some hours.
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
)
def get_feed(call: ApiCall) -> Response:
    """Get a feed as iCalendar text.

    It has occurrences from 30 days ago to 90 days ahead, in UTC, with the outcomes of the past ones. The secret in the
    path is the only credential. With `If-None-Match`, an unchanged feed is answered with 304.
    """
    try:
        return _calendar_response(call.app.container.many_tasks.feeds.render(call.path["feedSecret"]))
    except NotFound:
        raise NotFound("feed", "…") from None


@operation("GET", "/v1/tasks/{taskId}.ics", "Calendars", success_statuses=(200, 304), response_schema="text/calendar")
def get_task_calendar(call: ApiCall) -> Response:
    """Get a task as iCalendar text, to add to a calendar.

    It has events with the task's rule, where every program reads the rule alike. Otherwise it has the task's
    occurrences of the next 90 days, with a last event if more follow.
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


@operation(
    "PUT",
    "/v1/calendars/{calendarId}",
    "Calendars",
    body=PutCalendar,
    response_schema="CalendarDetails",
    error_statuses=(409, 429, 501, 503),
)
def put_calendar(call: ApiCall, body: PutCalendar) -> Response:
    """Create or replace a calendar.

    An admin's is for everybody, a user's for that user's tasks. Tasks that name it are planned again within a minute or
    two. A calendar is replaced as a whole: give its days again, or `days: []` to remove them. The response has the
    calendar's full id.
    """
    calendar = call.app.container.calendars.put(
        call.path["calendarId"],
        call.caller.resolve_record_owner(body.owner),
        by=call.authority,
        title=body.title,
        weekdays=body.weekdays,
        days=None if body.days is None else [(each.date, each.until or each.date, each.name) for each in body.days],
        ics=body.ics,
        url=body.url,
        holidays=body.holidays,
    )
    return json_response(_to_json(call, calendar))


@operation("GET", "/v1/calendars/{calendarId}", "Calendars", query=bodies.OwnerQuery, response_schema="CalendarDetails")
def get_calendar(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Get a calendar.

    A name means the calendar for everybody, or else the owner's own.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    return json_response(_to_json(call, call.app.container.calendars.get(call.path["calendarId"], owner)))


@operation("GET", "/v1/calendars", "Calendars", query=bodies.OwnerQuery, response_schema="CalendarList")
def list_calendars(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List the calendars for everybody, and the owner's own.

    The answer does not have their days.
    """
    found = call.app.container.calendars.list(call.caller.resolve_record_owner(query.owner))
    shown = [{name: value for name, value in _to_json(call, each).items() if name != "days"} for each in found]
    return json_response({"calendars": shown})


@operation(
    "DELETE",
    "/v1/calendars/{calendarId}",
    "Calendars",
    query=bodies.OwnerQuery,
    success_statuses=(204,),
    error_statuses=(409,),
)
def delete_calendar(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Delete a calendar.

    Tasks that name it keep the days that it had.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    try:
        call.app.container.calendars.delete(call.path["calendarId"], owner, by=call.authority)
    except NotFound:
        raise NotFound("calendar", call.path["calendarId"]) from None
    return Response(status=204)


def _to_json(call: ApiCall, calendar: Calendar) -> dict[str, Any]:
    """Return a calendar as JSON. Only callers who may change it see the address from which it is fetched."""
    wire = calendar.to_wire()
    may_change = call.caller.visible_owner is None or call.caller.visible_owner == calendar.owner
    hidden = {"content", "schemaVersion", "etag", *(() if may_change else ("url",))}
    days = parse_days(calendar.content)
    shown = []
    for first, last, name in days.intervals:
        until = {"until": to_date(last).isoformat()} if last > first else {}
        shown.append({"date": to_date(first).isoformat(), **until, "name": name})
    return {
        **{name: value for name, value in wire.items() if name not in hidden},
        "weekdays": [WEEKDAYS[number] for number in sorted(days.weekdays)],
        "days": shown,
    }


class PutScript(WireModel):
    """A script to create or replace."""

    owner: Owner | None = None
    """The script's owner: the caller if omitted, or ``system``."""
    source: ScriptSource
    """The body of an async function, in JavaScript."""
    description: LongText = ""
    """A description for people."""
    tools: Annotated[tuple[ToolName, ...], Field(max_length=MAX_TOOLS)] | None = None
    """The handlers that it may call. If omitted, all that are tools."""


@operation(
    "PUT",
    "/v1/scripts/{scriptName}",
    "Scripts",
    body=PutScript,
    response_schema="ScriptDetails",
    error_statuses=(409, 503),
)
def put_script(call: ApiCall, body: PutScript) -> Response:
    """Create or replace a script.

    Only tasks and scripts of its owner can run it. Runs that have begun keep their version.
    """
    script = Scripts(call.app.container.engine).put(
        call.path["scriptName"],
        call.caller.resolve_record_owner(body.owner),
        source=body.source,
        description=body.description,
        tools=body.tools,
        by=call.authority,
    )
    return json_response(_script_to_json(script))


@operation("GET", "/v1/scripts/{scriptName}", "Scripts", query=bodies.OwnerQuery, response_schema="ScriptDetails")
def get_script(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Get a script.

    The answer has its source.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    return json_response(_script_to_json(Scripts(call.app.container.engine).get(call.path["scriptName"], owner)))


@operation("GET", "/v1/scripts", "Scripts", query=bodies.OwnerQuery, response_schema="ScriptList")
def list_scripts(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List an owner's scripts.

    The answer does not have their sources.
    """
    found = Scripts(call.app.container.engine).list(call.caller.resolve_record_owner(query.owner))
    shown = [{name: value for name, value in _script_to_json(each).items() if name != "source"} for each in found]
    return json_response({"scripts": shown})


@operation(
    "DELETE",
    "/v1/scripts/{scriptName}",
    "Scripts",
    query=bodies.OwnerQuery,
    success_statuses=(204,),
    error_statuses=(409,),
)
def delete_script(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Delete a script.

    Runs that have begun go on. Later ones fail, until there is a script of this name again.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    Scripts(call.app.container.engine).delete(call.path["scriptName"], owner, by=call.authority)
    return Response(status=204)


def _script_to_json(script: StoredScript) -> dict[str, Any]:
    return {name: value for name, value in script.to_wire().items() if name not in {"id", "schemaVersion", "definedBy"}}
