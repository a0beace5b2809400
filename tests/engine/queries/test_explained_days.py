"""Why a task ran or did not run on a day that somebody asks about: what was then counts, not what is now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND
from tests.engine.queries.explained_scenes import Scene, make_scene, travel
from tests.engine.usage.harness import put_budget
from tests.features.pull.harness import claim_all, finish

from cloudsched import Schedule
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.task import HistoryEntry
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.explanation.findings import Explanation, Reason
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.queries.explanations import explain_task
from cloudsched.engine.state.record_changes import note_act
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.testing import START

DAILY = Schedule(rrule="FREQ=DAILY;BYHOUR=9", timezone="Europe/Paris")


@pytest.fixture
def scene() -> Scene:
    return make_scene()


def ask(scene: Scene, at: datetime) -> Explanation:
    scene.asked_at = at
    return scene.explain()


def resume(scene: Scene, at: datetime, *queues: str) -> None:
    for queue in queues:
        for entry in (
            HistoryEntry(at=START, action=Action.QUEUE_PAUSED),
            HistoryEntry(at=at, action=Action.QUEUE_RESUMED),
        ):
            note_act(scene.app.container.store.records, entry, owner=SYSTEM_OWNER, queue=queue)


def reasons(found: Explanation) -> list[Reason]:
    return [each.reason for each in found.findings]


def test_a_holiday_is_named_before_and_after_it(scene: Scene) -> None:
    """Before it by the schedule, after it by the record, which says the same; each said once. So is one that moves."""
    first = (START + DAY).date()
    with scene.sim:
        CalendarsWiring.of(scene.app.container).calendars.put(
            "de", SYSTEM_OWNER, days=[(first, first + DAY, "Good Friday")], by=OWN_CODE
        )
        daily = {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "Europe/Paris", "calendars": [{"id": "de"}]}
        scene.create(schedule=Schedule.model_validate(daily))
        friday = datetime(first.year, first.month, first.day, 12, tzinfo=UTC)
        scene.asked_at = friday
        for on in ("AFTER", "BEFORE"):
            moved = {
                "rrule": "FREQ=WEEKLY;BYHOUR=9",
                "dtstart": f"{first}T09:00:00",
                "calendars": [{"id": "de", "on": on}],
            }
            scene.create(on, schedule=Schedule.model_validate(moved))
            assert "at 09:00 (UTC) is moved to another day: Good Friday (de)." in scene.explain(on).summary
        for _ in range(2):
            found = ask(scene, friday)
            assert reasons(found).count(Reason.ADJUSTED) == 1
            assert "Good Friday" in found.summary
            assert found.at == friday
            scene.sim.advance(5 * DAY)
        assert found.findings[0].execution_id is not None
        scene.asked_at = friday + DAY
        assert "calendars as they are now" in str(scene.explain("AFTER"))


def test_a_day_knows_of_a_paused_queue(scene: Scene) -> None:
    """As the present does: neither the sweep nor the run's own plan is why it does not go on."""
    scene.does["work"] = lambda ctx: ctx.sleep(HOUR)
    with scene.sim as sim:
        scene.create()
        sim.advance(10 * MINUTE)
        sim.queue.holds = True
        sim.clock.advance(2 * HOUR)
        assert "its queue is paused" in str(ask(scene, sim.now))


def test_a_day_in_another_zone_is_not_explained_by_this_one(scene: Scene) -> None:
    """A schedule that follows its owner had another time of the day there."""
    with scene.sim as sim:
        travel(scene)
        sim.advance(3 * DAY)
        scene.app.update_person("ada", timezone="America/New_York")
        sim.advance(MINUTE)
        assert "no record" not in str(ask(scene, START + 2 * DAY))


def test_what_was_skipped_at_this_very_instant_is_not_to_come(scene: Scene) -> None:
    """On a clock that stands still, as in a test, the skip is as old as the question."""
    with scene.sim:
        scene.create(schedule=DAILY)
        at = scene.app.skip("t").updated_at
        stands = MovableClock(at, frozen=True)
        container = scene.app.container
        found = explain_task(container.store, stands, scene.app.get("t"), shows_holders=True, at=START + 8 * HOUR)
        assert "is left out by an exception" in found.summary


