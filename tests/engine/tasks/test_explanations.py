"""Every reason that the engine knows is produced by what really happens, and says what matters about it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Context, Done, ExecutionStatus, Fail, RetryPolicy, Schedule, Settings, Snooze, TaskStatus
from cloudsched.config.access import Access
from cloudsched.domain.documents.authority import Authority
from cloudsched.domain.documents.execution import WaitingFor
from cloudsched.domain.explanation.findings import Explanation, Finding, Reason
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.engine.tasks.explanations import explain_task
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched import Task

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HOURLY = Schedule.every(HOUR, start=START + 5 * MINUTE)


@dataclass
class Scene:
    """A world in which one task gets where it is to be explained."""

    sim: Simulation
    app: App
    does: dict[str, Callable[[Context], object]] = field(default_factory=dict)
    """What the handler does; nothing if it is not said."""

    def create(self, task_id: str = "t", **fields: Any) -> Task:
        usual = {"id": task_id, "owner": "ada", "title": "Work", "handler": "work", "schedule": HOURLY}
        return self.app.create(**{**usual, **fields})

    def explain(self, task_id: str = "t") -> Explanation:
        task = self.app.get(task_id)
        return explain_task(self.app.container.store, self.app.container.clock, task, shows_holders=True)

    def find(self, reason: Reason) -> Finding:
        """Return the finding with this reason; fail if there is none."""
        found = self.explain()
        return next(each for each in found.findings if each.reason is reason)


@pytest.fixture
def scene() -> Scene:
    app = App(Settings())
    access = Access(max_active_tasks=3)
    does: dict[str, Callable[[Context], object]] = {}

    @app.handler("work", retry=2, access="users")
    def work(ctx: Context) -> object:
        return does["work"](ctx) if "work" in does else None

    @app.handler("child", access="users")
    def child(ctx: Context) -> object:
        return does["child"](ctx) if "child" in does else None

    sim = Simulation(app, access=access)
    return Scene(sim, app, does)


def end(scene: Scene) -> None:
    scene.create(schedule=Schedule.once(START + MINUTE))
    scene.sim.advance(HOUR)


def pause(scene: Scene) -> None:
    scene.create()
    scene.app.pause("t", authority=Authority.USERS)


def claim(scene: Scene) -> None:
    scene.create(pull="gpu")
    scene.sim.advance(6 * MINUTE)
    scene.app.container.work_queue.claim(WorkerFilter("gpu", worker="box"))


def lose_lease(scene: Scene) -> None:
    claim(scene)
    scene.sim.clock.advance(2 * HOUR)


def fail_once(scene: Scene) -> None:
    scene.does["work"] = lambda _: 1 / 0
    scene.create()
    scene.sim.advance(5 * MINUTE + timedelta(seconds=3))


def snooze(scene: Scene) -> None:
    scene.does["work"] = lambda _: Snooze(HOUR / 2)
    scene.create()
    scene.sim.advance(6 * MINUTE)


def offer(scene: Scene) -> None:
    scene.create(pull={"queue": "gpu", "skill": "cuda"})
    scene.sim.advance(6 * MINUTE)


def wait_for_lock(scene: Scene) -> None:
    scene.create("holder", pull="gpu", lock_key="printer", schedule=Schedule.once(START + MINUTE))
    scene.create(lock_key="printer")
    scene.sim.advance(2 * MINUTE)
    scene.app.container.work_queue.claim(WorkerFilter("gpu"))
    scene.sim.advance(3 * MINUTE + timedelta(seconds=30))


def wait_for_event(scene: Scene) -> None:
    scene.does["work"] = lambda ctx: ctx.wait_for("approved", timeout=30 * DAY)
    scene.create()
    scene.sim.advance(6 * MINUTE)


def wait_for_call(scene: Scene) -> None:
    scene.does["work"] = lambda ctx: ctx.call("child", pull="gpu").result()
    scene.create()
    scene.sim.advance(6 * MINUTE)


def wait_for_quota(scene: Scene) -> None:
    scene.does["work"] = lambda ctx: ctx.gather(*(ctx.call("child", pull="gpu") for _ in range(2)))
    scene.create("other")
    draft = scene.app.to_draft({"id": "t", "owner": "ada", "title": "Work", "handler": "work", "schedule": HOURLY})
    scene.app.put(draft, authority=Authority.USERS)
    scene.sim.advance(6 * MINUTE)


def sleep(scene: Scene) -> None:
    scene.does["work"] = lambda ctx: ctx.sleep(DAY)
    scene.create()
    scene.sim.advance(6 * MINUTE)


def lose_dispatch(scene: Scene) -> None:
    scene.create()
    scene.sim.queue.purge()
    scene.sim.clock.advance(6 * MINUTE)


def schedule(scene: Scene) -> None:
    scene.create()


def leave_backlog(scene: Scene) -> None:
    scene.create(catch_up={"mode": "all"})
    scene.sim.clock.advance(3 * HOUR)
    scene.app.pause("t")
    scene.sim.clock.advance(MINUTE)
    scene.app.resume("t")


def lose_queue(scene: Scene) -> None:
    scene.sim.queue.is_down = True
    scene.create()


def retry_step(scene: Scene) -> None:
    def fail() -> None:
        raise ConnectionError("the shop is closed")

    scene.does["work"] = lambda ctx: ctx.step("order", fail, retry=RetryPolicy(first_delay=HOUR / 2))
    scene.create()
    scene.sim.advance(6 * MINUTE)


def have_holiday(scene: Scene) -> None:
    first = START.date()
    scene.app.container.calendars.put("fr", days=[(first, first + 2 * DAY, "Bastille Day")])
    daily = {"rrule": "FREQ=DAILY;BYHOUR=12", "calendars": [{"id": "fr"}]}
    scene.create(schedule=Schedule.model_validate(daily))


def open_many_runs(scene: Scene) -> None:
    scene.create(pull="gpu", schedule=Schedule.every(MINUTE, start=START), overlap="allow", catch_up={"mode": "all"})
    scene.sim.advance(HOUR)


def leave_records(scene: Scene) -> None:
    scene.create(schedule=Schedule.every(MINUTE, start=START))
    scene.sim.clock.advance(10 * HOUR)
    scene.app.cancel("t")


SCENARIOS: dict[Reason, Callable[[Scene], object]] = {
    Reason.ENDED: end,
    Reason.PAUSED: pause,
    Reason.RUNNING: claim,
    Reason.LEASE_ENDED: lose_lease,
    Reason.RETRYING: fail_once,
    Reason.PUT_OFF: snooze,
    Reason.WAITING_FOR_WORKER: offer,
    Reason.WAITING_FOR_LOCK: wait_for_lock,
    Reason.WAITING_FOR_EVENT: wait_for_event,
    Reason.WAITING_FOR_CALLS: wait_for_call,
    Reason.WAITING_FOR_QUOTA: wait_for_quota,
    Reason.NO_WORKER_LISTENS: offer,
    Reason.SLEEPING: sleep,
    Reason.SUSPENDED: retry_step,
    Reason.CALENDAR: have_holiday,
    Reason.TOO_MANY_RUNS: open_many_runs,
    Reason.DUE: lose_dispatch,
    Reason.SCHEDULED: schedule,
    Reason.OVERLAP: fail_once,
    Reason.BACKLOG: leave_backlog,
    Reason.DEFERRED: lose_queue,
    Reason.RECORDS_PENDING: leave_records,
    Reason.SWEEP_IS_LATE: lose_lease,
    Reason.LAST_OUTCOME: end,
}
"""What leads to each reason."""
WORDS = {
    Reason.ENDED: "COMPLETED",
    Reason.PAUSED: "by a user",
    Reason.RUNNING: "worker 'box'",
    Reason.LEASE_ENDED: "TIMED_OUT",
    Reason.RETRYING: "ZeroDivisionError",
    Reason.WAITING_FOR_WORKER: "'cuda'",
    Reason.NO_WORKER_LISTENS: "'cuda' on the queue 'gpu'",
    Reason.WAITING_FOR_LOCK: "task holder",
    Reason.WAITING_FOR_EVENT: "'approved'",
    Reason.WAITING_FOR_QUOTA: "may have 3 tasks",
    Reason.SUSPENDED: "try step 'order' again",
    Reason.CALENDAR: "Bastille Day (fr)",
    Reason.TOO_MANY_RUNS: "20 of its runs",
    Reason.OVERLAP: "is skipped",
    Reason.RECORDS_PENDING: "are SKIPPED",
    Reason.LAST_OUTCOME: "SUCCEEDED",
}
"""What its sentence says at least."""


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_found_where_it_holds(scene: Scene, reason: Reason) -> None:
    """A reason without a scenario fails here; and so does one that no scenario leads to any more."""
    with scene.sim:
        SCENARIOS[reason](scene)
        assert WORDS.get(reason, "") in scene.find(reason).sentence


@pytest.mark.parametrize(
    ("worker", "is_enough"),
    [
        ({"skills": ("cuda", "x86")}, True),
        ({"skills": ("cuda",), "owner": "ada"}, True),
        ({"skills": ("x86",)}, False),
        ({"skills": ("cuda",), "owner": "bob"}, False),
        ({"queue": "cpu", "skills": ("cuda",)}, False),
    ],
)
def test_who_listens_is_who_would_claim_it(scene: Scene, worker: dict[str, Any], *, is_enough: bool) -> None:
    """Only workers of the queue with the skill and for the owner; and only while they ask. The summary says it."""

    def is_alone() -> bool:
        found = scene.explain()
        is_said = Reason.NO_WORKER_LISTENS in {each.reason for each in found.findings}
        assert ("none listens" in found.summary) == is_said
        return is_said

    with scene.sim:
        offer(scene)
        assert is_alone()
        scene.app.container.presence.note(WorkerFilter(**{"queue": "gpu", "worker": "box", **worker}))
        assert is_alone() == (not is_enough)
        scene.sim.clock.advance(10 * MINUTE)
        assert is_alone()


def test_what_is_due_while_the_task_is_paused_waits_for_that(scene: Scene) -> None:
    """A run that waits for its next attempt, and a handler that sleeps: no dispatch is missing."""
    for scenario in (fail_once, sleep):
        fresh = Scene(Simulation(scene.app), scene.app, scene.does)
        with fresh.sim:
            scenario(fresh)
            fresh.app.pause("t")
            fresh.sim.clock.advance(2 * DAY)
            assert fresh.find(Reason.DUE).sentence.endswith("starts once its task is resumed.")
            assert fresh.explain().findings[0].reason is Reason.PAUSED


def test_a_moved_occurrence_says_from_where(scene: Scene) -> None:
    """And that it does not run on the day itself is said no second time."""
    with scene.sim:
        first = START.date()
        scene.app.container.calendars.put("fr", days=[(first, first + 2 * DAY, "Bastille Day")])
        daily = {"rrule": "FREQ=WEEKLY;BYDAY=FR;BYHOUR=12", "calendars": [{"id": "fr", "on": "after"}]}
        scene.create(schedule=Schedule.model_validate(daily))
        assert START.weekday() == 4
        found = [each for each in scene.explain().findings if each.reason is Reason.CALENDAR]
        assert [each.at for each in found] == [scene.app.get("t").next_execution_time]
        assert f"Moved from {first}: Bastille Day (fr)." in found[0].sentence


def test_a_wait_for_an_event_ends_at_its_deadline(scene: Scene) -> None:
    """The handler looks for the event in between, which matters to nobody; without a deadline, it says so."""
    with scene.sim:
        wait_for_event(scene)
        found = scene.find(Reason.WAITING_FOR_EVENT)
        assert found.at == START + 5 * MINUTE + 30 * DAY
        assert f"{found.at:%Y-%m-%d at %H:%M:%S}" in found.sentence
        scene.sim.advance(10 * DAY)
        assert scene.find(Reason.WAITING_FOR_EVENT) == found
        scene.does["work"] = lambda ctx: ctx.wait_for("approved")
        scene.create("u", schedule=Schedule.once(scene.sim.now + MINUTE))
        scene.sim.advance(HOUR)
        endless = scene.explain("u").findings[0]
        assert (endless.at, "however long" in endless.sentence) == (None, True)


def reach(scene: Scene, status: TaskStatus) -> None:
    """Bring the task into a status."""
    once: dict[str, Any] = {"schedule": Schedule.once(START + MINUTE)}
    match status:
        case TaskStatus.FAILED:
            scene.does["work"] = lambda _: Fail("no use")
            scene.create(**once)
        case TaskStatus.EXPIRED:
            scene.create(**once, pull="gpu", expiration=MINUTE)
        case TaskStatus.CANCELLED:
            scene.create()
            scene.app.cancel("t")
        case TaskStatus.PAUSED:
            pause(scene)
        case TaskStatus.COMPLETED:
            scene.create(**once)
        case TaskStatus.ACTIVE:
            scene.create()
    scene.sim.advance(HOUR / 2)


@pytest.mark.parametrize("status", TaskStatus)
def test_each_status_is_explained(scene: Scene, status: TaskStatus) -> None:
    """By a first sentence of its own: what comes next, a pause, or an end with the reason."""
    first = {TaskStatus.ACTIVE: Reason.SCHEDULED, TaskStatus.PAUSED: Reason.PAUSED}
    with scene.sim:
        reach(scene, status)
        found = scene.explain()
        assert found.status is status
        assert found.findings[0].reason is first.get(status, Reason.ENDED)
        assert found.summary == found.findings[0].sentence
        if status not in first:
            assert scene.app.get("t").message in found.summary


@pytest.mark.parametrize("status", [each for each in ExecutionStatus if each.is_final])
def test_each_outcome_is_explained(scene: Scene, status: ExecutionStatus, caplog: pytest.LogCaptureFixture) -> None:
    """The last occurrence with its status, and why it was not run or has failed."""
    caplog.set_level(logging.CRITICAL)
    with scene.sim:
        match status:
            case ExecutionStatus.SUCCEEDED:
                scene.does["work"] = lambda _: Done("fine")
                scene.create()
            case ExecutionStatus.FAILED:
                scene.does["work"] = lambda _: Fail("no use")
                scene.create()
            case ExecutionStatus.TIMED_OUT:
                scene.create(pull="gpu", retry={"maxRetries": 0})
                scene.sim.advance(6 * MINUTE)
                scene.app.container.work_queue.claim(WorkerFilter("gpu"))
            case ExecutionStatus.CANCELLED:
                scene.create(pull="gpu")
                scene.sim.advance(6 * MINUTE)
                scene.app.cancel("t")
            case ExecutionStatus.EXPIRED:
                scene.create(pull="gpu", expiration=MINUTE)
            case ExecutionStatus.SKIPPED:
                scene.create(catch_up={"mode": "none"}, schedule=Schedule.once(START + MINUTE))
                scene.sim.queue.purge()
                scene.sim.clock.advance(HOUR)
            case _:
                pytest.fail(f"No scenario leads to {status}.")
        scene.sim.advance(HOUR / 2)
        found = scene.find(Reason.LAST_OUTCOME)
        assert f"is {status}" in found.sentence
        assert status is ExecutionStatus.SUCCEEDED or ": " in found.sentence


def test_what_a_run_waits_for_is_all_explained() -> None:
    """What an open run can wait for has a reason of that name."""
    assert {f"WAITING_FOR_{each.value}" for each in WaitingFor} <= {each.value for each in Reason}


def test_no_instant_is_in_the_past_where_it_is_to_come(scene: Scene) -> None:
    """What is scheduled, sleeps or is put off says when it goes on."""
    for scenario, reason in ((schedule, Reason.SCHEDULED), (sleep, Reason.SLEEPING), (snooze, Reason.PUT_OFF)):
        fresh = Scene(Simulation(scene.app), scene.app, scene.does)
        with fresh.sim:
            scenario(fresh)
            at = fresh.find(reason).at
            assert isinstance(at, datetime)
            assert at > fresh.sim.now
