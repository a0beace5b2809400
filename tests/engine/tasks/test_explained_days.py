"""Why a task ran or did not run on a day that somebody asks about: what was then counts, not what is now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.engine.tasks.explained_scenes import DAY, HOUR, MINUTE, Scene, make_scene

from cloudsched import Schedule
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.explanation.findings import Explanation, Reason
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.engine.pull.offers import THIS_PROCESS, WorkerFilter
from cloudsched.testing import START

DAILY = Schedule(rrule="FREQ=DAILY;BYHOUR=9", timezone="Europe/Paris")


@pytest.fixture
def scene() -> Scene:
    return make_scene()


def ask(scene: Scene, at: datetime) -> Explanation:
    scene.asked_at = at
    return scene.explain()


def reasons(found: Explanation) -> list[Reason]:
    return [each.reason for each in found.findings]


def test_a_holiday_is_named_before_and_after_it(scene: Scene) -> None:
    """Before it by the schedule, after it by the record, which says the same; each said once."""
    first = (START + DAY).date()
    with scene.sim:
        scene.app.container.calendars.put("de", SYSTEM_OWNER, days=[(first, first + DAY, "Good Friday")], by=OWN_CODE)
        daily = {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "Europe/Paris", "calendars": [{"id": "de"}]}
        scene.create(schedule=Schedule.model_validate(daily))
        friday = datetime(first.year, first.month, first.day, 12, tzinfo=UTC)
        for _ in range(2):
            found = ask(scene, friday)
            assert reasons(found).count(Reason.CALENDAR) == 1
            assert "Good Friday" in found.summary
            assert found.at == friday
            scene.sim.advance(5 * DAY)
        assert found.findings[0].execution_id is not None


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


def test_the_schedule_of_that_day_counts(scene: Scene) -> None:
    """A task that runs at nine and was given another schedule since: that day it did run, and was due then."""
    with scene.sim:
        scene.create(schedule=DAILY, execution_retention=DAY)
        scene.sim.advance(5 * DAY)
        scene.app.patch("t", {"schedule": {"rrule": "FREQ=YEARLY", "timezone": "Europe/Paris"}})
        scene.sim.advance(3 * DAY)
        scene.app.container.store.expire(scene.sim.clock.now())
        found = ask(scene, START + 2 * DAY)
        assert "at 09:00:00 (Europe/Paris), of which no record is kept" in found.summary
        assert "Later it was edited" in found.findings[-1].sentence


def test_what_is_asked_comes_before_the_rest_of_the_day(scene: Scene) -> None:
    """Of a task that runs each hour: the run nearest to the instant first."""
    with scene.sim:
        scene.create()
        scene.sim.advance(3 * DAY)
        at = START + DAY + 7 * HOUR + 5 * MINUTE
        found = ask(scene, at)
        assert found.findings[0].at == at


def test_a_day_within_an_outage_has_the_record_that_covers_it(scene: Scene) -> None:
    """A week in which nothing ran has one record, of its first day: a day in its midst says so, too, and how many."""
    with scene.sim:
        scene.create(schedule=Schedule.every(MINUTE, start=START), catch_up="latest")
        scene.sim.clock.advance(7 * DAY)
        scene.sim.advance(MINUTE)
        found = ask(scene, START + 4 * DAY)
        assert "more, up to" in found.summary
        assert Reason.NOT_KEPT not in reasons(found)


def test_a_run_that_waited_for_its_lock_says_so(scene: Scene) -> None:
    """How late it was, and since when it had waited; also on the record, for the waterfall."""
    with scene.sim:
        scene.create("holder", pull="gpu", lock_key="printer", schedule=Schedule.once(START + MINUTE))
        scene.create(lock_key="printer", schedule=Schedule.once(START + 5 * MINUTE))
        scene.sim.advance(2 * MINUTE)
        (held,) = scene.app.container.work_queue.claim(WorkerFilter("gpu"), THIS_PROCESS)
        scene.sim.advance(4.5 * MINUTE)
        parts = scene.app.container
        attempt = parts.worker_claims.start(held)
        assert attempt is not None
        parts.worker_claims.finish(attempt, parts.executor.invoke(attempt))
        scene.sim.advance(HOUR)
        found = ask(scene, START)
        assert found.findings[0].reason is Reason.OUTCOME
        assert "It waited for its lock since" in found.summary
        (record,) = scene.app.executions("t").items
        assert record.attempts[0].lock_waited_since == START + 5 * MINUTE
        (other,) = scene.app.executions("holder").items
        assert other.attempts[0].lock_waited_since is None


@pytest.mark.parametrize("days", range(-2, 12))
def test_every_day_has_an_answer(scene: Scene, days: int) -> None:
    """Before the task, during it, after its end, and in the future: a sentence each, none of them twice."""
    with scene.sim:
        scene.create(schedule=DAILY, max_runs=4)
        scene.sim.advance(timedelta(days=6))
        found = ask(scene, START + days * DAY)
        sentences = [each.sentence for each in found.findings]
        assert sentences
        assert len(set(sentences)) == len(sentences)
        assert all(each.endswith(".") for each in sentences)
