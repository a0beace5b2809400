"""The operations on schedules that belong to no task."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.calendars.calendar_recurrence import describe_ends
from cloudsched.domain.documents import responses
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.transitions.drafts import has_schedule_text
from cloudsched.domain.transitions.edits import anchor_schedule
from cloudsched.engine.tasks.owner_zones import find_owner_zone, resolve_for_owner
from cloudsched.errors import NotFound
from cloudsched.language.task_fields import read_schedule_field
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import operation
from cloudsched.web.api.parse import validate
from cloudsched.web.api.responses import json_response, make_occurrence

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.web.api.operation import ApiCall


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
    owner = _read_owner(call, content)
    now = call.app.container.clock.now()
    read, records = None, call.app.container.store.records
    find_zone = cache(partial(find_owner_zone, records, owner))
    if has_schedule_text(content):
        settings = call.app.container.settings
        at, calendar = settings.default_time, settings.default_calendar
        read = read_schedule_field(
            content, now=now, default_time=at, default_calendar=calendar, find_owner_zone=find_zone
        )
        content = {**content, "schedule": read.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
        content.pop("timezone", None)
    body = validate(bodies.PreviewRequest, content)
    start = body.start or now
    schedule = anchor_schedule(body.schedule, start)
    notes = [] if read is None else [*read.assumptions]
    if schedule.follows_owner:
        notes.append(_say_whose(owner, find_zone()))
    if schedule.follows_owner and find_zone() is None:
        schedule = resolve_for_owner(records, schedule.as_fixed(), owner).following()
    else:
        schedule = resolve_for_owner(records, schedule, owner)
    times = [start] if body.schedule.is_now else schedule.upcoming(start, body.count)
    occurrences = tuple(make_occurrence(at, schedule.timezone) for at in times)
    ends = describe_ends(schedule.calendars, occurrences[-1].local.date()) if occurrences else []
    preview = responses.SchedulePreview(
        description=schedule.describe(),
        schedule=schedule,
        occurrences=occurrences,
        assumptions=(*notes, *ends) or (None if read is None else ()),
        title=None if read is None else read.title,
    )
    return json_response(preview.to_wire())


def _read_owner(call: ApiCall, content: dict[str, Any]) -> str:
    """Return whose schedule is shown. Raises NotFound for somebody whom the caller may not see."""
    given = content.get("owner")
    if given is None:
        return call.caller.owner or SYSTEM_OWNER
    owner = str(validate(bodies.OwnerQuery, {"owner": given}).owner)
    if not call.caller.can_see(owner):
        raise NotFound("person", owner)
    return owner


def _say_whose(owner: str, zone: str | None) -> str:
    if zone is None:
        return "It follows its owner, whose zone is not known here, so it is shown in the schedule's own."
    return f"It follows {owner}, who is in {zone}."
