"""The parts of a schedule that come from its task's owner: the days of named calendars, and the followed time zone."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.calendar import Calendar, CalendarLink, calendar_key, link_id, zone_key
from cloudsched.domain.documents.person import Person
from cloudsched.domain.schedules.calendar_days import MAX_CONTENT, WEEKENDS, WEEKENDS_CONTENT, CalendarRule
from cloudsched.domain.transitions.replan import follow_owner
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

OPEN_FOR: Final = timedelta(minutes=5)
"""The time for which a task may be stored after its link was written. A later one looks at its calendars again."""
_FRESH: Final = timedelta(minutes=1)


def find_calendar(records: RecordStore, name: str, owner: str) -> Calendar | None:
    """Return the calendar that a name means to an owner: the one for everybody, or else the owner's own."""
    for key in dict.fromkeys((name, calendar_key(owner, name))):
        stored = records.load(Calendar, key)
        if stored is not None and stored.record.owner in {SYSTEM_OWNER, owner}:
            return stored.record
    return None


def resolve_draft(records: RecordStore, draft: TaskDraft, clock: Clock, known: Schedule | None = None) -> TaskDraft:
    """Return a draft with the days of its calendars, and an id. Without calendars nothing is read.

    A link from each calendar to the task is written first: whoever changes the calendar from then on finds the task.
    Those of the schedule that the task has (`known`) keep their days if they were deleted. Raises InvalidSchedule.
    """
    schedule = draft.schedule
    if schedule is None or not schedule.calendars:
        return draft
    task_id, now = draft.id or str(uuid.uuid4()), clock.now()
    found = [
        _find_rule(records, rule, f"schedule.calendars.{number}.id", draft.owner, known)
        for number, rule in enumerate(schedule.calendars)
    ]
    _require_size([rule for rule, _ in found])
    rules = [_link_rule(records, rule, task_id, now) if is_there else rule for rule, is_there in found]
    _require_size(rules)
    return draft.model_copy(update={"id": task_id, "schedule": schedule.copy_unchecked(calendars=tuple(rules))})


def _require_size(rules: Sequence[CalendarRule]) -> None:
    """Check that calendars' days are not too large together, before links are written and with the last days."""
    size = sum(len((rule.content or "").encode()) for rule in rules)
    if size > MAX_CONTENT:
        hint = f"At most {MAX_CONTENT} bytes; name fewer or smaller ones."
        raise InvalidSchedule("schedule.calendars", f"have {size} bytes of days together", hint)


