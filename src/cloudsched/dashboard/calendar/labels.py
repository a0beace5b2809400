"""Where the occurrences of a day have room for their labels: in lanes, on screens of several widths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Span: TypeAlias = tuple[float, float]
"""The first and the last pixel of something in a row."""
TIERS: Final = (440, 690, 820, 1080)
"""The least widths of a row, in pixels, on screens from 641, 897, 1024 and 1281 on. Narrower ones have no labels.

A label that has room in one of these has it in all wider ones, because labels keep their size.
"""
SHIFT: Final = 9
"""In pixels: from the middle of a mark to its label."""
_MARK: Final = 6
"""In pixels: from the middle of a mark to its own edge."""
_APART: Final = 6
"""In pixels: the least space between two labels."""
_WIDTHS: Final = {
    **dict.fromkeys("iljtfrI.,:;'|!()[] -", 4.8),
    **dict.fromkeys("mwMW@%&\N{HORIZONTAL ELLIPSIS}", 12.0),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ", 8.8),
}
"""The largest widths of 12-pixel letters in the usual fonts, since text cannot be measured here."""
_OTHER: Final = 7.8
_WIDEST: Final = 13.0
"""The same of letters beyond ASCII."""
_LABEL_SIDE: Final = 0.75
"""From this place on, a label stands rather before its mark."""
_KEPT: Final = frozenset({"failed", "open"})
"""The kinds of marks that are shown even where their labels have no room."""


@dataclass(frozen=True, slots=True)
class OccurrenceMark:
    """An occurrence of a task that is not busy that day."""

    at: float
    """Its place in the day, from 0 to 1."""
    label: str
    """Its time and title."""
    write_words: Callable[[], str]
    """Returns the full text for those who do not see the chart. Of those without room, nobody asks for it."""
    href: str
    kind: str
    """What became of it, as in `Entry`."""
    started: float | None = None
    """The place at which it started, if that was late. Its tail ends there."""

    @property
    def is_kept(self) -> bool:
        """Return whether it is shown without its label if that has no room."""
        return self.kind in _KEPT


@dataclass(frozen=True, slots=True)
class Placed:
    """A mark in its lane. It has no label if there is no room."""

    mark: OccurrenceMark
    lane: int
    has_label: bool
    is_left: bool
    """True if the label stands before the mark."""
    tier: int = 0
    """The first of `TIERS` in which it is shown."""
    until: int = len(TIERS)
    """The first of `TIERS` in which it is no longer shown: there, the same mark has its label."""


class _Reach(NamedTuple):
    """The place of a mark, and the pixels that it and its label take before and after it."""

    at: float
    before: float
    after: float
    tail: float = 0.0
    """The place at which its tail ends. 0 if it has none."""

    @classmethod
    def of(cls, mark: OccurrenceMark, size: float, *, is_left: bool) -> _Reach:
        before, after = (SHIFT + size, float(_MARK)) if is_left else (float(_MARK), SHIFT + size)
        return cls(mark.at, before, after, mark.started or 0.0)

    def cover(self, width: float) -> _Span:
        """Return the first and the last pixel in a row of this width."""
        return self.at * width - self.before, self.at * width + self.after

    def cover_with_tail(self, width: float) -> _Span:
        """Return the same with the tail, which no other label may cross."""
        first, last = self.cover(width)
        return first, max(last, self.tail * width)


@lru_cache(maxsize=10_000)
def measure(label: str) -> float:
    """Return the largest possible width of a label, in pixels."""
    return sum(_WIDTHS.get(letter, _OTHER if letter.isascii() else _WIDEST) for letter in label)


def place_marks(marks: Sequence[OccurrenceMark], now: float | None, lanes: int) -> tuple[list[Placed], tuple[int, ...]]:
    """Return marks in the first lanes with room, and the numbers of those without room in each of `TIERS`.

    Failures and open runs come first and are always shown. Where they have no room, they have no labels, and a lane of
    their own below the others. A label never crosses the now line, but goes to the other side of its mark. A mark
    without room on a narrow screen may have it on a wider one, and moves nothing there.
    """
    taken: list[list[_Reach]] = [[] for _ in range(lanes)]
    placed: list[Placed] = []
    waiting = sorted(marks, key=lambda mark: (not mark.is_kept, mark.at))
    hidden = []
    for tier, width in enumerate(TIERS):
        rest = []
        covered = [[each.cover_with_tail(width) for each in lane] for lane in taken]
        for mark in waiting:
            found = _find_place(mark, covered, now, width)
            if found is not None:
                lane, is_left = found
                reach = _Reach.of(mark, measure(mark.label), is_left=is_left)
                taken[lane].append(reach)
                covered[lane].append(reach.cover_with_tail(width))
                placed.append(Placed(mark, lane, has_label=True, is_left=is_left, tier=tier))
                if mark.is_kept and tier:
                    placed.append(Placed(mark, lanes, has_label=False, is_left=False, until=tier))
            else:
                rest.append(mark)
        waiting = rest
        hidden.append(sum(not mark.is_kept for mark in rest))
    placed += [Placed(mark, lanes, has_label=False, is_left=False) for mark in waiting if mark.is_kept]
    used = max((each.lane + 1 for each in placed if each.has_label), default=0)
    lowest = [replace(each, lane=min(each.lane, used)) for each in placed]
    return sorted(lowest, key=lambda each: each.mark.at), tuple(hidden)


def _find_place(
    mark: OccurrenceMark, covered: Sequence[Sequence[_Span]], now: float | None, width: float
) -> tuple[int, bool] | None:
    """Return the first lane that has room for a mark, and the side of its label. None if there is none."""
    is_late = mark.at >= _LABEL_SIDE or mark.started is not None  # a tail is after its mark
    size = measure(mark.label)
    reaches = [(is_left, _Reach.of(mark, size, is_left=is_left)) for is_left in (is_late, not is_late)]
    sides = [(side, each.cover_with_tail(width)) for side, each in reaches if _is_in_row(each.cover(width), now, width)]
    for lane, others in enumerate(covered):
        for is_left, (start, end) in sides:
            if not any(end + _APART > first and last + _APART > start for first, last in others):
                return lane, is_left
    return None


def _is_in_row(span: _Span, now: float | None, width: float) -> bool:
    """Return whether a mark with its label lies in a row, and no label crosses the now line, which a mark may do."""
    start, end = span
    is_crossed = now is not None and start + _MARK < now * width < end - _MARK
    return start >= -2 * _MARK and end <= width + 2 * _MARK and not is_crossed
