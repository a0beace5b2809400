"""Named calendars in a running app: what tasks do with them, and what follows when they change."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, Simulate
from tests.features.calendars.test_fetch_limits import calendars as calendars_of
from tests.instants import spread

from cloudsched import Context, Task
from cloudsched.adapters.clocks import ManualClock
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.system_tasks import FOLLOW_HANDLER
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.tasks import follow_changes
from cloudsched.errors import InvalidInput, InvalidSchedule, MissingExtra, NotFound, Unavailable
from cloudsched.features.calendars.documents import Calendar, HolidaySource, calendar_key
from cloudsched.testing import Simulation

FAR = date(2031, 1, 1)
DAILY = Schedule.model_validate({"rrule": "FREQ=DAILY;BYHOUR=12", "calendars": ["fr"]})


def put(sim: Simulation, calendar_id: str = "fr", *days: date, owner: str = SYSTEM_OWNER, **content: Any) -> Calendar:
    """Write a calendar of these days, or of other content."""
    content = content or {"days": [(day, day, "") for day in days]}
    return calendars_of(sim).put(calendar_id, owner, by=OWN_CODE, **content)


def create(sim: Simulation, task_id: str | None = "t", schedule: Schedule | str = DAILY, owner: str = "system") -> Task:
    return sim.app.create(id=task_id, handler="greet", owner=owner, schedule=schedule, payload={"name": "Ada"})


def list_days(sim: Simulation, count: int = 3, task_id: str = "t") -> set[date]:
    return {each.date() for each in sim.app.upcoming(task_id, count)}


def weekdays_at_nine(*calendars: Any, **more: Any) -> Schedule:
    return Schedule.model_validate(
        {
            "rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9",
            "timezone": "Europe/Paris",
            "calendars": calendars,
            **more,
        }
    )


def finish_changes(sim: Simulation) -> None:
    """Let the system's tasks plan again what changed calendars concern, until nothing is left."""
    for _ in range(20):
        sim.advance(MINUTE)
        query = TaskQuery(handler=FOLLOW_HANDLER, status=TaskStatus.ACTIVE)
        if not sim.app.container.store.list_tasks(query, limit=1).items:
            return
    raise AssertionError("a change is never finished")


@pytest.fixture(autouse=True)
def greet(sim: Simulation) -> None:
    @sim.app.handler("greet")
    def greet(payload: dict[str, str]) -> str:
        return payload["name"]


@pytest.fixture
def ran(sim: Simulation) -> list[datetime]:
    instants: list[datetime] = []

    @sim.app.handler("note")
    def note(ctx: Context) -> None:
        instants.append(ctx.scheduled_for)

    return instants


def test_a_holiday_is_left_out_and_recorded_with_its_name(sim: Simulation) -> None:
    """The task does not run on it; its history has a SKIPPED record that names the holiday."""
    start = sim.now.date()
    holidays = [(start + timedelta(2), start + timedelta(3), "Bastille Day")]
    put(sim, "fr", days=holidays)
    create(sim)
    assert not list_days(sim, 9) & {start + timedelta(2), start + timedelta(3)}
    sim.advance(6 * DAY)
    found = spread(sim.executions("t"), sim.app.get("t").schedule)
    records = {each.scheduled_for.date(): each for each in found}
    for left_out in (start + timedelta(2), start + timedelta(3)):
        assert records[left_out].status is ExecutionStatus.SKIPPED
        assert (records[left_out].message or "").startswith("Left out: Bastille Day (fr).")
    others = [each for each in records.values() if each.status is ExecutionStatus.SUCCEEDED]
    assert len(records) - len(others) == 2
    assert len(others) >= 3


def test_a_changed_calendar_plans_its_tasks_again(sim: Simulation) -> None:
    """Every task that names it, however many pages there are, and no other one; a second sweep changes nothing."""
    holiday = sim.now.date() + timedelta(1)
    put(sim, "fr")
    for number in range(follow_changes.PAGE_SIZE + 5):
        create(sim, f"t{number}")
    plain = create(sim, "plain", "0 12 * * *")
    put(sim, "fr", holiday)
    finish_changes(sim)
    for number in range(follow_changes.PAGE_SIZE + 5):
        assert holiday not in list_days(sim, task_id=f"t{number}")
    assert sim.app.get("plain").revision == plain.revision
    revision = sim.app.get("t0").revision
    put(sim, "fr", holiday)
    finish_changes(sim)
    assert sim.app.get("t0").revision == revision


