"""Where the occurrences of a day have room for their labels: in lanes, on screens of several widths."""

from __future__ import annotations

from dataclasses import dataclass
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
_KEPT: Final = frozenset({"failed", "open", "offered"})
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


class _Taken(NamedTuple):
    """What a label takes of its lane."""

    tier: int
    """The first of `TIERS` in which it is shown."""
    spans: Sequence[_Span]
    """Its first and last pixel with its tail, in each of `TIERS`."""


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

    Failures and open runs come first and are always shown. Where they have no room, they have no labels, and stand
    between others, or in a lane of their own below. A label never crosses the now line, but goes to the other side of
    its mark. A mark without room on a narrow screen may have it on a wider one, and moves nothing there: what comes
    first has its label on as many screens as there is room, before others have theirs on any.
    """
    taken: list[list[_Taken]] = [[] for _ in range(lanes)]
    ordered = sorted(marks, key=lambda mark: mark.at)
    kept, bare, _ = _fill_lanes([mark for mark in ordered if mark.is_kept], taken, now)
    others, _, hidden = _fill_lanes([mark for mark in ordered if not mark.is_kept], taken, now)
    placed = [*kept, *others]
    used = max((each.lane + 1 for each in placed), default=0)
    unnamed = [(each.mark, each.tier) for each in kept if each.tier] + [(mark, len(TIERS)) for mark in bare]
    for mark, until in unnamed:
        lane = _find_bare_lane(mark, taken[:used], until)
        placed.append(Placed(mark, lane, has_label=False, is_left=False, until=until))
    return sorted(placed, key=lambda each: each.mark.at), tuple(hidden)


def _fill_lanes(
    marks: Sequence[OccurrenceMark], taken: Sequence[list[_Taken]], now: float | None
) -> tuple[list[Placed], Sequence[OccurrenceMark], list[int]]:
    """Return marks in the first lanes with room for their labels, those without room, and their number in each tier."""
    placed: list[Placed] = []
    hidden = []
    waiting = marks
    for tier in range(len(TIERS)):
        rest = []
        for mark in waiting:
            found = _find_place(mark, taken, now, tier)
            if found is None:
                rest.append(mark)
                continue
            lane, is_left = found
            reach = _Reach.of(mark, measure(mark.label), is_left=is_left)
            taken[lane].append(_Taken(tier, [reach.cover_with_tail(width) for width in TIERS]))
            placed.append(Placed(mark, lane, has_label=True, is_left=is_left, tier=tier))
        waiting = rest
        hidden.append(len(rest))
    return placed, waiting, hidden


def _find_place(
    mark: OccurrenceMark, taken: Sequence[Sequence[_Taken]], now: float | None, tier: int
) -> tuple[int, bool] | None:
    """Return the first lane that has room for a mark, and the side of its label. None if there is none."""
    is_late = mark.at >= _LABEL_SIDE or mark.started is not None  # a tail is after its mark
    size = measure(mark.label)
    reaches = [(is_left, _Reach.of(mark, size, is_left=is_left)) for is_left in (is_late, not is_late)]
    fitting = [(side, each) for side, each in reaches if _is_in_row(each.cover(TIERS[tier]), now, TIERS[tier])]
    sides = [(side, [each.cover_with_tail(width) for width in TIERS]) for side, each in fitting]
    for lane, others in enumerate(taken):
        for is_left, spans in sides:
            if not any(_do_meet(spans[at], each.spans[at]) for each in others for at in (max(tier, each.tier),)):
                return lane, is_left
    return None


def _find_bare_lane(mark: OccurrenceMark, taken: Sequence[list[_Taken]], until: int) -> int:
    """Return the first lane that has room for a mark without its label, and take that room. If none has, the next."""
    reach = _Reach(mark.at, _MARK, _MARK, mark.started or 0.0)
    spans = [reach.cover_with_tail(width) for width in TIERS]
    for lane, others in enumerate(taken):
        if not any(_do_meet(spans[at], each.spans[at]) for each in others for at in range(each.tier, until)):
            others.append(_Taken(0, spans))
            return lane
    return len(taken)


def _do_meet(one: _Span, other: _Span) -> bool:
    """Return whether two labels are too near each other."""
    return one[1] + _APART > other[0] and other[1] + _APART > one[0]


def _is_in_row(span: _Span, now: float | None, width: float) -> bool:
    """Return whether a mark with its label lies in a row, and no label crosses the now line, which a mark may do."""
    start, end = span
    is_crossed = now is not None and start + _MARK < now * width < end - _MARK
    return start >= -2 * _MARK and end <= width + 2 * _MARK and not is_crossed
