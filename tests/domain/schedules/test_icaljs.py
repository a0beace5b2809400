"""What ical.js, with which Thunderbird and Nextcloud read calendars, finds in ours: a second foreign judge.

It follows clock changes until 2035, so later occurrences are left out. ``CLOUDSCHED_ICAL_ZONES`` as in
`test_icalendar_output`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import MakeTask
from tests.domain.recurrence.test_rfc5545_cases import CASES, make_schedule
from tests.domain.schedules.test_icalendar_output import ZONES, ZONES_EACH
from tests.web.api.node_tools import install_node_tools, run_node_script

from cloudsched import Schedule
from cloudsched.domain.schedules.preview import ClockChange, preview
from cloudsched.errors import InvalidSchedule
from cloudsched.people.feed_text import FeedTask, build_feed
from cloudsched.people.task_calendar import build_task_calendar, is_portable

pytestmark = pytest.mark.timeout(600)
COUNT = 40
END = datetime(2035, 1, 1, tzinfo=UTC)
CHANGED = {ClockChange.SHIFTED, ClockChange.REPEATED}


def read_elsewhere(asks: list[tuple[str, datetime]], folder: Path) -> list[list[datetime]]:
    """Return the instants before an end that ical.js finds in each calendar."""
    tools = install_node_tools()
    content = [{"ics": ics, "end": int(end.timestamp())} for ics, end in asks]
    (folder / "asks.json").write_text(json.dumps(content))
    found: list[Any] = json.loads(run_node_script(tools, "ical-judge.mjs", "asks.json", cwd=folder))
    assert all(isinstance(each, list) for each in found), [each for each in found if isinstance(each, str)][:3]
    return [[datetime.fromtimestamp(at, UTC) for at in each] for each in found]


def list_portable() -> Iterator[tuple[str, Schedule, datetime]]:
    """Yield the cases that keep their rule, in turns of the zones, with an instant before their first occurrence."""
    for number, case in enumerate(CASES):
        for each in range(ZONES_EACH):
            zone = ZONES[(number + each) % len(ZONES)]
            try:
                schedule = make_schedule(case, zone)
            except InvalidSchedule:
                continue  # in another zone its UNTIL may be before it begins
            first = schedule.first()
            if first is not None and is_portable(schedule):
                yield case["id"], schedule, first - timedelta(days=2)


def test_icaljs_finds_the_same_in_rules(tmp_path: Path) -> None:
    """Those of all cases for which ``tasks/{id}.ics`` keeps the rule, where no clock change moves an occurrence."""
    asks, expected = list[tuple[str, datetime]](), list[tuple[str, list[datetime]]]()
    for name, schedule, begin in list_portable():
        some = [at for at in schedule.upcoming(begin, COUNT) if at < END]
        if not some or any(each.clock_change in CHANGED for each in preview(schedule, begin, COUNT)):
            continue
        asks.append((schedule.to_ical(), some[-1] + timedelta(seconds=1)))
        expected.append((f"{name} {schedule.timezone}", some))
    assert len(asks) > 150 * ZONES_EACH
    found = read_elsewhere(asks, tmp_path)
    assert [(name, each) for (name, _), each in zip(expected, found, strict=True)] == expected


def test_icaljs_finds_what_calendars_leave(tmp_path: Path, make_task: MakeTask) -> None:
    """A feed and a task's own file have the moved occurrences, and not those that are left out."""
    now = datetime(2027, 7, 1, tzinfo=UTC)
    fields = {"rrule": "FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9", "dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}
    for on, days in (("skip", [5, 7, 12, 19, 21]), ("after", [5, 7, 12, 15, 19, 21])):
        plain = Schedule.model_validate({**fields, "calendars": [{"id": "fr", "on": on}]})
        rules = tuple(rule.with_content("2027-07-14 Bastille Day") for rule in plain.calendars)
        schedule = plain.model_copy(update={"calendars": rules})
        task = make_task(schedule=schedule, next_execution_time=schedule.next_after(now))
        texts = (build_feed([FeedTask(task, [])], now, title="Tasks"), build_task_calendar(task, now))
        end = datetime(2027, 7, 22, tzinfo=UTC)
        for found in read_elsewhere([(text, end) for text in texts], tmp_path):
            assert [at.day for at in found] == days
            assert {at.hour for at in found} == {7}
