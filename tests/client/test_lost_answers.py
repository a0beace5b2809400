"""Programs that call the API and repeat a request by themselves, an hour later: nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner
from tests.client.harness import GREET, Flaky
from tests.drafts_app import make_app
from tests.instants import about
from tests.web.callers import HOUR, MINUTE
from werkzeug.wrappers import Response

from cloudsched import App, Context
from cloudsched.agents.tools import AgentTools
from cloudsched.cli.main import cloudsched
from cloudsched.client import AsyncClient, Client
from cloudsched.dashboard.api import Api
from cloudsched.dashboard.offered_verbs import act
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.errors import NotFound
from cloudsched.testing import Simulation

LATER = "one hour later"
PAST = datetime(2027, 1, 1, 1, tzinfo=UTC)
TASK = {**GREET, "schedule": "in 2 seconds"}
pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture
def app() -> App:
    """The greeting app, with one handler that makes the ids of its tasks and one that drafts may name."""
    app = make_app()
    app.handler("greet", access="users")(_run)
    app.handler("fails")(_fail)
    app.handler("asks")(_ask)
    app.handler("rebuild", task_id=lambda payload: f"rebuild-{payload['name']}")(_run)
    return app


def _run(payload: dict[str, Any]) -> None:
    del payload


def _ask(ctx: Context) -> None:
    while True:
        ctx.wait_for("x")


def _fail(payload: dict[str, Any]) -> None:
    raise ValueError(payload)


def lose_answers(flaky: Flaky, sim: Simulation) -> None:
    """Lose the next two answers; an hour passes before each repetition."""

    def lose() -> Response:
        sim.advance(HOUR)
        return Response(status=502)

    flaky.loses, flaky.fails = True, [lose, lose]


def count_runs(sim: Simulation) -> list[int]:
    return [len(sim.executions(each.id)) for each in sim.app.tasks(TaskQuery()).items]


CREATIONS: dict[str, Callable[[Client, str], Any]] = {
    "create with an id": lambda client, _: client.create(**TASK, id="pay-42"),
    "create": lambda client, _: client.create(**GREET, schedule="today at 0:30", timezone="UTC"),
    "create by payload": lambda client, _: client.create(
        handler="rebuild", payload={"name": "x"}, schedule="in 2 seconds"
    ),
    "create many": lambda client, _: client.create_many([{**TASK, "id": "pay-42"}, {**GREET, "schedule": "PT2S"}]),
    "tasks create": lambda _, url: CliRunner(catch_exceptions=False).invoke(
        cloudsched,
        ["tasks", "--url", url, "create", "--id", "t", "--handler", "closed", "--schedule", "in 2 seconds"],
    ),
    "an agent": lambda _, url: asyncio.run(_ask_agent(url)),
    "the page": lambda _, url: _show(url).post("/v1/tasks", TASK, headers={"Idempotency-Key": "form"}),
}


def _show(url: str) -> Api:
    return Api(Client(url))


async def _ask_agent(url: str) -> None:
    async with AsyncClient(url) as client:
        tools = await AgentTools.of(client)
        await tools.create_task("Pay", "greet", "in 2 seconds", {"name": "Ada"})


@pytest.mark.parametrize("creation", CREATIONS)
def test_a_creation_that_is_repeated_runs_once(
    client: Client, url: str, flaky: Flaky, sim: Simulation, creation: str
) -> None:
    """It is repeated when its task has run, and its words mean another instant or one that has passed."""
    lose_answers(flaky, sim)
    CREATIONS[creation](client, url)
    assert not flaky.fails
    sim.advance(HOUR)
    assert count_runs(sim) == ([1, 1] if creation == "create many" else [1])


def _edit_by_agent(url: str) -> None:
    async def ask() -> None:
        async with AsyncClient(url) as client:
            await (await AgentTools.of(client)).change_task("t", when=LATER)

    asyncio.run(ask())


EDITS: dict[str, Callable[[Client, str, str], Any]] = {
    "update": lambda client, _, etag: client.update("t", etag=etag, schedule=LATER),
    "tasks update": lambda _, url, __: CliRunner(catch_exceptions=False).invoke(
        cloudsched, ["tasks", "--url", url, "update", "t", "--schedule", LATER]
    ),
    "an agent": lambda _, url, __: _edit_by_agent(url),
    "the page": lambda _, url, etag: _show(url).patch("/v1/tasks/t", {"schedule": LATER}, etag=etag),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_that_is_repeated_is_made_once(
    client: Client, url: str, flaky: Flaky, sim: Simulation, edit: str
) -> None:
    """An edit of the state that its caller has seen shifts the schedule once, also if the task has changed since."""
    task = client.create(**GREET, id="t", schedule="in 5 hours")
    due = sim.now + 6 * HOUR

    def lose() -> Response:
        flaky.loses = True
        return Response(status=502)

    def lose_and_edit() -> Response:
        sim.app.update("t", description="Theirs")
        return lose()

    before = {"tasks update": 1, "an agent": 2}.get(edit, 0)  # they ask for the task first
    passed = [_pass_on(flaky, loses=number == before) for number in range(1, before + 1)]
    flaky.loses, flaky.fails = not before, [*passed, lose, lose_and_edit]
    EDITS[edit](client, url, task.etag)
    assert not flaky.fails
    assert sim.app.upcoming("t") == about([due])
    assert sim.app.get("t").description == "Theirs"


def _pass_on(flaky: Flaky, *, loses: bool) -> Callable[[], Response]:
    from cloudsched.web.functions import serve_api  # noqa: PLC0415 - beside its use

    def answer() -> Response:
        flaky.loses = loses
        return serve_api(flaky.sim.app, flaky.asked[-1])

    return answer


CHANGES: dict[str, Callable[[Client, str], Any]] = {
    "EDITED": lambda client, _: client.update("t", schedule={"delay": "PT5H"}),
    "PAUSED": lambda client, _: client.pause("t"),
    "RESUMED": lambda client, _: client.resume("t"),
    "CANCELLED": lambda client, _: client.cancel("t"),
    "TRIGGERED on the page": lambda _, url: act(_show(url), "t", "trigger", {}),
    "RETRIED": lambda client, _: client.retry("t"),
    "RETRIED in a shell": lambda _, url: _type(url, "retry"),
    "RETRIED on the page": lambda _, url: act(_show(url), "t", "retry", {}),
    "BACKFILLED": lambda client, _: client.backfill("t", PAST, PAST),
    "SNOOZED on the page": lambda _, url: act(_show(url), "t", "snooze", {}),
}


def _type(url: str, verb: str, *more: str) -> None:
    CliRunner(catch_exceptions=False).invoke(cloudsched, ["tasks", "--url", url, verb, "t", *more])


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_repeated_is_made_once(
    client: Client, url: str, flaky: Flaky, sim: Simulation, change: str
) -> None:
    """Whatever has run meanwhile, and though its owner has taken it back before the repetition."""
    action = change.split(maxsplit=1)[0]
    client.create(**{**GREET, "handler": "fails"}, id="t", schedule="every 5 hours from 2027-01-01T01:00Z", retry=0)
    sim.advance(90 * MINUTE)
    if action == "RESUMED":
        client.pause("t")

    def lose() -> Response:
        flaky.loses = True
        sim.advance(HOUR)
        status = sim.app.get("t").status
        if action == "PAUSED" and status == TaskStatus.PAUSED:
            sim.app.resume("t")
        if action == "RESUMED" and status == TaskStatus.ACTIVE:
            sim.app.pause("t")
        return Response(status=502)

    flaky.loses, flaky.fails = True, [lose, lose]
    CHANGES[change](client, url)
    assert not flaky.fails
    sim.advance(HOUR)
    task, runs = sim.app.get("t"), sim.executions("t")
    assert [each.action for each in task.history].count(Action(action)) == 1
    assert task.status == {"RESUMED": TaskStatus.PAUSED, "CANCELLED": TaskStatus.CANCELLED}.get(
        action, TaskStatus.ACTIVE
    )
    assert sum(each.attempt_count for each in runs) == 1 + (action in {"TRIGGERED", "RETRIED", "BACKFILLED", "SNOOZED"})


def test_an_event_that_is_repeated_is_sent_once(client: Client, url: str, flaky: Flaky, sim: Simulation) -> None:
    """The handler has taken it before the repetition, and waits for the next one, which that would be."""
    ways: list[Callable[[], object]] = [
        lambda: client.send_event("t", "x"),
        lambda: _type(url, "send", "x"),
        lambda: act(_show(url), "t", "send", {"event": "x"}),
    ]
    client.create(owner="ada", handler="asks", id="t", schedule="in 2 seconds")
    sim.advance(HOUR)
    (run,) = sim.app.get("t").runs
    for number, send in enumerate(ways, 1):
        lose_answers(flaky, sim)
        send()
        assert not flaky.fails
        sim.advance(HOUR)
        steps = sim.app.execution("t", run.execution_id).steps
        assert [each.status for each in steps] == ["SUCCEEDED"] * number + ["WAITING"]


def test_a_task_whose_deletion_is_repeated_is_deleted(client: Client, flaky: Flaky, sim: Simulation) -> None:
    """What is gone when an answer was lost is done; what was never there, or was not asked for, is not found."""
    client.create(**GREET, id="t", schedule="in 5 hours")
    flaky.loses = True
    flaky.fail(502)
    client.delete("t")
    assert not flaky.fails
    assert sim.app.tasks(TaskQuery()).items == []
    with pytest.raises(NotFound):
        client.delete("t")
    flaky.fail(502)
    with pytest.raises(NotFound):
        client.get("t")


@pytest.mark.parametrize("text", ["Remind me to stretch in 10 minutes", "make my reminder 2 hours later"])
def test_a_draft_is_confirmed_once(client: Client, flaky: Flaky, sim: Simulation, text: str) -> None:
    """Also if somebody has edited its task between the confirmation and its repetition."""
    changed = sim.app.create(handler="remind", title="Reminder", payload={"text": "x"}, schedule="in 5 hours")
    sim.advance(MINUTE)
    drafted = client.draft(text, timezone="UTC", owner="system", context={"taskId": changed.id} if "my" in text else {})
    assert drafted.draft_token is not None, drafted

    def lose() -> Response:
        latest = max(sim.app.tasks(TaskQuery()).items, key=lambda each: each.updated_at)
        sim.advance(5 * MINUTE)
        sim.app.update(latest.id, description="Theirs", schedule="in 3 hours")
        return Response(status=502)

    flaky.loses, flaky.fails = True, [lose]
    task = client.confirm(drafted)
    assert task.description == "Theirs"
    assert sim.app.upcoming(task.id) == about([sim.now + 3 * HOUR])
    assert len(sim.app.tasks(TaskQuery()).items) == (2 if "stretch" in text else 1)