@pytest.mark.parametrize("verb", ["create", "update"])
@pytest.mark.parametrize("minutes", [2, 20])
def test_a_task_that_is_stored_while_its_calendar_changes_is_found(
    sim: Simulation,
    monkeypatch: Any,  # noqa: ANN401
    minutes: int,
    verb: str,
) -> None:
    """Between a task's reading of the calendar and its commit the calendar changes, and a sweep sees no task yet.

    Also if that takes so long that nobody waits for the task any more.
    """
    holiday = sim.now.date() + timedelta(1)
    put(sim, "fr")
    commit = sim.app.container.store.commit
    is_first = True

    def late(change: Commit) -> VersionedTask:
        nonlocal is_first
        if is_first:
            is_first = False
            put(sim, "fr", holiday)
            sim.advance(timedelta(minutes=minutes))
        return commit(change)

    if verb == "update":
        create(sim, schedule="0 12 * * *")
    monkeypatch.setattr(sim.app.container.store, "commit", late)
    if verb == "update":
        sim.app.update("t", schedule=DAILY.model_dump(mode="json", by_alias=True, exclude_none=True))
    else:
        create(sim)
    monkeypatch.undo()
    finish_changes(sim)
    assert holiday not in list_days(sim)


def test_nobody_uses_or_shadows_another_owners_calendar(sim: Simulation) -> None:
    """A user's calendar means nothing to others; one for everybody wins over a user's of the same name."""
    own = put(sim, "free", FAR, owner="ada")
    with pytest.raises(NotFound):
        calendars_of(sim).get(own.id, "bob")
    daily = Schedule.model_validate({"rrule": "FREQ=DAILY;BYHOUR=12", "calendars": [own.id]})
    with pytest.raises(InvalidSchedule, match="no such calendar"):
        create(sim, None, daily, "bob")
    task = create(sim, None, daily, "ada")
    assert task.schedule.calendars[0].id == own.id
    put(sim, "free", FAR)
    assert calendars_of(sim).get("free", "ada").id == "free"
    with pytest.raises(InvalidInput, match="taken"):
        put(sim, own.id)
    with pytest.raises(InvalidInput, match="taken"):
        put(sim, "weekends")


def test_a_deleted_calendar_leaves_its_days_to_its_tasks(sim: Simulation) -> None:
    """A task goes on with the days that it had, also after an edit; a new task cannot name the calendar."""
    holiday = sim.now.date() + timedelta(1)
    put(sim, "fr", holiday)
    create(sim)
    calendars_of(sim).delete("fr", SYSTEM_OWNER, by=OWN_CODE)
    sim.app.update("t", title="New", schedule=DAILY.model_copy(update={"rrule": "FREQ=DAILY;BYHOUR=13"}))
    assert holiday not in list_days(sim)
    with pytest.raises(InvalidSchedule, match="no such calendar"):
        create(sim, None)


