"""What stands in the calendar: executions that were, and occurrences to come."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.calendar_chart import Bin
from cloudsched.dashboard.status import BAD, Status, show_status
from cloudsched.dashboard.times import find_zone, parse_instant
from cloudsched.dashboard.visit import UTC_ZONE, Visit

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Json

BUSY: Final = 6
"""A task that is due more often than this on a day is busy that day, and goes into the bars."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What ran, or is going to run, in a calendar."""

    at: datetime
    task_id: str
    title: str
    href: str
    status: Status
    kind: str
    """``ran``, ``failed`` or ``due``."""
    zone: zoneinfo.ZoneInfo
    """In which it stands."""


def read_entries(answer: Json, visit: Visit, *, is_own: bool) -> Iterator[Entry]:
    """Yield what the API has answered; in the tasks' own zones, as far as the answers name them, if `is_own`."""
    zones = {each["taskId"]: find_zone(each["timezone"]) or UTC_ZONE for each in answer["due"]} if is_own else {}
    for each in answer["ran"]:
        href = f"tasks/{quote(each['taskId'], safe='')}/executions/{quote(each['id'], safe='')}"
        kind = "failed" if each["status"] in BAD else "ran"
        zone = zones.get(each["taskId"], visit.zone)
        at = parse_instant(each["scheduledFor"])
        yield Entry(at, each["taskId"], each["title"], href, show_status(each["status"]), kind, zone)
    for each in answer["due"]:
        href = f"tasks/{quote(each['taskId'], safe='')}"
        zone = zones.get(each["taskId"], visit.zone)
        status = Status("due", "Due", "due")
        yield Entry(parse_instant(each["utc"]), each["taskId"], each["title"], href, status, "due", zone)


def find_busy(entries: Sequence[Entry]) -> set[str]:
    """Return the tasks that are busy on a day, of all that is in it."""
    times: defaultdict[str, int] = defaultdict(int)
    for each in entries:
        times[each.task_id] += 1
    return {task_id for task_id, count in times.items() if count > BUSY}


def count_entries(entries: Sequence[Entry]) -> Bin:
    """Return how much of each kind there is."""
    kinds = [each.kind for each in entries]
    return Bin(**{kind: kinds.count(kind) for kind in ("ran", "failed", "due")})
