"""Worlds in which a task is where it is for one reason, for the tests of explanations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Never
from zoneinfo import ZoneInfo

from tests.authorities import as_user
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND
from tests.engine.usage.harness import put_budget

from cloudsched import App, Context, RetryPolicy, Schedule, Settings, Snooze, Task
from cloudsched.adapters.circuit_breaker import FAILURE_THRESHOLD
from cloudsched.config.access import Access
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.explanation.findings import Explanation, Finding, Reason
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.queries.explanations import explain_task
from cloudsched.engine.sweep.shard_sweeps import SweepNotes
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.errors import DeliveryDelayed, QueueUnavailable
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import START, Simulation

HOURLY = Schedule.every(HOUR, start=START + 5 * MINUTE)


@dataclass
class Scene:
    """A world in which one task gets where it is to be explained."""

    sim: Simulation
    app: App
    does: dict[str, Callable[[Context], object]] = field(default_factory=dict)
    """What the handler does; nothing if it is not said."""
    asked_at: datetime | None = None
    """The instant that is asked about; the present if it is not said."""

    def create(self, task_id: str = "t", **fields: Any) -> Task:
        usual = {"id": task_id, "owner": "ada", "handler": "work", "schedule": HOURLY}
        return self.app.create(**{**usual, **fields})

    def explain(self, task_id: str = "t") -> Explanation:
        task = self.app.get(task_id)
        container = self.app.container
        parts = container.store, container.clock, task
        return explain_task(*parts, shows_holders=True, at=self.asked_at, conditions=container.conditions)

    def find(self, reason: Reason) -> Finding:
        """Return the finding with this reason; fail if there is none."""
        found = self.explain()
        return next(each for each in found.findings if each.reason is reason)


def make_scene() -> Scene:
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


def lose_the_mail_server(scene: Scene) -> None:
    scene.sim.add_person("ada")
    scene.sim.channel("EMAIL").is_down = True
    scene.does["work"] = lambda _: "Water them"
    scene.create(schedule=Schedule.once(START + MINUTE), delivery_channels=["EMAIL"])
    scene.sim.advance(24 * HOUR)


def pause(scene: Scene) -> None:
    scene.create()
    as_user(scene.app).pause("t")


def claim(scene: Scene) -> None:
    scene.create(pull="gpu")
    scene.sim.advance(6 * MINUTE)
    PullWiring.of(scene.app.container).work_queue.claim(WorkerFilter("gpu", worker="box"), THIS_PROCESS)


def lose_lease(scene: Scene) -> None:
    claim(scene)
    scene.sim.clock.advance(2 * HOUR)


def fail_once(scene: Scene) -> None:
    scene.does["work"] = lambda _: 1 / 0
    scene.create()
    scene.sim.advance(5 * MINUTE + 3 * SECOND)


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
    PullWiring.of(scene.app.container).work_queue.claim(WorkerFilter("gpu"), THIS_PROCESS)
    scene.sim.advance(3 * MINUTE + 30 * SECOND)


def wait_for_event(scene: Scene) -> None:
    scene.does["work"] = lambda ctx: ctx.wait_for("approved", timeout=30 * DAY)
    scene.create()
    scene.sim.advance(6 * MINUTE)


def send_early(scene: Scene) -> None:
    wait_for_event(scene)
    scene.sim.app.send_event("t", "other", early=True)


def wait_for_call(scene: Scene) -> None:
    scene.does["work"] = lambda ctx: ctx.call("child", pull="gpu").result()
    scene.create()
    scene.sim.advance(6 * MINUTE)


def wait_for_quota(scene: Scene) -> None:
    scene.does["work"] = lambda ctx: ctx.gather(*(ctx.call("child", pull="gpu") for _ in range(2)))
    scene.create("other")
    draft = scene.app.to_draft({"id": "t", "owner": "ada", "handler": "work", "schedule": HOURLY})
    as_user(scene.app).put(draft)
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
    CalendarsWiring.of(scene.app.container).calendars.put(
        "fr", SYSTEM_OWNER, days=[(first, first + 2 * DAY, "Bastille Day")], by=OWN_CODE
    )
    daily = {"rrule": "FREQ=DAILY;BYHOUR=12", "calendars": [{"id": "fr"}]}
    scene.create(schedule=Schedule.model_validate(daily))


def travel(scene: Scene) -> None:
    scene.app.put_person("ada", timezone="America/New_York")
    scene.create(schedule=Schedule(rrule="FREQ=DAILY;BYHOUR=20", timezone="owner"))
    scene.app.update_person("ada", timezone="Asia/Tokyo")
    scene.sim.advance(MINUTE)


def open_many_runs(scene: Scene) -> None:
    scene.create(pull="gpu", schedule=Schedule.every(MINUTE, start=START), overlap="allow", catch_up={"mode": "all"})
    scene.sim.advance(HOUR)


def forget_zone(scene: Scene) -> None:
    stored = scene.app.container.store.load(scene.create().id)
    assert stored is not None
    schedule = stored.task.schedule.copy_unchecked(timezone="Europe/Atlantis")
    forgotten = stored.task.model_copy(update={"schedule": schedule, "timezone": schedule.timezone})
    scene.app.container.store.commit(Commit(forgotten, stored))


def ask_of_a_run(scene: Scene) -> None:
    end(scene)
    scene.asked_at = START


def ask_before_its_time(scene: Scene) -> None:
    scene.create()
    scene.asked_at = START - 3 * DAY


def ask_of_a_free_day(scene: Scene) -> None:
    scene.create(schedule=Schedule(rrule="FREQ=WEEKLY;BYDAY=MO;BYHOUR=9", timezone="Europe/Paris"))
    scene.sim.advance(10 * DAY)
    scene.asked_at = next(at for at in (START + n * DAY for n in range(2, 9)) if at.weekday() == 4)


def ask_of_a_clock_change(scene: Scene) -> None:
    scene.create(schedule=Schedule(rrule="FREQ=DAILY;BYHOUR=2;BYMINUTE=30", timezone="Europe/Paris"))
    changes = (START + n * DAY for n in range(366))
    paris = ZoneInfo("Europe/Paris")
    scene.asked_at = (
        next(at for at in changes if at.astimezone(paris).utcoffset() != (at + DAY).astimezone(paris).utcoffset())
        + DAY / 2
    )


def ask_of_an_edit(scene: Scene) -> None:
    scene.create()
    scene.app.patch("t", {"schedule": {"rrule": "FREQ=DAILY", "timezone": "UTC"}})
    scene.asked_at = START


def ask_of_a_journey(scene: Scene) -> None:
    travel(scene)
    scene.asked_at = START


def ask_of_a_skip(scene: Scene) -> None:
    scene.app.skip(scene.create(schedule="every day at 9:00").id)
    scene.asked_at = START


def ask_of_what_was_purged(scene: Scene) -> None:
    scene.create(execution_retention=HOUR)
    scene.sim.advance(3 * DAY)
    scene.app.container.store.sweep.expire(scene.sim.clock.now())
    scene.asked_at = START + DAY


def note_overdue_work(scene: Scene) -> None:
    scene.create()
    container = scene.app.container
    SweepNotes(container.store, container.clock).run(lambda: Sweep(overdue_seconds=600))
    container.replace(load_sweep=container.many_tasks.sweep_notes.load)


def pause_queue(scene: Scene) -> None:
    scene.create()
    scene.sim.queue.holds = True


def forget_handler(scene: Scene) -> None:
    stored = scene.app.container.store.load(scene.create().id)
    assert stored is not None
    scene.app.container.store.commit(Commit(stored.task.model_copy(update={"handler": "removed"}), stored))


def use_up_budget(scene: Scene) -> None:
    put_budget(scene.sim, 0)
    scene.create()


def remove_provider(scene: Scene) -> None:
    PeopleWiring.of(scene.app.container).replace(senders={})
    scene.create(delivery_channels=["EMAIL"])


def silence_the_mail_server(scene: Scene) -> None:
    class Silent:
        def send(self) -> None:
            raise DeliveryDelayed("The mail server", "it did not answer")

    guarded = scene.app.container.circuits.guard("email", Silent(), DeliveryDelayed, "The channel EMAIL", ("send",))
    for _ in range(FAILURE_THRESHOLD):
        with suppress(DeliveryDelayed):
            guarded.send()
    scene.sim.add_person("ada")
    scene.create(delivery_channels=["EMAIL"])


def know_no_address(scene: Scene) -> None:
    scene.create(delivery_channels=["EMAIL"])


def hide_queue(scene: Scene) -> None:
    def find_paused(_: object) -> Never:
        raise QueueUnavailable("The queue projects/p/queues/q", "PERMISSION_DENIED")

    scene.create()
    scene.app.container.replace(queue_watch=SimpleNamespace(find_paused=find_paused))


SCENARIOS: dict[str, tuple[Callable[[Scene], object], str]] = {
    "ENDED": (end, "completed"),
    "PAUSED": (pause, "its owner"),
    "RUNNING": (claim, "worker 'box'"),
    "LEASE_ENDED": (lose_lease, "TIMED_OUT"),
    "RETRYING": (fail_once, "ZeroDivisionError"),
    "PUT_OFF": (snooze, ""),
    "WAITING_FOR_WORKER": (offer, "'cuda'"),
    "WAITING_FOR_LOCK": (wait_for_lock, "task holder"),
    "WAITING_FOR_EVENT": (wait_for_event, "'approved'"),
    "EVENT_ARRIVED": (send_early, "'other' from the app's own code came"),
    "WAITING_FOR_CALLS": (wait_for_call, ""),
    "WAITING_FOR_QUOTA": (wait_for_quota, "may have 3 tasks"),
    "NO_WORKER_LISTENS": (offer, "'cuda' on the queue 'gpu'"),
    "SLEEPING": (sleep, ""),
    "SUSPENDED": (retry_step, "try step 'order' again"),
    "CALENDAR": (have_holiday, "Bastille Day (fr)"),
    "FOLLOWS_OWNER": (travel, "is in Asia/Tokyo"),
    "UNKNOWN_ZONE": (forget_zone, "have no zone 'Europe/Atlantis'"),
    "TOO_MANY_RUNS": (open_many_runs, "20 of its runs"),
    "DUE": (lose_dispatch, ""),
    "SCHEDULED": (schedule, ""),
    "OVERLAP": (fail_once, "is skipped"),
    "BACKLOG": (leave_backlog, ""),
    "DEFERRED": (lose_queue, ""),
    "SWEEP_IS_LATE": (lose_lease, ""),
    "OVERDUE": (note_overdue_work, "Other work"),
    "QUEUE_PAUSED": (pause_queue, ""),
    "UNKNOWN_HANDLER": (forget_handler, "Not registered: removed"),
    "BUDGET_USED_UP": (use_up_budget, "0 of 0 queries"),
    "CHANNEL_NOT_SET_UP": (remove_provider, "EMAIL is not set up"),
    "NOT_REACHABLE": (know_no_address, "by EMAIL. No contacts"),
    "NO_ANSWER": (silence_the_mail_server, "The channel EMAIL does not answer"),
    "NOT_CHECKED": (hide_queue, "could not be checked"),
    "NOT_DELIVERED": (lose_the_mail_server, "the test lets it fail"),
    "LAST_OUTCOME": (end, "succeeded"),
    "OUTCOME": (ask_of_a_run, "succeeded."),
    "NOT_CREATED": (ask_before_its_time, "was created only on"),
    "NOT_DUE": (ask_of_a_free_day, "has no occurrence on Fri"),
    "CLOCK_CHANGE": (ask_of_a_clock_change, "Europe/Paris go"),
    "EDITED": (ask_of_an_edit, "schedule."),
    "MOVED": (ask_of_a_journey, "Asia/Tokyo"),
    "SKIPPED": (ask_of_a_skip, "its runs was skipped by the app's own code"),
    "NOT_KEPT": (ask_of_what_was_purged, "records are kept for 1 h"),
}
"""What leads to each reason, and what its sentence says at least."""
