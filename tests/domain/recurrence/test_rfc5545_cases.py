"""The examples of RFC 5545, and those of the implementations that ``source`` names."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.cases import try_each

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.schedules.schedule import Schedule

CASES = json.loads(Path(__file__).with_name("collected_cases.json").read_text(encoding="utf-8"))


def make_schedule(case: dict[str, Any], zone: str = "") -> Schedule:
    dates = {name: case.get(name, ()) for name in ("rdates", "exdates")}
    return Schedule(rrule=case["rrule"], dtstart=case["dtstart"], timezone=zone or case["tzid"], **dates)


@try_each("case", CASES)
def test_names_exactly_the_expected_local_times(case: dict[str, Any]) -> None:
    """Occurrences and offsets are those of the source, and there are no others where its list is complete."""
    schedule = make_schedule(case)
    expected = [datetime.fromisoformat(text) for text in case["expected"]]
    zone = time_zones.load_tzinfo(case["tzid"])
    begin = expected[0]
    if case.get("listFromStartAt"):
        begin = min(begin, datetime.fromisoformat(case["startAt"]).replace(tzinfo=zone))
    else:
        assert schedule.first() == begin
    found = schedule.upcoming(begin - timedelta(seconds=1), len(expected) + 1)
    assert [when.astimezone(zone).isoformat() for when in found[: len(expected)]] == case["expected"]
    if case["complete"]:
        assert len(found) == len(expected)


@try_each("case", CASES)
def test_every_occurrence_can_be_found_from_the_one_before_it(case: dict[str, Any]) -> None:
    """A search from any occurrence finds the same next one as a search from the start."""
    schedule = make_schedule(case)
    expected = [datetime.fromisoformat(text) for text in case["expected"]]
    for before, following in pairwise(expected):
        assert schedule.next_after(before) == following
        assert schedule.next_after(following - timedelta(microseconds=1)) == following