def test_a_day_that_an_exception_leaves_out_is_explained_by_that(scene: Scene) -> None:
    """In terms of the schedule; a day on which it would not run anyway is not."""
    weekdays = {"rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9", "timezone": "UTC", "exdates": ["2027-01-08"]}
    with scene.sim:
        scene.create(schedule=Schedule.model_validate(weekdays))
        for _ in range(2):
            friday, saturday = (ask(scene, datetime(2027, 1, day, 12, tzinfo=UTC)) for day in (8, 9))
            assert "on Fri 8 Jan 2027 at 09:00 (UTC) is left out by an exception" in friday.summary
            assert "exception" not in saturday.summary
            scene.sim.advance(12 * DAY)


def test_a_pause_is_told_from_its_beginning_to_its_end(scene: Scene) -> None:
    """Also once it is over; the days before and after it say nothing of it, and no occurrence is said to be missing."""
    with scene.sim:
        scene.create(schedule=DAILY)
        scene.sim.advance(2 * DAY)
        scene.app.pause("t")
        scene.sim.advance(3 * DAY)
        scene.app.resume("t")
        scene.sim.advance(2 * DAY)
        found = ask(scene, START + 3 * DAY + 6 * HOUR)
        assert found.findings[0].reason is Reason.PAUSED
        assert "by the app's own code" in found.summary
        assert " until " in found.summary
        assert Reason.NOT_KEPT not in reasons(found)
        assert "it was paused then" in " ".join(each.sentence for each in found.findings)
        assert Reason.PAUSED not in reasons(ask(scene, START + 6 * DAY))
        assert Reason.PAUSED not in reasons(ask(scene, START + DAY))
        scene.app.update("t", max_runs=scene.app.get("t").run_count, until=START + 2 * DAY)
        assert "it was paused then" in str(ask(scene, START + 3 * DAY))
        scene.app.update("t", max_runs=None, until=None)
        scene.app.pause("t", until=scene.sim.now + 2 * DAY)
        assert "which is still ahead" in str(ask(scene, scene.sim.now + 3 * DAY))
        assert "which does not run if it is still paused" in str(ask(scene, scene.sim.now + DAY))


def test_what_comes_due_while_a_budget_holds_a_task_is_not_said_to_be_lost(scene: Scene) -> None:
    """It is caught up on, also once it goes on but has not begun."""
    with scene.sim:
        put_budget(scene.sim, 0)
        scene.create()
        scene.sim.advance(3 * HOUR)
        scene.sim.queue.holds = True
        for words in ("comes due while it is paused", "has come due"):
            told = str(ask(scene, START + 2 * HOUR))
            assert "does not run" not in told
            assert f"Of what {words}, catchUp (LATEST) decides" in told
            put_budget(scene.sim, 1000)


def test_an_occurrence_that_can_no_longer_begin_is_not_said_to_be_due(scene: Scene) -> None:
    """Neither now nor of its day."""
    with scene.sim:
        scene.create(expiration=2 * HOUR)
        scene.sim.clock.advance(5 * HOUR)
        assert "too late for that one: it had 2 h" in scene.explain().summary
        assert "none over 2 h late" in str(ask(scene, START + HOUR))


def test_a_time_within_an_outage_is_answered_for_itself(scene: Scene) -> None:
    """By the one record that covers it, with how many it has, from its first to its last day, whatever ran before."""
    with scene.sim:
        scene.create(schedule=Schedule.every(5 * MINUTE, start=START), catch_up="latest")
        scene.sim.advance(HOUR)
        scene.sim.clock.advance(2 * DAY)
        scene.sim.advance(12 * HOUR)
        assert "with it" in str(ask(scene, START))
        for hours in (5, 29, 47):
            found = ask(scene, START + timedelta(hours=hours, minutes=2))
            meant = START + timedelta(hours=hours, minutes=5)
            told = found.findings[0]
            assert (told.at, told.execution_id) == (meant, "20270101T010500Z")
            assert f"of {meant:%a} {meant.day} Jan 2027 at {meant:%H:%M} (UTC), like all" in found.summary
            assert "from Fri 1 Jan 2027 at 01:05 (UTC) to Sun 3 Jan 2027 at 00:55" in found.summary
            assert "with it, up to" in found.summary
            assert Reason.NOT_KEPT not in reasons(found)


