"""The operations on calendars, which owners keep by name."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints
from werkzeug.wrappers import Response

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.task import Owner, Text
from cloudsched.domain.schedules.calendar_days import MAX_DAY_NAME, MAX_INTERVALS, WEEKDAYS, parse_days, to_date
from cloudsched.errors import NotFound
from cloudsched.features.calendars.documents import Calendar, HolidaySource
from cloudsched.features.calendars.ics_days import MAX_TEXT
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response


def _parse_day(value: object) -> object:
    """Read a day as RFC 3339 writes it. Pydantic alone would take a number for seconds since 1970."""
    try:
        if not isinstance(value, str) or len(value) != len("2027-01-01"):
            raise ValueError  # noqa: TRY301 - the same message as for what is no date
        return dt.date.fromisoformat(value)
    except ValueError:
        raise ValueError("is not a day such as 2027-01-01") from None


Day = Annotated[dt.date, BeforeValidator(_parse_day)]
DayName = Annotated[str, StringConstraints(max_length=MAX_DAY_NAME)]


class CalendarDay(WireModel):
    """A day of a calendar, or several in a row."""

    date: Day
    """The day, or the first one."""
    until: Day | None = None
    """The last day, if there are several."""
    name: DayName = ""
    """The day's name, such as a holiday's. The records of occurrences that it has moved show this name."""


Weekday = Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


class PutCalendar(WireModel):
    """A calendar to create or replace. At most one of ``days``, ``ics``, ``url`` and ``holidays`` is given."""

    owner: Owner | None = None
    """The calendar's owner. Without one, an admin's calendar is for everybody, and a user's belongs to the
    user."""
    title: Text = ""
    weekdays: Annotated[tuple[Weekday, ...], Field(max_length=7)] | None = None
    """Days of the week that are always on it."""
    days: Annotated[tuple[CalendarDay, ...], Field(max_length=MAX_INTERVALS)] | None = None
    """Its days, listed one by one."""
    ics: Annotated[str, StringConstraints(max_length=MAX_TEXT)] | None = None
    """An iCalendar file, whose events are its days."""
    url: Annotated[str, StringConstraints(max_length=2000)] | None = None
    """The address of an iCalendar file. It is fetched now, and again every day."""
    holidays: HolidaySource | None = None
    """A country whose holidays it has, as the installed version of the package ``holidays`` knows them."""


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

    An admin's is for everybody, a user's for that user's tasks. Tasks that name it are planned again within a
    minute or two. A calendar is replaced as a whole: give its days again, or `days: []` to remove them. The
    response has the calendar's full id.
    """
    calendar = CalendarsWiring.of(call.app.container).calendars.put(
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
    return json_response(
        _to_json(call, CalendarsWiring.of(call.app.container).calendars.get(call.path["calendarId"], owner))
    )


@operation("GET", "/v1/calendars", "Calendars", query=bodies.OwnerQuery, response_schema="CalendarList")
def list_calendars(call: ApiCall, query: bodies.OwnerQuery) -> Response:
    """List the calendars for everybody, and the owner's own.

    The answer does not have their days.
    """
    found = CalendarsWiring.of(call.app.container).calendars.list(
        call.caller.resolve_record_owner(query.owner),
    )
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
        CalendarsWiring.of(call.app.container).calendars.delete(
            call.path["calendarId"],
            owner,
            by=call.authority,
        )
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
        if last > first:
            until = {"until": to_date(last).isoformat()}
        else:
            until = {}
        shown.append({"date": to_date(first).isoformat(), **until, "name": name})
    return {
        **{name: value for name, value in wire.items() if name not in hidden},
        "weekdays": [WEEKDAYS[number] for number in sorted(days.weekdays)],
        "days": shown,
    }
