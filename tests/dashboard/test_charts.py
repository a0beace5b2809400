"""Charts: a label never crosses the now line, a strip counts each once, and what is to come is never filled."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.dashboard.charts.life import Lived, draw_life
from cloudsched.dashboard.charts.run_marks import draw_runs
from cloudsched.dashboard.charts.strip import StripBar, count_due, draw_strip, make_bars
from cloudsched.dashboard.status import BAD

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
    bars = make_bars(instants, [], start, end, bins=bins)
    assert sum(bar.good for bar in bars) == sum(start <= each < end for each in instants)


@given(MINUTES, MINUTES)
def test_now_divides_what_is_filled_from_what_is_outlined(past: list[int], future: list[int]) -> None:
    """No filled bar begins right of the now line, no outlined one ends left of it."""
    ran, due = [at(-abs(each) - 1) for each in past], [at(abs(each)) for each in future]
    reach = timedelta(hours=12)
    svg = draw_strip(count_due(make_bars(ran, [], at(-720), at(720), bins=48), due), NOW, reach, PARIS, None)
    for css, x, width in re.findall(r'class="(f-past|o)" x="([\d.]+)%" width="([\d.]+)%"', svg):
        assert float(x) < 50 if css == "f-past" else float(x) + float(width) > 50
    assert svg.count('class="nowl" x1="50%"') == 1


@given(MINUTES)
def test_all_that_is_due_stands_in_one_bar(minutes: list[int]) -> None:
    """Whatever is due while the strip lasts is counted once, by bars of any width."""
    due = [at(each) for each in minutes]
    hours = [StripBar(at(60 * hour - 12), at(60 * hour + 48)) for hour in range(-12, 13)]
    for bars in (hours, make_bars([], [], at(-732), at(768), bins=17)):
        counted = sum(bar.due for bar in count_due(bars, due))
        assert counted == sum(bars[0].start <= each < bars[-1].end for each in due)


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


@given(st.lists(st.sampled_from(["SUCCEEDED", "FAILED", "TIMED_OUT", "SKIPPED", "RUNNING", "SUSPENDED", "?"])))
def test_failures_hang_below_the_line_and_nothing_else_does(statuses: list[str]) -> None:
    """One mark for each of the last twelve, in its place, inside the chart, and only what failed below the line."""
    chart = ET.fromstring(draw_runs(statuses))  # noqa: S314 - of ours
    base = float(chart.find("line").get("y1"))  # type: ignore[union-attr, arg-type]  # there is one
    marks: dict[int, ET.Element] = {}
    for each in chart.iter("rect"):
        marks.setdefault(int(float(each.get("x", "")) // 7), each)
    shown = statuses[-12:]
    assert sorted(marks) == list(range(12 - len(shown), 12))
    for place, status in zip(sorted(marks), shown, strict=True):
        top = float(marks[place].get("y", ""))
        bottom = top + float(marks[place].get("height", ""))
        assert (top >= base) == (status in BAD)
        assert 0 <= top < bottom <= 20
        assert (marks[place].get("class") == "f-fail") == (status in BAD)
