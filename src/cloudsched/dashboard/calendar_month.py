"""A month as a table of weeks: how much each day has, what failed below the line, and where clocks change."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.calendar_chart import Bin
from cloudsched.dashboard.status import BAD, Status, show_status
from cloudsched.dashboard.svg import element, percent
from cloudsched.dashboard.times import DAY, find_zone, parse_instant, write_hours
from cloudsched.dashboard.visit import UTC_ZONE, Visit

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date, datetime

    from markupsafe import Markup

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.times import WallDay


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


_HEIGHT, _TALL, _LINE, _LEAST = 12, 6, 7, 0.04
WEEKDAYS: Final = (
    ("Mo", "Monday"),
    ("Tu", "Tuesday"),
    ("We", "Wednesday"),
    ("Th", "Thursday"),
    ("Fr", "Friday"),
    ("Sa", "Saturday"),
    ("Su", "Sunday"),
)


@dataclass(frozen=True, slots=True)
class MonthDay:
    """A day in the month."""

    number: int
    key: str
    href: str
    words: str
    """All of it, for those who do not see the bars."""
    chart: Markup
    failed: str
    hours: str
    """How much longer or shorter it is, if clocks change."""
    is_today: bool


def build_month(
    days: Sequence[WallDay], counts: Mapping[date, Bin], today: date, addresses: Mapping[date, str]
) -> list[list[MonthDay | None]]:
    """Return the weeks of a month; None stands for a day of another month.

    Args:
        days: All days of the month.
        counts: How much each has.
        today: Today, in the month or not.
        addresses: Where each day is shown.
    """
    most = max((each.ran + each.due for each in counts.values()), default=0)
    cells: list[MonthDay | None] = [None] * days[0].day.weekday()
    cells += [_build_day(each, counts[each.day], most, today, addresses[each.day]) for each in days]
    cells += [None] * (-len(cells) % 7)
    return [cells[index : index + 7] for index in range(0, len(cells), 7)]


def draw_density(found: Bin, most: int) -> Markup:
    """Return a day's bar: what ran is filled, what is due outlined after it, what failed lies below the line.

    Args:
        found: How much the day has.
        most: The most that any day of the month has: all have one scale.
    """
    ran, due, failed = (_scale(count, most) for count in (found.ran, found.due, found.failed))
    parts = []
    if ran:
        parts.append(element("rect", cls="f-past", x="0", y=0, width=percent(ran), height=_TALL))
    if due:
        left = min(ran, 1 - _LEAST)
        parts.append(
            element("rect", cls="o", x=percent(left), y=0.5, width=percent(min(due, 1 - left)), height=_TALL - 1)
        )
    if failed:
        parts.append(
            element("rect", cls="f-fail", x="0", y=_LINE + 1, width=percent(failed), height=_HEIGHT - _LINE - 1)
        )
    return element("svg", *parts, cls="c", height=_HEIGHT, **{"aria-hidden": "true"})


def _scale(count: int, most: int) -> float:
    return min(1.0, max(_LEAST, count / most)) if count and most else _LEAST if count else 0.0


def _build_day(day: WallDay, found: Bin, most: int, today: date, address: str) -> MonthDay:
    said = [
        f"{count:,} {word}"
        for count, word in ((found.ran, "ran"), (found.failed, "failed"), (found.due, "due"))
        if count
    ]
    is_today = day.day == today
    length = write_hours(day.length) if day.spans else ""
    words = f"{day.day.day} {day.day:%B}, {', '.join(said) or 'nothing'}"
    words += f", {length}" * bool(length) + ", today" * is_today
    return MonthDay(
        number=day.day.day,
        key=day.day.isoformat(),
        href=address,
        words=words,
        chart=draw_density(found, most),
        failed=f"{found.failed:,} failed" if found.failed else "",
        hours=_write_change(day.length - DAY) if day.spans else "",
        is_today=is_today,
    )


def _write_change(change: timedelta) -> str:
    """Return how much longer or shorter than 24 hours a day is; of a change that only renames the hour, that."""
    hours = abs(change) / timedelta(hours=1)
    sign = "+" if change > timedelta(0) else "\N{MINUS SIGN}"
    return f"{sign}{hours:g} h" if change else "clock change"
