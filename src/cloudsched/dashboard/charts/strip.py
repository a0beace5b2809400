"""The strip of all tasks' runs on Home, before and after now, and below it how late each occurrence began."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.svg import draw_beside, draw_picture, draw_vertical, element, percent
from cloudsched.dashboard.charts.time_ticks import draw_ticks
from cloudsched.dashboard.times import write_duration
from cloudsched.domain.documents.run_counts import RunCounts

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

_TOP: Final = 30
_ABOVE: Final = 56
"""In pixels: the height of the longest bar above the line."""
_BELOW: Final = 24
"""In pixels: the same of failures, below it."""
_LATE_TOP: Final = 14
_LATE_HEIGHT: Final = 30
_GAP: Final = 0.08
"""The empty part of a bar's place, so that bars stand apart."""
_NOW: Final = 0.5
_HALF_LETTER: Final = 0.0045
"""Half the width of a digit, as a part of the narrowest chart with numbers."""
_FLAG: Final = "M0 0h8l-3 3 3 3h-8z"
_LABEL_SIDE: Final = 0.23
"""From this place on, a label stands before its mark. On a narrow chart it would cross the now line."""


@dataclass(frozen=True, slots=True)
class StripBar:
    """The past and due runs in one part of the time."""

    start: datetime
    end: datetime
    ran: int = 0
    failed: int = 0
    skipped: int = 0
    late: int = 0
    """Those of the ones that ran or failed that started late."""
    due: int = 0

    @property
    def total(self) -> int:
        """Return the number of all of them."""
        return self.ran + self.failed + self.skipped + self.due

    @property
    def is_still(self) -> bool:
        """Return whether something was due in it, and nothing started in time."""
        return RunCounts(self.ran, self.failed, self.skipped, late=self.late).is_still

    def write(self) -> str:
        """Return its numbers in words."""
        names = ("ran", "failed", "skipped", "due")
        counted = [f"{number:,} {name}" for name in names if (number := getattr(self, name))]
        return ", ".join([*counted, *([f"{self.late:,} late"] if self.late else [])])


def draw_strip(
    bars: Sequence[StripBar],
    now: datetime,
    reach: timedelta,
    zone: zoneinfo.ZoneInfo,
    known_until: datetime | None,
    deployments: Iterable[tuple[datetime, str]] = (),
) -> Markup:
    """Return the chart of as much time before now as after it. All bars have one scale, and each has its number.

    A bar never crosses now: past runs end at the line, and due ones begin there. What was skipped stands on what ran.
    Hours in which nothing started in time have a ground of their own. The time after `known_until`, for which due runs
    are not known, is hatched. None if all are known. A deployment is a line with a flag, and its text on hovering.
    """
    start = now - reach
    end = now + reach
    most = max([1, *(max(each.ran, each.failed, each.due) for each in bars)])  # one record may have skipped thousands
    base = _TOP + _ABOVE
    height = base + _BELOW

    def draw_bar(css: str, left: datetime, right: datetime, *, y: float, height: float) -> Markup:
        width = percent(max((right - left) / (end - start), 0.002))  # what began this second is seen, too
        return element("rect", cls=css, x=percent((left - start) / (end - start)), width=width, y=y, height=height)

    parts = list(draw_ticks(start, end, zone, height))
    parts += [_draw_deployment((at - start) / (end - start), said, height) for at, said in deployments]
    parts.append(element("line", cls="base", x1=0, x2="100%", y1=base, y2=base))
    if known_until is not None and known_until < end:
        place = (known_until - start) / (end - start)
        width = (end - known_until) / (end - start)
        background = {"cls": "hatched", "fill": "url(#hatch)"}
        parts.append(element("rect", **background, x=percent(place), width=percent(width), y=_TOP, height=_ABOVE))

    for each in bars:
        gap = (each.end - each.start) * _GAP
        left = max(each.start + gap, start)
        right = min(each.end - gap, end)
        if left >= right or not each.total:
            continue
        until_now = min(right, now)
        drawn = []
        if each.is_still:
            drawn.append(draw_bar("still", each.start, min(each.end, now), y=_TOP, height=_ABOVE + _BELOW))
        above: float = base
        for css, number in (("f-past", each.ran), ("skipbar", each.skipped)):
            if number:
                tall = max(3.0, min(_ABOVE * number / most, above - _TOP))
                above -= tall
                drawn.append(draw_bar(css, left, until_now, y=above, height=tall))
        if each.due:
            tall = max(3.0, _ABOVE * each.due / most)
            above = min(above, base - tall)
            drawn.append(draw_bar("o", max(left, now), right, y=base - tall, height=tall))
        if each.failed:
            tall = max(4.0, _BELOW * each.failed / most)
            drawn.append(draw_bar("f-fail", left, until_now, y=base, height=tall))
        middle = ((left + (right - left) / 2) - start) / (end - start)
        drawn.append(_draw_value(each, middle, max(above - 3, 10), is_past=each.start < now))
        parts.append(element("g", element("title", each.write()), *drawn))

    parts.append(element("line", cls="nowl", x1="50%", x2="50%", y1=12, y2=height))
    return draw_picture(height, *parts)


def _draw_value(bar: StripBar, middle: float, y: float, *, is_past: bool) -> Markup:
    """Return a bar's number, in its middle. Where it would cross the now line, it stands on the bar's side of that."""
    said = f"{bar.ran + bar.skipped or bar.due or bar.failed:,}"
    if abs(middle - _NOW) < len(said) * _HALF_LETTER:
        return draw_beside(said, _NOW, 4, is_before=is_past, y=y, css="val")
    return element("text", said, cls="val", x=percent(middle), y=y, text_anchor="middle")


def _draw_deployment(place: float, said: str, height: int) -> Markup:
    flag = element("svg", element("path", cls="flag", d=_FLAG), x=percent(place), y=_TOP - 6, overflow="visible")
    return element("g", element("title", said), draw_vertical("deploy", place, _TOP, height), flag)


def draw_lateness(
    starts: Sequence[tuple[datetime, timedelta]], now: datetime, reach: timedelta, zone: zoneinfo.ZoneInfo
) -> Markup:
    """Return the delay of each occurrence's start, on the same axis as the strip above it, with a stem for each."""
    start = now - reach
    shown = [(at, late) for at, late in starts if start <= at <= now]
    most = max((late for _, late in shown), default=timedelta(0))
    base = _LATE_TOP + _LATE_HEIGHT

    marks = []
    for at, late in shown:
        tall = 2.0
        if most:
            tall += (_LATE_HEIGHT - 2) * (late / most)
        marks.append(
            element(
                "rect", cls="f-past stem", x=percent((at - start) / (2 * reach)), width=2, y=base - tall, height=tall
            )
        )
    marks.append(element("line", cls="base", x1=0, x2="50%", y1=base, y2=base))
    if most:
        at = next(at for at, late in shown if late == most)
        place = (at - start) / (2 * reach)
        label = f"{write_duration(most)} at {at.astimezone(zone):%H:%M}"
        marks.append(draw_beside(label, place, 5, is_before=place > _LABEL_SIDE, y=_LATE_TOP - 2))
    marks.append(element("line", cls="nowl", x1="50%", x2="50%", y1=0, y2=base + 6))
    return draw_picture(base + 8, *marks)
