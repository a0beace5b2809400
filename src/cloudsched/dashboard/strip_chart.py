"""Throughput as bars: what ran is filled and what failed hangs below, up to the now line; what is due is outlined."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.life_chart import draw_ticks
from cloudsched.dashboard.svg import element, percent
from cloudsched.dashboard.times import write_duration

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from markupsafe import Markup

_TOP, _ABOVE, _BELOW = 18, 56, 24
_LATE_TOP, _LATE_TALL = 14, 30
_GAP: Final = 0.08
"""How much of a bar's place is empty, so that bars stand apart."""
_LABEL_SIDE: Final = 0.23
"""From here on a label stands before its mark: where it is narrow, it would cross the now line."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What there was, or is going to be, in one part of the time."""

    start: datetime
    end: datetime
    good: int = 0
    bad: int = 0
    due: int = 0


def count_bins(instants: Iterable[datetime], start: datetime, end: datetime, bins: int) -> list[int]:
    """Return how many instants lie in each of the equal parts of a span; those outside it are not counted."""
    counts = [0] * bins
    for at in instants:
        if start <= at < end:
            counts[min(bins - 1, int((at - start) / (end - start) * bins))] += 1
    return counts


def make_bars(
    good: Iterable[datetime], bad: Iterable[datetime], start: datetime, end: datetime, *, bins: int
) -> list[Bar]:
    """Return equal bars of a span, with what was in each."""
    counts = [count_bins(each, start, end, bins) for each in (good, bad)]
    width = (end - start) / bins
    return [
        Bar(start + width * index, start + width * (index + 1), *(each[index] for each in counts))
        for index in range(bins)
    ]


def count_due(bars: Iterable[Bar], due: Iterable[datetime]) -> list[Bar]:
    """Return the bars with what is going to be in each."""
    left = sorted(due)
    counted = []
    for each in bars:
        begin, stop = bisect_left(left, each.start), bisect_left(left, each.end)
        counted.append(replace(each, due=stop - begin))
    return counted


def draw_strip(bars: Sequence[Bar], now: datetime, reach: timedelta, zone: zoneinfo.ZoneInfo) -> Markup:
    """Return the chart of as much time before now as after it; all bars have one scale.

    A bar never crosses now: what was ends at the line, and what is due begins there.
    """
    start, end = now - reach, now + reach
    most = max([1, *(max(each.good, each.bad, each.due) for each in bars)])
    base, height = _TOP + _ABOVE, _TOP + _ABOVE + _BELOW
    marks = list(draw_ticks(start, end, zone, height))
    marks.append(element("line", cls="base", x1=0, x2="100%", y1=base, y2=base))
    for each in bars:
        gap = (each.end - each.start) * _GAP
        left, right = each.start + gap, each.end - gap
        past = (max(left, start), min(right, now))
        future = (max(left, now), min(right, end))
        for count, (first, last), css in ((each.good, past, "f-past"), (each.due, future, "o")):
            if count:
                tall = max(3.0, _ABOVE * count / most)
                marks.append(_draw_bar(css, first, last, start, end, y=base - tall, height=tall))
        if each.bad:
            tall = max(4.0, _BELOW * each.bad / most)
            marks.append(_draw_bar("f-fail", *past, start, end, y=base, height=tall))
    marks.append(element("line", cls="nowl", x1="50%", x2="50%", y1=12, y2=height))
    marks.append(element("text", f"most in a bar: {most:,}", x="100%", y=height - 2, text_anchor="end"))
    return element("svg", element("g", *marks), cls="c", height=height, **{"aria-hidden": "true"})


def _draw_bar(
    css: str, first: datetime, last: datetime, start: datetime, end: datetime, *, y: float, height: float
) -> Markup:
    span = end - start
    width = percent(max((last - first) / span, 0.002))  # what began this second is seen, too
    return element("rect", cls=css, x=percent((first - start) / span), width=width, y=y, height=height)


def draw_lateness(
    starts: Sequence[tuple[datetime, timedelta]], now: datetime, reach: timedelta, zone: zoneinfo.ZoneInfo
) -> Markup:
    """Return how late each occurrence started, on the same axis as the strip above it: a stem for each."""
    start, end = now - reach, now + reach
    shown = [(at, late) for at, late in starts if start <= at <= now]
    most = max((late for _, late in shown), default=timedelta(0))
    base = _LATE_TOP + _LATE_TALL
    marks = list(_draw_stems(shown, most, start, end - start))
    marks.append(element("line", cls="base", x1=0, x2="50%", y1=base, y2=base))
    if most:
        at = next(at for at, late in shown if late == most)
        place = (at - start) / (end - start)
        is_near = place > _LABEL_SIDE
        side, shift = ("end", -5) if is_near else ("start", 5)
        label = f"{write_duration(most)} at {at.astimezone(zone):%H:%M}"
        marks.append(element("text", label, x=percent(place), dx=shift, y=_LATE_TOP - 2, text_anchor=side))
    marks.append(element("line", cls="nowl", x1="50%", x2="50%", y1=0, y2=base + 6))
    return element("svg", element("g", *marks), cls="c", height=base + 8, **{"aria-hidden": "true"})


def _draw_stems(
    shown: Iterable[tuple[datetime, timedelta]], most: timedelta, start: datetime, span: timedelta
) -> Iterator[Markup]:
    for at, late in shown:
        tall = 2.0 + (_LATE_TALL - 2) * (late / most if most else 0)
        x = percent((at - start) / span)
        yield element("rect", cls="f-past", x=x, width=2, y=_LATE_TOP + _LATE_TALL - tall, height=tall)
