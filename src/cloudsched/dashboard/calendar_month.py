"""A month as a table of weeks: how much each day has, what failed below the line, and where clocks change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.svg import element, percent
from cloudsched.dashboard.wall_clock import DAY, write_hours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from markupsafe import Markup

    from cloudsched.dashboard.calendar_chart import Bin
    from cloudsched.dashboard.wall_clock import WallDay

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
