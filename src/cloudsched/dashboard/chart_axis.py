"""The basis of charts: SVG elements as text, and the part of a time axis that is shown.

In SVG, x is in per cent and y in pixels, so nothing is measured. Colours are by class, and all text is escaped.
Addresses lead to more, less, earlier or later parts of the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from cloudsched.dashboard.visit import Visit

_LEAST: Final = 1 / 100_000
"""The smallest part of an axis that can be shown."""
_SHORTEST: Final = timedelta(milliseconds=10)
_WHOLE_TO: Final = 0.98
"""A larger part of an axis than this is shown as all of it."""

Part = tuple[float, float]
"""A part of an axis: its beginning and end, from 0 to 1."""
WHOLE: Final[Part] = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Move:
    """A button that shows another part of the axis."""

    key: str
    """The key that does the same, as browsers name it."""
    label: str
    words: str
    href: str | None
    """Its address. None if it would show the same."""


_MOVES: Final = (
    ("+", "+", "Zoom in"),
    ("-", "\N{MINUS SIGN}", "Zoom out"),
    ("ArrowLeft", "\N{LEFTWARDS ARROW}", "Earlier"),
    ("ArrowRight", "\N{RIGHTWARDS ARROW}", "Later"),
    ("0", "0", "Show all of it"),
)


def make_moves(addresses: Mapping[str, str | None]) -> dict[str, Move]:
    """Return the buttons of an axis, by the key that does the same. Without an address, it would show the same."""
    return {key: Move(key, label, words, addresses.get(key)) for key, label, words in _MOVES}


def find_parts(shown: Part, anchor: float | None = None, least: float = _LEAST) -> dict[str, Part | None]:
    """Return the part that each key shows. Zooming keeps the anchor, such as now, in sight, or else the middle."""
    left, right = shown
    width = right - left
    room = width / 1000  # addresses are cut to milliseconds
    has_anchor = anchor is not None and left - room <= anchor <= right + room
    at = min(right, max(left, anchor)) if anchor is not None and has_anchor else (left + right) / 2
    share = (at - left) / width
    is_whole = width >= 1
    return {
        "+": _clamp(at - share * width / 2, width / 2) if width / 2 >= least else None,
        "-": None if is_whole else _clamp(at - share * width * 2, width * 2),
        "ArrowLeft": None if left <= 0 else _clamp(left - width / 2, width),
        "ArrowRight": None if right >= 1 else _clamp(left + width / 2, width),
        "0": None if is_whole else WHOLE,
    }


def _clamp(left: float, width: float) -> Part:
    if width >= _WHOLE_TO:
        return WHOLE
    begin = min(max(left, 0.0), 1.0 - width)
    return begin, begin + width


def read_window(visit: Visit) -> tuple[datetime, datetime] | None:
    """Return the beginning and the end of the axis in the address. None if they are missing or invalid."""
    try:
        start, end = (datetime.fromisoformat(visit.query.get(name, "")) for name in ("from", "until"))
        if start.tzinfo is None or end.tzinfo is None or end - start < _SHORTEST:
            return None
        return start.astimezone(UTC), end.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def clip(window: tuple[datetime, datetime] | None, start: datetime, end: datetime) -> tuple[datetime, datetime] | None:
    """Return the part of a window that lies on an axis. None for the whole axis, also if nothing lies there."""
    if window is None:
        return None
    begin, finish = max(window[0], start), min(window[1], end)
    return None if finish - begin < _SHORTEST or (begin, finish) == (start, end) else (begin, finish)


def write_window(
    visit: Visit, start: datetime, end: datetime, part: Part, place: str, at: Callable[[float], datetime]
) -> str:
    """Return the address that shows a part of the axis whose id is `place`."""
    if part == WHOLE:
        return f"{visit.with_query(**{'from': None, 'until': None})}#{place}"
    begin, finish = max(start, at(part[0])), min(end, at(part[1]))
    texts = {"from": _write(begin), "until": _write(max(finish, begin + _SHORTEST))}
    return f"{visit.with_query(**texts)}#{place}"


def _write(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00").removesuffix(".000") + "Z"


_NAMES = {"cls": "class", "text_anchor": "text-anchor", "fill_opacity": "fill-opacity", "aria_label": "aria-label"}


def element(tag: str, *children: Markup | str, **attributes: str | float) -> Markup:
    """Return an element. Numbers have at most two decimals."""
    parts = ["<", tag]
    for name, value in attributes.items():
        if isinstance(value, str):
            text = str(escape(value))
        else:
            text = str(value) if isinstance(value, int) else f"{value:.2f}".rstrip("0").rstrip(".")
        parts.append(f' {_NAMES.get(name, name)}="{text}"')
    inside = "".join([escape(child) for child in children])
    return Markup("".join([*parts, ">", inside, "</", tag, ">"]))  # noqa: S704 - names of ours, and escaped values


def percent(fraction: float) -> str:
    """Return a part of the width, such as ``12.5%``."""
    return f"{min(1.0, max(0.0, fraction)) * 100:.2f}%"


def group(*children: Markup) -> Markup:
    """Return elements as one, in their order."""
    return Markup("").join(children)


def draw_picture(height: float, *children: Markup) -> Markup:
    """Return a chart of the full width, hidden from screen readers, because words beside it say the same."""
    return element("svg", *children, cls="c", height=height, **{"aria-hidden": "true"})


def draw_vertical(css: str, place: float, top: float, bottom: float) -> Markup:
    """Return a vertical line at a place of the width, from 0 to 1."""
    return element("line", cls=css, x1=percent(place), x2=percent(place), y1=top, y2=bottom)
