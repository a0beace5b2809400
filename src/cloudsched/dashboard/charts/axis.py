"""The buttons that show more, less, earlier or later parts of a time axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


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
