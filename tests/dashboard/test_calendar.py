"""The calendar: each part of a day, week or month is in one bar, in every zone and over clock changes."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import date, datetime
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import NOW, look
from tests.dashboard.role_pages import Pages

from cloudsched.dashboard.times import find_start
from cloudsched.dashboard.views.calendar import build, choose_span
from cloudsched.dashboard.visit import Visit
from cloudsched.domain.documents.run_counts import PartLength
from cloudsched.engine.queries.time_parts import split_time

ZONES = st.sampled_from(
    [
        "Europe/Paris",
        "America/New_York",
        "Australia/Lord_Howe",
        "America/Havana",
        "America/St_Johns",
        "Asia/Beirut",
        "UTC",
    ]
).map(ZoneInfo)
DAYS = st.one_of(
    st.dates(date(1990, 1, 1), date(2035, 12, 31)),
    st.sampled_from([date(2027, 3, 28), date(2027, 10, 31), date(2027, 11, 7), date(2010, 11, 7), date(2027, 4, 4)]),
)
LENGTHS = {"day": PartLength.QUARTER, "week": PartLength.HOUR, "month": PartLength.DAY}
BAR = re.compile(
    r'<a href="runs\?([^"]+)" class="b"[^>]*><title>\S+\s\S+ ([\d,]+) succeeded</title><rect [^>]*x="([\d.]+)%"'
)


def show(visit: Visit, **numbers: int) -> dict[str, Any]:
    """Return the page of a time in which each part that the API counts has these numbers."""
    span = choose_span(visit)
    start, end = find_start(span.first, visit.zone), find_start(span.end, visit.zone)
    edges = split_time(start, end, visit.zone, LENGTHS[span.kind])
    ran = [{"start": one.isoformat(), "end": other.isoformat(), **numbers} for one, other in pairwise(edges)]
    return build({"parts": {"ran": ran}}, visit)


@given(DAYS, ZONES, st.sampled_from(["day", "week", "month"]))
def test_the_bars_of_a_time_are_its_parts_once_and_in_order(day: date, zone: ZoneInfo, kind: str) -> None:
    """What follows is further right or in a later row, begins where the one before ended, and all is counted."""
    text = f"{day:%Y-%m}" if kind == "month" else day.isoformat()
    visit = replace(look(**{kind: text}), zone=zone, now=datetime.max.replace(tzinfo=NOW.tzinfo, year=9000))
    page = show(visit, ran=1)
    span = choose_span(visit)
    edge = find_start(span.first, zone)
    total = 0
    for row in page["rows"]:
        before = -1.0
        for query, number, left in BAR.findall(html.unescape(str(row["chart"]))):
            bounds = parse_qs(query)
            assert datetime.fromisoformat(bounds["from"][0]) == edge
            edge = datetime.fromisoformat(bounds["until"][0])
            assert float(left) > before
            before = float(left)
            total += int(number)
    assert edge == find_start(span.end, zone)
    assert page["numbers"][0].value == total == sum(row["numbers"][0].value for row in page["rows"])


def test_a_clock_change_is_said_in_words_and_leaves_its_place() -> None:
    """The sentence names it. An hour that is skipped has no bar, and one that comes twice is one."""
    for week, bars, said in (
        ("2027-03-28", 23, "Clocks go forward: 02:00 +0100 becomes 03:00 +0200."),
        ("2027-10-31", 24, "Clocks go back: 03:00 +0200 becomes 02:00 +0100."),
    ):
        page = show(replace(look(week=week), now=NOW.replace(year=2028)), ran=1)
        assert said in page["sentence"].replace("\N{NO-BREAK SPACE}", " ")
        assert [len(BAR.findall(row["chart"])) for row in page["rows"]] == [24] * 6 + [bars]


@pytest.mark.parametrize("text", ["", "soon", "2027-02-30", "0001-01", "0001-01-01", "9999-12", "9999-12-31", "-1"])
@pytest.mark.parametrize("name", ["month", "week", "day"])
def test_any_text_in_the_address_shows_some_days_or_is_refused(pages: Pages, name: str, text: str) -> None:
    """What is no day is refused, with an example. What lies beyond the calendar shows its end."""
    known = {"0001-01", "9999-12"} if name == "month" else {"0001-01-01", "9999-12-31"}
    answer = pages.get("ada", f"/calendar?{name}={text}")
    assert answer.status_code == (200 if text in {"", *known} else 400)
    assert (f"Write it as in {name}=" in answer.text) == (answer.status_code != 200)


def test_a_number_that_may_be_larger_says_so() -> None:
    """What was cut at a bound is told, also if nothing of it was counted, and so is every sum of it."""
    parts = [
        {"start": f"2027-03-{day}T23:00:00Z", "end": f"2027-03-{day + 1}T23:00:00Z", "due": due}
        for day, due in ((27, {"value": 3, "atLeast": False}), (28, {"value": 3, "atLeast": True}))
    ]
    page = build({"parts": {"due": parts}}, look(month="2027-03"))
    assert [each.words for each in page["numbers"]] == ["at least 6 due"]
    assert [each.words for row in page["rows"] for each in row["numbers"]] == ["3 due", "at least 3 due"]


def test_what_was_skipped_by_thousands_hides_nothing() -> None:
    """One record may cover them: what ran keeps its height, and the bar stays inside."""
    part = {"start": "2027-03-26T08:00:00Z", "end": "2027-03-26T09:00:00Z"}
    counts = {"ran": 4, "failed": 4, "skipped": {"value": 9000, "atLeast": True}}
    (row,) = build({"parts": {"ran": [{**part, **counts}]}}, look(week="2027-03-22"))["rows"]
    heights = [float(each) for each in re.findall(r'<rect [^>]*height="([\d.]+)"', row["chart"])]
    assert len(heights) == 3
    assert sum(heights) <= 44
    assert heights[0] == heights[1] > 20
    assert "at least 9,000 skipped or cancelled" in row["chart"]
    assert all(urlsplit(each.href).path == "runs" for each in row["numbers"])
