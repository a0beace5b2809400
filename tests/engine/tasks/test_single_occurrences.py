"""Move or skip one occurrence: what runs is the schedule's own list with that one changed, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.harness import MINUTE

from cloudsched import App, Context, ExecutionStatus, Schedule, TaskStatus
from cloudsched.domain.documents.verbs import Action, Verb
from cloudsched.errors import InvalidInput, NotAllowed
from cloudsched.testing import START, Simulation

HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)


@pytest.fixture
def app(app: App) -> App:
    @app.handler("note")
    def note(ctx: Context) -> str:
        return f"{ctx.scheduled_for:%a %H:%M}"

    return app


def make(sim: Simulation, **more: Any) -> str:
    fields: dict[str, Any] = {"handler": "note", "schedule": "every day at 9", **more}
    return sim.app.create(id="t", owner="ada", **fields).id


def ran(sim: Simulation) -> list[datetime]:
    return sorted(each.scheduled_for for each in sim.executions("t"))


RULES = st.sampled_from(
    [
        "FREQ=DAILY",
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=WEEKLY;BYDAY=MO,WE,FR",
        "FREQ=MONTHLY;BYMONTHDAY=-1",
        "FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
        "FREQ=HOURLY;INTERVAL=7",
        "FREQ=MINUTELY;INTERVAL=45",
        "FREQ=DAILY;COUNT=40",
    ]
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati", "Asia/Kathmandu"])


@given(rule=RULES, zone=ZONES, month=st.integers(1, 12), which=st.integers(0, 6), shift=st.integers(-30, 30))
def test_only_the_named_occurrence_changes(rule: str, zone: str, month: int, which: int, shift: int) -> None:
    """The next ones afterwards are those of before, with one at another time or gone, over clock changes as well."""
    schedule = Schedule(rrule=rule, dtstart=f"2027-{month:02}-20T02:30:00", timezone=zone)
    since = datetime(2027, month, 19, tzinfo=UTC)
    before = schedule.upcoming(since, 15)
    chosen = before[which]

    skipped = schedule.leave_out(chosen)
    assert skipped.upcoming(since, 14) == [each for each in before if each != chosen]

    to = chosen + shift * timedelta(minutes=13)
    if to in before or not before[0] < to < before[-1]:
        return
    moved = schedule.move_occurrence(chosen, to)
    assert moved.upcoming(since, 15) == sorted([*(each for each in before if each != chosen), to])
    assert moved.leave_out(to).upcoming(since, 14) == skipped.upcoming(since, 14)
    back = moved.move_occurrence(to, chosen)
    assert back.upcoming(since, 15) == before
    assert (len(back.rdates), len(back.exdates)) == (0, 0), "and nothing of it is left"


def test_the_next_one_is_skipped_and_the_count_goes_on(sim: Simulation) -> None:
    make(sim, max_runs=3)
    sim.advance(DAY)
    sim.app.skip("t")
    sim.advance(WEEK)
    days = [each.day - START.day for each in ran(sim)]
    assert len(days) == 3, "max_runs counts runs"
    assert days[1] - days[0] == 2
    assert sim.app.get("t").status is TaskStatus.COMPLETED


@pytest.mark.parametrize("days", [0, 900])
@pytest.mark.parametrize(
    ("words", "by"),
    [
        ("17:00", 8),
        ("an hour later", 1),
        ("2 hours earlier", -2),
        ("zwei Stunden später", 2),
        ("een uur later", 1),
        ("16 hours later", 16),  # on the next day
    ],
)
def test_words_are_read_beside_the_occurrence(sim: Simulation, days: int, words: str, by: int) -> None:
    """However far ahead it is: what is later does not count from now."""
    make(sim)
    at = START.replace(hour=9) + days * DAY
    sim.app.move("t", at, words)
    assert sim.app.upcoming("t", days + 1)[days] == at + by * HOUR


def test_it_does_not_move_onto_another(sim: Simulation) -> None:
    """Two of them would become one."""
    make(sim)
    with pytest.raises(InvalidInput, match="already"):
        sim.app.move("t", "next", sim.app.upcoming("t", 2)[1])
    assert not sim.app.get("t").schedule.exdates


def test_a_later_one_is_named_by_its_instant(sim: Simulation) -> None:
    make(sim, timezone="Europe/Berlin")
    second = sim.app.upcoming("t", 2)[1]
    sim.app.move("t", second.astimezone(ZoneInfo("Asia/Tokyo")), second + HOUR)
    sim.advance(3 * DAY)
    assert second + HOUR in ran(sim)
    assert second not in ran(sim)
    assert len(ran(sim)) == 3


@pytest.mark.parametrize(
    ("occurrence", "to", "named"),
    [
        (START + 5 * HOUR, "17:00", "occurrence"),
        ("yesterday", "17:00", "occurrence"),
        (datetime(2027, 1, 1, 9), "17:00", "occurrence"),  # noqa: DTZ001 - it is refused
        ("next", "blue", "to"),
        ("next", START - HOUR, "to"),
        ("next", datetime(2027, 1, 1, 9), "to"),  # noqa: DTZ001 - the same
        ("next", "every day", "to"),
        ("next", "only until Easter", "to"),  # it moves nothing
    ],
)
def test_a_refusal_names_its_argument_and_changes_nothing(
    sim: Simulation,
    occurrence: Any,  # noqa: ANN401 - anything
    to: Any,  # noqa: ANN401 - anything
    named: str,
) -> None:
    make(sim)
    before = sim.app.get("t")
    with pytest.raises(InvalidInput) as refused:
        sim.app.move("t", occurrence, to)
    assert refused.value.field == named
    assert sim.app.get("t") == before


def test_one_run_moves_and_cannot_be_skipped(sim: Simulation) -> None:
    """A task that would never run is a mistake: it is cancelled by its own verb."""
    make(sim, schedule=START + HOUR)
    with pytest.raises(NotAllowed, match="Cancel"):
        sim.app.skip("t")
    moved = sim.app.move("t", "next", START + 2 * HOUR)
    assert moved.is_one_time
    sim.advance(DAY)
    assert ran(sim) == [START + 2 * HOUR]
    with pytest.raises(NotAllowed):
        sim.app.skip("t")


def test_a_run_skips_the_one_after_it(sim: Simulation) -> None:
    """The next is one to come, and not the one that runs."""
    app = sim.app

    @app.handler("slow", expected_duration=HOUR)
    def slow(ctx: Context) -> str:
        if ctx.scheduled_for == first:
            sim.app.skip("t")
        return "done"

    make(sim, handler="slow")
    first, second, third = sim.app.upcoming("t", 3)
    sim.advance(3 * DAY)
    assert first in ran(sim)
    assert second not in ran(sim), "it was skipped from within the first"
    assert third in ran(sim)


def test_a_pause_ends_by_itself(sim: Simulation) -> None:
    """What falls into it does not run. An occurrence at its very end does."""
    make(sim)
    sim.advance(DAY)
    second, third, fourth = sim.app.upcoming("t", 3)
    paused = sim.app.pause("t", until=fourth)
    assert (paused.status, paused.paused_until) == (TaskStatus.PAUSED, fourth)
    sim.advance(8 * DAY)
    times = ran(sim)
    assert second not in times
    assert third not in times
    assert fourth in times
    task = sim.app.get("t")
    assert (task.status, task.paused_until) == (TaskStatus.ACTIVE, None)
    assert [each.action for each in task.history[-2:]] == [Action.PAUSED, Action.RESUMED]


LATE_CHANGES: dict[str, Callable[[App], object]] = {
    "resume": lambda app: app.resume("t"),
    "pause and resume": lambda app: (app.pause("t"), app.resume("t")),
    "another end": lambda app: app.pause("t", until="6 January"),
    "edit": lambda app: app.update("t", title="Other"),
    "new times": lambda app: app.update("t", schedule="every day at 10"),
    "skip": lambda app: app.skip("t"),
    "move": lambda app: app.move("t", "next", "2027-01-03T17:00"),
    "trigger": lambda app: app.trigger("t"),
    "cancel": lambda app: app.cancel("t"),
}


@pytest.mark.parametrize("change", LATE_CHANGES)
def test_no_change_makes_a_pause_longer_that_is_over(sim: Simulation, change: str) -> None:
    """Nothing has run since its end, as after a sleep. What was due then runs, or its record says why it does not."""
    make(sim)
    sim.app.pause("t", until="2 January")
    sim.clock.advance(2 * DAY + 12 * HOUR)
    LATE_CHANGES[change](sim.app)
    sim.advance(5 * DAY)
    covered = {each.scheduled_for: each for each in sim.executions("t")}
    assert START + DAY + 9 * HOUR in covered
    assert all(each.message for each in covered.values() if each.status is ExecutionStatus.SKIPPED)


def test_a_pause_may_be_longer_than_the_queue_reaches(sim: Simulation) -> None:
    make(sim, timezone="Europe/Berlin")
    sim.app.pause("t", until="in 70 days")
    sim.advance(80 * DAY)
    assert 8 <= len(ran(sim)) <= 10
    assert min(ran(sim)) >= START + 69 * DAY


def test_a_day_begins_at_midnight_in_its_zone(sim: Simulation) -> None:
    make(sim, timezone="America/New_York")
    ends = sim.app.pause("t", until="Monday").paused_until
    assert ends is not None
    assert f"{ends.astimezone(ZoneInfo('America/New_York')):%a %H:%M}" == "Mon 00:00"
    coming = sim.app.upcoming("t", 3)
    assert len(coming) == 3, "they are those after it"
    assert min(coming) >= ends


def test_the_end_of_a_pause_moves_and_falls_away(sim: Simulation) -> None:
    make(sim)
    sim.app.pause("t", until=START + DAY)
    sim.app.pause("t", until=START + 5 * DAY)
    sim.advance(3 * DAY)
    assert sim.app.get("t").status is TaskStatus.PAUSED
    sim.app.pause("t")
    sim.advance(5 * DAY)
    assert sim.app.get("t").status is TaskStatus.PAUSED, "somebody has to resume it now"
    sim.app.pause("t", until=sim.now + DAY)
    sim.app.resume("t")
    sim.app.pause("t")
    sim.advance(5 * DAY)
    assert sim.app.get("t").status is TaskStatus.PAUSED, "the earlier end is forgotten"


@pytest.mark.parametrize("until", [START - HOUR, START, "blue", datetime(2027, 1, 1)])  # noqa: DTZ001 - it is refused
def test_an_end_that_is_none_is_refused(sim: Simulation, until: Any) -> None:  # noqa: ANN401 - anything
    make(sim)
    with pytest.raises(InvalidInput) as refused:
        sim.app.pause("t", until=until)
    assert refused.value.field == "until"
    assert sim.app.get("t").status is TaskStatus.ACTIVE


def test_a_pause_over_its_only_time_is_refused_or_told(sim: Simulation) -> None:
    make(sim, schedule=START + HOUR)
    with pytest.raises(InvalidInput, match="only time"):
        sim.app.pause("t", until=START + DAY)
    sim.app.pause("t", until=START + 30 * MINUTE)
    sim.advance(DAY)
    assert ran(sim) == [START + HOUR]


def test_a_part_of_a_payload_changes(sim: Simulation) -> None:
    app = sim.app

    @app.handler("free")
    def free(ctx: Context, payload: dict[str, Any]) -> str:
        return f"{ctx.task.id} {payload}"

    make(sim, handler="free", payload={"name": "Ada", "place": {"town": "Rome", "zip": "1"}, "old": 1})
    app.update("t", payload_merge={"place": {"town": "Paris"}, "old": None})
    assert app.get("t").payload == {"name": "Ada", "place": {"town": "Paris", "zip": "1"}}
    with pytest.raises(InvalidInput) as refused:
        app.update("t", payload_merge={"a": 1}, payload={"b": 2})
    assert "payload_merge" in str(refused.value)
    with pytest.raises(InvalidInput):
        app.update("t", payload_merge=[1])  # type: ignore[arg-type]  # refused
    assert app.get("t").payload["name"] == "Ada"


def test_a_pause_ends_though_its_dispatch_is_lost(sim: Simulation) -> None:
    """The sweep sends it again within a minute or two, and what was due at the end of the pause runs."""
    make(sim)
    ends = sim.app.upcoming("t", 3)[2]
    sim.app.pause("t", until=ends)
    sim.queue.purge()
    sim.advance_to(ends + 3 * MINUTE)
    assert ran(sim) == [ends]


@pytest.mark.parametrize("words", ["10:49", "4 hours earlier", "1 January at 10:00", "31 December", "1 Dezember"])
def test_words_that_may_mean_a_time_that_has_passed_move_nothing(sim: Simulation, words: str) -> None:
    """They come true again in a year, and would take the run away without a word."""
    task = make(sim, schedule="every day at 14:53")
    sim.advance_to(datetime(2027, 1, 1, 12, 40, tzinfo=UTC))
    before = sim.app.get(task).schedule
    with pytest.raises(InvalidInput, match=r"in the past|If so, give 202[78]"):
        sim.app.move(task, "next", words)
    assert sim.app.get(task).schedule == before


def test_a_run_that_waits_moves_to_later_on_its_day(sim: Simulation) -> None:
    """Not in a year, unless that is said."""
    task = make(sim)
    sim.clock.advance(timedelta(hours=12))
    assert sim.app.move(task, "next", "17:00").next_execution_time == START + 17 * HOUR
    assert sim.app.move(task, "next", "in 3 hours").next_execution_time == START + 15 * HOUR
    assert sim.app.move(task, "next", "2028-03-04T10:00").schedule.occurs(datetime(2028, 3, 4, 10, tzinfo=UTC))


@pytest.mark.parametrize("verb", [Verb.MOVE, Verb.SKIP])
def test_to_take_one_back_allows_no_more_runs(sim: Simulation, verb: Verb) -> None:
    """A task of three runs runs three times, however often its next one is moved or skipped, and put back."""
    task = make(sim, max_runs=3)
    schedule = sim.app.get("t").schedule
    for _ in range(4):
        sim.advance(DAY)
        if sim.app.get("t").status is TaskStatus.ACTIVE:
            _ = sim.app.move(task, "next", "17:00") if verb is Verb.MOVE else sim.app.skip(task)
            counted = sim.app.get("t").run_count
            sim.app.update(task, schedule=schedule)
            assert sim.app.get("t").run_count == counted
    sim.advance(WEEK)
    assert len(ran(sim)) == 3
    assert sim.app.update(task, schedule="every day at 10").run_count == 0, "another schedule counts anew"


@pytest.mark.parametrize("verb", [Verb.MOVE, Verb.SKIP])
def test_what_was_done_to_one_run_has_its_own_word_in_the_history(sim: Simulation, verb: Verb) -> None:
    """It has what it changed, so that it can be taken back, and is told of its day and of that run's, with which."""
    make(sim)
    word = "MOVED" if verb is Verb.MOVE else "SKIPPED"
    third = START + 57 * HOUR
    done = sim.app.move("t", third, "17:00") if verb is Verb.MOVE else sim.app.skip("t", third)
    entry = done.history[-1]
    assert (entry.action, [each.field for each in entry.fields]) == (word, ["schedule"])
    sim.advance(4 * DAY)
    told = [sim.app.explain("t", START + days * DAY).findings for days in range(3)]
    first, second, last = ([each.sentence for each in found if each.reason == word] for found in told)
    assert first == last != second == []
    assert re.search(rf"by the app's own code .*: {third:%Y-%m-%d %H:%M}", last[0])
