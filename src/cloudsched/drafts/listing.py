"""Answer which tasks there are, or run on a day: "list my reminders", "what is on tomorrow?"."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.responses.api_responses import Decision
from cloudsched.domain.transitions.planning import occurrence_after
from cloudsched.drafts.request import Proposal
from cloudsched.drafts.situation import MAX_PAST_TASKS, Situation, find_meant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.task import Task
    from cloudsched.drafts.requests import ListRequest

_MOST_LISTED: Final = 20
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def list_tasks(situation: Situation, asked: ListRequest) -> Proposal:
    """Return the owner's live tasks that a text asks for, the soonest first. `assumptions` say what is left out."""
    live = find_meant(asked.tasks, "")
    notes = list[str]()
    found: list[tuple[Task, datetime | None]]
    day = _find_day(situation, asked.times)
    if day is not None:
        notes.append(f"These are those of {day:%Y-%m-%d}.")
        found = [(task, at) for task in live if (at := _find_on(situation, task, day)) is not None]
    else:
        found = [(task, task.next_execution_time) for task in live]
        if asked.times:
            notes.append("No day was understood, so these are all, and not only those of one time.")

    found.sort(key=lambda each: _NEVER if each[1] is None else each[1])
    if len(found) > _MOST_LISTED:
        notes.append(f"{len(found) - _MOST_LISTED} more are not shown.")
    if len(situation.tasks) == MAX_PAST_TASKS:
        notes.append(f"Only the newest {MAX_PAST_TASKS} tasks were looked at.")
    return Proposal(decision=Decision.LIST, listed=tuple(found[:_MOST_LISTED]), assumptions=tuple(notes))


def _find_day(situation: Situation, times: Iterable[str]) -> date | None:
    """Return the one day that words of time name."""
    days = set[date]()
    for words in times:
        schedule = situation.read(words).schedule
        if schedule is not None and schedule.at is not None:
            days.add(schedule.at.astimezone(load_tzinfo(situation.request.timezone)).date())
    return days.pop() if len(days) == 1 else None


def _find_on(situation: Situation, task: Task, day: date) -> datetime | None:
    """Return a task's first occurrence on a day that is still to come."""
    if task.next_execution_time is None:
        return None
    begin = datetime.combine(day, time(), load_tzinfo(situation.request.timezone))
    following = occurrence_after(task, max(begin.astimezone(UTC), situation.now) - timedelta(microseconds=1))
    if following is None or following >= begin + timedelta(days=1):
        return None
    return following
