"""A receipt keeps what it says: a run that is scheduled begins by `due_by`, and what it says reaches its owner.

What really happens is the oracle. It is seen by the handler and the channels of a simulation, not by the receipt's own
code: the clock is moved to `due_by`, and either the handler was called by then and its mail was sent, or not.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from datetime import datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, Never

import pytest
from tests.authorities import as_user
from tests.cases import try_each
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND
from tests.engine.usage.harness import put_budget

from cloudsched import App, Context, Schedule, Settings, Task
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.receipt import Receipt
from cloudsched.domain.explanation.findings import Reason
from cloudsched.engine.sweep.shard_sweeps import SweepNotes
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.errors import QueueUnavailable, StoreUnavailable
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import START, Simulation

NOW = START + HOUR
"""The time at which the task is changed."""
WELL: dict[str, Any] = {
    "verb": "create",
    "when": "soon",
    "queue": "runs",
    "executor": "runs",
    "handler": True,
    "pull": None,
    "worker": "listens",
    "budget": None,
    "channel": None,
    "provider": True,
    "person": "reachable",
    "expiration": None,
}
"""A world in which a task of every kind runs."""
ELSE: dict[str, tuple[Any, ...]] = {
    "verb": ("update", "pause", "pause until", "resume", "cancel", "trigger"),
    "when": ("now", "often", "next week"),
    "queue": ("paused", "down"),
    "executor": ("gone",),
    "handler": (False,),
    "pull": ("gpu",),
    "worker": ("none", "of another queue", "of another owner", "gone"),
    "budget": ("left", "used up"),
    "channel": ("EMAIL", "WEB"),
    "provider": (False,),
    "person": ("nobody", "unverified", "unsubscribed"),
    "expiration": (30 * SECOND,),
}
SCHEDULES: dict[str, Schedule | None] = {
    "now": None,
    "soon": Schedule.once(NOW + 10 * MINUTE),
    "often": Schedule.every(10 * MINUTE, start=NOW + 10 * MINUTE),
    "next week": Schedule(rrule="FREQ=WEEKLY;BYDAY=WE;BYHOUR=9", dtstart="2027-01-01T00:00:00", timezone="Asia/Tokyo"),
}
Choice = dict[str, Any]


def draw(chance: random.Random) -> Choice:
    """Return a world in which a few things are not as usual."""
    changed = chance.sample(sorted(ELSE), k=chance.randint(0, 5))
    choice = WELL | {name: chance.choice(ELSE[name]) for name in changed}
    if choice["pull"] or choice["verb"] == "update":  # only workers know their handlers, and no edit is without one
        choice["handler"] = True
    if choice["verb"] == "pause until" and choice["when"] in {"now", "soon"}:  # nothing would be left for it to do
        choice["when"] = "often"
    return choice


def make_app(sims: list[Simulation], *handlers: str) -> tuple[App, list[datetime]]:
    """Return an app with these handlers, and the instants at which they are called."""
    app = App(Settings())
    called: list[datetime] = []

    def note() -> str:
        called.append(sims[-1].now)
        return "Water them"

    for name in handlers:
        app.handler(name, access="users", retry=False)(note)
    return app, called


def create(app: App, choice: Choice) -> Task:
    fields: dict[str, Any] = {"handler": "work", "schedule": SCHEDULES[choice["when"]]}
    fields |= {name: choice[name] for name in ("pull", "expiration") if choice[name] is not None}
    if choice["channel"] is not None:
        fields |= {"delivery_channels": [choice["channel"]], "category": "REMINDER"}
    return app.create(id="t", owner="ada", title="Plants", **fields)


def prepare(sim: Simulation, choice: Choice) -> None:
    """Store what is there before the task is changed."""
    if choice["person"] != "nobody":
        email = {"address": "ada@example.com", "verified": choice["person"] != "unverified"}
        channels: dict[str, list[Any]] = {"REMINDER": []} if choice["person"] == "unsubscribed" else {}
        sim.add_person("ada", email=email, channels=channels, timezone="Europe/Berlin")
    if choice["budget"] is not None:
        put_budget(sim, 0 if choice["budget"] == "used up" else 1000)
    SweepNotes(sim.app.container.store, sim.clock).run(Sweep)
    if choice["worker"] == "gone":
        PullWiring.of(sim.app.container).presence.note(WorkerFilter(queue="gpu", worker="box"), THIS_PROCESS)
    if choice["verb"] != "create":
        create(sim.app, choice)
    if choice["verb"] == "resume":
        sim.app.pause("t")


def break_parts(sim: Simulation, choice: Choice) -> None:
    """Break what is broken when the task is changed, and until the end."""
    container = sim.app.container
    if choice["executor"] == "gone":

        def fail(*_: object) -> Never:
            raise StoreUnavailable("The executor", "it is gone")

        sim.queue.deliver = fail
        container.replace(load_sweep=container.many_tasks.sweep_notes.load)
    if not choice["provider"]:
        wiring = PeopleWiring.of(container)
        wiring.replace(senders={name: each for name, each in wiring.senders.items() if name != "EMAIL"})
    sim.queue.holds = choice["queue"] == "paused"
    sim.queue.is_down = choice["queue"] == "down"
    match choice["worker"]:
        case "listens":
            sim.add_worker("gpu")
        case "of another queue":
            sim.add_worker("cpu")
        case "of another owner":
            sim.add_worker("gpu", owner="bob")
    sim.work()


def act(app: App, choice: Choice) -> Task:
    match choice["verb"]:
        case "create":
            return create(app, choice)
        case "update":
            return app.update("t", title="Flowers")
        case "pause until":
            return app.pause("t", until=NOW + 15 * MINUTE)
        case verb:
            task: Task = getattr(app, verb)("t")
            return task


def find_receipt(task: Task) -> Receipt:
    assert task.receipt is not None
    return task.receipt


def try_world(choice: Choice) -> tuple[Receipt, bool]:
    """Return what is said of a task after a change, and whether it then happens."""
    sims: list[Simulation] = []
    store = SqliteStore()
    before, _ = make_app(sims, "work")
    with Simulation(before, store=store) as sim:
        sims.append(sim)
        prepare(sim, choice)

    has_handler = choice["handler"] or choice["verb"] == "create"
    after, called = make_app(sims, *(["work"] if has_handler else []))
    with Simulation(after, NOW, store=store) as sim:
        sims.append(sim)
        break_parts(sim, choice)
        receipt = find_receipt(act(after, choice))
        assert receipt.scheduled is not bool(receipt.doubts)
        assert all(at > sim.now for at in receipt.next)
        assert [*receipt.next] == sorted(receipt.next)
        sim.advance_to(max(sim.now, receipt.due_by or sim.now + 8 * DAY))
        has_happened = bool(called)
        if choice["channel"] == "EMAIL":
            has_happened = has_happened and bool(sim.sent("EMAIL", to="ada"))
        if choice["channel"] == "WEB":
            has_happened = has_happened and bool(sim.inbox("ada"))
        if receipt.scheduled and receipt.next and choice["verb"] != "trigger" and choice["when"] != "now":
            assert receipt.next[0] <= called[0] <= receipt.next[0] + MINUTE
    store.close()
    return receipt, has_happened


@pytest.mark.parametrize("seed", range(40))
def test_what_is_scheduled_happens_and_what_is_doubted_does_not(seed: int) -> None:
    """In worlds of random faults, at whose end the handler was called and the mail sent by `due_by`, or was not."""
    chance = random.Random(seed)  # noqa: S311 - must be repeatable
    for _ in range(8):
        choice = draw(chance)
        receipt, has_happened = try_world(choice)
        differs = {name: value for name, value in choice.items() if value != WELL[name]}
        assert receipt.scheduled == has_happened, (differs, receipt)


@try_each(
    "differs",
    [
        {"verb": "trigger", "pull": "gpu", "queue": "paused"},  # workers are offered it without the queue
        {"verb": "trigger", "pull": "gpu", "executor": "gone"},
        {"verb": "trigger", "pull": "gpu", "executor": "gone", "channel": "EMAIL"},  # its mail is a task of its own
        {"verb": "create", "channel": "EMAIL", "person": "unverified", "expiration": 30 * SECOND},
    ],
)
def test_worlds_that_were_told_wrongly_once(differs: Choice) -> None:
    receipt, has_happened = try_world(WELL | differs)
    assert receipt.scheduled == has_happened, receipt


@pytest.fixture
def app(app: App) -> App:
    @app.handler("work", access="users")
    def work() -> str:
        return "Water them"

    @app.handler("pulled", access="users", pull="mine")
    def pulled() -> str:
        return "Done"

    @app.handler("ask", access="users")
    def ask(ctx: Context) -> object:
        return ctx.wait_for("answer", timeout=30 * DAY)

    return app


def find_reasons(task: Task) -> set[Reason]:
    return {each.reason for each in find_receipt(task).doubts}


def measure_reads(sim: Simulation, look: Callable[[], object]) -> int:
    before = sim.counts.copy()
    look()
    counts = sim.counts.since(before)
    assert (counts.commits, counts.dispatches) == (0, 0)
    return counts.reads


def test_a_receipt_costs_nothing_until_it_is_asked_for_and_one_read_then(sim: Simulation) -> None:
    """It is looked up once for an answer, so that it says what held then. A run looks up nothing."""
    sim.add_person("ada")
    app = sim.app
    for _ in range(2):
        before = sim.counts.copy()
        task = app.create(owner="ada", handler="work", schedule=SCHEDULES["often"])
        assert sim.counts.since(before).reads <= 1  # whether anybody has a budget, once a minute
        assert measure_reads(sim, partial(find_receipt, task)) <= 1
        assert measure_reads(sim, partial(find_receipt, task)) == 0
    before = sim.counts.copy()
    sim.advance(3 * HOUR)
    after = sim.counts.since(before)
    assert after.reads == after.dispatches


def test_the_note_of_a_sweep_that_is_well_is_read_once_in_two_minutes(sim: Simulation) -> None:
    """However many ask. One that is late is read each time, until there is a new one."""
    container = sim.app.container
    notes = SweepNotes(container.store, container.clock)
    container.replace(load_sweep=notes.load)
    task = sim.app.create(handler="work")
    look = partial(container.conditions.make_receipt, task)
    assert [measure_reads(sim, look) for _ in range(3)] == [1, 1, 1]
    assert Reason.SWEEP_IS_LATE in find_reasons(task)
    notes.run(Sweep)
    assert [measure_reads(sim, look) for _ in range(3)] == [1, 0, 0]
    assert not find_reasons(sim.app.get(task.id))
    sim.clock.advance(10 * MINUTE)
    assert Reason.SWEEP_IS_LATE in find_reasons(sim.app.get(task.id))


def test_nothing_that_fails_makes_a_write_fail(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write has happened: its receipt says that it could not look, and has no tick."""

    def fail(*_: object) -> Never:
        raise StoreUnavailable("projects/p/locations/l/queues/q", "it is down")

    container = sim.app.container
    container.replace(queue_watch=SimpleNamespace(find_paused=fail), load_sweep=fail)
    monkeypatch.setattr(type(container.store.records._port), "load", fail)  # type: ignore[attr-defined]  # noqa: SLF001
    task = sim.app.create(owner="ada", handler="work", schedule=SCHEDULES["soon"])
    receipt = find_receipt(task)
    assert not receipt.scheduled
    assert {each.reason for each in receipt.doubts} == {Reason.NOT_CHECKED}
    assert len(receipt.doubts) == 3
    assert "projects/p" not in str(receipt)
    assert [*receipt.next] == [NOW + 10 * MINUTE]


