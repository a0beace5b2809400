"""Saving what has not changed changes nothing: each spelling of a schedule, in each state, by each call that edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE

from cloudsched import App, Context, Schedule, Task
from cloudsched.testing import Simulation


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


START: Final = utc("2027-01-04T12:00:20")
SPELLINGS: Mapping[str, Any] = {
    "elapsed words": "every 50 minutes",
    "words from now": "every hour",
    "words by the clock": "every day at 9:00",
    "words with a phase": "every other Monday at 10:00",
    "words with a start": "every 3 days at 9:00 starting tomorrow",
    "words with an end": "every 40 minutes until next month",
    "German words": "alle 40 Minuten",
    "dates at different times": "on 1 April 2027 at 9:00 and on 3 April 2027 at 10:00",
    "cron": "0 * * * *",
    "cron as an object": {"cron": "30 * * * *"},
    "RRULE text": "FREQ=HOURLY",
    "RRULE text with a phase": "FREQ=WEEKLY;INTERVAL=2",
    "RRULE text with a count": "RRULE:FREQ=MINUTELY;INTERVAL=45;COUNT=30",
    "iCalendar text": "DTSTART:20270104T080000\nRRULE:FREQ=HOURLY",
    "JSON": {"rrule": "FREQ=HOURLY"},
    "JSON with BYHOUR": {"rrule": "FREQ=DAILY;BYHOUR=13,14,15"},
    "JSON with a start": {"rrule": "FREQ=HOURLY", "dtstart": "2027-01-04T08:00:00"},
    "an interval": Schedule.every(50 * MINUTE),
    "JSON with dates": {"dtstart": "2027-01-05T08:00:00", "rdates": ["2027-01-05T18:00:00", "2027-01-07T08:00:00"]},
}
STATES: Mapping[str, dict[str, Any]] = {
    "waiting": {},
    "late, by jitter": {"jitter": HOUR},
    "with a worker": {"pull": "gpu"},
    "suspended": {"handler": "slow"},
    "paused": {},
}


def make_app() -> App:
    app = App()

    @app.handler("h")
    def handle() -> None:
        pass

    @app.handler("slow")
    def suspend(ctx: Context) -> None:
        ctx.sleep(7 * MINUTE)

    return app


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation(make_app(), start=START) as simulation:
        yield simulation


def say(task: Task) -> tuple[object, ...]:
    """Return what an edit could have changed."""
    return task.schedule, task.next_execution_time, task.runs, task.backlog, task.status, task.planned_to, task.revision


DOORS: Mapping[str, Callable[[App, dict[str, Any], Any], object]] = {
    "update": lambda app, _, schedule: app.update("t", schedule=schedule),
    "update with the rest": lambda app, fields, schedule: app.update("t", **fields, schedule=schedule),
    "create again": lambda app, fields, schedule: app.create(id="t", **fields, schedule=schedule),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_same_schedule_again_changes_nothing(sim: Simulation, spelling: str, state: str) -> None:
    """Saved every 17 minutes, it runs as often as one that nobody saves, and is the same each time."""
    app, schedule = sim.app, SPELLINGS[spelling]
    fields = {"handler": "h", **STATES[state]}
    app.create(id="t", **fields, schedule=schedule)
    app.create(id="alone", **fields, schedule=schedule)
    if state == "paused":
        app.pause("t")
        app.pause("alone")
    for number in range(24):
        sim.advance(17 * MINUTE)
        before = say(app.get("t"))
        door = list(DOORS)[number % len(DOORS)]
        DOORS[door](app, fields, schedule)
        assert say(app.get("t")) == before, door
    ran, alone = ([each.id for each in sim.executions(name)] for name in ("t", "alone"))
    assert ran[:-1] == alone[: max(0, len(ran) - 1)]  # each has a jitter of its own
    assert abs(len(ran) - len(alone)) <= 1


def test_other_words_are_another_schedule(sim: Simulation) -> None:
    """A phrase that changes the present schedule does so each time, and a single instant counts from each save."""
    app = sim.app
    app.create(id="t", handler="h", schedule="every day at 9:00")
    app.update("t", schedule="an hour later")
    app.update("t", schedule="an hour later")
    assert app.get("t").next_execution_time == utc("2027-01-05T11:00:00")
    app.create(id="once", handler="h", schedule="in 2 hours")
    sim.advance(HOUR)
    app.update("once", schedule="in 2 hours")
    assert app.get("once").next_execution_time == START + 3 * HOUR


@pytest.mark.parametrize("words", ["tomorrow at 9:00 and 17:00", "every day next week at 9:00"])
def test_dates_that_words_count_from_now_are_others_once_they_are_over(sim: Simulation, words: str) -> None:
    """The task had ended, and the same words mean other days: it runs on them."""
    app = sim.app
    app.create(id="t", handler="h", schedule=words)
    sim.advance(21 * DAY)
    ran = len(sim.executions("t"))
    assert app.get("t").has_ended
    assert app.update("t", schedule=words).next_execution_time is not None
    sim.advance(21 * DAY)
    assert len(sim.executions("t")) == 2 * ran


@pytest.mark.parametrize("again", ["Every 50 minutes", " every  50\nMINUTES "])
def test_words_are_the_same_however_they_are_typed(sim: Simulation, again: str) -> None:
    """Capitals and spaces mean nothing, and the language that was named once is kept."""
    app = sim.app
    app.create(id="t", handler="h", schedule="every 50 minutes", locale="en-GB")
    sim.advance(17 * MINUTE)
    before = say(app.get("t"))
    app.update("t", schedule=again)
    assert say(app.get("t")) == before


def test_an_answer_does_not_name_dates_that_are_not_the_tasks(sim: Simulation) -> None:
    """The task's own week goes on, so the answer says nothing of the week that the words would name now."""
    app, words = sim.app, "every day next week at 9:00"
    created = app.create(id="t", handler="h", schedule=words)
    assert "It is from 2027-01-11 to 2027-01-17." in created.assumed
    sim.advance(8 * DAY)
    assert not any("It is from" in each for each in app.update("t", schedule=words).assumed)


