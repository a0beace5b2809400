"""Ways around a limit that were found by reading the code: each takes several acts, so no table has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from tests.doors.world import SECOND, WORLDS, World, headers_of
from tests.web.callers import HOUR, MINUTE

from cloudsched.domain.documents.task_link import TaskLink, zone_key
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient
from cloudsched.engine.tasks.follow_changes import MAX_REPLANS
from cloudsched.errors import DeliveryRefused
from cloudsched.features.calendars.documents import calendar_key
from cloudsched.people.webhook_verification import WebhookVerification
from cloudsched.people.wiring import PeopleWiring

DAILY: dict[str, Any] = {"rrule": "FREQ=DAILY", "timezone": "UTC"}


@pytest.fixture
def world() -> Iterator[World]:
    """A world in which there is nothing yet."""
    with WORLDS.enter() as (world, _):
        world.has_records = True  # not only tasks change, so nobody uses it again
        yield world


def ask(world: World, who: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Send a request; return the status, and the answer as JSON."""
    answer = world.ask(method, path, body, headers_of(who))
    text = answer.get_data(as_text=True)
    return answer.status_code, json.loads(text) if text else None


class Refusing:
    """Endpoints that want no messages."""

    def ask(self, message: OutgoingMessage, recipient: Recipient) -> NoReturn:
        del message, recipient
        raise DeliveryRefused("404")


@pytest.mark.parametrize("erases", [False, True])
def test_who_has_everything_erased_begins_no_new_day(world: World, *, erases: bool) -> None:
    """Hosts are asked ten times a day for a person, also if all that is theirs has been erased in between."""
    parts = world.app.container
    PeopleWiring.of(parts).replace(
        webhook_verification=WebhookVerification(
            parts.store.records, parts.clock, PeopleWiring.of(parts).people, Refusing
        )
    )
    statuses = []
    for number in range(12):
        contact = {"webhook": {"url": f"https://stranger-{number}.example.com/"}}
        ask(world, "ada", "PUT", "/v1/people/ada", contact)
        statuses.append(ask(world, "ada", "POST", "/v1/people/ada/webhook/verify")[0])
        if erases:
            assert ask(world, "ada", "DELETE", "/v1/people/ada?everything=true")[0] == 202
        world.sim.advance(2 * MINUTE)
    assert statuses == [400] * 10 + [429] * 2


@pytest.mark.parametrize(("author", "priority"), [("ada", "HIGH"), ("admin", "CRITICAL")])
def test_a_users_stored_script_is_a_users_in_a_servers_task(world: World, author: str, priority: str) -> None:
    """It calls tools no more urgently than its author may ask for, whatever the priority of what runs it."""
    script = {"source": "return await tools.open({})", "owner": "ada"}
    assert ask(world, author, "PUT", "/v1/scripts/mine", script)[0] == 200
    due = {"at": (world.sim.now + SECOND).isoformat()}
    task = {"owner": "ada", "title": "T", "script": {"name": "mine"}, "priority": "CRITICAL", "schedule": due}
    status, made = ask(world, "admin", "POST", "/v1/tasks", task)
    assert status == 201
    world.sim.advance(2 * SECOND)
    (call,) = ask(world, "admin", "GET", f"/v1/tasks/{made['id']}/tree")[1]["children"]
    assert call["task"]["priority"] == priority


@pytest.mark.parametrize("action", ["pause", "resume", "cancel", "delete", "retryFailed"])
def test_a_batch_does_not_say_which_tasks_of_others_there_are(action: str) -> None:
    """Its counts for another's task are those for none: ids that people choose can be guessed."""
    with WORLDS.enter("active") as (world, target):
        counts = []
        for task_id in (target.task_id, "there-is-none"):
            body = {"action": action, "filter": {"ids": [task_id]}}
            made = ask(world, "bob", "POST", "/v1/tasks/batchChange", body)[1]
            world.sim.advance(timedelta(0))
            counts.append(ask(world, "bob", "GET", f"/v1/tasks/{made['id']}/executions")[1]["executions"][0]["content"])
    assert counts == [{"changed": 0, "skipped": 1, "refused": 0, "refusals": []}] * 2


@pytest.mark.parametrize("who", ["ada", "delegate"])
def test_a_user_takes_no_key_of_a_server(world: World, who: str) -> None:
    """What a user has made with a key neither stands for what a server makes for them with it, nor refuses it."""
    acting = {**headers_of(who), **({"X-On-Behalf-Of": "ada"} if who == "delegate" else {})}
    body = {"title": "Credit", "handler": "open", "owner": "ada"}
    made = []
    for headers in (acting, headers_of("admin"), acting, headers_of("admin")):
        answer = world.ask("POST", "/v1/tasks", body, {**headers, "Idempotency-Key": "credit-7"})
        made.append((answer.status_code, (answer.get_json() or {}).get("id")))
    (_, users), (_, servers) = made[:2]
    assert users != servers
    assert made == [(201, users), (201, servers), (200, users), (200, servers)]


