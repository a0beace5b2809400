"""The strip of all tasks' runs on Home, before and after now, and below it how late each occurrence began."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from cloudsched.dashboard.charts.svg import draw_beside, draw_picture, draw_vertical, element, percent
from cloudsched.dashboard.charts.time_ticks import draw_ticks
from cloudsched.dashboard.times import write_duration

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterable, Mapping, Sequence

_TOP: Final = 30
_ABOVE: Final = 56
"""In pixels: the height of the longest bar above the line."""
_BELOW: Final = 24
"""In pixels: the same of failures, below it."""
_BASE: Final = _TOP + _ABOVE
_HEIGHT: Final = _BASE + _BELOW
_THINNEST: Final = 0.002
"""The least width of a bar, as a part of the chart: what began this second is seen, too."""
_NUMBER: Final = 20
"""The height of a bar's number, in pixels."""
_LATE_TOP: Final = 14
_LATE_HEIGHT: Final = 30
_GAP: Final = 0.08
"""The empty part of a bar's place, so that bars stand apart."""
_NOW: Final = 0.5
_HALF_LETTER: Final = 0.0045
"""Half the width of a digit, as a part of the narrowest chart with numbers."""
_WIDE: Final = 0.7
"""The width of the narrowest chart with numbers, as a part of that on a screen from 1281 on."""
WORDS: Final = {
    "ran": "succeeded",
    "failed": "failed",
    "skipped": "skipped",
    "late": "started late",
    "waiting": "not started",
    "due": "due",
}
"""The numbers of a bar in words. The API calls a run that succeeded one that ran."""
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
    waiting: int = 0
    """Those that were due and have not started."""
    due: int = 0
    links: Mapping[str, str] = field(default_factory=dict)
    """The addresses of the lists that its numbers count, by the names of these."""

    @property
    def total(self) -> int:
        """Return the number of all of them."""
        return self.ran + self.failed + self.skipped + self.waiting + self.due

    def write(self) -> str:
        """Return its numbers in words."""
        return ", ".join(f"{number:,} {word}" for name, word in WORDS.items() if (number := getattr(self, name)))


def draw_strip(
    bars: Sequence[StripBar],
    now: datetime,
    reach: timedelta,
    zone: zoneinfo.ZoneInfo,
    known_until: datetime | None,
    deployments: Iterable[tuple[datetime, str]] = (),
) -> Markup:
    """Return the chart of as much time before now as after it. All bars have one scale, and each has its number.

    A bar never crosses now: past runs end at the line, and due ones begin there. What was skipped or is late stands on
    what ran. The time after `known_until`, for which due runs are not known, is hatched. None if all are known. A
    deployment is a line with a flag, and its text on hovering.

    Each part of a bar leads to the list that it counts. The Tab key passes over these links: a table has them as well.
    """
    axis = _Axis(now - reach, now + reach, now)
    most = max([1, *(max(each.ran, each.failed, each.due) for each in bars)])  # one record may have skipped thousands

    parts = list(draw_ticks(axis.start, axis.end, zone, _HEIGHT))
    parts += [_draw_deployment(axis.place(at), said) for at, said in deployments]
    parts.append(element("line", cls="base", x1=0, x2="100%", y1=_BASE, y2=_BASE))
    if known_until is not None and known_until < axis.end:
        parts.append(axis.draw("hatched", known_until, axis.end, top=_TOP, height=_ABOVE, fill="url(#hatch)"))

    links = []
    cut = [(each, pieces) for each in bars if (pieces := _cut(each, axis, most))]
    for index, (each, pieces) in enumerate(cut):
        parts.append(_draw_bar(each, pieces, axis))
        near = [piece for _, others in cut[max(0, index - 1) : index + 2] for piece in others]
        parts.append(_draw_value(each, pieces, axis, near))
        links += [_link(piece, each, axis, zone) for piece in pieces if piece.name in each.links]

    parts.append(element("line", cls="nowl", x1="50%", x2="50%", y1=12, y2=_HEIGHT))
    if not links:
        return draw_picture(_HEIGHT, *parts)
    scenery = element("g", *parts, **{"aria-hidden": "true"})
    return element("svg", scenery, *links, cls="c", height=_HEIGHT, role="group", aria_label="Runs by hour")


