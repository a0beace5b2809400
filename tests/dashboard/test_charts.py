"""Charts: a label never crosses the now line, a strip counts each once, and what is to come is never filled."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.callers import HOUR, MINUTE

from cloudsched.dashboard.charts.run_marks import draw_runs
from cloudsched.dashboard.charts.strip import StripBar, draw_strip
from cloudsched.dashboard.status import BAD

NOW = datetime(2027, 3, 27, 14, 42, 7, tzinfo=UTC)
PARIS = ZoneInfo("Europe/Paris")
REACH = 12 * HOUR
MINUTES = st.lists(st.integers(-20_000, 20_000), max_size=60)


def at(minutes: int) -> datetime:
    return NOW + timedelta(minutes=minutes)


HOURS = [StripBar(at(60 * hour - 12), at(60 * hour + 48)) for hour in range(-12, 13)]


@given(st.lists(st.integers(0, 99), min_size=25, max_size=25), MINUTES)
def test_now_divides_what_is_filled_from_what_is_outlined(past: list[int], future: list[int]) -> None:
    """No filled bar begins right of the now line, no outlined one ends left of it. Each bar has its number.

    The number of the present hour has no room beside it if a higher bar is there.
    """
    bars = [replace(bar, ran=count if bar.start < NOW else 0) for bar, count in zip(HOURS, past, strict=True)]
    due = Counter(max(bar.start for bar in HOURS if bar.start <= at(abs(each) % 720)) for each in future)
    shown = [replace(bar, due=due[bar.start]) for bar in bars]
    svg = draw_strip(shown, NOW, 12 * HOUR, PARIS, None)
    for css, x, width in re.findall(r'class="(f-past|o)" x="([\d.]+)%" width="([\d.]+)%"', svg):
        assert float(x) < 50 if css == "f-past" else float(x) + float(width) > 50
    assert svg.count('class="nowl" x1="50%"') == 1
    told = [f"{bar.ran or bar.due:,}" for bar in shown if bar.total]
    numbers = re.findall(r'class="val"[^>]*>([\d,]+)<', svg)
    if numbers != told:
        assert shown[11].ran > shown[12].ran
        del told[sum(bar.total > 0 for bar in shown[:12])]
    assert numbers == told


def test_no_number_lies_on_a_higher_bar() -> None:
    """The present hour's has no place of its own soon after the hour: beside a lower bar it is there."""
    for before, is_there in ((1470, False), (900, True)):
        shown = [replace(HOURS[11], ran=before), replace(HOURS[12], ran=1117)]
        assert (">1,117<" in draw_strip(shown, NOW, REACH, PARIS, None)) == is_there


@given(st.integers(0, 59), st.integers(0, 2000), st.integers(0, 9), st.integers(0, 2000))
def test_the_number_of_the_present_hour_stands_on_the_bar_that_it_counts(
    minute: int, ran: int, failed: int, due: int
) -> None:
    """However soon after the hour's beginning it is: left of the now line what ended, right of it what is due."""
    start = NOW - timedelta(minutes=minute)
    svg = draw_strip([StripBar(start, start + 60 * MINUTE, ran, failed, due=due)], NOW, REACH, PARIS, None)
    for css, x, width in re.findall(r'class="(f-past|f-fail|o)" x="([\d.]+)%" width="([\d.]+)%"', svg):
        assert float(x) >= 50 if css == "o" else float(x) + float(width) <= 50.001
    for x, anchor, said in re.findall(r'class="val" x="([\d.]+)%"[^>]*text-anchor="(\w+)">([\d,]+)<', svg):
        assert said == f"{ran or due or failed:,}"
        is_ended = bool(ran or not due)
        if anchor == "middle":
            assert (float(x) < 50) == is_ended
        else:
            assert (float(x), anchor) == (50, "end" if is_ended else "start")


def test_each_part_of_a_bar_leads_to_the_list_that_it_counts() -> None:
    """What ran, was skipped, failed and is due. No link is hidden from those who hear it, and Tab passes over them."""
    lists = {name: f"runs?outcome={name}&of=<b>" for name in ("ran", "skipped", "failed", "late", "due")}
    svg = draw_strip([replace(HOURS[12], ran=3, skipped=2, failed=1, due=4, links=lists)], NOW, REACH, PARIS, None)
    drawn = ET.fromstring(svg)  # noqa: S314 - of ours
    found = {link.get("href"): link for link in drawn.iter("a")}
    assert found.keys() == {lists[name] for name in ("ran", "skipped", "failed", "due")}
    said = sorted(str(link.findtext("title")).split(" ", 1)[1] for link in found.values())
    assert said == ["1 failed", "2 skipped", "3 succeeded", "4 due"]
    assert {link.get("tabindex") for link in found.values()} == {"-1"}
    hidden = [part for part in drawn.iter() if part.get("aria-hidden")]
    assert not [link for part in hidden for link in part.iter("a")]


@given(st.integers(-720, 0))
def test_a_deployment_stands_at_its_instant(minutes: int) -> None:
    """Its line and its flag, and what it is when one points at it."""
    svg = draw_strip([], NOW, 12 * HOUR, PARIS, None, [(at(minutes), "Deployment of <b>")])
    found = re.search('<title>Deployment of &lt;b&gt;</title><line class="deploy" x1="([0-9.]+)%"', svg)
    assert found is not None
    assert float(found[1]) == pytest.approx((minutes + 720) / 14.4, abs=0.01)
    assert f'<svg x="{found[1]}%"' in svg


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
