"""How a waterfall compresses the time in which nothing ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.dashboard.waterfall import SHORTEST_GAP, gap_width, make_scale, merge

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
    assert scale.stretches[0].start == START
    assert scale.stretches[0].left == 0
    last = scale.stretches[-1]
    assert abs(last.left + last.width - 1) < 1e-9
    assert last.end >= at(end)
    for one, other in pairwise(scale.stretches):
        assert one.end == other.start
        assert abs(one.left + one.width - other.left) < 1e-9
    assert all(stretch.width > 0 for stretch in scale.stretches)


@given(INTERVALS, SECONDS)
def test_what_is_later_is_not_further_left(spans: list[tuple[int, int]], end: int) -> None:
    """The place of an instant grows with it, across gaps, too."""
    scale = make_scale([(at(begin), at(begin + length)) for begin, length in spans], START, at(end))
    places = [scale.place(at(end * part / 50)) for part in range(51)]
    assert places == sorted(places)
    assert places[0] >= 0
    assert places[-1] <= 1 + 1e-9


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
    if any(stretch.duration for stretch in scale.stretches if not stretch.is_gap):
        assert sum(gap.width for gap in scale.gaps) <= 0.45 + 1e-9


def test_a_longer_gap_is_never_narrower() -> None:
    """A gap's width grows with it, between 6 and 14 per cent."""
    widths = [gap_width(timedelta(minutes=2**power)) for power in range(-2, 20)]
    assert widths == sorted(widths)
    assert widths[0] == 0.06
    assert widths[-1] == 0.14


def test_lengths_outside_gaps_share_one_scale() -> None:
    """A run of twenty seconds is twice as long as one of ten, whatever lies between them."""
    runs = [(at(0), at(10)), (at(900_000), at(900_020))]
    scale = make_scale(runs, START, at(900_020))
    first, second = (scale.place(end) - scale.place(begin) for begin, end in runs)
    assert abs((second - 0.025) / (first - 0.025) - 2) < 1e-6  # each stretch has 2.5 % for its date


def test_an_instant_of_work_between_two_gaps_keeps_its_date() -> None:
    """What took no time at all has a stretch of its own, so that its date can be read."""
    scale = make_scale([(at(0), at(0)), (at(500_000), at(500_000))], START, at(900_000))
    points = [stretch for stretch in scale.stretches if not stretch.is_gap]
    assert [stretch.start for stretch in points] == [at(0), at(500_000)]
    assert [stretch.width for stretch in points] == [0.025, 0.025], "and no more: it has no length"


def test_true_scale_compresses_nothing() -> None:
    """Half of the time is half of the width."""
    scale = make_scale([(at(0), at(1))], START, at(1_000_000), true=True)
    assert not scale.gaps
    assert abs(scale.place(at(500_000)) - 0.5) < 1e-9
