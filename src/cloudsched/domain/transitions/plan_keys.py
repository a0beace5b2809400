"""The key of a task's plan: tasks with one key are due at the same times, from the next time of each on.

A count of what is due searches one task for all that share a key. So the key leaves out what does not matter from an
occurrence on: the day on which a rule without COUNT or INTERVAL began.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.rrule import Frequency, parse_rule

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule

ONCE: Final = 0
"""The key of all tasks that are due once more at most."""
KEYED_FIELDS: Final = frozenset({"schedule", "until", "max_runs", "backlog", "plan_from"})
"""The fields of a task that its key depends on, beside the time zone data of its plan."""
_MONDAY_FIRST: Final = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


def find_plan_key(task: Task) -> int | None:
    """Return the key of a task's plan. None if it shares its times with no other task for sure.

    What counts its runs, waits from a pause or follows a calendar has no key.
    """
    schedule = task.schedule
    if schedule.is_one_time:
        return ONCE
    if task.max_runs is not None or task.backlog or task.plan_from is not None or schedule.is_adjusted:
        return None
    plan = task.zone_plan
    if plan is not None and plan.is_stale:
        return None
    parts = (
        schedule.rrule,
        _find_phase(schedule),
        schedule.timezone,
        schedule.rdates,
        schedule.exdates,
        schedule.gap,
        schedule.fold,
        schedule.sub_daily,
        schedule.start_zone,
        task.until,
        plan and plan.fingerprint,
    )
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=7).digest()
    return 1 + int.from_bytes(digest)


def find_plain_days(schedule: Schedule) -> frozenset[int] | None:
    """Return the weekdays (0 is Monday) of a rule for one time of each of them. None if it is any other schedule."""
    if not isinstance(schedule.rrule, str) or schedule.dtstart is None or schedule.start_zone is not None:
        return None
    if schedule.rdates or schedule.exdates or schedule.is_adjusted:
        return None
    parts = dict(part.split("=", 1) for part in schedule.rrule.split(";"))
    frequency = parts.pop("FREQ", "")
    days = parts.pop("BYDAY", "")
    if parts or frequency not in {"DAILY", "WEEKLY"}:
        return None
    if days:
        named = days.split(",")
        if not set(named) <= {*_MONDAY_FIRST}:
            return None
        return frozenset(map(_MONDAY_FIRST.index, named))
    return None if frequency == "WEEKLY" else frozenset(range(7))


def _find_phase(schedule: Schedule) -> str | None:
    """Return the part of DTSTART that matters from an occurrence on."""
    start = schedule.dtstart
    if start is None or not isinstance(schedule.rrule, str) or schedule.rdates or schedule.start_zone is not None:
        return start
    rule = parse_rule(schedule.rrule)
    if rule.interval != 1 or rule.count is not None:
        return start
    if rule.frequency == Frequency.DAILY or (rule.frequency == Frequency.WEEKLY and rule.weekdays):
        return start[10:]
    if schedule.timezone != "UTC":
        return start
    return {Frequency.HOURLY: start[13:], Frequency.MINUTELY: start[16:]}.get(rule.frequency, start)