def test_a_user_has_all_tasks_planned_again_some_times_an_hour(world: World) -> None:
    """By another zone or another calendar: each request made a task of the system that went through all of theirs."""
    ask(world, "ada", "PUT", "/v1/people/ada", {"timezone": "UTC"})
    ask(world, "ada", "PUT", "/v1/calendars/mine", {"weekdays": ["MO"]})
    follows = {"title": "T", "handler": "open", "schedule": "every day at 9", "timezone": "owner"}
    assert ask(world, "ada", "POST", "/v1/tasks", follows)[0] == 201

    def change(who: str, number: int) -> int:
        if number % 2:
            zone = ("Asia/Tokyo", "UTC")[number // 2 % 2]
            return ask(world, who, "PUT", "/v1/people/ada", {"timezone": zone})[0]
        days = {"weekdays": [("TU", "WE")[number // 2 % 2]], "owner": "ada"}
        return ask(world, who, "PUT", "/v1/calendars/mine", days)[0]

    statuses = [change("ada", number) for number in range(MAX_REPLANS + 3)]
    assert statuses == [200] * MAX_REPLANS + [429] * 3
    assert change("admin", 1) == 200
    zone = ask(world, "ada", "GET", "/v1/people/ada")[1]["timezone"]
    assert ask(world, "ada", "PUT", "/v1/people/ada", {"timezone": zone, "name": "Ada"})[0] == 200
    assert ask(world, "ada", "DELETE", "/v1/people/ada")[0] == 204
    assert ask(world, "ada", "PUT", "/v1/people/ada", {"timezone": "UTC"})[0] == 429, (
        "who is new again is followed, too"
    )
    world.sim.advance(HOUR)
    assert ask(world, "ada", "PUT", "/v1/people/ada", {"timezone": "UTC"})[0] == 201
    assert [change("ada", number) for number in range(4)] == [200] * 4


REFUSED: dict[str, dict[str, Any]] = {
    "nobody's zone is known": {"timezone": "owner"},
    "one of two calendars is unknown": {"schedule": {**DAILY, "calendars": [{"id": "mine"}, {"id": "none"}]}},
    "no day is left": {"schedule": {"rrule": "FREQ=WEEKLY;BYDAY=MO", "timezone": "UTC", "calendars": [{"id": "mine"}]}},
    "there is no room for a task that follows": {"timezone": "owner"},
    "there is no room for a task with a calendar": {"schedule": {**DAILY, "calendars": [{"id": "mine"}]}},
}


@pytest.mark.parametrize("own_id", [{}, {"id": "mine"}])
@pytest.mark.parametrize("why", REFUSED)
def test_a_creation_that_is_refused_leaves_no_link(why: str, own_id: dict[str, str]) -> None:
    """What finds a task by its calendar or its owner's zone is written before it, and no quota counts that."""
    is_full = why.startswith("there is no room")
    with WORLDS.enter("full" if is_full else "none") as (world, _):
        world.has_records = True
        ask(world, "ada", "PUT", "/v1/calendars/mine", {"weekdays": ["MO"]})
        if is_full:
            ask(world, "ada", "PUT", "/v1/people/ada", {"timezone": "Europe/Paris"})
        task = {"title": "T", "handler": "open", "schedule": "every day at 9", **REFUSED[why], **own_id}
        for path, body in (("/v1/tasks", task), ("/v1/tasks/batchCreate", {"tasks": [task, task]})):
            status, answer = ask(world, "ada", "POST", path, body)
            found = {status} if path == "/v1/tasks" else {each["status"] for each in answer["results"]}
            assert found == {429 if is_full else 400}
        keys = (zone_key("ada"), calendar_key("ada", "mine"))
        assert [world.app.container.store.records.list(TaskLink, key, limit=9) for key in keys] == [[], []]


@pytest.mark.parametrize("steps", [3, 50_000])
def test_a_streamed_draft_searches_no_more_than_another(
    world: World, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Its steps are made while they are sent, after the request: they spend from the request's allowance, too."""
    monkeypatch.setattr("cloudsched.web.api.router.REQUEST_STEPS", steps)
    body = {"text": "stretch every weekday at 9:00", "timezone": "UTC", "context": {"handler": "open"}}
    status, whole = ask(world, "ada", "POST", "/v1/tasks/draft", body)
    assert status == (400 if steps == 3 else 200)
    headers = {**headers_of("ada"), "Accept": "text/event-stream"}
    events = world.ask("POST", "/v1/tasks/draft", body, headers).get_data(as_text=True).split("\n\n")
    assert events[-2].splitlines()[0] == f"event: {'draft' if status == 200 else 'problem'}"
    assert status == 200 or json.loads(events[-2].partition("data: ")[2]) == whole