def test_a_queue_is_asked_once_in_some_seconds_also_if_it_does_not_answer(sim: Simulation) -> None:
    """Not each write waits for a service that is down. Who pauses a queue here sees it at once."""
    asked = []

    def find_paused(priority: object) -> Never:
        asked.append(priority)
        raise QueueUnavailable("The queue", "it is down")

    sim.app.container.replace(queue_watch=SimpleNamespace(find_paused=find_paused))
    for _ in range(20):
        assert find_reasons(sim.app.create(handler="work")) == {Reason.NOT_CHECKED}
    assert len(asked) == 1
    sim.clock.advance(MINUTE)
    find_receipt(sim.app.create(handler="work"))
    assert len(asked) == 2
    sim.app.container.conditions.forget()
    find_receipt(sim.app.create(handler="work"))
    assert len(asked) == 3


def test_instants_are_those_of_the_person(sim: Simulation) -> None:
    """In their zone if one is stored, and else in the task's, at the offset of that day."""
    daily = Schedule(rrule="FREQ=DAILY;BYHOUR=9", dtstart="2027-03-27T09:00:00", timezone="Europe/Paris")

    def see() -> list[str]:
        receipt = find_receipt(sim.app.create(owner="ada", handler="work", schedule=daily))
        return [each.isoformat()[10:] for each in receipt.next]

    assert see() == ["T09:00:00+01:00", "T09:00:00+02:00", "T09:00:00+02:00"]
    sim.add_person("ada", timezone="Asia/Tokyo")
    assert see() == ["T17:00:00+09:00", "T16:00:00+09:00", "T16:00:00+09:00"]


