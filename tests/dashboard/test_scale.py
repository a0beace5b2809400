"""How a waterfall compresses the time in which nothing ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.dashboard.charts.waterfall_scale import SHORTEST_GAP, make_scale, merge

START = datetime(2027, 2, 1, 8, tzinfo=UTC)
SECONDS = st.integers(0, 10_000_000)
INTERVALS = st.lists(st.tuples(SECONDS, st.integers(0, 5000)), max_size=12)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@given(INTERVALS, SECONDS, st.booleans(), st.one_of(st.none(), SECONDS))
def test_the_axis_is_whole_and_in_order(
    spans: list[tuple[int, int]],
    end: int,
    is_true: bool,  # noqa: FBT001 - Hypothesis names it
    known: int | None,
) -> None:
    """Stretches cover all time from the start to the known end and all of the width, none overlaps, none is empty."""
    running = [(at(begin), at(begin + length)) for begin, length in spans]
    known_end = None if known is None else at(known)
    scale = make_scale(running, START, at(end), known_end=known_end, true=is_true)
    assert scale.segments[0].start == START
    assert scale.segments[0].left == 0
    last = scale.segments[-1]
    assert abs(last.left + last.width - 1) < 1e-9
    assert last.end >= at(end)
    for one, other in pairwise(scale.segments):
        assert one.end == other.start
        assert abs(one.left + one.width - other.left) < 1e-9
    assert all(segment.width > 0 for segment in scale.segments)


@given(INTERVALS, SECONDS)
def test_nothing_runs_in_a_gap_and_only_long_gaps_are_compressed(spans: list[tuple[int, int]], end: int) -> None:
    """A gap is longer than 30 s and than a quarter of all that ran; all gaps take at most 45 % beside what ran."""
    running = merge((at(min(begin, end)), at(min(begin + length, end))) for begin, length in spans)
    scale = make_scale(running, START, at(end))
    busy = sum((finish - begin for begin, finish in running), timedelta(0))
    for gap in scale.gaps:
        assert gap.duration > SHORTEST_GAP
        assert gap.duration > busy / 4
        assert not any(begin < gap.end and finish > gap.start for begin, finish in running)
    if any(segment.duration for segment in scale.segments if not segment.is_gap):
        assert sum(gap.width for gap in scale.gaps) <= 0.45 + 1e-9
