"""A change that joins a caller's commit is a part of it as a whole, or refused and no part of it at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from google.api_core.exceptions import FailedPrecondition
from google.cloud import firestore
from tests.features.pull.harness import claim, finish, offer, require_claim
from tests.harness import new_project

from cloudsched import App, AsyncApp, Context, Fail, Schedule, Settings, Task, TaskDraft
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.errors import CloudschedError, InvalidInput
from cloudsched.features.deliveries.fields import OnCompletion, Ping
from cloudsched.testing import Simulation

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
PRESS: Any = {"lock_key": "press", "expected_duration": HOUR}

VERBS: dict[Verb, Callable[[App, str], object]] = {
    Verb.EDIT: lambda app, task_id: app.update(task_id, title="Other", schedule=Schedule.every(HOUR)),
    Verb.PAUSE: App.pause,
    Verb.RESUME: App.resume,
    Verb.CANCEL: App.cancel,
    Verb.CANCEL_RUN: lambda app, task_id: app.cancel_run(
        task_id, next((each.execution_id for each in app.get(task_id).runs), "none")
    ),
    Verb.DELETE: App.delete,
    Verb.TRIGGER: App.trigger,
    Verb.SNOOZE: App.snooze,
    Verb.SKIP: App.skip,
    Verb.MOVE: lambda app, task_id: app.move(task_id, "next", "in 100 minutes"),
    Verb.BACKFILL: lambda app, task_id: app.backfill(task_id, app.get(task_id).created_at, app.get(task_id).updated_at),
    Verb.SEND_EVENT: lambda app, task_id: app.send_event(task_id, "approved", "yes", early=True),
    Verb.RETRY: App.retry,
}
CHANGES: dict[str, Callable[[App, str], object]] = {
    **{verb.word: do for verb, do in VERBS.items()},
    "create": lambda app, task_id: app.create(_draft(app.get(task_id))),
    "run now": lambda app, task_id: app.run_now(app.get(task_id).handler, id=task_id, owner=app.get(task_id).owner),
    "retry from a step": lambda app, task_id: app.retry(task_id, from_step=1),
}


def _draft(task: Task) -> TaskDraft:
    """Return the draft of another task of the same id, which edits this one."""
    return TaskDraft.of(id=task.id, owner=task.owner, title="Again", handler=task.handler, schedule=task.schedule)


def wait_for_lock(sim: Simulation) -> None:
    """Let the task wait for a lock that another one holds."""
    offer(sim, "holder", **PRESS)
    sim.advance(2 * SECOND)
    require_claim(sim)
    offer(sim, "t", **PRESS)
    sim.advance(2 * SECOND)
    assert claim(sim) is None


def have_a_grant(sim: Simulation) -> None:
    """Let the task be the next that may take the lock, which has been told so."""
    offer(sim, "holder", **PRESS)
    sim.advance(2 * SECOND)
    holder = require_claim(sim)
    offer(sim, "t", **PRESS)
    sim.advance(2 * SECOND)
    assert claim(sim) is None
    finish(sim, holder)
    sim.advance(SECOND)
    assert any(run.turn_until for run in sim.app.get("t").runs)


def hold_a_lock(sim: Simulation) -> None:
    """Let a worker run the task, with a lock."""
    offer(sim, "t", **PRESS)
    sim.advance(2 * SECOND)
    require_claim(sim)


def wait_for_worker(sim: Simulation) -> None:
    """Let the task be offered to workers, with a ping and a callback that tell of its end."""
    url = "https://hooks.example/x"
    offer(sim, "t", ping=Ping(url=url), on_completion=OnCompletion(webhook=url))
    sim.advance(2 * SECOND)


def create(handler: str, **fields: Any) -> Callable[[Simulation], None]:
    """Return what makes a task of a handler that has been due."""

    def make(sim: Simulation) -> None:
        usual = {"owner": "ada", "title": "T", "schedule": Schedule.once(sim.now + SECOND)}
        sim.app.create(**{"id": "t", "handler": handler, **usual, **fields})
        sim.advance(2 * SECOND)

    return make


def pause(sim: Simulation) -> None:
    """Pause a recurring task."""
    create("fine", schedule=Schedule.every(HOUR))(sim)
    sim.app.pause("t")


def cancel(sim: Simulation) -> None:
    """Cancel a task whose call runs on."""
    create("calls")(sim)
    sim.app.cancel("t")


STATES: dict[str, Callable[[Simulation], None]] = {
    "waits for its time": create("fine", schedule=Schedule.every(HOUR)),
    "waits for a lock": wait_for_lock,
    "has a lock's grant": have_a_grant,
    "runs with a lock": hold_a_lock,
    "waits for a worker": wait_for_worker,
    "waits for an event": create("waits"),
    "waits for a call": create("calls"),
    "is retried": create("fails", retry={"maxRetries": 5}),
    "is paused": pause,
    "is cancelled": cancel,
    "has failed": create("fails", retry={"maxRetries": 0}),
    "has completed": create("fine"),
}


class Accepted(Exception):
    """A change can join, which is not to be committed here."""


@pytest.fixture
def project() -> str:
    return new_project()


@pytest.fixture
def client(firestore_address: str, project: str, monkeypatch: pytest.MonkeyPatch) -> firestore.Client:
    """The caller's own client of the same database."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
    return firestore.Client(project=project)


