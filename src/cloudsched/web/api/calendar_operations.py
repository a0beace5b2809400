"""The operations that show tasks as calendars."""

from __future__ import annotations

from typing import Final

from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import Operation
from cloudsched.web.auth.roles import Right

CALENDAR_OPERATIONS: Final = (
    Operation(
        name="create_feed",
        tag="Calendars",
        method="POST",
        path="/v1/feeds",
        summary="Create a feed: an owner's tasks as a calendar to subscribe to.",
        description=(
            "The response has the address, with a secret that is shown only here; whoever has it can read the feed. "
            "An owner may have 20 feeds."
        ),
        right=Right.WRITE,
        body=bodies.NewFeed,
        body_is_optional=True,
        success_statuses=(201,),
        response_schema="NewFeedAddress",
    ),
    Operation(
        name="list_feeds",
        tag="Calendars",
        method="GET",
        path="/v1/feeds",
        summary="List an owner's feeds.",
        description="Without their addresses, which are stored nowhere.",
        query=bodies.OwnerQuery,
        response_schema="Feeds",
    ),
    Operation(
        name="delete_feed",
        tag="Calendars",
        method="DELETE",
        path="/v1/feeds/{feedId}",
        summary="Revoke a feed.",
        description="Its address shows nothing any more. Programs may keep what they have for some hours.",
        right=Right.WRITE,
        success_statuses=(204,),
        error_statuses=(404, 409),
    ),
    Operation(
        name="get_feed",
        tag="Calendars",
        method="GET",
        path="/v1/feeds/{feedSecret}.ics",
        summary="Get a feed as iCalendar text.",
        description=(
            "Occurrences from 30 days ago to 90 days ahead, in UTC, with what became of the past ones. The secret is "
            "all that it takes. With `If-None-Match`, an unchanged feed is answered with 304."
        ),
        right=None,
        success_statuses=(200, 304),
        response_schema="text/calendar",
        error_statuses=(404,),
    ),
    Operation(
        name="get_task_calendar",
        tag="Calendars",
        method="GET",
        path="/v1/tasks/{taskId}.ics",
        summary="Get a task as iCalendar text, to add to a calendar.",
        description=(
            "One event with the task's rule, where every program reads it alike; otherwise its occurrences of the next "
            "90 days."
        ),
        success_statuses=(200, 304),
        response_schema="text/calendar",
        error_statuses=(404,),
    ),
)
