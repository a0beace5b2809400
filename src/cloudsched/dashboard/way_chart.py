"""What lies on the way of the clock, below the slider that moves it: all of it is to come, so all of it is outlined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.life_chart import draw_tick, find_ticks
from cloudsched.dashboard.svg import element, percent
from cloudsched.dashboard.times import find_clock_changes

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Sequence
    from datetime import datetime

    from markupsafe import Markup

_HEIGHT, _BASE = 72, 46


def draw_way(due: Sequence[datetime], now: datetime, end: datetime, zone: zoneinfo.ZoneInfo) -> Markup:
    """Return the chart of the time from now until where the slider ends."""
    marks = []
    for tick, label in find_ticks(now, end, zone):
        marks.append(draw_tick((tick - now) / (end - now), label, _HEIGHT))
    marks.append(element("line", cls="base", x1=0, x2="100%", y1=_BASE, y2=_BASE))
    for change in find_clock_changes(now, end, zone):
        x = percent((change.at - now) / (end - now))
        hours = change.shift.total_seconds() / 3600
        marks.append(element("line", cls="chg", x1=x, x2=x, y1=14, y2=_HEIGHT))
        marks.append(element("text", f"{hours:+g} h", cls="chgt", x=x, dx=3, y=26))
    marks += [
        element("circle", cls="o", cx=percent((at - now) / (end - now)), cy=_BASE, r=4.5)
        for at in due
        if now <= at <= end
    ]
    marks.append(element("line", cls="nowl", x1=0, x2=0, y1=12, y2=_HEIGHT))
    marks.append(element("text", "now", cls="nowt", x=0, dx=5, y=_HEIGHT - 2))
    return element("svg", element("g", *marks), cls="c", height=_HEIGHT, **{"aria-hidden": "true"})


REACHES: Final = {"day": 1, "month": 30, "year": 366}
"""How far the slider goes, in days."""
