"""Answer which tasks there are, or run on a day: "list my reminders", "what is on tomorrow?"."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.responses.api_responses import Decision
from cloudsched.domain.transitions.planning import occurrence_after
from cloudsched.drafts.request import Proposal
from cloudsched.drafts.situation import MAX_PAST_TASKS, Situation, find_meant
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.messages import tell
from cloudsched.language.nodes import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cloudsched.domain.documents.task import Task

_MOST_LISTED: Final = 20
_MOST_DAYS: Final = 400
"""The number of days that words may name. Those of a rule without an end are more."""
_EACH_DAY: Final = (("each", 1), ("unit", Unit.DAY))
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def list_tasks(situation: Situation, tasks: Sequence[Task], times: Sequence[str]) -> Proposal:
    """Return the owner's live tasks that a text asks for, the soonest first, with what is left out."""
    live = find_meant(tasks, "")
    notes = list[str]()
    found = [(task, task.next_execution_time) for task in live]
    days = _find_days(situation, times)
    if days is not None:
        first, last = days
        template = "These run on {first}." if first == last else "These run from {first} to {last}."
        notes.append(tell(situation.language, template, first=first, last=last))
        found = [(task, at) for task in live if (at := _find_on(situation, task, first, last)) is not None]
    elif times:
        unread = "No day was understood, so these are all, and not only those of one time."
        notes.append(tell(situation.language, unread))

    found.sort(key=lambda each: _NEVER if each[1] is None else each[1])
    if len(found) > _MOST_LISTED:
        notes.append(tell(situation.language, "{count} more are not shown.", count=len(found) - _MOST_LISTED))
    if len(situation.tasks) == MAX_PAST_TASKS:
        notes.append(tell(situation.language, "Only the newest {count} tasks were looked at.", count=MAX_PAST_TASKS))
    return Proposal(decision=Decision.LIST, listed=tuple(found[:_MOST_LISTED]), assumptions=tuple(notes))


def _find_days(situation: Situation, times: Iterable[str]) -> tuple[date, date] | None:
    """Return the first and the last of the days that words of time name, such as "tomorrow" or "this week"."""
    zone = load_tzinfo(situation.request.timezone)
    midnight = datetime.combine(situation.now.astimezone(zone), time(), zone)
    days = set[tuple[date, date]]()
    for words in times:
        each_day = (situation.read(words, locale=code, lead=_EACH_DAY) for code in LANGUAGES)
        for reading in (situation.read(words), *each_day):
            if reading.schedule is not None:
                found = [at.astimezone(zone).date() for at in reading.schedule.upcoming(midnight, _MOST_DAYS)]
                if 0 < len(found) < _MOST_DAYS:
                    days.add((found[0], found[-1]))
    return days.pop() if len(days) == 1 else None


def _find_on(situation: Situation, task: Task, first: date, last: date) -> datetime | None:
    """Return a task's first occurrence on some days that is still to come."""
    if task.next_execution_time is None:
        return None
    zone = load_tzinfo(situation.request.timezone)
    begin = datetime.combine(first, time(), zone)
    end = datetime.combine(last + timedelta(days=1), time(), zone)
    following = occurrence_after(task, max(begin.astimezone(UTC), situation.now) - timedelta(microseconds=1))
    return following if following is not None and following < end else None
