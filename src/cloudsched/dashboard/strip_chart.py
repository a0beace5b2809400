"""Throughput as bars: what ran is filled and what failed hangs below, up to the now line; what is due is outlined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.life_chart import draw_tick, find_ticks
from cloudsched.dashboard.svg import element, percent

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from markupsafe import Markup

_TOP, _ABOVE, _BELOW = 18, 56, 24
_GAP: Final = 0.08
"""How much of a bin is empty, so that bars stand apart."""


def count_bins(instants: Iterable[datetime], start: datetime, end: datetime, bins: int) -> list[int]:
    """Return how many instants lie in each of the equal parts of a span; those outside it are not counted."""
    counts = [0] * bins
    for at in instants:
        if start <= at < end:
            counts[min(bins - 1, int((at - start) / (end - start) * bins))] += 1
    return counts


def draw_strip(
    ran: Sequence[datetime],
    failed: Sequence[datetime],
    due: Sequence[datetime],
    now: datetime,
    reach: timedelta,
    zone: zoneinfo.ZoneInfo,
    *,
    bins: int = 48,
) -> Markup:
    """Return the chart of as much time before now as after it; all bars have one scale."""
    start, end = now - reach, now + reach
    good, bad, coming = (count_bins(each, start, end, bins) for each in (ran, failed, due))
    most = max(1, *good, *bad, *coming)
    base, height = _TOP + _ABOVE, _TOP + _ABOVE + _BELOW
    marks = []
    for tick, label in find_ticks(start, end, zone):
        marks.append(draw_tick((tick - start) / (end - start), label, height))
    marks.append(element("line", cls="base", x1=0, x2="100%", y1=base, y2=base))
    for index in range(bins):
        x, width = percent((index + _GAP) / bins), percent((1 - 2 * _GAP) / bins)
        for count, css in ((good[index], "f-past"), (coming[index], "o")):
            if count:
                tall = max(3.0, _ABOVE * count / most)
                marks.append(element("rect", cls=css, x=x, width=width, y=base - tall, height=tall))
        if bad[index]:
            tall = max(4.0, _BELOW * bad[index] / most)
            marks.append(element("rect", cls="f-fail", x=x, width=width, y=base, height=tall))
    marks.append(element("line", cls="nowl", x1="50%", x2="50%", y1=12, y2=height))
    marks.append(element("text", f"most in a bar: {most}", x="100%", y=height - 2, text_anchor="end"))
    return element("svg", element("g", *marks), cls="c", height=height, **{"aria-hidden": "true"})
