"""The calendar: where instants lie in a day, what is busy, and what finds room."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import look

from cloudsched.dashboard.api import Json
from cloudsched.dashboard.calendar import view as calendar_view
from cloudsched.dashboard.calendar.day_chart import count_bins
from cloudsched.dashboard.calendar.labels import TIERS, OccurrenceMark, Placed, measure, place_marks
from cloudsched.dashboard.times import DAY, find_start, make_day

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
MARKS = st.lists(
    st.builds(
        lambda at, size, bad: OccurrenceMark(at, "x" * size, "words", "tasks/x", is_future=False, is_bad=bad),
        st.floats(0, 1),
        st.integers(6, 48),
        st.booleans(),
    ),
    max_size=30,
)


@given(DAYS, ZONES)
def test_what_is_later_is_not_further_left(day: date, zone: ZoneInfo) -> None:
    """All instants of a day lie in its row, in their order, also in an hour that comes twice; none in a skipped one."""
    wall = make_day(day, zone)
    start = find_start(day, zone) - timedelta(hours=3)
    instants = [start + timedelta(minutes=7 * step) for step in range(300)]
    ours = [at for at in instants if at.astimezone(zone).date() == day]
    places = [wall.place(at) for at in ours]
    assert places == sorted(places)
    for one, other in pairwise(places):
        assert one < other
    assert all(0 <= place <= 1 for place in places)
    for span in wall.spans:
        if span.is_skipped:
            assert not any(span.start / DAY < place < span.end / DAY for place in places)


@given(DAYS, ZONES)
def test_a_day_is_as_long_as_it_is(day: date, zone: ZoneInfo) -> None:
    """Its length is how many of its minutes there are."""
    start = find_start(day, zone) - timedelta(hours=3)
    minutes = sum((start + timedelta(minutes=minute)).astimezone(zone).date() == day for minute in range(32 * 60))
    assert make_day(day, zone).length == timedelta(minutes=minutes)


@given(MARKS, st.one_of(st.none(), st.floats(0, 1)), st.integers(1, 4), st.integers(0, 3), st.integers(0, 500))
def test_labels_never_meet(marks: list[OccurrenceMark], now: float | None, lanes: int, tier: int, more: int) -> None:
    """At no width does a label lie on another, on a failed cross or on the now line.

    Nothing is lost: what is not shown is counted, and what failed is always there.
    """
    placed, left_out = place_marks(marks, now, lanes)
    width = TIERS[tier] + more
    seen = [each for each in placed if each.tier <= tier]
    assert len(seen) + left_out[tier] == len(marks)
    assert sum(each.is_bad for each in marks) == sum(each.mark.is_bad for each in seen)
    for lane in range(lanes):
        spans = sorted(_span(each, width) for each in seen if each.lane == lane)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        if now is not None:
            assert not any(start + 6 < now * width < end - 6 for start, end in spans)
    assert not any(each.has_label for each in seen if each.lane == lanes), (
        "crosses without labels have a lane of theirs"
    )


def _span(each: Placed, width: float) -> tuple[float, float]:
    label = 9 + measure(each.mark.label)
    at = each.mark.at * width
    return (at - label, at + 6) if each.is_left else (at - 6, at + label)


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["ran", "failed", "due"]))), st.sampled_from([24, 96]))
def test_density_counts_each_once(places: list[tuple[float, str]], parts: int) -> None:
    """Each occurrence is in exactly one bar, of its own kind."""
    bins = count_bins(places, parts)
    for kind in ("ran", "failed", "due"):
        assert sum(getattr(each, kind) for each in bins) == sum(name == kind for _, name in places)


def occurrence(at: str, task: str = "t") -> Json:
    return {"utc": at, "taskId": task, "title": task.upper()}


def answer(*due: Json, **more: object) -> Json:
    return {"ran": [], "moreRan": False, "counts": None, "due": list(due), "dueUntil": None, "paused": 0, **more}


def test_a_clock_change_is_said_in_words_and_at_its_day() -> None:
    """The sentence names it, the day says 23 or 25 hours, and which of two equal times is meant is said."""
    spring = calendar_view.build(answer(), look(week="2027-03-28"))
    text = spring["sentence"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Clocks go forward on Sunday: 02:00 +0100 becomes 03:00 +0200." in text
    assert [row["hours"] for row in spring["rows"]] == [""] * 6 + ["23 hours"]
    assert "url(#gapped)" in spring["rows"][6]["chart"]
    text = calendar_view.build(answer(), look(week="2027-10-25"))["sentence"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Clocks go back on Sunday: 03:00 +0200 becomes 02:00 +0100." in text
    twice = [occurrence("2027-10-31T00:30:00Z"), occurrence("2027-10-31T01:30:00Z")]
    autumn = calendar_view.build(answer(*twice), look(day="2027-10-31"))
    assert "25 hours" in autumn["tableNote"]
    assert [row["change"] for row in autumn["table"]] == ["the first 02:30 of two", "the second 02:30 of two"]


@pytest.mark.parametrize("text", ["", "soon", "2027-02-30", "0001-01", "0001-01-01", "9999-12", "9999-12-31", "-1"])
@pytest.mark.parametrize("name", ["month", "week", "day"])
def test_any_text_in_the_address_shows_some_days(name: str, text: str) -> None:
    """What is no day shows this week; what lies beyond the calendar shows its end."""
    page = calendar_view.build(answer(), look(**{name: text}))
    assert len(page["rows"]) in {1, 7} or len(page["month"]) > 3


def ended(at: str, status: str = "SUCCEEDED", task: str = "t") -> Json:
    return {"id": at, "taskId": task, "title": task.upper(), "status": status, "scheduledFor": at}


def counts(**days: tuple[int, int]) -> list[Json]:
    """Return what the API counts, by the day of March 2027, such as ``d22=(failed, others)``."""
    return [
        {"start": f"2027-03-{int(day[1:]) - 1}T23:00:00Z", "failed": failed, "others": others}
        for day, (failed, others) in days.items()
    ]


def test_a_full_day_is_hatched_with_its_counts_and_never_nothing() -> None:
    """Of a day that was not listed it says what was counted; the one that was listed in part is hatched up to there."""
    page = calendar_view.build(
        answer(
            ran=[ended("2027-03-27T10:00:00Z"), ended("2027-03-22T10:00:00Z", "FAILED")],
            moreRan=True,
            ranFrom="2027-03-27T09:00:00Z",
            counts=counts(d22=(1, 2880), d23=(0, 10_000), d24=(0, 0), d25=(0, 7), d26=(3, 0), d27=(0, 900)),
        ),
        look(week="2027-03-22"),
    )
    rows = [(row["counts"], row["failed"]) for row in page["rows"]]
    assert rows == [
        ("2,880 ended", "1 failed"),
        ("at least 10,000 ended", ""),
        ("nothing", ""),
        ("7 ended", ""),
        ("", "3 failed"),
        ("900 ended", ""),
        ("nothing", ""),
    ]
    full = [
        re.findall(r'<rect x="([\d.]+)%" y="0" width="([\d.]+)%"[^>]*url\(#full\)', row["chart"])
        for row in page["rows"]
    ]
    assert full == [[("0.00", "100.00")]] * 2 + [[]] + [[("0.00", "100.00")]] * 2 + [[("0.00", "41.67")], []]
    assert "not all drawn: 2,880 ended, 1 failed" in page["rows"][0]["chart"]
    assert "at least 13,787 ended, 4 failed" in page["sentence"]


def test_without_counts_it_says_at_least() -> None:
    """Where the API cannot count: a cut list is the least there is, and days that it does not reach are unknown."""
    page = calendar_view.build(
        answer(ran=[ended("2027-03-27T10:00:00Z")], moreRan=True, ranFrom="2027-03-27T09:00:00Z"),
        look(week="2027-03-22"),
    )
    assert [row["counts"] for row in page["rows"]] == ["more is not counted"] * 5 + ["at least 1 ended", "nothing"]
    assert "nothing" not in page["sentence"]
    assert "neither drawn nor counted" in " ".join(page["notes"])


def test_what_is_due_beyond_the_bound_is_said_and_hatched() -> None:
    """The days after that are not empty; the month says so, too."""
    due = [occurrence("2027-03-28T12:00:00Z")]
    page = calendar_view.build(answer(*due, dueUntil="2027-03-28T12:00:00Z", paused=3), look(week="2027-03-22"))
    notes = " ".join(page["notes"]).replace("\N{NO-BREAK SPACE}", " ")
    assert "From Sun 28 Mar 2027 14:00 +0200 on" in notes
    assert "3 paused tasks are not shown." in notes
    assert page["rows"][6]["counts"] == "at least 1 due"
    assert "more is due" in page["rows"][6]["chart"]
    month = calendar_view.build(answer(*due, dueUntil="2027-03-28T12:00:00Z"), look(month="2027-03"))
    words = {cell["number"]: cell["words"] for week in month["month"] for cell in week if cell}
    assert words[30] == "30 March, what is due is not counted"
    assert "at least 1 due" in words[28]
    assert words[26] == "26 March, nothing"


def test_what_nobody_has_begun_is_late_and_not_due() -> None:
    """An instant in the past is no promise: in the row, the table, and the words; what was passed over did not run."""
    page = calendar_view.build(
        answer(
            occurrence("2027-03-27T09:00:00Z"),
            occurrence("2027-03-27T18:00:00Z"),
            ran=[ended("2027-03-27T08:00:00Z", "SKIPPED")],
        ),
        look(day="2027-03-27"),
    )
    assert "1 not run, 1 late, 1 due" in page["sentence"]
    assert [row["status"].word for row in page["table"]] == ["Skipped", "Late", "Due"]


def test_the_week_shows_past_and_future(ui: str) -> None:
    """Of the demo's week: what failed and ran, and on Sunday what is due, an hour later by the clock change."""
    week = {"week": "2027-03-22", "tz": "Europe/Paris"}
    text = requests.get(f"{ui}/calendar", params=week, timeout=60).text
    assert "Weekday report, Fri\N{NO-BREAK SPACE}26" in text
    assert "23 hours" in text
    assert "03:30 Sync catalogue" in text
    only = requests.get(f"{ui}/calendar", params={"week": "2027-03-22", "owner": "shop"}, timeout=60).text
    assert "Weekday report" not in only
    failed = requests.get(f"{ui}/calendar", params={**week, "status": "FAILED"}, timeout=60).text
    assert "only what has the status failed is shown" in failed
    assert "Weekday report, Fri" not in failed  # which ran
    assert "Weekday report, Mon" not in failed  # likewise
    assert "03:30 Sync catalogue" in failed  # which is due


def test_a_category_hides_other_tasks(ui: str) -> None:
    """In the past and the future; with a label as well, both must match; one that there is not is a bad request."""
    for week in ("2027-03-29", "2027-03-22"):
        asked = {"week": week, "tz": "Europe/Paris"}
        others = requests.get(f"{ui}/calendar", params={**asked, "category": "others"}, timeout=60).text
        assert "Weekday report" in others
        assert '<option value="OTHERS" selected>' in others
        for more in ({}, {"label": "team=sales"}, {"handler": "report"}):
            hidden = requests.get(f"{ui}/calendar", params={**asked, **more, "category": "REPORT"}, timeout=60)
            assert hidden.status_code == 200
            assert "Weekday report" not in hidden.text
        both = {**asked, "label": "team=sales", "handler": "report", "category": "OTHERS"}
        assert "Weekday report" in requests.get(f"{ui}/calendar", params=both, timeout=60).text
    assert requests.get(f"{ui}/calendar", params={"category": "news"}, timeout=60).status_code == 400
