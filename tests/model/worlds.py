"""The worlds: each is small and whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from tests.engine.harness import SECOND
from tests.model.replay import JoinedValues, Processes, StockNote, ValueSender, handle, perform
from tests.model.values import START, Writes

from cloudsched import App, Context, Fail, RetryPolicy, Schedule, Snooze, TaskDraft
from cloudsched.domain.documents.person import Person
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import EventTimedOut, VersionConflict
from cloudsched.features.calendars.wiring import CalendarsWiring
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter, WorkQueue
from cloudsched.people.wiring import PeopleWiring

Work = "Callable[[App], object]"


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def register_work(processes: Processes, result: str | None = None, **options: Any) -> None:
    @processes.app.handler("work", **options)
    def work(ctx: Context) -> object:
        match handle(processes, ctx):
            case "done":
                return result
            case "no use":
                return Fail("no use")
            case "snoozes":
                return Snooze(minutes(1))
            case ending:
                raise ValueError(ending)


def register_flow(processes: Processes) -> None:
    @processes.app.handler("flow")
    def flow(ctx: Context) -> object:
        def step(name: str) -> str:
            ending = perform(processes, ctx, name)
            if ending == "fails":
                raise ValueError(name)
            return ending

        ctx.step("one", lambda: step("one"), retry=0)
        ctx.sleep(minutes(1))
        with suppress(EventTimedOut):
            ctx.wait_for("go", timeout=minutes(1))
        return ctx.step("two", lambda: step("two"), retry=0)


def register_pair(processes: Processes) -> None:
    """Register the handler ``pair``, which calls ``work`` twice and waits for both."""
    register_work(processes)

    @processes.app.handler("pair")
    def pair(ctx: Context) -> object:
        return ctx.gather(ctx.call("work", retry=0), ctx.call("work", retry=0))


def visit_queue(processes: Processes) -> object:
    """Be a worker: claim one run, do it, report."""
    container = processes.app.container
    queue = WorkQueue(container.engine, lambda: 0.0)  # a new worker's
    for claim in queue.claim(WorkerFilter("gpu", worker="ann"), THIS_PROCESS, 1):
        attempt = PullWiring.of(container).worker_claims.start(claim)
        if attempt is None:
            continue
        report = run_procedure(container.executor.call(attempt))
        if report.error is not None and report.error.message == "gives back":
            PullWiring.of(container).worker_claims.release(attempt, "Its worker stops.")
        else:
            PullWiring.of(container).worker_claims.finish(attempt, report)
    return None


def draft(task_id: str, rule: str = "FREQ=MINUTELY;INTERVAL=2;COUNT=2", **fields: Any) -> TaskDraft:
    """Return a task that comes due at the instant 60, and two minutes later again."""
    given: dict[str, Any] = {
        "title": task_id,
        "handler": "work",
        "schedule": Schedule(rrule=rule, dtstart="2027-03-01T09:01:00", timezone="UTC"),
        "retry": RetryPolicy(max_retries=1, first_delay=minutes(1)),
        "expected_duration": 90 * SECOND,
        "owner": "system",
    }
    return TaskDraft(id=task_id, **(given | fields))


@dataclass(frozen=True)
class World:
    name: str
    about: str
    setup: Mapping[str, Callable[[App], object]]
    """The requests that were made before, without a fault."""
    instants: tuple[int, ...]
    """The times, in seconds."""
    end: int
    """When everything has to have ended."""
    register: Callable[[Processes], None] = register_work
    """Registers the handlers."""
    requests: Mapping[str, Callable[[App], object]] = field(default_factory=dict)
    """The requests that may be made, each once, at any time."""
    most_requests: int = 1
    workers: Mapping[str, Callable[[Processes], object]] = field(default_factory=dict)
    """The workers that may ask for work, at any time."""
    processes: int = 2
    """How many may live at once."""
    sweeps: bool = True
    is_queue_enough: bool = False
    """Whether redeliveries alone have to end everything, too."""
    sends_apart: bool = False
    """Whether a process may die between a commit and its messages; otherwise that is a message that never comes."""
    store_fails: bool = False
    queue_fails: bool = False
    delivers_again: bool = True
    """Whether a dispatch may come again while an executor that got it lives."""
    handler_endings: tuple[str, ...] = ("done", "fails")
    """The ways in which a handler may go on. When nothing fails, it ends in the first."""
    has_other_code: bool = False
    """Whether another version of the code is delivered to as well, which has no handler."""
    begins_at: int | None = None
    """Until when everything has happened without a fault; None if the first instant is the begin."""
    is_small: bool = False
    """Whether it is explored to its last state in each run of the tests."""


def register_sender(processes: Processes) -> None:
    """Register the handler ``work``, whose result is sent by mail."""
    register_work(processes, "a result")
    PeopleWiring.of(processes.app.container).replace(senders={"EMAIL": ValueSender(processes)})


BY_MAIL: dict[str, Any] = {"owner": "ada", "delivery_channels": ("EMAIL",)}


def write_person(app: App) -> None:
    content = {
        "id": "ada",
        "owner": "ada",
        "createdAt": START,
        "updatedAt": START,
        "email": {"address": "ada@example.com", "verified": True},
    }
    app.container.store.records.write(Person.model_validate(content), None)


DAILY = {
    "rrule": "FREQ=DAILY",
    "dtstart": "2027-03-01T09:01:00",
    "timezone": "UTC",
    "calendars": [{"id": "closed", "on": "skip"}],
}


def put_days(app: App, day: int) -> None:
    days = [(date(2027, 3, day), date(2027, 3, day), "Feast")]
    CalendarsWiring.of(app.container).calendars.put("closed", "system", days=days, by=OWN_CODE)


def at(number: float) -> datetime:
    return START + minutes(number)


def put_stock(app: App) -> None:
    """Store one piece of what is sold."""
    processes: Processes = app.container.store._processes  # type: ignore[attr-defined]  # noqa: SLF001 - the world's
    processes.commit(lambda: Writes((), (("order/stock", processes.values.keep(StockNote(pieces=1))),), ()))


def buy(app: App, name: str) -> None:
    """Order a piece with a task, in one commit that is tried again as often as somebody else was faster."""
    store: Any = app.container.store
    while True:
        attempt = JoinedValues(store)
        if store._document(attempt.stock).pieces == 0:  # noqa: SLF001 - the world's
            return
        app.container.replace(joins=store)
        app.joining(attempt).create(draft(name, schedule=Schedule.once(at(1))))  # type: ignore[arg-type]  # as it has
        with suppress(VersionConflict):
            attempt.commit_order(name)
            return


DAY = 24 * 3600
CREATE: Mapping[str, Callable[[App], object]] = {"create": lambda app: app.create(draft("a"))}
REQUESTS: Mapping[str, Callable[[App], object]] = {
    "pause": lambda app: app.pause("a"),
    "pause for a while": lambda app: app.pause("a", until=app.container.clock.now() + 100 * SECOND),
    "skip": lambda app: app.skip("a"),
    "move": lambda app: app.move("a", "next", app.container.clock.now() + 90 * SECOND),
    "resume": lambda app: app.resume("a"),
    "edit": lambda app: app.update("a", title="edited"),
    "reschedule": lambda app: app.update("a", schedule=Schedule.once(at(7))),
    "trigger": lambda app: app.trigger("a"),
    "retry": lambda app: app.retry("a"),
    "cancel": lambda app: app.cancel("a"),
    "delete": lambda app: app.delete("a"),
}

SAME_MINUTES = Schedule(rrule="FREQ=SECONDLY;INTERVAL=120;COUNT=3", dtstart="2027-03-01T09:01:00", timezone="UTC")
"""Another rule, which has the occurrences of a draft as well."""

RECURRING = World(
    "recurring",
    "one recurring task, two executors and a sweep",
    CREATE,
    instants=(0, 60, 120, 180, 240),
    end=3600,
)
ENOUGH = World(
    "queue alone",
    "the same without a sweep: as long as no lease has ended, redeliveries do it",
    CREATE,
    instants=(0, 60, 120),
    end=3600,
    sweeps=False,
    is_queue_enough=True,
    sends_apart=True,
    is_small=True,
)
HEARTBEAT = World(
    "heartbeat",
    "the same with a handler that renews its lease",
    CREATE,
    instants=(60, 120, 180, 240),
    end=3600,
    handler_endings=("done", "fails", "heartbeat"),
)
OVERLAPPING = World(
    "overlapping",
    "occurrences that come due while a run of their task is open",
    {"create": lambda app: app.create(draft("a", "FREQ=MINUTELY;COUNT=3", expected_duration=minutes(3)))},
    instants=(60, 120, 241),
    end=3600,
    is_small=True,
)
FAULTS = World(
    "faults",
    "the same where each call of the store and of the queue may fail, with or without an effect",
    CREATE,
    instants=(60, 181),
    end=3600,
    store_fails=True,
    queue_fails=True,
    is_small=True,
)
REQUESTED = World(
    "requests",
    "the same while its owner pauses, resumes, edits, reschedules, triggers, retries, cancels or deletes it",
    CREATE,
    instants=(0, 60, 181),
    end=3600,
    requests=REQUESTS,
    most_requests=2,
)
SINGLE = World(
    "single delivery",
    "one recurring task, and a queue that never delivers a dispatch to two executors at once",
    CREATE,
    instants=RECURRING.instants,
    end=3600,
    delivers_again=False,
    is_small=True,
)
SNOOZE = World(
    "snooze",
    "a handler that asks to be called again later, as the same attempt",
    {"create": lambda app: app.create(draft("a", schedule=Schedule.once(at(1))))},
    instants=(60, 120),
    end=3600,
    handler_endings=("done", "snoozes"),
    is_small=True,
)
PAUSE = World(
    "pause",
    "an owner who pauses and resumes while something is due",
    CREATE,
    instants=(60, 180),
    end=3600,
    requests={name: REQUESTS[name] for name in ("pause", "resume")},
    most_requests=2,
    handler_endings=("done",),
    sweeps=False,
    is_small=True,
)
PAUSE_WITH_AN_END = World(
    "a pause with an end",
    "an owner who pauses for a while, and may resume before, while something is due",
    CREATE,
    instants=(60, 160),
    end=3600,
    requests={name: REQUESTS[name] for name in ("pause for a while", "resume")},
    most_requests=2,
    sweeps=False,
    handler_endings=("done",),
    is_small=True,
)
ONE_OCCURRENCE = World(
    "one occurrence",
    "an owner who skips or moves the next occurrence, while it comes due",
    CREATE,
    instants=(60, 120, 180),
    end=3600,
    requests={name: REQUESTS[name] for name in ("skip", "move")},
    most_requests=2,
    handler_endings=("done",),
    is_small=True,
)
TRIGGER = World(
    "trigger",
    "an owner who triggers a run shortly before the next occurrence",
    CREATE,
    instants=(0, 60),
    end=3600,
    requests={"trigger": REQUESTS["trigger"]},
    handler_endings=("done",),
    is_small=True,
)
JITTER = World(
    "jitter",
    "an owner who pauses, resumes, edits or cancels what has come due, and whose jitter is not over",
    {"create": lambda app: app.create(draft("a", jitter=minutes(1)))},
    instants=(60, 120),
    end=3600,
    requests={name: REQUESTS[name] for name in ("pause", "resume", "cancel")}
    | {
        "same minutes": lambda app: app.update("a", schedule=SAME_MINUTES),
        "less jitter": lambda app: app.update("a", jitter=minutes(0.5)),
    },
    most_requests=2,
    processes=1,
    handler_endings=("done",),
    sweeps=False,
    is_small=True,
)
LIMITS = World(
    "limits",
    "what comes due late of a task with an end, a run limit and an expiration, which its owner moves",
    {
        "create": lambda app: app.create(
            draft("a", "FREQ=MINUTELY;COUNT=3", until=at(3), max_runs=2, expiration=minutes(1.5), catch_up="ALL")
        )
    },
    instants=(60, 181),
    end=3600,
    requests={
        "an earlier end": lambda app: app.update("a", until=at(1.5)),
        "a later end": lambda app: app.update("a", until=at(9)),
        "one run": lambda app: app.update("a", max_runs=1),
        "no limits": lambda app: app.update("a", max_runs=None, until=None, expiration=None),
    },
    most_requests=2,
    processes=1,
    handler_endings=("done",),
    sweeps=False,
    is_small=True,
)
BUFFER = World(
    "buffer",
    "a task that runs the newest occurrence that came due while a run was open, or each, or catches up with one",
    {
        "create": lambda app: app.create(
            draft("a", "FREQ=MINUTELY;COUNT=4", expected_duration=minutes(2), overlap="BUFFER", catch_up="LATEST")
        )
    },
    instants=(60, 121, 181),
    end=3600,
    requests={
        "allow": lambda app: app.update("a", overlap="ALLOW"),
        "catch up with all": lambda app: app.update("a", catch_up="ALL"),
        "catch up with none": lambda app: app.update("a", catch_up="NONE"),
        "same minutes": lambda app: app.update("a", schedule=SAME_MINUTES),
    },
    processes=1,
    handler_endings=("done",),
    sweeps=False,
    is_small=True,
)
FAILING = World(
    "failing",
    "a task that pauses itself when it fails, and whose owner resumes it",
    {"create": lambda app: app.create(draft("a", retry=RetryPolicy(max_retries=0), pause_after_failures=1))},
    instants=(60, 181),
    end=3600,
    requests={"resume": REQUESTS["resume"], "same minutes": lambda app: app.update("a", schedule=SAME_MINUTES)},
    most_requests=2,
    handler_endings=("done", "fails"),
    sweeps=False,
    is_small=True,
)
DELETE = World(
    "delete",
    "an owner who deletes what is running",
    SNOOZE.setup,
    instants=(0, 60, 151),
    end=3600,
    requests={"delete": REQUESTS["delete"]},
    handler_endings=("done",),
    is_small=True,
)
EDIT = World(
    "edit",
    "one occurrence, which is edited while it runs, by executors that stand still",
    SNOOZE.setup,
    instants=(60, 151),
    end=3600,
    requests={"edit": REQUESTS["edit"]},
    handler_endings=("done",),
    sweeps=False,
    is_small=True,
)
ONCE = World(
    "once",
    "one occurrence, by executors that stand still and renew their leases",
    EDIT.setup,
    instants=(60, 151),
    end=3600,
    handler_endings=("done", "heartbeat"),
    sweeps=False,
)
RETRY = World(
    "retry",
    "an owner who retries what has run",
    {"create": lambda app: app.create(draft("a", schedule=Schedule.once(at(1)), retry=RetryPolicy(max_retries=0)))},
    instants=(60, 151),
    end=3600,
    requests={"retry": REQUESTS["retry"]},
    is_small=True,
)
DISTANT = World(
    "distant",
    "one occurrence in 45 days: a dispatch that only sends the next one",
    {"create": lambda app: app.create(draft("a", schedule=Schedule.once(START + timedelta(days=45))))},
    instants=(0, 29 * DAY, 30 * DAY - 60, 45 * DAY - 3600, 45 * DAY),
    end=45 * DAY + 3600,
    is_queue_enough=True,
    sends_apart=True,
    sweeps=False,
    is_small=True,
)
LOCK = World(
    "lock",
    "two tasks with one lock key",
    {
        "create a": lambda app: app.create(draft("a", schedule=Schedule.once(at(1)), lock_key="door")),
        "create b": lambda app: app.create(draft("b", schedule=Schedule.once(at(1)), lock_key="door")),
    },
    instants=(60, 151),
    end=3600,
)
LOCK_HEARTBEAT = World(
    "lock heartbeat",
    "two tasks with one lock key, whose handlers renew their leases",
    LOCK.setup,
    instants=(60, 120, 151),
    end=3600,
    handler_endings=("done", "heartbeat"),
    sweeps=False,
)
LOCK_CANCEL = World(
    "lock cancel",
    "two tasks with one lock key, one of which is cancelled while it waits for its turn",
    LOCK.setup,
    instants=(60,),
    end=3600,
    requests={"cancel b": lambda app: app.cancel("b")},
)
CHILDREN_CANCEL = World(
    "children cancel",
    "a parent that is cancelled while it calls",
    {"create": lambda app: app.create(draft("a", handler="pair", schedule=Schedule.once(at(1))))},
    instants=(60,),
    end=3600,
    register=register_pair,
    requests={"cancel": REQUESTS["cancel"]},
    handler_endings=("done",),
)
DURABLE = World(
    "durable",
    "a durable run: two steps, a timer, and an event that may come or not",
    {"create": lambda app: app.create(draft("a", handler="flow", schedule=Schedule.once(at(1))))},
    instants=(60, 120, 180),
    end=3600,
    register=register_flow,
    requests={"event": lambda app: app.send_event("a", "go"), "cancel": REQUESTS["cancel"]},
    most_requests=2,
)
CHILDREN = World(
    "children",
    "a parent that waits for two calls",
    {"create": lambda app: app.create(draft("a", handler="pair", schedule=Schedule.once(at(1))))},
    instants=(60, 151),
    end=3600,
    register=register_pair,
    requests={"cancel": REQUESTS["cancel"]},
    handler_endings=("done",),
)
WORKER = World(
    "worker",
    "a task for workers, who claim it from the store's queue, report, or give it back",
    {"create": lambda app: app.create(draft("a", schedule=Schedule.once(at(1)), pull="gpu"))},
    instants=(60, 120, 151),
    end=3600,
    workers={"a worker": visit_queue},
    handler_endings=("done", "fails", "gives back"),
    requests={name: REQUESTS[name] for name in ("pause", "resume", "edit", "cancel")},
)
WORKERS = World(
    "workers",
    "workers alone, who stand still, die, report late and give back",
    WORKER.setup,
    instants=(60, 151),
    end=3600,
    workers=WORKER.workers,
    handler_endings=("done", "gives back"),
)
DELIVERY = World(
    "delivery",
    "a result that is sent by mail",
    {
        "a person": write_person,
        "create": lambda app: app.create(draft("a", schedule=Schedule.once(at(1)), **BY_MAIL)),
    },
    instants=(60, 300),
    end=7200,
    register=register_sender,
    handler_endings=("done",),
    sweeps=False,
    is_small=True,
)
CALENDAR = World(
    "calendar",
    "a calendar that gets another day, while a task that keeps its days runs",
    {
        "a calendar": lambda app: put_days(app, 5),
        "create": lambda app: app.create(draft("a", schedule=Schedule.model_validate(DAILY))),
    },
    instants=(0, 60, DAY + 60),
    end=2 * DAY + 3600,
    requests={"the calendar": lambda app: put_days(app, 2)},
    handler_endings=("done",),
    sweeps=False,
)
OTHER_CODE = World(
    "other code",
    "dispatches that come to a version of the code without the handler",
    SNOOZE.setup,
    instants=(60, 120, 151),
    end=3600,
    has_other_code=True,
    handler_endings=("done",),
    is_small=True,
)
JOINED = World(
    "joined",
    "two callers whose own transactions order the last piece, each with a task in the same commit",
    {"stock": put_stock},
    instants=(0, 60, 151),
    end=3600,
    requests={"buy a": partial(buy, name="a"), "buy b": partial(buy, name="b")},
    most_requests=2,
    sends_apart=True,
    handler_endings=("done",),
    is_small=True,
)
JOINED_FAULTS = World(
    "joined faults",
    "a caller whose commit is lost, with or without an effect, or conflicts, and a queue that may not answer",
    JOINED.setup,
    instants=(0, 60),
    end=3600,
    requests=JOINED.requests,
    sends_apart=True,
    store_fails=True,
    queue_fails=True,
    handler_endings=("done",),
    is_small=True,
)
WORLDS = {each.name: each for each in tuple(globals().values()) if isinstance(each, World)}
