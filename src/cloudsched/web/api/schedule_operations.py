"""The operations on schedules that belong to no task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.calendars.notes import describe_ends
from cloudsched.domain.documents import responses
from cloudsched.domain.documents.subjects import SYSTEM_OWNER
from cloudsched.domain.transitions.edits import anchor_schedule
from cloudsched.engine.tasks.calendar_days import resolve_schedule
from cloudsched.language.task_fields import has_schedule_text, read_schedule_field
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import operation
from cloudsched.web.api.parse import validate
from cloudsched.web.api.responses import json_response, make_occurrence

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.web.api.call import ApiCall


@operation(
    "POST",
    "/v1/schedules/preview",
    "Schedules",
    content=bodies.PreviewRequest,
    response_schema="SchedulePreview",
)
def preview_schedule(call: ApiCall) -> Response:
    """Preview the next occurrences of a schedule.

    Nothing is stored. The response explains the schedule in words and lists the instants at which it fires, in UTC and
    local time.
    """
    content = call.read_content()
    now = call.app.container.clock.now()
    read = None
    if has_schedule_text(content):
        settings = call.app.container.settings
        at, calendar = settings.default_time, settings.default_calendar
        read = read_schedule_field(content, now=now, default_time=at, default_calendar=calendar)
        content = {**content, "schedule": read.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
        content.pop("timezone", None)
    body = validate(bodies.PreviewRequest, content)
    start = body.start or now
    schedule = anchor_schedule(body.schedule, start)
    schedule = resolve_schedule(call.app.container.store.records, schedule, call.caller.owner or SYSTEM_OWNER)
    times = [start] if body.schedule.is_now else schedule.upcoming(start, body.count)
    occurrences = tuple(make_occurrence(at, schedule.timezone) for at in times)
    ends = describe_ends(schedule.calendars, occurrences[-1].local.date()) if occurrences else []
    preview = responses.SchedulePreview(
        description=schedule.describe(),
        schedule=schedule,
        occurrences=occurrences,
        assumptions=(*read.assumptions, *ends) if read else tuple(ends) or None,
        title=None if read is None else read.title,
    )
    return json_response(preview.to_wire())
