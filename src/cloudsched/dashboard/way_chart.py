"""What lies on the way of the clock, below the slider that moves it: all of it is to come, so all of it is outlined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.life_chart import draw_changes, draw_ticks
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
    marks = [
        *draw_ticks(now, end, zone, _HEIGHT),
        element("line", cls="base", x1=0, x2="100%", y1=_BASE, y2=_BASE),
        *draw_changes(find_clock_changes(now, end, zone), now, end, _HEIGHT, y=26),
    ]
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
