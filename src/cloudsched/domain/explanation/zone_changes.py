"""What another release of the time zone data would move: zones, and the occurrences of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH, utc_seconds
from cloudsched.domain.transitions.planning import upcoming_occurrences
from cloudsched.domain.transitions.replan import replan_zone
from cloudsched.domain.transitions.zone_plans import occurrence_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.recurrence.time_zones import ZoneData

MAX_COMPARED: Final = 1000
"""How many of a task's next occurrences are compared at most."""
_LAST: Final = 4_070_908_800


@dataclass(frozen=True, slots=True)
class ZoneChange:
    """A zone whose clock is another one in the newer data."""

    name: str
    at: datetime | None
    """The first instant from now on at which the two differ; None if they differ only before."""
    before: int | None
    """By how many seconds the clock is ahead of UTC then, by the older data; None if these do not know the zone."""
    after: int | None
    """The same by the newer data."""


@dataclass(frozen=True, slots=True)
class MovedOccurrence:
    """An occurrence of a task at two instants."""

    name: str
    """Its id, which stays."""
    before: datetime | None
    """None if only the newer data have it."""
    after: datetime | None
    """None if only the older data have it."""


def compare_zones(old: ZoneData, new: ZoneData, now: datetime) -> list[ZoneChange]:
    """Return the zones whose clocks differ, those that do from now on first, then by name."""
    names = sorted({*old.names, *new.names})
    found = [_compare(name, old, new, now) for name in names if old.fingerprint(name) != new.fingerprint(name)]
    return sorted(found, key=lambda each: (each.at is None, each.name))


def _compare(name: str, old: ZoneData, new: ZoneData, now: datetime) -> ZoneChange:
    seconds = utc_seconds(now)
    if not (old.knows(name) and new.knows(name)):
        before = old.zone(name).offset_at(seconds) if old.knows(name) else None
        return ZoneChange(name, now, before, new.zone(name).offset_at(seconds) if new.knows(name) else None)
    zones = old.zone(name), new.zone(name)
    changes = {seconds, *(at for zone in zones for at in zone.table_for(seconds).changes if seconds < at < _LAST)}
    for at in sorted(changes):
        before, after = (zone.offset_at(at) for zone in zones)
        if before != after:
            return ZoneChange(name, UTC_EPOCH + timedelta(seconds=at), before, after)
    return ZoneChange(name, None, None, None)


def compare_task(task: Task, old: ZoneData, new: ZoneData, now: datetime, until: datetime) -> list[MovedOccurrence]:
    """Return the task's occurrences up to an instant that are at another one with the newer data, the earliest first.

    They are those that the task would have if it were planned with the older data, and then with the newer.
    """
    with time_zones.use(old):
        planned = replan_zone(_as_oldest(task), now).task
        before = dict(_iter_named(planned, until))
    with time_zones.use(new):
        after = dict(_iter_named(replan_zone(_as_oldest(planned), now).task, until))
    moved = [
        MovedOccurrence(name, before.get(name), after.get(name))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    return sorted(moved, key=lambda each: (each.before or each.after or now, each.name))


def _as_oldest(task: Task) -> Task:
    """Return a task as if it had been planned with the oldest release, so that any other plans it again."""
    plan = task.zone_plan
    return task if plan is None else task.model_copy(update={"zone_plan": plan.model_copy(update={"release": ""})})


def _iter_named(task: Task, until: datetime) -> Iterator[tuple[str, datetime]]:
    for at in upcoming_occurrences(task, MAX_COMPARED):
        if at > until:
            return
        yield occurrence_id(task, at), at
