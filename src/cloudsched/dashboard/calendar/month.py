"""A month as a table of weeks: each day's numbers, failures below the line, and clock changes."""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.dashboard.calendar.entries import find_most
from cloudsched.dashboard.charts.svg import draw_picture, element, percent
from cloudsched.dashboard.times import DAY, WallDay, write_hours
from cloudsched.dashboard.words import only_if

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.calendar.entries import DayTotals

WEEKDAYS: Final = tuple((name[:2], name) for name in calendar.day_name)
_WEEK: Final = 7
_HEIGHT: Final = 12
_BAR: Final = 6
_LINE: Final = 7
_LEAST: Final = 0.04
"""The least width of a bar that is not empty."""


class DayAddresses(NamedTuple):
    """The addresses of a day, and of the lists that its numbers count."""

    day: str
    due: str
    failed: str


def build_month(
    days: Sequence[WallDay], totals: Mapping[date, DayTotals], today: date, addresses: Mapping[date, DayAddresses]
) -> list[list[Json | None]]:
    """Return the weeks of a month. None stands for a day of another month."""
    most = find_most(each.found for each in totals.values())
    cells: list[Json | None] = [None] * days[0].day.weekday()
    cells += [_build_day(each, totals[each.day], most, today, addresses[each.day]) for each in days]
    cells += [None] * (-len(cells) % _WEEK)
    return [cells[index : index + _WEEK] for index in range(0, len(cells), _WEEK)]


def draw_density(totals: DayTotals, most: int) -> Markup:
    """Return a day's bar: past runs are filled, due ones outlined after them, and failures below the line.

    What is due and not counted is hatched. All days of the month have one scale, up to `most`.
    """
    found = totals.found
    others = _scale(found.ran, most)
    skipped = _scale(found.skipped, most)
    late = _scale(found.late, most)
    due = _scale(found.due, most)
    failed = _scale(found.failed, most)
    parts = []
    left = 0.0
    for css, part in (("f-past", others), ("skipbar", skipped), ("overdue", late), ("o", due)):
        if part:
            left = min(left, 1 - _LEAST)
            width = percent(min(part, 1 - left))
            parts.append(element("rect", cls=css, x=percent(left), y=0.5, width=width, height=_BAR - 1))
            left += part
    if not totals.is_future_whole:
        left = min(left, 1 - _LEAST)
        width = percent(1 - left)
        parts.append(
            element("rect", cls="uncounted", fill="url(#full)", x=percent(left), y=0, width=width, height=_BAR)
        )
    if failed:
        height = _HEIGHT - _LINE - 1
        parts.append(element("rect", cls="f-fail", x="0", y=_LINE + 1, width=percent(failed), height=height))
    return draw_picture(_HEIGHT, *parts)


def _scale(count: int, most: int) -> float:
    if not count:
        return 0.0
    if not most:
        return _LEAST
    return min(1.0, max(_LEAST, count / most))


def _build_day(day: WallDay, totals: DayTotals, most: int, today: date, addresses: DayAddresses) -> Json:
    is_today = day.day == today
    length = only_if(day.spans, f", {write_hours(day.length)}")
    return {
        "number": day.day.day,
        "href": addresses.day,
        "words": f"{day.day.day} {day.day:%B}, {totals.write()}{length}{only_if(is_today, ', today')}",
        "chart": draw_density(totals, most),
        "succeeded": totals.write_succeeded(),
        "rest": totals.write_rest(),
        "lists": [
            (css, words, href)
            for css, words, href in (
                ("", totals.write_due(), addresses.due),
                ("fail", totals.write_failed(), addresses.failed),
            )
            if words
        ],
        "hours": only_if(day.spans, _write_change(day.length)),
        "isToday": is_today,
    }


def _write_change(length: timedelta) -> str:
    """Return the length of a day on which clocks change, or "clock change" if that is 24 hours."""
    return "clock change" if length == DAY else write_hours(length)