def test_a_user_learns_nothing_of_others(sim: Simulation) -> None:
    """Sentences name the task's own queue, handler and channels, and nobody else's tasks, owners, workers or queues."""
    sim.add_worker("secret-queue", owner="bob")
    sim.add_person("bob")
    bobs = sim.app.create(id="bobs-secret", owner="bob", handler="work", pull="secret-queue")
    sim.queue.holds = True
    put_budget(sim, 5, owner="bob")
    put_budget(sim, 0)
    container = sim.app.container
    note = Sweep(overdue_seconds=1000, examined=12345)
    SweepNotes(container.store, container.clock).run(lambda: note)
    container.replace(load_sweep=container.many_tasks.sweep_notes.load)
    mine = {"owner": "ada", "handler": "pulled", "delivery_channels": ["EMAIL"]}
    draft = sim.app.to_draft({**mine, "schedule": SCHEDULES["soon"]})
    task, _ = as_user(sim.app).put(draft, refusal=None)
    told = str(find_receipt(task))
    assert find_reasons(task) >= {Reason.QUEUE_PAUSED, Reason.NO_WORKER_LISTENS, Reason.NOT_REACHABLE}
    assert not [each for each in ("bob", "secret", "12345", bobs.id, "worker-1", "projects/") if each in told]


