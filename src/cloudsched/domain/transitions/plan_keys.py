"""The key of a task's plan: tasks with one key are due at the same times, from the next time of each on.

A count of what is due searches one task for all that share a key. So the key leaves out what does not matter from an
occurrence on: the day on which a rule without COUNT or INTERVAL began. The keys of the most common plans say them
(`DailyPlan`, `SteadyPlan`), so that no task has to be read.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from cloudsched.domain.recurrence.expand import DAY
from cloudsched.domain.recurrence.iso8601 import parse_moment
from cloudsched.domain.recurrence.rrule import Frequency, parse_rule

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.recurrence.wall_clock import Fold, Gap
    from cloudsched.domain.schedules.schedule import Schedule

ONCE: Final = "once"
"""The key of all tasks that are due once more at most."""
_DAILY: Final = "daily"
STEADY: Final = "steady"
"""The first word of the key of a `SteadyPlan`. The number after it is the step."""
KEYED_FIELDS: Final = frozenset({"schedule", "until", "max_runs", "backlog", "plan_from"})
"""The fields of a task that its key depends on, beside the time zone data of its plan."""
_MONDAY_FIRST: Final = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


class DailyPlan(NamedTuple):
    """One time a day, on some weekdays, on the clock of a zone."""

    weekdays: str
    """Their numbers, where 0 is Monday: ``01234``."""
    time: int
    """Seconds since midnight."""
    timezone: str
    gap: Gap
    fold: Fold
    fingerprint: str = ""
    """The fingerprint of the time zone data with which it is planned. Empty where a zone has no clock changes."""


class SteadyPlan(NamedTuple):
    """One instant every so many seconds, without an end."""

    step: int
    phase: int
    """What is left of each instant, in seconds since 1970, when it is divided by the step."""
    timezone: str
    fingerprint: str = ""
    """As that of a `DailyPlan`: a plan that was made with other data may be off."""


def find_plan_key(task: Task) -> str | None:
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
    if task.until is None and (plan is None or plan.fingerprint):
        fingerprint = "" if plan is None else plan.fingerprint
        if (daily := _find_daily_plan(schedule, fingerprint)) is not None:
            return " ".join((_DAILY, *map(str, daily)))
        if (steady := _find_steady_plan(schedule, fingerprint)) is not None:
            return " ".join((STEADY, *map(str, steady)))
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
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=10_000)
def read_plan(key: str) -> DailyPlan | SteadyPlan | None:
    """Return the plan that a key says, or None if it says none."""
    kind, *parts = key.split(" ")
    if kind == _DAILY:
        weekdays, time, timezone, gap, fold, fingerprint = parts
        return DailyPlan(weekdays, int(time), timezone, cast("Gap", gap), cast("Fold", fold), fingerprint)
    if kind == STEADY:
        step, phase, timezone, fingerprint = parts
        return SteadyPlan(int(step), int(phase), timezone, fingerprint)
    return None


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


def _find_daily_plan(schedule: Schedule, fingerprint: str) -> DailyPlan | None:
    days = find_plain_days(schedule)
    if days is None:
        return None
    time = parse_moment(schedule.dtstart or "", "dtstart").wall % DAY
    weekdays = "".join(map(str, sorted(days)))
    return DailyPlan(weekdays, time, schedule.timezone, schedule.gap, schedule.fold, fingerprint)


def _find_steady_plan(schedule: Schedule, fingerprint: str) -> SteadyPlan | None:
    interval = schedule.interval
    if interval is None or not isinstance(schedule.rrule, str):
        return None
    rule = parse_rule(schedule.rrule)
    first = schedule.recurrence.first
    if rule.count is not None or rule.until is not None or first is None:
        return None
    step = int(interval.total_seconds())
    return SteadyPlan(step, first % step, schedule.timezone, fingerprint)


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