def test_dates_that_words_count_from_now_are_others_the_next_day(sim: Simulation) -> None:
    """Dates that they name are the same, also once some are over."""
    app = sim.app
    app.create(id="counted", handler="h", schedule="tomorrow at 9:00 and 17:00")
    named = app.create(id="named", handler="h", schedule="on 5 January and 9 January 2027 at 9:00").schedule
    sim.advance(2 * DAY)
    moved = app.update("counted", schedule="tomorrow at 9:00 and 17:00")
    assert moved.next_execution_time == utc("2027-01-07T09:00:00")
    assert app.update("named", schedule="on 5 January and 9 January 2027 at 9:00").schedule == named


def test_the_same_words_in_another_zone_are_another_schedule(sim: Simulation) -> None:
    """A zone beside them counts, and so does one that the task has got since."""
    app = sim.app
    app.create(id="t", handler="h", schedule="every day at 9:00")
    app.update("t", schedule="every day at 9:00", timezone="Asia/Tokyo")
    assert app.get("t").next_execution_time == utc("2027-01-05T00:00:00")
    app.update("t", timezone="Europe/Berlin")
    app.update("t", schedule="every day at 9:00", timezone="Asia/Tokyo")
    assert app.get("t").next_execution_time == utc("2027-01-05T00:00:00")


@pytest.mark.parametrize(
    ("schedule", "has_noon"),
    [
        ("*/30 * * * *", True),
        ({"cron": "0 */3 * * *"}, True),
        ("FREQ=DAILY;BYHOUR=12,14;BYMINUTE=0;BYSECOND=0", True),
        ({"rrule": "FREQ=HOURLY;BYMINUTE=0,20;BYSECOND=0"}, True),
        ("every day at 12:00 and 18:00", True),
        ("30 * * * *", False),
        ("DTSTART:20270104T130000\nRRULE:FREQ=HOURLY;BYMINUTE=0,20;BYSECOND=0", False),
        ("every 20 minutes", False),
        ("FREQ=HOURLY", False),
        ({"rrule": "FREQ=HOURLY;BYMINUTE=0,20;BYSECOND=0", "dtstart": "2027-01-04T13:00:00"}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("state", ["late, by jitter", "with a worker"])
def test_another_schedule_runs_what_has_come_due_and_is_in_it(
    schedule: str | dict[str, Any], *, has_noon: bool, state: str
) -> None:
    """By the clock: a rule whose start nobody has named begins with what came due. One that counts, counts from now."""
    app = make_app()
    with Simulation(app, start=START - 30 * MINUTE) as sim:
        app.create(id="t", handler="h", schedule="0 * * * *", **STATES[state])
        sim.advance_to(START)
        app.update("t", schedule=schedule)
        app.update("t", schedule=schedule)
        names = [each.status for each in sim.executions("t") if each.id == "20270104T120000Z"]
        open_runs = [app.get("t").next_execution_time, *(each.scheduled_for for each in app.get("t").runs)]
        noon = utc("2027-01-04T12:00:00")
        assert (names == [], noon in open_runs) == (has_noon, has_noon)


@pytest.mark.parametrize("words", ["every day at 9:00", "every 50 minutes"])
@pytest.mark.parametrize("zones", [("Europe/Berlin", "owner"), ("owner", "Europe/Berlin")])
def test_the_same_words_begin_or_cease_to_follow_the_owner(sim: Simulation, words: str, zones: tuple[str, str]) -> None:
    """The owner is in the very zone that the task is in, so only what happens when they travel differs."""
    app = sim.app
    sim.add_person("ada", timezone="Europe/Berlin")
    app.create(id="t", owner="ada", handler="h", schedule=words, timezone=zones[0])
    assert app.update("t", schedule=words, timezone=zones[1]).schedule.follows_owner == (zones[1] == "owner")


@pytest.mark.parametrize("words", ["every 50 minutes", "every day at 9:00"])
def test_what_was_skipped_stays_skipped_when_the_same_words_are_saved(sim: Simulation, words: str) -> None:
    """They say nothing of it."""
    app = sim.app
    app.create(id="t", handler="h", schedule=words)
    skipped = app.update("t", schedule="skip the next one").next_execution_time
    assert app.update("t", schedule=words).next_execution_time == skipped
    assert app.create(id="t", handler="h", schedule=words).next_execution_time == skipped


def test_a_move_that_is_taken_back_leaves_the_words_known(sim: Simulation) -> None:
    """Saved again, "every 50 minutes" counts from where it began, and not from now."""
    app = sim.app
    schedule = app.create(id="t", handler="h", schedule="every 50 minutes").schedule
    sim.advance(MINUTE)
    due = app.get("t").next_execution_time
    app.move("t", "next", utc("2027-01-04T13:30:00"))
    app.update("t", schedule=schedule)
    sim.advance(20 * MINUTE)
    assert app.update("t", schedule="every 50 minutes").next_execution_time == due


def test_words_that_name_other_dates_beside_the_same_rule_are_the_words_to_know(sim: Simulation) -> None:
    """So the earlier words are another schedule again, and take the date away."""
    app, words = sim.app, "every day at 9:00"
    plain = app.create(id="t", handler="h", schedule=words).schedule
    assert app.update("t", schedule=f"{words} except on 6 January 2027").schedule != plain
    assert not app.update("t", schedule=words).schedule.exdates