@try_each(
    "verb, reasons",
    [
        ("pause", {Reason.PAUSED}),
        ("cancel", {Reason.ENDED}),
        ("resume", set()),
        ("trigger", set()),
    ],
)
def test_a_verb_tells_what_it_has_done(verb: str, reasons: set[Reason], sim: Simulation) -> None:
    """Nothing is scheduled by a pause, and nothing is doubted about a trigger."""
    task_id = sim.app.create(owner="ada", handler="work", schedule=SCHEDULES["often"]).id
    if verb == "resume":
        sim.app.pause(task_id)
    task = getattr(sim.app, verb)(task_id)
    assert find_reasons(task) == reasons
    assert bool(find_receipt(task).next) is not bool(reasons)


def test_what_waits_for_somebody_is_not_scheduled(sim: Simulation) -> None:
    """A run that waits for an event holds the schedule back, and its receipt says both; until the event is sent."""
    task_id = sim.app.create(owner="ada", handler="ask", schedule=Schedule.every(HOUR, start=START)).id
    assert not find_reasons(sim.app.get(task_id))
    sim.advance(10 * MINUTE)
    waiting = sim.app.get(task_id)
    assert find_reasons(waiting) == {Reason.OVERLAP, Reason.WAITING_FOR_EVENT}
    assert find_receipt(sim.app.send_event(task_id, "answer")).scheduled
    sim.advance(MINUTE)
    assert find_receipt(sim.app.get(task_id)).scheduled


def test_what_is_overdue_has_no_past_instant(sim: Simulation) -> None:
    """With the queue paused, and then resumed: its catch-up is told by `due_by`, and `next` has what follows."""
    sim.queue.holds = True
    task_id = sim.app.create(owner="ada", handler="work", schedule=Schedule.every(MINUTE, start=START)).id
    for wait in (75 * SECOND, 10 * MINUTE):
        sim.advance(wait)
        receipt = find_receipt(sim.app.get(task_id))
        assert not receipt.scheduled
        assert receipt.next
        assert receipt.next[0] > sim.now
    assert {each.reason for each in receipt.doubts} == {Reason.DUE, Reason.QUEUE_PAUSED}


def test_an_answer_can_be_copied_and_sent_to_another_process(sim: Simulation) -> None:
    """It has then no receipt to look up, or the one that was looked up. What is not an answer has none."""
    task = sim.app.create(owner="ada", handler="work", schedule="every day at 9", timezone="Asia/Tokyo")
    assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301 - its own
    assert pickle.loads(pickle.dumps(task)).receipt is None  # noqa: S301 - the same
    receipt = find_receipt(task)
    assert pickle.loads(pickle.dumps(task)).receipt == receipt  # noqa: S301 - the same
    assert copy.deepcopy(task).receipt == receipt
    assert sim.app.tasks().items[0].receipt is None
