"""All searches of one request spend from one allowance, whatever makes them: steps are counted, and not seconds."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.call_counts import count_calls
from tests.cases import try_each
from tests.hostile_requests import hostile_schedules

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.allowance import REQUEST_STEPS, limit_search, spend_steps
from cloudsched.domain.recurrence.days import first_week
from cloudsched.domain.recurrence.recurrence_set import compile_recurrence
from cloudsched.domain.recurrence.rrule import parse_rule
from cloudsched.domain.schedules.calendar_days import WEEKENDS_CONTENT, format_days
from cloudsched.domain.schedules.calendar_recurrence import apply_calendars
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule, SearchLimitReached

START = {"dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
EVERY_DAY = format_days((), [(datetime(year, 1, 1), datetime(year, 12, 31), "") for year in range(1970, 2100)])  # noqa: DTZ001 - dates
DENSE = format_days(["SA", "SU"], [(datetime(2027, each, 2), datetime(2027, each, 20), "") for each in range(1, 13)])  # noqa: DTZ001
DAYS = {"full": "weekdays MO,TU,WE,TH,FR,SA,SU", "almost-full": EVERY_DAY, "weekends": WEEKENDS_CONTENT, "dense": DENSE}
CALLS_A_STEP = 25
"""A step is a few calls: were a search to forget to count, there would be more. A hundred thousand take 10 ms."""


def make_schedule(fields: dict[str, Any]) -> Schedule:
    """Return a schedule with its calendars' days, as the engine finds them."""
    schedule = Schedule.model_validate({**fields, "calendars": (), "businessDay": None})
    own = {name: fields[name] for name in ("calendars", "businessDay") if name in fields}
    if not own:
        return schedule
    named = Schedule.model_validate({**fields, **own})
    rules = tuple(rule.with_content(DAYS[rule.id]) for rule in named.calendars)
    return named.copy_unchecked(calendars=rules)


def forget_all() -> None:
    """Forget what was compiled and found: the dearest request is the first one of a process."""
    compile_recurrence.cache_clear()
    parse_rule.cache_clear()
    apply_calendars.cache_clear()
    first_week.cache_clear()


@try_each("name, fields", [each for each in hostile_schedules() if isinstance(each[1], dict)])
def test_no_schedule_takes_more_than_the_allowance(name: str, fields: dict[str, Any]) -> None:
    """Ten occurrences are found, or the request is refused. What is not counted as a step is little, too."""
    forget_all()
    with count_calls() as calls, limit_search() as allowance, suppress(InvalidSchedule):
        make_schedule(fields).upcoming(NOW, 10)
    spent = allowance.steps - allowance.remaining
    assert spent < REQUEST_STEPS + 20_000, name  # what is refused last is counted, and was not done
    assert calls.count < CALLS_A_STEP * spent + 150_000, name


def test_searches_share_one_allowance() -> None:
    """Each alone is allowed; together they are more than a request may take, and nothing after that is searched."""
    rules = [f"FREQ=SECONDLY;INTERVAL={86_413 + 2 * each};BYHOUR=0;BYMINUTE=0;BYSECOND=0" for each in range(20)]
    forget_all()
    outcomes: list[InvalidSchedule | None] = []
    with limit_search():
        for rule in rules:
            try:
                Schedule(rrule=rule, **START).next_after(NOW)
                outcomes.append(None)
            except InvalidSchedule as error:
                outcomes.append(error)
    is_refused = [isinstance(each, SearchLimitReached) for each in outcomes]
    assert not is_refused[0]
    assert is_refused == sorted(is_refused)
    assert is_refused[-1]
    assert outcomes[-1] is not None
    assert f"{REQUEST_STEPS} steps" in outcomes[-1].problem
    assert outcomes[-1].hint
    Schedule(rrule="FREQ=DAILY", **START).next_after(NOW)  # outside of any door only each search's own limit holds


def test_a_part_spends_from_the_whole() -> None:
    """A part that is used up leaves the rest to others; no part is more than what is left."""
    with limit_search(100) as whole:
        with pytest.raises(SearchLimitReached), limit_search(10):
            spend_steps(11)
        assert whole.remaining == 89
        with pytest.raises(SearchLimitReached), limit_search(1000):
            spend_steps(90)
        assert whole.is_used_up


def test_what_people_write_is_far_from_the_limit() -> None:
    """A thousand occurrences of ordinary schedules take less than half of what a request may."""
    for fields in (
        {"rrule": "FREQ=DAILY"},
        {"rrule": "FREQ=WEEKLY;BYDAY=MO,TU"},
        {"rrule": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"},
        {"rrule": "FREQ=DAILY;COUNT=1000"},
        {"rrule": "FREQ=DAILY", "calendars": ["weekends"]},
        {"rrule": "FREQ=MINUTELY;BYHOUR=9,10", "calendars": ["dense"]},
    ):
        forget_all()
        with limit_search() as allowance:
            assert len(make_schedule({**fields, **START}).upcoming(NOW, 1000)) > 500
        assert allowance.remaining > REQUEST_STEPS // 2, (fields, allowance.remaining)


def test_count_is_counted_as_far_as_is_asked() -> None:
    """The second of 100,000 occurrences takes a few steps; the last one is right, whatever was asked before."""
    forget_all()
    schedule = Schedule(rrule="FREQ=DAILY;BYHOUR=9,10;COUNT=5000", **START)
    with limit_search() as allowance:
        assert schedule.next_after(NOW) is not None
    assert allowance.steps - allowance.remaining < 2000
    last = schedule.between(NOW, NOW + timedelta(days=9000))[-1]
    forget_all()
    fresh = Schedule(rrule="FREQ=DAILY;BYHOUR=9,10;COUNT=5000", **START)
    assert len(fresh.between(datetime(2026, 1, 1, tzinfo=UTC), last + timedelta(days=900))) == 5000
    forget_all()
    assert Schedule(rrule="FREQ=DAILY;BYHOUR=9,10;COUNT=5000", **START).next_after(last) is None


def test_years_of_a_zone_that_nobody_has_asked_for_are_counted() -> None:
    """Each further year of clock changes costs, so a search of the far future cannot have them for nothing."""
    used = []
    for year in (2300, 2900):
        zone = time_zones.ZoneData().zone("Europe/Paris")
        with limit_search() as allowance:
            zone.table_for(int(datetime(year, 1, 1, tzinfo=UTC).timestamp()))
        used.append(allowance.steps - allowance.remaining)
    assert used[1] - used[0] >= 600
