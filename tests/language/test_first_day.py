"""The first day that a description names is still to come."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tests.cases import try_each
from tests.instants import HOUR

from cloudsched import App, Schedule
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.domain.schedules.planned_words import describe_planned
from cloudsched.language.reader import read
from cloudsched.testing import Simulation

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
_FIRST = re.compile(r"(?:first on|erstmals am) \S+ (\d+)\.? (\w+) (\d{4})")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")


def find_first(text: str) -> datetime | None:
    found = _FIRST.search(text)
    return found and datetime(int(found[3]), _MONTHS.index(found[2]) + 1, int(found[1]), tzinfo=UTC)


PHRASES = (
    *("every 3 days at 9:00", "every 2 weeks at 9:00", "every 3 months at 9:00", "every 2 years at 9:00"),
    *("every other day at 9:00", "every 3 days at 9:00 until 1 June", "every 2 days at 8:00 and 9:00"),
)


@try_each("words", PHRASES)
def test_words_begin_with_a_day_that_is_to_come(words: str) -> None:
    """Today at 9:00 is over at noon, and the interval still counts from today."""
    schedule = read(words, now=NOW, timezone="UTC").schedule
    assert schedule is not None
    first = find_first(schedule.describe())
    assert first is not None
    assert first > NOW
    assert schedule.first() == schedule.next_after(NOW)


@try_each(
    "fields",
    [
        {"rrule": "FREQ=DAILY;INTERVAL=3"},
        {"rrule": "FREQ=DAILY;INTERVAL=3;COUNT=50"},
        {"rrule": "FREQ=DAILY;UNTIL=20270601T000000"},
        {"rrule": ["FREQ=DAILY;INTERVAL=3", "FREQ=WEEKLY;INTERVAL=2"]},
        {"rrule": "FREQ=MINUTELY;INTERVAL=90;COUNT=1000"},
    ],
)
def test_a_task_that_has_begun_names_no_first_day_that_is_over(fields: dict[str, object]) -> None:
    """Its answers name the next one as the first, or say when it began."""
    app = App()
    app.handler("h")(lambda: None)
    with Simulation(app, start=NOW):
        task = app.create(id="d", owner="ada", handler="h", schedule={**fields, "dtstart": "2026-12-20T09:00:00"})
        said = task.schedule.describe_next(task.next_execution_time).text
        first = find_first(said)
        assert "Sunday 20 December 2026" not in said.replace("starting Sunday 20 December 2026", "")
        assert (first is None) == ("starting" in said)
        assert first is None or first >= NOW - 12 * HOUR


@try_each("words", PHRASES)
def test_what_is_said_of_a_task_names_its_own_first_day_until_that_is_over(words: str) -> None:
    """The next run is no first one. Its page says the same."""
    app = App()
    app.handler("h")(lambda: None)
    with Simulation(app, start=NOW) as sim:
        task = app.create(id="d", owner="ada", handler="h", schedule=words)
        for _ in range(2):
            task = app.get("d")
            said = describe_planned(task.schedule, task.next_execution_time).text
            assert ("first on" in said) == (task.run_count == 0)
            assert said == describe_schedule(task.schedule.model_dump(mode="json", by_alias=True), sim.now)
            first = task.schedule.first()
            assert first is not None
            sim.advance_to(first + 12 * HOUR)


def test_a_schedule_that_is_over_names_no_first_day() -> None:
    schedule = Schedule(rrule="FREQ=DAILY;COUNT=2", dtstart="2026-12-20T09:00:00")
    assert "first on" not in schedule.describe_next(None).text
