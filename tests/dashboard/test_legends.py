"""Every mark that a chart has drawn is in its legend, and nothing else is."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.dashboard.conftest import NOW, PARIS, look
from tests.web.callers import HOUR, MINUTE

from cloudsched.dashboard.calendar import view as calendar_view
from cloudsched.dashboard.charts.legend import CALENDAR, STRIP, list_legend
from cloudsched.dashboard.charts.strip import StripBar, draw_lateness, draw_strip
from cloudsched.dashboard.times import DAY

STRUCTURE = {"ax", "base"}
"""The classes of the lines of hours, of what bars stand on."""


def check(words: Mapping[str, str], charts: Iterable[Markup]) -> str:
    """Return the words of the legend of some charts, which has all that they have drawn."""
    charts = [*charts]
    drawn = {css for chart in charts for css in re.findall(r'<(?:rect|circle|path|line)[^>]* class="([^"]+)"', chart)}
    entries = list_legend(words, charts)
    assert drawn - STRUCTURE <= words.keys(), "a mark without an entry"
    told = [each.word for each in entries]
    said = {meaning for word in told for meaning in word.split(", or ")}
    assert said == {word for css, word in words.items() if css in drawn}
    return "; ".join(told)


def test_a_strip_explains_what_it_has_drawn() -> None:
    """What succeeded alone has an entry alone; what was not counted is told."""
    hour = NOW.replace(minute=0, second=0) - 3 * HOUR
    hours: list[dict[str, Any]] = [{"ran": 3}, {"failed": 1}, {"skipped": 2}, {"ran": 2, "late": 2}]
    for more in hours:
        told = check(STRIP, [draw_strip([StripBar(hour, hour + HOUR, **more)], NOW, 12 * HOUR, PARIS, None)])
        assert ("succeeded" in told.split("; ")) == ("ran" in more)
    strip = draw_strip([StripBar(NOW + HOUR, NOW + 2 * HOUR, due=4)], NOW, 12 * HOUR, PARIS, NOW + 3 * HOUR)
    late = draw_lateness([(NOW - HOUR, HOUR)], NOW, 12 * HOUR, PARIS)
    assert check(STRIP, [strip, late]) == "due; what is due is not known; how late a run started; now"


@given(st.integers(0, 2**32))
def test_a_calendar_explains_what_it_has_drawn(seed: int) -> None:
    """A week with runs that were skipped, failed, late, are open or due, in which clocks change."""
    chance = random.Random(seed)  # noqa: S311 - the same in each run
    week = chance.choice(["2027-03-22", "2027-10-25"])
    start = datetime.fromisoformat(f"{week}T00:00:00Z")
    ran = [
        make_run(chance, start + timedelta(minutes=chance.randrange(7 * 1440)), f"t{chance.randrange(4)}")
        for _ in range(chance.randrange(60))
    ]
    due = [{"utc": (NOW + chance.random() * 3 * DAY).isoformat(), "taskId": "t", "title": "T"}] * chance.randrange(2)
    found = {"ran": ran, "moreRan": False, "counts": None, "due": due, "offered": [], "dueUntil": None, "paused": 0}
    for span in ({"week": week}, {"month": week[:7]}, {"day": week}):
        page = calendar_view.build(found, look(**span))
        drawn = [each["chart"] for each in [*itertools.chain(*page["month"]), *page["rows"]] if each]
        assert "; ".join(each.word for each in page["legend"]) == check(CALENDAR, drawn)


def make_run(chance: random.Random, at: datetime, task: str) -> dict[str, Any]:
    status = chance.choice(["SUCCEEDED", "FAILED", "SKIPPED", "SUSPENDED"])
    began = {} if status == "SKIPPED" else {"startedAt": (at + chance.choice([0, 90]) * MINUTE).isoformat()}
    made = {"id": f"{task}{at}", "taskId": task, "title": task, "status": status, "scheduledFor": at.isoformat()}
    return {**made, **began, "finishedAt": (at + 91 * MINUTE).isoformat(), "attempts": []}