@dataclass(frozen=True, slots=True)
class _Axis:
    start: datetime
    end: datetime
    now: datetime

    def place(self, at: datetime) -> float:
        return (at - self.start) / (self.end - self.start)

    def draw(self, css: str, left: datetime, right: datetime, *, top: float, height: float, **fill: str) -> Markup:
        width = percent(max((right - left) / (self.end - self.start), _THINNEST))
        classes = {"cls": css} if css else {}
        x = percent(self.place(left))
        return element("rect", **classes, **fill, x=x, width=width, y=top, height=height)


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a bar has of one kind."""

    name: str
    css: str
    left: datetime
    right: datetime
    top: float
    height: float
    above: float = 0
    """The empty height above it that leads to its list, too: the number stands there."""


def _cut(bar: StripBar, axis: _Axis, most: int) -> list[_Piece]:
    """Return the pieces of a bar. Empty if it counts nothing, or lies outside the chart."""
    gap = (bar.end - bar.start) * _GAP
    left = max(bar.start + gap, axis.start)
    right = min(bar.end - gap, axis.end)
    if left >= right:
        return []
    until_now = min(right, axis.now)
    began = min(left, axis.now - _THINNEST * (axis.end - axis.start))
    pieces = []
    top: float = _BASE
    for name, css in (("ran", "f-past"), ("skipped", "skipbar"), ("waiting", "overdue")):
        if number := getattr(bar, name):
            tall = max(3.0, min(_ABOVE * number / most, top - _TOP))
            top -= tall
            pieces.append(_Piece(name, css, began, until_now, top, tall))
    if pieces:
        pieces[-1] = replace(pieces[-1], above=min(_NUMBER, top))
    if bar.due:
        tall = max(3.0, _ABOVE * bar.due / most)
        pieces.append(_Piece("due", "o", max(left, axis.now), right, _BASE - tall, tall, min(_NUMBER, _BASE - tall)))
    if bar.failed:
        pieces.append(_Piece("failed", "f-fail", began, until_now, _BASE, max(4.0, _BELOW * bar.failed / most)))
    return pieces


def _draw_bar(bar: StripBar, pieces: Sequence[_Piece], axis: _Axis) -> Markup:
    drawn = [axis.draw(each.css, each.left, each.right, top=each.top, height=each.height) for each in pieces]
    return element("g", element("title", bar.write()), *drawn)


def _link(piece: _Piece, bar: StripBar, axis: _Axis, zone: zoneinfo.ZoneInfo) -> Markup:
    """Return the link of a piece to its list, on the piece and its number. Its name says both."""
    height = piece.height + piece.above
    if piece.name == "failed":
        height = _BELOW
    area = axis.draw("", piece.left, piece.right, top=piece.top - piece.above, height=height)
    words = f"{bar.start.astimezone(zone):%H:%M} {getattr(bar, piece.name):,} {WORDS[piece.name]}"
    return element("a", element("title", words), area, href=bar.links[piece.name], cls="b", tabindex="-1")


def _draw_value(bar: StripBar, pieces: Sequence[_Piece], axis: _Axis, near: Sequence[_Piece]) -> Markup:
    """Return a bar's number, in the middle of what it counts.

    Where it would cross the now line, it stands on the bar's side of that, unless it would lie on a higher bar there.
    `near` has the pieces of the bars beside this one.
    """
    name, number = next(
        (name, number)
        for name, number in (("", bar.ran + bar.skipped + bar.waiting), ("due", bar.due), ("failed", bar.failed))
        if number
    )
    counted = next(each for each in pieces if name in {"", each.name})
    said = f"{number:,}"
    y = max(min(each.top for each in pieces) - 3, 10)
    middle = axis.place(counted.left + (counted.right - counted.left) / 2)
    if abs(middle - _NOW) < len(said) * _HALF_LETTER:
        room = abs(middle - _NOW) / (len(said) * _HALF_LETTER)
        is_before = name != "due"
        is_free = all(each.top >= y for each in near if (each.left < axis.now) == is_before)
        if room < _WIDE and not is_free:
            return Markup("")
        return draw_beside(said, _NOW, 4, is_before=is_before, y=y, css="val" if is_free else "val w3")
    return element("text", said, cls="val", x=percent(middle), y=y, text_anchor="middle")


def _draw_deployment(place: float, said: str) -> Markup:
    flag = element("svg", element("path", cls="flag", d=_FLAG), x=percent(place), y=_TOP - 6, overflow="visible")
    return element("g", element("title", said), draw_vertical("deploy", place, _TOP, _HEIGHT), flag)


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
