"""What was left out stays left out when words or a zone change the schedule: an exception names an occurrence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each
from tests.instants import DAY, HOUR, MINUTE

from cloudsched import App, Schedule
from cloudsched.language.reader import read
from cloudsched.testing import Simulation

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
END = NOW + 40 * DAY
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
Change = Callable[[Schedule], Schedule]
Image = Callable[[datetime], datetime | None]


def say(words: str) -> Change:
    """Return the change of a schedule by words."""

    def change(current: Schedule) -> Schedule:
        reading = read(words, now=NOW, timezone=current.timezone, current=current)
        assert reading.schedule is not None, str(reading)
        return reading.schedule

    return change


def list_local(schedule: Schedule) -> set[datetime]:
    zone = ZoneInfo(schedule.timezone)
    return {at.astimezone(zone).replace(tzinfo=None) for at in schedule.between(NOW, END)}


def _later(local: datetime) -> datetime:
    return local + HOUR


def _exchange(old: time, new: time | None) -> Image:
    def move(local: datetime) -> datetime | None:
        if local.time() != old:
            return local
        return None if new is None else datetime.combine(local, new)

    return move


def _stay(local: datetime) -> datetime:
    return local


CHANGES: dict[str, tuple[Change, Image]] = {
    "later": (say("an hour later"), _later),
    "earlier": (say("30 minutes earlier"), lambda local: local - 30 * MINUTE),
    "another time": (say("at 8:30 instead of 8:00"), _exchange(time(8), time(8, 30))),
    "past the other": (say("at 21:15 instead of 8:00"), _exchange(time(8), time(21, 15))),
    "a second time": (say("also at 13:00"), _stay),
    "one time fewer": (say("not at 20:00"), _exchange(time(20), None)),
    "words of a zone": (say("in Tokyo time"), _stay),
    "a zone": (lambda current: current.change_zone("Asia/Tokyo"), _stay),
    "the owner's zone": (lambda current: current.follow_owner().move_to("Asia/Tokyo"), _stay),
    "an end": (say("until 1 April 2027"), _stay),
}
RULES = ("every day", "every weekday", "every Monday", "every 2 weeks on Monday", "on the 5th of each month")


def _exclude(schedule: Schedule, locals_: list[datetime], form: str) -> Schedule:
    zone = ZoneInfo(schedule.timezone)
    forms: dict[str, Callable[[datetime], str]] = {
        "local": lambda local: local.isoformat(),
        "instant": lambda local: local.replace(tzinfo=zone).astimezone(UTC).isoformat(),
        "named": lambda local: schedule.name_occurrence(local.replace(tzinfo=zone).astimezone(UTC)),
    }
    return schedule.model_copy(update={"exdates": [forms[form](local) for local in locals_]})


@given(
    st.sampled_from(RULES),
    st.sampled_from(ZONES),
    st.sampled_from(["local", "instant", "named"]),
    st.sets(st.integers(0, 7), min_size=1, max_size=4),
    st.lists(st.sampled_from([*CHANGES]), min_size=1, max_size=2, unique=True),
)
def test_what_was_skipped_stays_skipped(rule: str, zone: str, form: str, places: set[int], changes: list[str]) -> None:
    """What runs after a change is the changed schedule without the images of what was left out."""
    full = read(f"{rule} at 8:00 and 20:00", now=NOW, timezone=zone).schedule
    assert full is not None
    upcoming = [at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for at in full.upcoming(NOW, 8)]
    gone: set[datetime] = {upcoming[place] for place in places if place < len(upcoming)}
    schedule = _exclude(full, sorted(gone), form)
    is_moved = False
    for name in changes:
        change, image = CHANGES[name]
        is_named = name not in {"another time", "past the other", "one time fewer"} or not is_moved
        if not is_named or (name == "the owner's zone" and form == "instant"):
            continue
        is_moved = is_moved or name in {"later", "earlier", "another time", "past the other"}
        if name == "the owner's zone":
            schedule, full = schedule.change_zone(zone), full.change_zone(zone)
        schedule, full = change(schedule), change(full)
        gone = {moved for local in gone if (moved := image(local)) is not None}
    assert list_local(schedule) == list_local(full) - gone


@try_each(
    "before, change, skipped",
    [
        ("every Monday at 9:00", "Tuesdays instead of Mondays", "2027-01-05T09:00:00"),
        ("every Monday at 9:00", "move it from Monday to Thursday", "2027-01-07T09:00:00"),
        ("every Monday at 9:00", "also on Saturdays", "2027-01-04T09:00:00"),
        ("every Monday at 9:00", "Tuesday and Friday at 11:00", "2027-01-05T11:00:00"),
        ("every Monday and Thursday at 9:00", "make it Tuesday and Friday", "2027-01-05T09:00:00"),
        ("on the 15th of each month at 9:00", "make it the 20th", "2027-01-20T09:00:00"),
        ("every year on 24 December at 9:00", "make it 10:00", "2027-12-24T10:00:00"),
        ("every day at 8:00", "also at 20:00", "2027-01-02T08:00:00"),
        ("every day at 8:00", "make it 9:00 and 17:00", "2027-01-02T09:00:00"),
        ("every day at 8:00 and 20:00", "make it 19:00", "2027-01-01T19:00:00"),
    ],
)
def test_the_next_one_is_skipped_and_moves_along(before: str, change: str, skipped: str) -> None:
    """Other times of day and other days of its period take the skip with them, and the description names it."""
    schedule = read(before, now=NOW, timezone="UTC").schedule
    assert schedule is not None
    full, changed = say(change)(schedule), say(change)(say("skip the next one")(schedule))
    expected = datetime.fromisoformat(skipped)
    within = {at.replace(tzinfo=None) for at in full.between(NOW, NOW + 400 * DAY)}
    assert within - {at.replace(tzinfo=None) for at in changed.between(NOW, NOW + 400 * DAY)} == {expected}
    assert f"except {expected:%Y-%m-%d} at {expected:%H:%M}" in changed.describe()


def test_a_day_that_somebody_names_stays_a_day() -> None:
    """Everything on it is left out, whatever its times are."""
    schedule = read("every day at 8:00 except on 24 December 2027", now=NOW, timezone="UTC").schedule
    assert schedule is not None
    for change in ("an hour later", "also at 20:00", "in Tokyo time"):
        schedule = say(change)(schedule)
    assert schedule.exdates == ("2027-12-24",)


def test_what_left_out_nothing_is_forgotten() -> None:
    """Else another change would leave out what nobody has skipped."""
    schedule = read("every day at 8:00 and 20:00", now=NOW, timezone="UTC").schedule
    assert schedule is not None
    skipped = schedule.model_copy(update={"exdates": ["2027-01-02T08:00:00"]})
    assert say("at 8:00 instead of 20:00")(say("not at 8:00")(skipped)).exdates == ()


def test_a_skipped_run_does_not_come_back_at_another_time() -> None:
    """The task does not run on the skipped morning, and says so."""
    app = App()
    app.handler("h")(lambda: None)
    with Simulation(app, start=NOW) as sim:
        app.create(id="d", owner="ada", handler="h", schedule="every day at 8:00 and 20:00")
        sim.advance_to(NOW + 9 * HOUR)
        app.update("d", schedule="skip the next one")
        changed = app.update("d", schedule="at 8:30 instead of 8")
        assert "except 2027-01-02 at 08:30" in changed.schedule.describe()
        sim.advance_to(NOW + 2 * DAY)
        assert [each.scheduled_for.day for each in sim.executions("d")] == [1, 2, 3]


@try_each("zone", ["America/New_York", "Asia/Kolkata"])
def test_elapsed_time_keeps_what_it_leaves_out(zone: str) -> None:
    """A rule that steps in real time moves with its start, or stays with its owner. The same run is left out."""
    rule = Schedule(rrule="FREQ=MINUTELY;INTERVAL=90", dtstart="2027-03-01T10:00:00", timezone="Europe/Berlin")
    times = rule.upcoming(NOW, 700)
    skipped = rule.model_copy(update={"exdates": [rule.name_occurrence(times[place]) for place in (3, 300, 650)]})
    changes: tuple[Change, ...] = (
        lambda each: each.change_zone(zone),
        lambda each: each.follow_owner().move_to(zone),
    )
    for change in changes:
        full, left = change(rule).upcoming(NOW, 700), set(change(skipped).upcoming(NOW, 697))
        assert [place for place, at in enumerate(full) if at not in left] == [3, 300, 650]


def test_a_count_counts_what_is_left_out_in_any_zone() -> None:
    """The first of ten, skipped, is still one of the ten after the owner has travelled and the zone was fixed."""
    rule = Schedule(
        rrule="FREQ=HOURLY;COUNT=10",
        dtstart="2027-01-01T10:00:00",
        timezone="Europe/Berlin",
        exdates=["2027-01-01T10:00:00"],
        follows_owner=True,
    )
    assert len(rule.move_to("Asia/Tokyo").change_zone("Asia/Tokyo").upcoming(NOW - 3 * DAY, 20)) == 9


def test_one_of_two_times_that_the_clock_shows_twice_is_left_out_alone() -> None:
    """The skip of one 02:30 names its instant, and the other one runs."""
    rule = Schedule(
        rrule="FREQ=DAILY;BYHOUR=2;BYMINUTE=30", dtstart="1970-01-01T00:00:00", timezone="Europe/Berlin", fold="both"
    )
    both = rule.between(datetime(2027, 10, 30, 22, tzinfo=UTC), datetime(2027, 10, 31, 22, tzinfo=UTC))
    assert len(both) == 2
    skipped = rule.model_copy(update={"exdates": [rule.name_occurrence(both[1])]})
    assert (skipped.occurs(both[0]), skipped.occurs(both[1])) == (True, False)


@try_each(
    "rule, on, business_day",
    [
        ("FREQ=DAILY;BYHOUR=8", "after", None),
        ("FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=8", "after", None),
        ("FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=8", "skip", 3),
    ],
)
def test_the_next_one_is_skipped_whatever_a_calendar_moved_to_it(rule: str, on: str, business_day: int | None) -> None:
    """Saturday, Sunday and Monday all run on Monday. Whoever skips that leaves out all three."""
    app = App()
    app.handler("h")(lambda: None)
    calendars = [{"id": "weekends", "on": on}]
    schedule = {"rrule": rule, "timezone": "UTC", "calendars": calendars, "businessDay": business_day}
    with Simulation(app, start=NOW + DAY) as sim:  # a Saturday
        times = app.create(id="d", owner="ada", handler="h", schedule=schedule).schedule.upcoming(sim.now, 4)
        assert app.update("d", schedule="skip the next two").schedule.upcoming(sim.now, 2) == times[2:]


@try_each("words", ["skip the next 51", "skip the next 1000"])
def test_more_than_can_be_skipped_is_refused(words: str) -> None:
    """With a reason, as every other phrase that cannot be done."""
    schedule = read("every day at 8:00", now=NOW, timezone="UTC").schedule
    reading = read(words, now=NOW, timezone="UTC", current=schedule)
    assert reading.schedule is None
    assert "at most 50 can be skipped at once" in str(reading)