@pytest.fixture
def sim(firestore_address: str, project: str) -> Iterator[Simulation]:
    """A simulation over Google's emulator."""
    app = App(Settings())

    @app.handler("work", pull="gpu")
    @app.handler("fine")
    def work() -> None:
        """Do nothing."""

    @app.handler("fails")
    def fail() -> Fail:
        return Fail("as ever")

    @app.handler("waits", events={"approved": None})
    def wait(ctx: Context) -> object:
        return ctx.wait_for("approved")

    @app.handler("calls")
    def call(ctx: Context) -> object:
        return ctx.call("waits").result()

    store = FirestoreStore(project=project, emulator=firestore_address, deadline=MINUTE)
    with Simulation(app, store=store) as simulation:
        yield simulation
    store.close()


def read(client: firestore.Client) -> dict[str, Any]:
    """Return all tasks as they are stored."""
    return {each.id: each.to_dict() for each in client.collection("tasks").stream()}


def test_every_verb_is_tried() -> None:
    """Whoever adds one says here how it is called."""
    assert set(VERBS) == set(Verb)


@pytest.mark.parametrize("kind", ["batch", "transaction"])
@pytest.mark.parametrize("state", STATES)
def test_a_change_that_is_refused_is_no_part_of_the_commit(
    sim: Simulation, client: firestore.Client, state: str, kind: str
) -> None:
    """Whatever a task's state is, whatever refuses it: the rest of the commit is made, and nothing of the change."""
    STATES[state](sim)
    refused = set[str]()

    def attempt(group: firestore.WriteBatch, name: str) -> None:
        joined, size = sim.app.joining(group), len(group)
        try:
            CHANGES[name](joined, "t")
        except CloudschedError:
            refused.add(name)
        else:
            raise Accepted
        assert len(group) == size
        group.set(client.document(f"refused/{name}"), {})

    for name in CHANGES:
        before = read(client)
        with suppress(Accepted):
            if kind == "transaction":
                firestore.transactional(attempt)(client.transaction(), name)
            else:
                batch = client.batch()
                attempt(batch, name)
                batch.commit()
        assert read(client) == before
    assert refused == {each.id for each in client.collection("refused").stream()}
    assert {"delete", "retry", "retry from a step"} <= refused


def test_what_is_refused_leaves_what_was_done_before(sim: Simulation, client: firestore.Client) -> None:
    """In the same commit: a change after it still expects the task to be as it was read, and is made."""
    have_a_grant(sim)
    offer(sim, "other")
    with client.batch() as batch:
        joined = sim.app.joining(batch)
        joined.pause("other")
        with pytest.raises(InvalidInput, match="cannot carry this change"):
            joined.update("t", title="Other")
        assert joined.get("t").title == "t"
        assert joined.get("other").status is TaskStatus.PAUSED
        joined.send_event("t", "approved", early=True)
        sim.app.update("t", description="Meanwhile")
        with pytest.raises(FailedPrecondition):
            batch.commit()
        batch._write_pbs.clear()  # noqa: SLF001 - it would be committed again
    assert sim.app.get("other").status is TaskStatus.ACTIVE


def test_changes_at_the_same_time_are_each_a_whole(sim: Simulation, client: firestore.Client) -> None:
    """Of coroutines, which run in threads: those that are refused take nothing of the others with them."""
    for number in range(20):
        offer(sim, f"t{number}")

    async def change() -> list[object]:
        batch = client.batch()
        joined = AsyncApp(sim.app).joining(batch)
        changes = (joined.retry(f"t{each}") if each % 2 else joined.pause(f"t{each}") for each in range(20))
        answers = await asyncio.gather(*changes, return_exceptions=True)
        batch.commit()
        return [each for each in answers if isinstance(each, InvalidInput)]

    assert len(asyncio.run(change())) == 10
    statuses = [sim.app.get(f"t{number}").status for number in range(20)]
    assert statuses == [TaskStatus.PAUSED, TaskStatus.ACTIVE] * 10