def test_a_due_run_is_skipped_only_if_the_new_days_take_it(sim: Simulation, ran: list[datetime]) -> None:
    """What came due before a pause, and is to run after it, runs if its day is still free, and else is recorded."""
    for name in ("kept", "taken"):
        put(sim, name)
        sim.app.create(
            id=name,
            handler="note",
            schedule=Schedule.model_validate({"rrule": "FREQ=DAILY;BYHOUR=12", "calendars": [name]}),
            catch_up={"mode": "all"},
        )
    today, clock = sim.now.date(), sim.app.container.clock
    assert isinstance(clock, ManualClock)
    clock.advance(13 * HOUR)  # the queue is late
    for name in ("kept", "taken"):
        sim.app.pause(name)
        assert sim.app.get(name).backlog
    later = today + timedelta(9)
    put(sim, "kept", later)
    put(sim, "taken", today)
    finish_changes(sim)
    assert [each.status for each in sim.executions("taken")] == [ExecutionStatus.SKIPPED]
    for name in ("kept", "taken"):
        sim.app.resume(name)
    sim.advance(5 * MINUTE)
    assert [each.date() for each in ran] == [today]
    assert later not in list_days(sim, 12, "kept")


ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20270714
SUMMARY:Bastille\\, Day
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20270802
DTEND;VALUE=DATE:20270807
SUMMARY:Closed
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20200101
RRULE:FREQ=YEARLY
SUMMARY:New Year
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20270815
STATUS:CANCELLED
END:VEVENT
END:VCALENDAR
"""


def test_an_ics_file_gives_its_days(sim: Simulation) -> None:
    """Single days, intervals without their exclusive end, and yearly rules; cancelled events are left out."""
    content = put(sim, "c", ics=ICS).content.split("\n")
    assert "2027-07-14 Bastille, Day" in content
    assert "2027-08-02/2027-08-06 Closed" in content
    assert f"{sim.now.year + 1}-01-01 New Year" in content
    assert not [line for line in content if line.startswith(("2027-08-15", "2020"))]
    with pytest.raises(InvalidInput, match="no iCalendar"):
        put(sim, "c", ics="hello")


def test_holidays_are_a_snapshot_with_the_packages_version(sim: Simulation) -> None:
    """A country's holidays are stored with their names and the version that knew them; a wrong country is refused."""
    made = put(sim, "fr", holidays=HolidaySource(country="FR", language="fr", first_year=2027, last_year=2028))
    assert "2027-07-14 Fête nationale" in made.content
    assert made.holidays is not None
    assert made.holidays.version
    with pytest.raises(InvalidInput, match="XX"):
        put(sim, "xx", holidays=HolidaySource(country="XX"))


def test_holidays_that_words_name_by_their_place_are_those_of_a_calendar(sim: Simulation) -> None:
    """The calendars of two places are found whatever their ids are, one's own as well, and only if they are there."""
    words = "every day at 9 except Bavarian and US holidays"
    years = {"first_year": 2026, "last_year": 2028}
    put(sim, "hd", holidays=HolidaySource(country="US", **years))
    put(sim, "work", owner="ada", holidays=HolidaySource(country="DE", subdivision="BY", **years))
    with pytest.raises(InvalidSchedule, match="'DE-BY', and there is no such calendar"):
        create(sim, None, words, owner="bob")
    made = create(sim, schedule=words, owner="ada")
    assert [each.id for each in made.schedule.calendars] == [calendar_key("ada", "work"), "hd"]
    days = {each.date() for each in made.schedule.between(sim.now, sim.now + timedelta(800))}
    assert date(2027, 7, 2) in days
    assert not days & {date(2027, 1, 6), date(2027, 7, 4)}
    again = sim.app.update("t", schedule="not on Bavarian holidays")
    assert again.schedule.calendars == made.schedule.calendars


def test_without_the_package_holidays_say_what_to_install(sim: Simulation, monkeypatch: Any) -> None:  # noqa: ANN401
    """A missing extra names the command that brings it, and nothing is stored."""
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(MissingExtra, match="its extra holidays"):
        sim.app.put_calendar("fr", holidays={"country": "FR"})
    with pytest.raises(NotFound):
        calendars_of(sim).get("fr", SYSTEM_OWNER)


def test_holidays_are_refreshed_with_the_years_and_the_package(
    simulate: Simulate,
    monkeypatch: Any,  # noqa: ANN401
) -> None:
    """Every day: a year that has come closer is added, and so is what a newer version knows."""
    sim = simulate(start=datetime(2027, 12, 26, 7, 30, tzinfo=UTC))

    def last_year() -> int:
        return int(calendars_of(sim).get("fr", SYSTEM_OWNER).content.splitlines()[-1][:4])

    made = put(sim, "fr", holidays=HolidaySource(country="FR"))
    put(sim, "fr", holidays=HolidaySource(country="FR"))  # its task is there already
    begun = last_year()
    assert begun == sim.now.year + 10
    sim.advance(3 * DAY)
    assert calendars_of(sim).get("fr", SYSTEM_OWNER).revision == made.revision
    sim.advance(5 * DAY)
    assert last_year() == begun + 1
    monkeypatch.setattr("cloudsched.features.calendars.sources.version", lambda _name: "99.0")
    sim.advance(2 * DAY)
    refreshed = calendars_of(sim).get("fr", SYSTEM_OWNER).holidays
    assert refreshed is not None
    assert refreshed.version == "99.0"
    put(sim, "fr", FAR)
    with pytest.raises(NotFound):
        sim.app.get("calendar-fr")


