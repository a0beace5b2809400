"""The operations on words: drafting a task from them, confirming the draft, and previewing a schedule."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.recurrence.allowance import REQUEST_STEPS, Allowance, spend_from, take_part
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.schedules.assumptions import list_surprises
from cloudsched.domain.schedules.calendar_recurrence import describe_ends, describe_stale
from cloudsched.domain.schedules.words import find_words
from cloudsched.domain.transitions.edits import anchor_schedule
from cloudsched.domain.transitions.task_draft import find_all_faults, has_schedule_text
from cloudsched.drafts.draft_tokens import Requester
from cloudsched.drafts.request import DraftRequest
from cloudsched.drafts.wiring import DraftsWiring
from cloudsched.engine.tasks.owner_zone import find_owner_locale, find_owner_zone
from cloudsched.engine.tasks.schedule_parts import resolve_schedule
from cloudsched.errors import CloudschedError, InvalidInput
from cloudsched.features.calendars.schedule_days import find_calendar
from cloudsched.language.task_fields import read_schedule_field
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import EVENT_STREAM, ApiCall, operation, read_person
from cloudsched.web.api.parse import validate_model
from cloudsched.web.api.problems import render_problem
from cloudsched.web.api.responses import CACHE_HEADERS, json_response, make_occurrence
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.drafts.service import Steps


@operation("POST", "/v1/tasks/draft", "Tasks", content=DraftRequest, response_schema="DraftResult")
def draft_task(call: ApiCall) -> Response:
    """Draft a task, a change or an operation of one, or a list of tasks, from a person's words.

    Nothing is stored. Show the draft, and confirm it: send its `task` to `POST /v1/tasks`, or its
    `changes` to `PATCH /v1/tasks/{taskId}`, unchanged and with its `draftToken`, within 15 minutes. There
    is no token of a list, nor as long as `questions` or `missing` has anything. With `Accept: text/event-stream`, each
    step is an event `step` as it begins, and the draft is the last event, `draft`.
    """
    request = DraftRequest.from_wire(call.read_content())
    requester = Requester(call.caller.subject, str(call.caller.resolve_owner(request.owner) or SYSTEM_OWNER))
    drafts = DraftsWiring.of(call.app.container).drafts
    if call.request.accept_mimetypes.best_match(["application/json", EVENT_STREAM]) != EVENT_STREAM:
        return json_response(drafts.make(request, requester, call.authority).to_wire())
    events = _stream(drafts.steps(request, requester, call.authority), take_part(REQUEST_STEPS))
    return Response(events, content_type=f"{EVENT_STREAM}; charset=utf-8", headers=CACHE_HEADERS)


def _stream(steps: Steps, allowance: Allowance) -> Iterator[str]:
    """Yield a draft's steps as events, and then the draft, or the problem that stopped it.

    The steps are made while the response is sent, after the request's own work. They are still a part of
    the request's allowance.
    """
    try:
        while True:
            with spend_from(allowance):
                made = next(steps, None)
            if made is None:
                return
            yield _event("draft" if isinstance(made, responses.DraftResult) else "step", made.to_wire())
    except CloudschedError as error:
        yield _event("problem", render_problem(error, "#").get_json(force=True))


def _event(name: str, content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n"


@operation(
    "POST",
    "/v1/schedules/preview",
    "Schedules",
    right=Right.READ,
    content=bodies.PreviewRequest,
    response_schema="SchedulePreview",
)
def preview_schedule(call: ApiCall) -> Response:
    """Preview the next occurrences of a schedule.

    Nothing is stored. The response explains the schedule in words and lists the instants at which it
    fires, in UTC and local time.
    """
    content = call.read_content()

    show = partial(_preview, call)
    try:
        return show(content)
    except InvalidInput as error:
        raise find_all_faults(error, content, show) from error.__cause__


def _preview(call: ApiCall, content: dict[str, Any]) -> Response:
    given = content.get("owner")
    owner = read_person(call, given) if given is not None else call.caller.owner or SYSTEM_OWNER
    now = call.app.container.clock.now()
    records = call.app.container.store.records
    find_zone = cache(partial(find_owner_zone, records, owner))

    # Words become the schedule that they mean. They may leave nothing to assume, but are always answered.
    language = "en"
    notes: list[str] = []
    no_notes: tuple[str, ...] | None = None
    if content.get("schedule") is not None and has_schedule_text(content):
        settings = call.app.container.settings
        read = read_schedule_field(
            content,
            now=now,
            default_time=settings.default_time,
            default_calendar=settings.default_calendar,
            find_owner_zone=find_zone,
            find_owner_locale=partial(find_owner_locale, records, owner),
        )
        language = read.language
        content = {name: value for name, value in content.items() if name not in {"locale", "timezone"}}
        content["schedule"] = read.schedule
        notes += read.assumptions
        no_notes = ()

    body = validate_model(bodies.PreviewRequest, content)
    start = body.start or now
    schedule = body.schedule
    if schedule.follows_owner and find_zone() is None:
        schedule = resolve_schedule(records, schedule.as_fixed(), owner).follow_owner()
    else:
        schedule = resolve_schedule(records, schedule, owner)
    schedule = anchor_schedule(schedule, start)
    meanings = list_surprises(schedule, language)
    notes += (meaning for meaning in meanings if meaning not in notes)
    if schedule.follows_owner:
        notes.append(_say_whose(owner, find_zone(), language))

    times = [start] if body.schedule.is_now else schedule.upcoming(start, body.count)
    occurrences = tuple(make_occurrence(at, schedule.timezone) for at in times)
    for rule in schedule.calendars:
        calendar = find_calendar(records, rule.id, owner)
        if calendar is not None and calendar.problem:
            notes.append(describe_stale(rule.id, calendar.problem))
    if occurrences:
        notes += describe_ends(schedule.calendars, occurrences[-1].local.date())

    preview = responses.SchedulePreview(
        description=schedule.describe_next(next((at for at in times if at >= now), None), language).text,
        schedule=schedule,
        occurrences=occurrences,
        assumptions=tuple(notes) or no_notes,
    )
    return json_response(preview.to_wire())


def _say_whose(owner: str, zone: str | None, language: str) -> str:
    if zone is None:
        return "It follows its owner, whose zone is not known here, so it is shown in the schedule's own."
    return find_words(language).assumed["owner"].format(owner, zone)
