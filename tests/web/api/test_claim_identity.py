"""Which callers may renew, release and end a claim; nothing that a task's owner can read permits it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.web.callers import ENDS, KEYS, MINUTE, VERBS, ApiWorld, make_keys, run_path

from cloudsched import App, Context, Settings
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

RULES = Path(__file__).parents[3] / "infra" / "firestore.rules"


@pytest.fixture
def world() -> Iterator[ApiWorld]:
    app, worlds = App(Settings()), list[ApiWorld]()

    @app.handler("work")
    def work(ctx: Context) -> str:
        worlds[0].while_running(ctx)
        return "the true result"

    @app.handler("flow")
    def flow(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        ctx.notify("Began", "It has begun.")
        return ctx.call("work", {}, pull="gpu")

    keys, access = make_keys(KEYS)
    with Simulation(app, access=access) as sim:
        worlds.append(ApiWorld(sim, keys))
        yield worlds[0]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("who", ["gpu-2", "ada"])
def test_only_the_claiming_caller_may_use_its_token(world: ApiWorld, who: str, verb: str) -> None:
    """Another caller with the token gets the answer for a wrong token, and the claim stays as it is."""
    world.offer("a")
    claim = world.claim("gpu-1")
    refused = world.report(who, verb, run_path(claim), claim["leaseToken"])
    wrong = world.report(who, verb, run_path(claim), "0" * 32)
    assert (refused.status_code, refused.json["type"].rsplit("/", 1)[-1]) == (409, "lease-lost")
    assert refused.json == wrong.json
    assert world.report("gpu-1", "heartbeat", run_path(claim), claim["leaseToken"]).status_code == 200


@pytest.mark.parametrize("verb", ENDS)
def test_an_admin_may_end_a_claim_but_not_renew_it(world: ApiWorld, verb: str) -> None:
    """The end is recorded as the admin's; the claimant has lost the run, and cannot repeat the admin's report."""
    world.offer("a", retry={"maxRetries": 0})
    claim = world.claim("gpu-1")
    token = claim["leaseToken"]
    assert world.report("root", "heartbeat", run_path(claim), token).status_code == 409
    assert world.report("root", verb, run_path(claim), token).status_code == 200
    assert world.report("root", verb, run_path(claim), token).status_code == 200, "it is safe to repeat"
    late = {world.report(who, each, run_path(claim), token).status_code for who in ("gpu-1", "ops") for each in VERBS}
    assert late == {409}
    if verb == "release":
        (run,) = world.sim.app.get("a").runs
        assert run.released_by == "key:root"
    else:
        (attempt,) = world.ask("ada", run_path(claim), method="GET").json["attempts"]
        assert (attempt["worker"], attempt["endedBy"]) == ("box", "key:root")


def test_the_record_names_who_ended_each_attempt(world: ApiWorld) -> None:
    """The record names the caller who reported through the API, and no one for attempts of an executor."""
    world.offer("a", retry={"maxRetries": 3})
    for who, verb in (("gpu-1", "fail"), ("gpu-2", "complete")):
        claim = world.claim(who)
        assert world.report(who, verb, run_path(claim), claim["leaseToken"]).status_code == 200
        world.sim.advance(5 * MINUTE)
    world.offer("b", pull=None)
    ended = {each: [one.ended_by for one in world.sim.executions(each)[0].attempts] for each in ("a", "b")}
    assert ended == {"a": ["key:gpu-1", "key:gpu-2"], "b": [None]}


@pytest.mark.parametrize("who", KEYS)
def test_what_was_not_claimed_through_the_api_cannot_be_ended_there(world: ApiWorld, who: str) -> None:
    """A worker at the store holds its token, and not even an admin who knows it may use it through the API."""
    world.offer("a")
    (claim,) = PullWiring.of(world.sim.app.container).work_queue.claim(WorkerFilter("gpu"), THIS_PROCESS)
    run = f"/v1/tasks/a/executions/{claim.run.execution_id}"
    assert {world.report(who, verb, run, claim.lease_token).status_code for verb in VERBS} == {409}
    assert (
        PullWiring.of(world.sim.app.container)
        .worker_claims.heartbeat("a", claim.run.execution_id, claim.lease_token)
        .until
    )


def test_nothing_that_an_owner_can_read_is_a_credential(world: ApiWorld) -> None:
    """Each string of each readable document, as lease token, API key, bearer token and page token, is refused.

    Tried while an executor runs one task and workers run others, after results, releases, events and messages.
    """
    matches = re.findall(r"match (/\S+) \{", RULES.read_text("utf-8"))
    readable = {
        "/tasks/{taskId}",
        "/executions/{executionId}",
        "/inboxes/{owner}/messages/{messageId}",
        "/people/{owner}",
    }
    assert {*matches} - {"/databases/{database}/documents"} == readable, "this test reads what the rules let users read"
    contacts = {"email": {"address": "ada@example.com"}, "webhook": {"url": "https://example.com/hook"}}
    assert world.ask("ada", "/v1/people/ada", contacts, method="PUT").status_code == 201
    world.offer("flow", handler="flow", pull=None)
    world.sim.app.send_event("flow", "approved", {"by": "ada"}, early=True)
    world.offer("ended")
    world.sim.app.send_event("ended", "approved", {"by": "grace"}, early=True)
    for _ in range(2):
        claim = world.claim("gpu-1")
        assert "grace" not in str(claim), "a worker does not read what others have sent"
        verb = "complete" if claim["task"]["id"] == "ended" else "release"
        assert world.report("gpu-1", verb, run_path(claim), claim["leaseToken"]).status_code == 200
    world.offer("claimed", delivery_channels=["WEB"])
    for _ in range(2):
        world.claim("gpu-1")
    tried = list[tuple[str, str, int]]()

    def forge(_: Context) -> None:
        for text in _readable_strings(world.sim):
            tried.extend(_try_as_credential(world, text))

    world.while_running = forge
    world.offer("run", pull=None)
    (execution,) = world.sim.executions("run")
    assert execution.content == "the true result", execution.error
    assert len({text for _, text, _ in tried}) > 50
    refused = {"lease token": 409, "API key": 401, "bearer token": 401, "page token": 400}
    assert {kind for kind, _, _ in tried} == set(refused)
    assert [each for each in tried if each[2] != refused[each[0]]] == []


def _try_as_credential(world: ApiWorld, text: str) -> Iterator[tuple[str, str, int]]:
    """Use a string as every kind of credential of a request; yield the kind, and the response."""
    tasks = world.sim.app.container.store.list_tasks(TaskQuery(), limit=100).items
    runs = [f"/v1/tasks/{task.id}/executions/{run.execution_id}" for task in tasks for run in task.runs if run.lease]
    assert len(runs) == 3, "the executor's, and two workers'"
    for run in runs:
        for who in ("ada", "root"):
            yield "lease token", text, world.report(who, "complete", run, text[:128] or "x").status_code
    if text.isascii() and text.isprintable():
        yield "API key", text, world.ask_with("/v1/tasks", {"X-Api-Key": text}).status_code
        yield "bearer token", text, world.ask_with("/v1/tasks", {"Authorization": f"Bearer {text}"}).status_code
    for path in ("/v1/tasks", "/v1/tasks/flow/executions", "/v1/inboxes/ada/messages"):
        query = urlencode({"pageToken": text or "x"})
        yield "page token", text, world.ask("ada", f"{path}?{query}", method="GET").status_code


def _readable_strings(sim: Simulation) -> set[str]:
    """Return every string, of any depth, in the documents that the Firestore rules let their owner read."""
    documents: list[Any] = [PeopleWiring.of(sim.app.container).people.get("ada").to_wire()]
    for task in sim.app.container.store.list_tasks(TaskQuery(owner="ada"), limit=100).items:
        documents.append(task.to_wire())
        documents += [each.to_wire() for each in sim.app.executions(task.id, limit=100).items]
    documents += [each.to_wire() for each in sim.app.inbox("ada", limit=100).items]
    return set(_strings(documents))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield str(name)
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
