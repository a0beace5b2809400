"""Round times on a linear time axis."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.svg import draw_beside, draw_vertical

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterator

    from markupsafe import Markup

_TICKS: Final = 7
"""The most round times on an axis."""
_STEPS: Final = tuple(
    timedelta(seconds=seconds)
    for seconds in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400)
)
_LONGEST_WITH_NAMES: Final = 900
"""In days: on a longer axis, each month has its year."""
_TOP: Final = 14
_LAST: Final = 0.86
"""From this place on, a label stands before its line, so that it stays inside."""
_NARROWEST: Final = 270
"""In pixels: the width of a chart on a screen 320 wide."""
_LETTER: Final = 7.2
_SHIFT: Final = 3
"""In pixels: from a line to its label."""
_SPACE: Final = 4
"""In pixels: the least space between two labels."""


class Row:
    """A row of labels, which tells which of them would touch the one before on the narrowest screen."""

    def __init__(self) -> None:
        self._free = 0.0

    def take(self, label: str, place: float) -> bool:
        """Return whether a label has room. If so, it takes it."""
        width = len(label) * _LETTER + _SHIFT
        left = place * _NARROWEST
        if place > _LAST:
            left -= width
        if left < self._free:
            return False
        self._free = left + width + _SPACE
        return True


def draw_ticks(start: datetime, end: datetime, zone: zoneinfo.ZoneInfo, height: int) -> Iterator[Markup]:
    """Yield a line at each round time, with its label, which a narrow screen leaves out if it has no room."""
    row = Row()
    for tick, label in find_ticks(start, end, zone):
        place = (tick - start) / (end - start)
        css = "" if row.take(label, place) else "wide"
        yield draw_vertical("ax", place, _TOP, height) + draw_beside(
            label, place, _SHIFT, is_before=place > _LAST, y=10, css=css
        )


def find_ticks(start: datetime, end: datetime, zone: zoneinfo.ZoneInfo) -> Iterator[tuple[datetime, str]]:
    """Yield round wall-clock times between two instants, with their labels. Midnight shows the date."""
    local = start.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    step = next((step for step in _STEPS if (end - start) / step <= _TICKS), None)
    if step is None:
        yield from _find_month_ticks(midnight, start, end, zone)
        return

    until = end.astimezone(zone).replace(tzinfo=None)
    earliest = local.replace(tzinfo=None)
    tick = midnight + step * ((earliest - midnight) // step)
    if tick < earliest:
        tick += step
    while tick <= until:
        yield tick.replace(tzinfo=zone), _write_tick(tick, step)
        tick += step


def _write_tick(tick: datetime, step: timedelta) -> str:
    if step < timedelta(minutes=1):
        return f"{tick:%H:%M:%S}"
    if tick.hour or tick.minute:
        return f"{tick:%H:%M}"
    return f"{tick.day} {tick:%b}"


def _find_month_ticks(
    first: datetime, start: datetime, end: datetime, zone: zoneinfo.ZoneInfo
) -> Iterator[tuple[datetime, str]]:
    days = (end - start).days
    months = max(1, round(days / 30 / _TICKS))
    tick = first.replace(day=1)
    while (at := tick.replace(tzinfo=zone)) <= end:
        if at >= start:
            has_year = tick.month <= months or days > _LONGEST_WITH_NAMES
            yield at, f"{tick:%b %Y}" if has_year else f"{tick:%b}"
        month = tick.month - 1 + months
        tick = tick.replace(year=tick.year + month // 12, month=month % 12 + 1)
