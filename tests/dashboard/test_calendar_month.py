"""The calendar of a month: every day is there once, with its density, what failed, and where clocks change."""

from __future__ import annotations

import calendar
import html
import re
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import PARIS, get, look
from tests.dashboard.test_calendar import answer, ended, occurrence
from tests.web.callers import HOUR

from cloudsched.dashboard.calendar import view as calendar_view
from cloudsched.dashboard.calendar.entries import Bin, DayTotals, write_scale
from cloudsched.dashboard.calendar.month import DayAddresses, build_month, draw_density
from cloudsched.dashboard.calendar.span import make_span
from cloudsched.dashboard.times import make_day
from cloudsched.dashboard.visit import UTC_ZONE

COUNTS = st.builds(Bin, ran=st.integers(0, 5000), failed=st.integers(0, 5000), due=st.integers(0, 5000))
EMPTY = DayTotals(Bin())


@given(st.dates(date(1971, 1, 1), date(2200, 1, 1)))
def test_each_day_of_the_month_is_there_once(day: date) -> None:
    """In its column, Monday first; nothing of another month."""
    span = make_span("month", day)
    assert span.count == calendar.monthrange(day.year, day.month)[1]
    days = [make_day(each, PARIS) for each in span.days]
    weeks = build_month(
        days, dict.fromkeys(span.days, EMPTY), day, dict.fromkeys(span.days, DayAddresses("?", "?", "?"))
    )
    assert all(len(week) == 7 for week in weeks)
    found = [(cell["number"], column) for week in weeks for column, cell in enumerate(week) if cell]
    assert found == [(each.day, each.weekday()) for each in span.days]
    assert [cell["number"] for week in weeks for cell in week if cell and cell["isToday"]] == [day.day]


@given(COUNTS, st.integers(1, 20_000))
def test_bars_stay_in_their_day_and_none_is_hidden(found: Bin, most: int) -> None:
    """However much a day has: what there is shows, what ran and what is due stand one after the other, inside."""
    most = max(most, found.ran + found.due)
    svg = draw_density(DayTotals(found), most)
    spans = re.findall(r'class="([^"]+)" x="([0-9.]+)%?" y="[0-9.]+" width="([0-9.]+)%"', svg)
    assert {css for css, *_ in spans} == {
        css for css, count in (("f-past", found.ran), ("o", found.due), ("f-fail", found.failed)) if count
    }
    for _, left, width in spans:
        assert float(width) >= 3.9
        assert float(left) + float(width) <= 100.1


@given(
    st.lists(st.builds(Bin, ran=st.integers(0, 9), failed=st.integers(0, 9), skipped=st.integers(0, 99)), max_size=9)
)
def test_no_bar_is_said_to_count_less_than_it_shows(days: list[Bin]) -> None:
    """What a full bar counts is said, and that what was skipped may go beyond it."""
    said = write_scale(days)
    most = int(re.sub(r"\D", "", said) or 0)
    assert all(max(each.ran + each.late + each.due, each.failed) <= most for each in days)
    cut = [each for each in days if each.ran + each.late + each.due + each.skipped > most]
    assert not cut or not said or "skipped runs are cut" in said


def test_a_day_counts_by_the_wall_clock_of_the_chosen_zone() -> None:
    """Half past midnight in Paris is another day than in UTC."""
    due = occurrence("2027-03-25T23:30:00Z")
    for zone, number in ((PARIS, 26), (UTC_ZONE, 25)):
        page = calendar_view.build(answer(due), replace(look(month="2027-03"), zone=zone))
        assert [c["number"] for week in page["month"] for c in week if c and "1 not started" in c["words"]] == [number]


class CrowdedApi:
    """Answers with failures for ever, and with one open run."""

    def get(self, path: str, **query: object) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        if query.get("status") == "SUSPENDED":
            return {name: [{**ended("2027-03-22T10:00:00Z"), "id": "open", "status": "SUSPENDED"}]}
        if query.get("status") or path.endswith(("counts", "queues")):
            return {name: [], "parts": []}
        record = {**ended("2027-03-22T10:00:00Z", "FAILED"), **occurrence("2027-03-28T10:00:00Z")}
        return {name: [record] * 500, "nextPageToken": "more"}

    def find(self, path: str, **__: object) -> dict[str, Any]:
        return {"parts": []} if path.endswith("counts") else {}


@pytest.mark.parametrize("span", [{"day": "2027-03-22"}, {"week": "2027-03-22"}, {"month": "2027-03"}])
def test_an_open_run_is_counted_beside_any_number_of_failures(span: dict[str, str]) -> None:
    """Whatever span of days is shown."""
    there = look(**span)
    assert "1 open" in calendar_view.build(calendar_view.fetch(CrowdedApi(), there), there)["sentence"]  # type: ignore[arg-type]


def test_the_month_shows_past_and_future(ui: str) -> None:
    """Of the demo: days on which something failed, today, the day on which clocks change, and what is due."""
    text = get(f"{ui}/calendar", month="2027-03", tz="Europe/Paris").text
    today = datetime(2027, 3, 27, tzinfo=PARIS)
    assert f'aria-label="{today.day} March, ' in text
    assert 'aria-current="date"' in text
    assert re.search(r"26 March, 1 succeeded, 1 failed", text)
    assert re.search(r"28 March, 1 due, 23 hours", text)
    assert "<caption>March 2027</caption>" in text
    assert re.search(r'aria-label="21 March, [^"]*1 open', text), "a run that waits for somebody on another day"
    text = html.unescape(text)
    for words in ("1 failed", "1 due"):  # a day's numbers lead to the lists that they count
        list_of = re.findall(rf'<small class="\w*"><a href="([^"]+)">{words}<', text)[-1]
        rows = get(f"{ui}/{list_of.removeprefix('./')}").text
        assert rows.count("data-row>") >= 1
        assert f">{'Scheduled for' if 'failed' in words else 'Due'}<" in rows
    assert make_day(date(2027, 3, 28), PARIS).length == 23 * HOUR
