"""The marks of a task's latest runs."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.dashboard.charts import draw_runs, write_runs
from cloudsched.dashboard.status import BAD


@given(st.lists(st.sampled_from(["SUCCEEDED", "FAILED", "TIMED_OUT", "SKIPPED", "RUNNING", "SUSPENDED", "?"])))
def test_failures_hang_below_the_line_and_nothing_else_does(statuses: list[str]) -> None:
    """One mark for each of the last twelve, in its place, inside the chart, and only what failed below the line.

    The words say nothing of their order: a run that is retried ends again.
    """
    shown = statuses[-12:]
    assert len(write_runs(shown)) == len(write_runs(shown[::-1]))
    chart = ET.fromstring(draw_runs(statuses))  # noqa: S314 - of ours
    base = float(chart.find("line").get("y1"))  # type: ignore[union-attr, arg-type]  # there is one
    marks: dict[int, ET.Element] = {}
    for each in chart.iter("rect"):
        marks.setdefault(int(float(each.get("x", "")) // 7), each)
    assert sorted(marks) == list(range(12 - len(shown), 12))
    for place, status in zip(sorted(marks), shown, strict=True):
        top = float(marks[place].get("y", ""))
        bottom = top + float(marks[place].get("height", ""))
        assert (top >= base) == (status in BAD)
        assert 0 <= top < bottom <= 20
        assert (marks[place].get("class") == "f-fail") == (status in BAD)
