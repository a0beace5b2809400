"""The part of a time axis that is shown, and the addresses that lead to more, less, earlier or later parts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
class AxisButton:
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
    ("0", "0", "Show all of it 0"),
)


def make_moves(addresses: Mapping[str, str | None]) -> dict[str, AxisButton]:
    """Return the buttons of an axis, by the key that does the same. Without an address, it would show the same."""
    return {key: AxisButton(key, label, words, addresses.get(key)) for key, label, words in _MOVES}


def find_parts(shown: Part, anchor: float | None = None, least: float = _LEAST) -> dict[str, Part]:
    """Return the part that each key shows, without those that would show the same.

    Zooming keeps the anchor, such as now, in sight, or else the middle.
    """
    left, right = shown
    width = right - left
    at = _choose_anchor(shown, anchor)
    share = (at - left) / width

    parts = {}
    if width / 2 >= least:
        parts["+"] = _clamp(at - share * width / 2, width / 2)
    if width < 1:
        parts["-"] = _clamp(at - share * width * 2, width * 2)
        parts["0"] = WHOLE
    if left > 0:
        parts["ArrowLeft"] = _clamp(left - width / 2, width)
    if right < 1:
        parts["ArrowRight"] = _clamp(left + width / 2, width)
    return parts


def _choose_anchor(shown: Part, anchor: float | None) -> float:
    left, right = shown
    room = (right - left) / 1000  # addresses are cut to milliseconds
    if anchor is None or not left - room <= anchor <= right + room:
        return (left + right) / 2
    return min(right, max(left, anchor))


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
    begin = max(window[0], start)
    finish = min(window[1], end)
    if finish - begin < _SHORTEST or (begin, finish) == (start, end):
        return None
    return begin, finish


def write_windows(
    visit: Visit,
    start: datetime,
    end: datetime,
    parts: Mapping[str, Part],
    place: str,
    find_instant: Callable[[float], datetime],
) -> dict[str, str]:
    """Return the addresses that show parts of the axis whose id is `place`."""
    addresses = {}
    for key, part in parts.items():
        texts: dict[str, str | None] = {"from": None, "until": None}
        if part != WHOLE:
            begin = max(start, find_instant(part[0]))
            finish = min(end, find_instant(part[1]))
            texts = {"from": _write(begin), "until": _write(max(finish, begin + _SHORTEST))}
        addresses[key] = f"{visit.with_query(**texts)}#{place}"
    return addresses


def _write(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00").removesuffix(".000") + "Z"
