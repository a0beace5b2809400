"""Round times on a linear time axis."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterator

_TICKS: Final = 7
"""The most round times on an axis."""
_STEPS: Final = tuple(
    timedelta(seconds=seconds)
    for seconds in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400)
)
_LONGEST_WITH_NAMES: Final = 900
"""In days: on a longer axis, each month has its year."""


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
