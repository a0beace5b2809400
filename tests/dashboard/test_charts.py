"""Charts: a label never crosses the now line, a strip counts each once, and what is to come is never filled."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.dashboard.life_chart import Lived, draw_life
from cloudsched.dashboard.strip_chart import count_bins, draw_strip
from cloudsched.dashboard.way_chart import draw_way

NOW = datetime(2027, 3, 27, 14, 42, 7, tzinfo=UTC)
PARIS = ZoneInfo("Europe/Paris")
MINUTES = st.lists(st.integers(-20_000, 20_000), max_size=60)


def at(minutes: int) -> datetime:
    return NOW + timedelta(minutes=minutes)


@given(MINUTES, st.integers(1, 96))
def test_a_strip_counts_each_once(minutes: list[int], bins: int) -> None:
    """Whatever lies in the span is in exactly one bar, and nothing else is."""
    start, end = at(-720), at(720)
    instants = [at(each) for each in minutes]
    assert sum(count_bins(instants, start, end, bins)) == sum(start <= each < end for each in instants)


@given(MINUTES, MINUTES)
def test_now_divides_what_is_filled_from_what_is_outlined(past: list[int], future: list[int]) -> None:
    """No filled bar begins right of the now line, no outlined one ends left of it."""
    ran, due = [at(-abs(each) - 1) for each in past], [at(abs(each)) for each in future]
    svg = draw_strip(ran, [], due, NOW, timedelta(hours=12), PARIS)
    for css, x, width in re.findall(r'class="(f-past|o)" x="([\d.]+)%" width="([\d.]+)%"', svg):
        assert float(x) < 50 if css == "f-past" else float(x) + float(width) > 50
    assert svg.count('class="nowl" x1="50%"') == 1


@given(st.lists(st.tuples(st.integers(-5000, -1), st.integers(0, 100)), max_size=12), st.integers(1, 9000))
def test_no_label_crosses_the_now_line(lived: list[tuple[int, int]], due: int) -> None:
    """In a task's life each label is on one side of now, unless there is no room on either side of its bar."""
    spans = [Lived(at(start), min(at(start + took), NOW), "SUCCEEDED", "succeeded") for start, took in sorted(lived)]
    svg = draw_life(spans, [at(due)], NOW, PARIS)
    now = float(re.findall(r'class="nowl" x1="([\d.]+)%"', svg)[0])
    lanes = r'<rect class="f-past" x="([\d.]+)%"[^>]*></rect><text x="([\d.]+)%"[^>]*text-anchor="(start|end)"'
    for left, x, side in re.findall(lanes, svg):
        if side == "start" and float(x) < now and float(left) > 15.1:
            assert float(x) + 9 * 0.68 <= now + 0.1


@given(MINUTES)
def test_all_on_the_way_is_outlined(minutes: list[int]) -> None:
    """Each occurrence between now and the end is one open ring; nothing is filled."""
    end = at(1440)
    svg = draw_way([at(each) for each in minutes], NOW, end, PARIS)
    assert svg.count("<circle") == sum(0 <= each <= 1440 for each in minutes)
    assert "f-past" not in svg
