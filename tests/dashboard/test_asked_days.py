"""A task's page answers why it ran or did not run on a day; its life shows pauses, edits and what is left out."""

from __future__ import annotations

import re
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import NOW, get, visit
from tests.web.callers import MINUTE

from cloudsched.dashboard.charts.life import Lived, Noted, draw_life
from cloudsched.dashboard.views.task_life import count_shown, list_noted

PARIS = ZoneInfo("Europe/Paris")
VISIT = visit(zone=PARIS)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            {"on": "2027-03-21"},
            "every weekday at 09:00) has no occurrence on Sun 21 Mar 2027",
        ),
        (
            {"on": "2027-03-22", "tz": "Asia/Tokyo"},
            "The occurrence of Mon 22 Mar 2027 at 09:00 (Europe/Paris) succeeded",
        ),
        ({"on": "2027-03-19"}, "The task was created only on Sat 20 Mar 2027"),
        ({"on": "2027-03-28"}, "The clocks in Europe/Paris go forward by 1 h that day"),
        ({"on": "friday"}, "friday is not a day"),
        ({"on": "2027-03-22", "clock": "noon"}, "2027-03-22 noon is not a day"),
        ({"on": "9999-12-31"}, "9999-12-31 is not a day"),
    ],
)
def test_a_day_is_asked_about(ui: str, query: dict[str, str], words: str) -> None:
    """By the address alone, so it can be sent to somebody; what is not a day is said, and the page stays."""
    page = get(f"{ui}/tasks/weekday-report", **query)
    assert page.status_code == 200
    assert words in page.text.replace("&#39;", "'")
    assert 'name="on" type="date" required value="' + query["on"] in page.text


def test_pauses_edits_and_what_is_left_out_are_marked() -> None:
    """Each pause from its beginning to its end, the present one to now; what a calendar moves is not left out."""
    entries = [
        {"at": "2027-03-26T10:00:00Z", "action": "PAUSED"},
        {"at": "2027-03-25T10:00:00Z", "action": "EDITED"},
        {"at": "2027-03-24T10:00:00Z", "action": "RESUMED"},
        {"at": "2027-03-23T10:00:00Z", "action": "PAUSED"},
        {"at": "2027-03-20T10:00:00Z", "action": "CREATED"},
    ]
    findings = [{"reason": "CALENDAR", "at": f"2027-03-{day}T08:00:00Z"} for day in (28, 29)]
    task = {"status": "PAUSED", "statusChangedAt": entries[0]["at"], "nextExecutionTime": findings[1]["at"]}
    found = list_noted({"entries": entries}, {"findings": findings}, task, VISIT)
    assert [(each.word, each.at.day, each.end and each.end.day) for each in found] == [
        ("paused", 23, 24),
        ("edited", 25, None),
        ("paused", 26, 27),
        ("left out", 28, None),
    ]


@given(
    st.lists(
        st.tuples(st.integers(-9000, 9000), st.integers(0, 3000), st.sampled_from(["paused", "edited"])), max_size=30
    )
)
def test_words_of_marks_never_touch(marks: list[tuple[int, int, str]]) -> None:
    """On the narrowest screen, also not the now line; those without room are left out, their lines are not."""
    minute = MINUTE
    noted = [
        Noted(NOW + at * minute, word, NOW + (at + long) * minute if word == "paused" else None)
        for at, long, word in marks
    ]
    lived = [Lived(NOW - 5000 * minute, NOW - 4000 * minute, "SUCCEEDED", "succeeded")]
    svg = draw_life(lived, [NOW + 4000 * minute], NOW, PARIS, None, noted)
    places = [float(each) for each in re.findall(r'class="(?:did|paused)" x1?="([\d.]+)%"', svg)]
    assert all(0 <= each <= 100 for each in places)
    labels = re.findall(
        r'<text class="chgt" x="([\d.]+)%" dx="(-?\d+)"[^>]*text-anchor="(start|end)">(paused|edited)<', svg
    )
    now = float(re.findall(r'class="nowl" x1="([\d.]+)%"', svg)[0]) * 2.7
    spans = []
    for x, shift, side, word in labels:
        left = float(x) * 2.7 + int(shift) - (len(word) * 7.2 if side == "end" else 0)
        spans.append((left, left + len(word) * 7.2))
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert not [span for span in spans if span[0] + 0.1 < now < span[1] - 0.1], "it is written across the now line"


@pytest.mark.parametrize(
    ("count", "has_older", "runs", "words"),
    [
        (8, False, 8, ""),
        (12, False, 12, "The latest 8 of 12 runs"),
        (20, True, 1561, "The latest 8 of at least 1,561 runs"),
        (20, True, 3, "The latest 8 of at least 21 runs"),
    ],
)
def test_a_life_says_of_how_many_runs_it_has_the_latest(count: int, runs: int, words: str, *, has_older: bool) -> None:
    """One number: that of all that were scheduled, or of the records that are known to be there if it is larger."""
    records: dict[str, object] = {"executions": [{}] * count, "nextPageToken": "more" if has_older else None}
    assert count_shown({"executions": records, "task": {"runCount": runs}}, VISIT) == words
