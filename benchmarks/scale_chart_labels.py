"""Where the chart's labels stand: beside a point of their line, and over no line, point or other label."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Point = tuple[float, float]
_CHARACTER: Final = 8.0
"""About how wide a bold character is, of 13 pixels, and not less."""
_ASCENT, _DESCENT = 11.0, 4.0
_GAP: Final = 10.0
"""How far a label is from its point."""
_STEP: Final = 2.0
"""How close the places lie that stand for a line."""


@dataclass(frozen=True, slots=True)
class Box:
    """A part of the picture: its edges in pixels, the upper one with the smaller number."""

    left: float
    top: float
    right: float
    bottom: float

    def has(self, point: Point, margin: float = 0.0) -> bool:
        """Return whether a point is in it, or so close."""
        x, y = point
        return self.left - margin < x < self.right + margin and self.top - margin < y < self.bottom + margin

    def meets(self, other: Box) -> bool:
        """Return whether the two have a part in common."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)

    def is_within(self, other: Box) -> bool:
        """Return whether all of it is in the other."""
        across = other.left <= self.left and self.right <= other.right
        return across and other.top <= self.top and self.bottom <= other.bottom

    @property
    def baseline(self) -> Point:
        """Where its text begins."""
        return self.left, self.bottom - _DESCENT


def place_labels(names: Sequence[str], lines: Sequence[Sequence[Point]], area: Box) -> list[Box]:
    """Return a place in the area for the name of each line: beside its first point that has room.

    Where no point has any, the label stands at the line's first point, over whatever is there.
    """
    marks = [mark for line in lines for mark in _iter_marks(line)]
    placed: list[Box] = []
    for name, line in zip(names, lines, strict=True):
        places = [box for point in line for box in _iter_places(point, name)]
        free = (
            box
            for box in places
            if box.is_within(area)
            and not any(box.meets(other) for other in placed)
            and not any(box.has(mark, margin=3.0) for mark in marks)
        )
        placed.append(next(free, places[0]))
    return placed


def _iter_places(point: Point, name: str) -> Iterator[Box]:
    """Yield the places beside a point: left and right of it, each a little higher and lower, above and below."""
    (x, y), width = point, _CHARACTER * len(name)
    for left in (x - _GAP - width, x + _GAP):
        for rise in (0.0, 8.0, -8.0):
            yield _to_box(left, y + 4.0 - rise, width)
    yield _to_box(x - width / 2, y - _GAP, width)
    yield _to_box(x - width / 2, y + _GAP + _ASCENT, width)


def _to_box(left: float, baseline: float, width: float) -> Box:
    return Box(left, baseline - _ASCENT, left + width, baseline + _DESCENT)


def _iter_marks(line: Sequence[Point]) -> Iterator[Point]:
    """Yield places on a line, close to each other."""
    for (x, y), (next_x, next_y) in itertools.pairwise(line):
        count = max(1, round(max(abs(next_x - x), abs(next_y - y)) / _STEP))
        for number in range(count):
            yield x + (next_x - x) * number / count, y + (next_y - y) * number / count
    yield line[-1]