def test_a_calendar_from_a_url_is_refreshed_by_its_task(sim: Simulation, monkeypatch: Any) -> None:  # noqa: ANN401
    """Once a day, with the ETag; changed days plan tasks again; an address that is not public is refused."""
    answers: list[Any] = [(ICS, '"1"')]
    asked: list[tuple[str, str | None]] = []

    def fetch(_self: object, url: str, etag: str | None) -> Any:  # noqa: ANN401 - as the port
        asked.append((url, etag))
        return answers[0]

    monkeypatch.setattr("cloudsched.features.calendars.sources.CalendarSources.fetch", fetch)
    put(sim, "c", url="https://example.org/a.ics")
    answers[0] = None
    sim.advance(26 * HOUR)
    assert asked[1:] == [("https://example.org/a.ics", '"1"')]
    answers[0] = (ICS.replace("20270714", "20270720"), '"2"')
    sim.advance(24 * HOUR)
    calendar = calendars_of(sim).get("c", SYSTEM_OWNER)
    assert "2027-07-20 Bastille, Day" in calendar.content
    assert calendar.revision == 2
    calendars_of(sim).delete("c", SYSTEM_OWNER, by=OWN_CODE)
    with pytest.raises(NotFound):
        sim.app.get("calendar-c")
    assert calendars_of(sim).refresh("c") == "It is no longer fetched."  # its task had begun before
    monkeypatch.undo()
    source = calendars_of(sim)._source  # noqa: SLF001 - its guard knows the old function
    vars(source).pop("fetch")
    with pytest.raises(InvalidInput, match="may not be reached"):
        put(sim, "c", url="http://127.0.0.1/a.ics")
    with pytest.raises(InvalidInput, match="https URL"):
        put(sim, "c", url="file:///etc/passwd")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (ICS.replace("DATE:20270802", "DATE:20270230"), "line 7: 'Closed' has the date '20270230'"),
        (ICS.replace("END:VEVENT", "", 1), "line 6: BEGIN:VEVENT is in VEVENT of line 2"),
        (Unavailable("The calendar's server", "it answered 503"), "it answered 503"),
    ],
)
def test_a_calendar_that_turns_bad_keeps_its_days_and_says_so(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, bad: str | Unavailable, problem: str
) -> None:
    """Until it is read again: as it was (304), in another version, or written anew. Its tasks are left alone."""
    answer: Any = (ICS, '"1"')

    def fetch(_: str, etag: str | None) -> Any:  # noqa: ANN401 - as the port
        asked.append(etag)
        if isinstance(answer, Unavailable):
            raise answer
        return answer

    asked = list[str | None]()
    calendars = calendars_of(sim)
    monkeypatch.setattr(calendars._source, "fetch", fetch)  # noqa: SLF001 - the network
    made = put(sim, "c", url="https://example.org/a.ics")
    for good in (None, (ICS.replace("20270714", "20270720"), '"3"')):
        answer = (bad, '"2"') if isinstance(bad, str) else bad
        sim.advance(26 * HOUR)
        stale = calendars.get("c", SYSTEM_OWNER)
        assert problem in (stale.problem or "")
        assert (stale.content, stale.revision, stale.fetched_at) == (made.content, 1, made.fetched_at)
        assert set(asked[1:]) == {'"1"'}  # it does not wait for a version after the bad one
        answer = good
        sim.advance(26 * HOUR)
        assert calendars.get("c", SYSTEM_OWNER).problem is None
    answer = (bad, '"4"') if isinstance(bad, str) else bad
    sim.advance(26 * HOUR)
    assert calendars.get("c", SYSTEM_OWNER).problem
    assert put(sim, "c", FAR).problem is None


def test_a_wrong_calendar_in_a_schedule_names_its_place(sim: Simulation) -> None:
    """Unknown ids, calendars of a single instant and a business day without calendars are refused by field."""
    with pytest.raises(InvalidSchedule, match=r"schedule\.calendars\.0\.id"):
        create(sim, None, weekdays_at_nine("nope"))
    with pytest.raises(InvalidSchedule, match="beside `at`"):
        Schedule.model_validate({"at": datetime(2030, 1, 1, tzinfo=UTC), "calendars": ["weekends"]})
    with pytest.raises(InvalidSchedule, match="businessDay"):
        weekdays_at_nine(business_day=3)