@pytest.mark.parametrize("minutes", [0, 1, 30, 601, 1200, 1435, 1439])
def test_a_time_is_answered_by_what_was_due_then_or_next(scene: Scene, minutes: int) -> None:
    """Of a day with more records than are read, too; after the last one by the one before."""
    with scene.sim:
        scene.create(schedule=Schedule.every(5 * MINUTE, start=START - DAY), catch_up="latest")
        scene.sim.advance(4 * DAY)
        midnight = (START + 2 * DAY).replace(hour=0)
        found = ask(scene, midnight + minutes * MINUTE)
        meant = midnight + min(-(-minutes // 5) * 5, 1435) * MINUTE
        assert found.findings[0].at == meant
        assert found.findings[0].reason is Reason.OUTCOME


def test_of_many_runs_of_a_day_those_that_failed_come_first(scene: Scene) -> None:
    """It is said how many more there are, also of those to come, and that jitter put them off, and no queue."""
    with scene.sim as sim:
        scene.does["work"] = lambda ctx: 1 / (ctx.scheduled_for.hour < 12)
        scene.create(schedule=Schedule.every(3 * HOUR, start=START), jitter=HOUR)
        sim.advance(2 * DAY)
        for run in sim.executions("t"):
            resume(scene, run.started_at or START, "quick")
        resume(scene, sim.now, "quick")
        scene.app.retry("t", "20270102T120000Z")
        sim.advance(MINUTE)
        told = f"{ask(scene, START + DAY)} {ask(scene, START + 4 * DAY)}"
        for words in ("5 more of its records, of which 2 did not", "Its jitter, as it is now", "day, and one on Tue"):
            assert words in told
        assert (told.count("It was retried by"), "queue" in told) == (1, False)


@pytest.mark.parametrize("days", range(-2, 12))
def test_every_day_has_an_answer(scene: Scene, days: int) -> None:
    """Before the task, during it, after its end, and in the future: a sentence each, none of them twice."""
    with scene.sim:
        scene.create(schedule=DAILY, max_runs=4)
        scene.create("u", schedule=DAILY, until=START + 3 * DAY)
        assert "maxRuns of 4" in ask(scene, START + 9 * DAY).summary
        scene.sim.advance(6 * DAY)
        found = ask(scene, START + days * DAY)
        told = scene.explain("u").findings
        assert "nothing starts" not in str(told)
        if days > 3:
            assert "maxRuns of 4" in found.summary
            assert "up to its until, Mon 4 Jan 2027" in str(told)
        sentences = [each.sentence for each in found.findings]
        assert sentences
        assert len(set(sentences)) == len(sentences)
        assert all(each.endswith(".") for each in sentences)


def test_a_day_is_explained_by_the_schedule_that_it_had(scene: Scene) -> None:
    """What an edit brings was not due before it, and no reason for what was or was not."""
    with scene.sim as sim:
        scene.create(schedule=Schedule(rrule="FREQ=MONTHLY"))
        sim.advance(4 * DAY)
        scene.app.update("t", schedule=Schedule(rrule="FREQ=HOURLY"))
        before, same = (str(ask(scene, sim.now - length)) for length in (2 * DAY, HOUR))
        sim.advance(2 * HOUR)
        scene.app.backfill("t", sim.now - HOUR, sim.now)
        sim.advance(MINUTE)
        again = str(ask(scene, sim.now - HOUR - MINUTE))
    assert ("backfill's run of" in again, "after it was due" in again) == (True, False)
    assert ("every month" in before, "every hour" in before + same) == (True, False)
    assert "no record" not in same


def test_a_late_start_says_what_was_found_about_its_time(scene: Scene) -> None:
    """What is said are the counts and notes of that time: users hear of their owner's runs, and of no queue."""
    with scene.sim as sim:
        for task_id, owner in (("t", "ada"), ("t2", "ada"), ("u", "bob")):
            scene.create(task_id, owner=owner)
        scene.create("other", owner="bob", schedule=Schedule.every(HOUR, start=START + 30 * MINUTE), pull="gpu")
        sim.advance(MINUTE)
        sim.queue.holds = True
        sim.advance(49 * MINUTE)
        sim.queue.holds = False
        resume(scene, sim.now, "quick", "quick-low", "quick-critical-q2", "quick-hops")
        sim.advance(SECOND)
        finish(sim, claim_all(sim)[0])
        sim.advance(20 * MINUTE)

        due = START + 5 * MINUTE
        (told,) = (each.sentence for each in ask(scene, due).findings if each.at == due)
        assert "It began 45 min after it was due" in told
        assert "Until Fri 1 Jan 2027 at 00:50 (UTC), a queue of its priority, quick, was paused" in told
        assert told.count("queue") == 1
        span = "due from Fri 1 Jan 2027 at 00:05 (UTC) to Fri 1 Jan 2027 at 00:47 (UTC)"
        assert f"All 4 runs that were {span} and succeeded or failed began 3 min or more after they were due." in told
        told = str(scene.app.acting_for("ada").explain("t", at=due))
        assert f"All 2 runs of its owner that were {span}" in told
        assert "quick" not in told
        scene.app.update("t", priority="LOW")
        scene.asked_at = due + 25 * MINUTE
        assert "queue" not in f"{scene.explain()} {scene.explain('other')}"


@pytest.mark.parametrize("others", [0, 2])
def test_a_run_that_alone_began_late_is_not_called_an_outage(scene: Scene, others: int) -> None:
    """It waited for its lock, long after its queue, while others started in time, or nothing else was due then."""
    with scene.sim:
        scene.create("holder", lock_key="k", schedule=Schedule.once(START + 4 * MINUTE), pull="gpu")
        scene.create(lock_key="k", schedule=Schedule.once(START + 4 * MINUTE + 2 * SECOND))
        for number in range(others):
            scene.create(f"o{number}", schedule=Schedule.once(START + 5 * MINUTE))
        scene.sim.advance(4 * MINUTE + SECOND)
        (claim,) = claim_all(scene.sim)
        resume(scene, START + 5 * MINUTE, "quick")
        scene.sim.advance(4 * MINUTE)
        finish(scene.sim, claim)
        scene.sim.advance(MINUTE)
        told = ask(scene, START + 4 * MINUTE).summary
        assert "It waited for its lock since" in told
        assert "All" not in told
        assert "queue" not in told


@pytest.mark.parametrize(("overlap", "mode"), [("SKIP", "LATEST"), ("BUFFER", "NONE")])
def test_no_occurrence_is_promised_while_a_run_is_open(scene: Scene, overlap: str, mode: str) -> None:
    """Neither a later one, nor the next, nor one that would be too late."""
    scene.does["work"] = lambda ctx: ctx.sleep(DAY)
    with scene.sim as sim:
        scene.create(overlap=overlap, catch_up={"mode": mode})
        sim.advance(10 * MINUTE)
        ahead = f"{scene.explain()} {ask(scene, sim.now + 3 * HOUR)}"
        assert "does not start before the open run has ended" in ahead
        sim.advance(2 * HOUR)
        scene.asked_at = None
        assert ("none over 1 min late" in str(scene.explain())) == (mode == "NONE")


def test_a_run_that_waited_for_the_one_before_it_says_so(scene: Scene) -> None:
    with scene.sim:
        scene.does["work"] = lambda ctx: ctx.sleep(40 * MINUTE)
        scene.create(schedule=Schedule.every(HOUR / 2, start=START + MINUTE), overlap="BUFFER")
        scene.sim.advance(2 * HOUR)
        until = "Until Fri 1 Jan 2027 at 00:41 (UTC), the run of Fri 1 Jan 2027 at 00:01 (UTC) was open."
        assert until in str(ask(scene, START + 31 * MINUTE))
