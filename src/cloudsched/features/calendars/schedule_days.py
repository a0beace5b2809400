"""The days of the calendars that a schedule names, which it gets when its task is stored or planned again."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.schedules.calendar_days import MAX_CONTENT, WEEKENDS
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.replan import replan
from cloudsched.engine.tasks.schedule_parts import write_link
from cloudsched.errors import InvalidSchedule
from cloudsched.features.calendars.documents import Calendar, calendar_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.system_tasks import ChangeToFollow
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.calendar_rule import CalendarRule
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

_DAYS_CHANGED: Final = "The days of its calendar changed before it started."


def find_calendar(records: RecordStore, name: str, owner: str) -> Calendar | None:
    """Return the calendar that a name means to an owner: the one for everybody, or else the owner's own.

    The code of a place, such as DE-BY, also means a calendar of its holidays. Words name them so.
    """
    for key in dict.fromkeys((name, calendar_key(owner, name))):
        stored = records.load(Calendar, key)
        if stored is not None and stored.record.owner in {SYSTEM_OWNER, owner}:
            return stored.record
    known = list_calendars(records, owner) if name.isupper() else []
    return next((each for each in known if each.holidays is not None and each.holidays.place == name), None)


def list_calendars(records: RecordStore, owner: str) -> list[Calendar]:
    """Return the calendars for everybody, and the owner's own."""
    owners = dict.fromkeys((SYSTEM_OWNER, owner))
    return [each for one in owners for each in records.list(Calendar, one, limit=Calendar.max_per_owner)]


class FollowedCalendar:
    """A calendar that tasks name. See `FollowedRecord`."""

    def __init__(self, records: RecordStore, key: str) -> None:
        self._records = records
        self.key = key

    def load(self) -> VersionedRecord[Calendar] | None:
        """Return the calendar, None if it was deleted."""
        return self._records.load(Calendar, self.key)

    def revision_of(self, record: Calendar) -> int:
        """Return the number of changes of its days."""
        return record.revision

    def depends(self, task: Task) -> bool:
        """Return whether the task names the calendar."""
        return any(rule.id == self.key for rule in task.schedule.calendars)

    def replan(self, task: Task, record: Calendar, now: datetime) -> Commit:
        """Return the task planned with the days as they are now, unchanged if it already is."""
        return replan_calendars(task, {self.key: record.content}, now)

    def is_missing_over(self, since: timedelta) -> bool:  # noqa: ARG002 - as for a person
        """Return True: only existing calendars get a follower, so a missing one was deleted."""
        return True


class ScheduleDays:
    """The days of the calendars that schedules name. See `SchedulePart`."""

    def concerns(self, schedule: Schedule) -> bool:
        """Return whether a schedule names a calendar."""
        return bool(schedule.calendars)

    def resolve(
        self,
        records: RecordStore,
        draft: TaskDraft,
        clock: Clock,
        known: Schedule | None,
    ) -> TaskDraft:
        """Return a draft with the days of its calendars, and an id.

        A link from each calendar to the task is written first: whoever changes the calendar from then on
        finds the task. Those of the schedule that the task has (`known`) keep their days if they were
        deleted. Raises InvalidSchedule.
        """
        schedule = draft.schedule
        assert schedule is not None  # noqa: S101 - it names a calendar
        task_id = draft.id or str(uuid.uuid4())
        now = clock.now()
        found = [
            _find_rule(records, rule, f"schedule.calendars.{number}.id", draft.owner, known)
            for number, rule in enumerate(schedule.calendars)
        ]
        _require_size([rule for rule, _ in found])
        rules = [_link_rule(records, rule, task_id, now) if is_there else rule for rule, is_there in found]
        _require_size(rules)
        return draft.model_copy(update={"id": task_id, "schedule": schedule.copy_rules(tuple(rules))})

    def resolve_alone(self, records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
        """Return a schedule of no task with the days of its calendars.

        Raises InvalidSchedule if there is none.
        """
        rules = [
            _find_rule(records, rule, f"schedule.calendars.{number}.id", owner, None)[0]
            for number, rule in enumerate(schedule.calendars)
        ]
        return schedule.copy_rules(tuple(rules))

    def plan_again(
        self,
        records: RecordStore,
        task: Task,
        clock: Clock,
    ) -> Callable[[Task, datetime], Commit]:
        """Return a decision that plans a task with its calendars' present days, each linked to it again."""
        contents = read_contents(records, task, clock)
        return lambda stored, now: replan_calendars(stored, contents, now)

    def find_followed(self, records: RecordStore, change: ChangeToFollow) -> FollowedCalendar | None:
        """Return the calendar whose days have changed."""
        if change.owner is not None:
            return None
        return FollowedCalendar(records, change.key)


def replan_calendars(task: Task, contents: Mapping[str, str], now: datetime) -> Commit:
    """Return the task planned with the calendars' present days, or as it is if it has them."""
    schedule = task.schedule.with_days(contents)
    if schedule is task.schedule or task.deleted_at is not None:
        return Commit(task)
    return replan(task, schedule, now, _DAYS_CHANGED)


def read_contents(records: RecordStore, task: Task, clock: Clock) -> dict[str, str]:
    """Return the days of a task's calendars as they are now, by their ids, each linked to the task again."""
    contents = dict[str, str]()
    for key in {rule.id for rule in task.schedule.calendars} - {WEEKENDS}:
        if records.load(Calendar, key) is not None:
            write_link(records, key, task.id, clock.now())
            stored = records.load(Calendar, key)
            contents |= {} if stored is None else {key: stored.record.content}
    return contents


def _require_size(rules: Sequence[CalendarRule]) -> None:
    """Check that the days of calendars are not too large together, before links are written."""
    size = sum(len((rule.content or "").encode()) for rule in rules)
    if size > MAX_CONTENT:
        hint = f"At most {MAX_CONTENT} bytes; name fewer or smaller ones."
        raise InvalidSchedule("schedule.calendars", f"have {size} bytes of days together", hint)


def _find_rule(
    records: RecordStore, rule: CalendarRule, field: str, owner: str, known: Schedule | None
) -> tuple[CalendarRule, bool]:
    """Return a rule with its calendar's days, and whether the calendar is stored.

    If not, the days are the task's.
    """
    if rule.id == WEEKENDS:
        return rule, False
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
    if current is None:
        return rule
    return rule.with_content(current.record.content, rule.id)