def resolve_schedule(records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
    """Return a schedule of no task with the days of its calendars. Raises InvalidSchedule if there is no such one."""
    if not schedule.calendars:
        return schedule
    rules = [
        _find_rule(records, rule, f"schedule.calendars.{number}.id", owner, None)[0]
        for number, rule in enumerate(schedule.calendars)
    ]
    return schedule.copy_unchecked(calendars=tuple(rules))


def read_contents(records: RecordStore, task: Task, clock: Clock) -> dict[str, str]:
    """Return the days of a task's calendars as they are now, by their ids, each linked to the task again."""
    contents = dict[str, str]()
    for key in {rule.id for rule in task.schedule.calendars} - {WEEKENDS}:
        if records.load(Calendar, key) is not None:
            write_link(records, key, task.id, clock.now())
            stored = records.load(Calendar, key)
            contents |= {} if stored is None else {key: stored.record.content}
    return contents


def _find_rule(
    records: RecordStore, rule: CalendarRule, field: str, owner: str, known: Schedule | None
) -> tuple[CalendarRule, bool]:
    """Return a rule with its calendar's days, and whether the calendar is stored. If not, the days are the task's."""
    if rule.id == WEEKENDS:
        return rule.with_content(WEEKENDS_CONTENT), False
    keys = tuple(dict.fromkeys((rule.id, calendar_key(owner, rule.id))))
    calendar = find_calendar(records, rule.id, owner)
    if calendar is not None:
        return rule.with_content(calendar.content, calendar.id), True
    for each in () if known is None else known.calendars:
        if each.id in keys and each.content is not None:
            return rule.with_content(each.content, each.id), False
    problem = f"is {rule.id!r}, and there is no such calendar"
    raise InvalidSchedule(field, problem, "PUT /v1/calendars/{id} makes one.")


def _link_rule(records: RecordStore, rule: CalendarRule, task_id: str, now: datetime) -> CalendarRule:
    """Return a found rule with its calendar's days as they are after the link to the task is written."""
    write_link(records, rule.id, task_id, now)
    current = records.load(Calendar, rule.id)
    return rule if current is None else rule.with_content(current.record.content, rule.id)


def write_link(records: RecordStore, key: str, task_id: str, now: datetime) -> None:
    """Write the link from a calendar to a task, or make an existing one new again."""
    link = CalendarLink(id=link_id(key, task_id), owner=key, task_id=task_id, created_at=now, updated_at=now)

    def write(stored: VersionedRecord[CalendarLink] | None) -> None:
        if stored is None or not timedelta(0) <= now - stored.record.updated_at < _FRESH:
            records.write(link, None if stored is None else stored.version)

    compare_and_set(f"calendar {key}", lambda: records.load(CalendarLink, link.id), write, first=None)


_FIELD: Final = "schedule.timezone"


def find_owner_zone(records: RecordStore, owner: str) -> str | None:
    """Return a person's time zone, None if there is no such person."""
    stored = records.load(Person, owner)
    return None if stored is None else stored.record.timezone


def find_owner_locale(records: RecordStore, owner: str) -> str | None:
    """Return a person's language, such as ``de-AT``, None if it is not known."""
    stored = records.load(Person, owner)
    return None if stored is None else stored.record.locale


def with_owner_zone(
    records: RecordStore, draft: TaskDraft, schedule: Schedule, clock: Clock, known: Schedule | None
) -> TaskDraft:
    """Return a draft with an id, and with its schedule in the owner's zone.

    A task that follows its owner already stays in the zone that it is planned in: only `follow_owner` moves it, because
    that knows what has run. So an edit after a change of zone runs nothing twice. Raises InvalidSchedule.
    """
    task_id = draft.id or str(uuid.uuid4())
    follows_already = known is not None and known.follows_owner
    if not follows_already:
        place_at_owner(records, schedule, draft.owner)  # what is refused leaves no link
    write_link(records, zone_key(draft.owner), task_id, clock.now())
    if known is not None and known.follows_owner:
        resolved = schedule.with_owner_zone(known.timezone)
        counted = resolved.copy_unchecked(start_zone=known.start_zone)
        if counted in {known, known.copy_unchecked(dtstart=None)}:
            resolved = counted
        return draft.model_copy(update={"id": task_id, "schedule": resolved})
    return draft.model_copy(update={"id": task_id, "schedule": place_at_owner(records, schedule, draft.owner)})


def resolve_for_owner(records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
    """Return a schedule of no task with its calendars' days, in its owner's zone. Raises InvalidSchedule."""
    placed = place_at_owner(records, schedule, owner) if schedule.follows_owner else schedule
    return resolve_schedule(records, placed, owner)


def place_at_owner(records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
    """Return a schedule that follows its owner in the owner's zone. Raises InvalidSchedule."""
    zone = find_owner_zone(records, owner)
    if zone is None:
        who, first = f"nobody has said where {owner!r} is", ""
        if owner == SYSTEM_OWNER:
            who, first = "the task has no owner", 'give one, owner="ada"; '
        hint = f"{first}PUT /v1/people/{{owner}} says it; or name a zone, such as Europe/Paris"
        raise InvalidSchedule(_FIELD, f"is the owner's, and {who}", hint)
    return schedule.with_owner_zone(zone)


def plan_at_owner(records: RecordStore, task: Task, clock: Clock) -> Callable[[Task, datetime], Commit]:
    """Return a decision that plans a task in its owner's present zone, with its link made new."""
    write_link(records, zone_key(task.owner), task.id, clock.now())
    zone = find_owner_zone(records, task.owner)
    return lambda stored, now: follow_owner(stored, zone or stored.schedule.timezone, now)
