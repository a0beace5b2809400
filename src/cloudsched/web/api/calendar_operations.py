"""The operations on calendars, which owners keep by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from cloudsched.domain.schedules.calendar_days import WEEKDAYS, parse_days, to_date
from cloudsched.errors import NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.request_bodies import PutCalendar
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from cloudsched.domain.documents.calendar import Calendar


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

    An admin's is for everybody, a user's for that user's tasks. Tasks that name it are planned again
    within a minute or two. A calendar is replaced as a whole: give its days again, or `days: []` to
    remove them. The response has the calendar's full id.
    """
    days = None
    if body.days is not None:
        days = [(each.date, each.until or each.date, each.name) for each in body.days]
    calendar = call.app.container.calendars.put(
        call.path["calendarId"],
        call.caller.resolve_record_owner(body.owner),
        by=call.authority,
        title=body.title,
        weekdays=body.weekdays,
        days=days,
        ics=body.ics,
        url=body.url,
        holidays=body.holidays,
    )
    return json_response(_to_json(call, calendar))


@operation(
    "GET",
    "/v1/calendars/{calendarId}",
    "Calendars",
    query=bodies.OwnerQuery,
    response_schema="CalendarDetails",
)
def get_calendar(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """Get a calendar.

    A name means the calendar for everybody, or else the owner's own.
    """
    owner = call.caller.resolve_record_owner(query.owner)
    calendar = call.app.container.calendars.get(call.path["calendarId"], owner)
    return json_response(_to_json(call, calendar))


@operation("GET", "/v1/calendars", "Calendars", query=bodies.OwnerQuery, response_schema="CalendarList")
def list_calendars(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List the calendars for everybody, and the owner's own.

    The answer does not have their days.
    """
    found = call.app.container.calendars.list(call.caller.resolve_record_owner(query.owner))
    shown = [_to_json(call, each) for each in found]
    for calendar in shown:
        del calendar["days"]
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
    hidden = {"content", "schemaVersion", "etag"}
    if not call.caller.can_see(calendar.owner):
        hidden.add("url")
    shown = {name: value for name, value in calendar.to_wire().items() if name not in hidden}

    days = parse_days(calendar.content)
    shown["weekdays"] = [WEEKDAYS[number] for number in sorted(days.weekdays)]
    shown["days"] = []
    for first, last, name in days.intervals:
        day = {"date": to_date(first).isoformat()}
        if last > first:
            day["until"] = to_date(last).isoformat()
        shown["days"].append({**day, "name": name})
    return shown
