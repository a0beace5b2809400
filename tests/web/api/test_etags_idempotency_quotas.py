"""Edits that do not overwrite others', creations that are safe to repeat, quotas, batches, other pages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.greeting_app import app
from tests.web.callers import GREETING, PEOPLE, SECOND, TASK, Answer, RoleHarness, make_keys, open_api
from tests.web.conftest import Call, create, fetch

from cloudsched.config.access import Access
from cloudsched.domain.documents.verbs import Verb
from cloudsched.testing import Simulation
from cloudsched.web.api.openapi import build_document
from cloudsched.web.api.operation import Operation
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.api.request_bodies import MAX_BATCH

DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00"}
CONDITIONAL = [each for each in OPERATIONS if each.is_conditional and "{taskId}" in each.path]


@pytest.mark.parametrize("operation", CONDITIONAL, ids=lambda each: each.name)
def test_an_edit_of_a_changed_task_is_refused(call: Call, operation: Operation) -> None:
    """With If-Match, a change applies only to the state that its caller has seen.

    HTTP allows an empty tag. It is another one than any of ours.
    """
    made = create(call, id="t", schedule=DAILY)
    seen = made.headers["ETag"]
    assert call("GET", "/v1/tasks/t").headers["ETag"] == seen
    call("PATCH", "/v1/tasks/t", {"title": "Meanwhile"})
    now = call("GET", "/v1/tasks/t")
    body: object = {"title": "x"} if operation.is_patch else None
    if operation.name in {"backfill", "move"}:
        example = Verb(operation.name).traits.example
        body = example and example["value"]
    if operation.name == "cancel_run":
        body = {"executionId": "e"}
    path = operation.path.format(taskId="t", event="e")
    for stale in (
        seen,
        '"x"',
        '""',
        'W/""',
        '"", "none"',
        f"W/{seen}",
        f'{seen[:-1]}-gzip"',
        f'{now.headers["ETag"][:-1]}0"',
    ):
        refused = call(operation.method, path, body, headers={"If-Match": stale})
        assert refused.status_code == 412
        assert call("GET", "/v1/tasks/t", headers={"If-None-Match": stale}).json == now.json
    accepted = call(operation.method, path, body, headers={"If-Match": f'"x", {now.headers["ETag"]}'})
    assert accepted.status_code != 412


PROXIES = {"nginx": "W/{}", "Apache": '{:.{all}}-gzip"', "Caddy": '{:.{all}}-zstd"', "Jetty": 'W/{:.{all}}--gzip"'}
"""What they make of a tag while they compress."""


@pytest.mark.parametrize("written", PROXIES.values(), ids=PROXIES)
def test_a_tag_that_a_proxy_has_rewritten_names_the_same_state(call: Call, written: str) -> None:
    """A caller who gives it back unchanged is not told for ever to read the task again, nor sent it again."""
    tag = create(call, id="t", schedule=DAILY).headers["ETag"]
    given = written.format(tag, all=len(tag) - 1)
    assert call("GET", "/v1/tasks/t", headers={"If-None-Match": given}).status_code == 304
    assert call("PATCH", "/v1/tasks/t", {"title": "Mine"}, headers={"If-Match": given}).status_code == 200
    assert call("PATCH", "/v1/tasks/t", {"title": "Late"}, headers={"If-Match": given}).status_code == 412
    assert call("GET", "/v1/tasks/t", headers={"If-None-Match": given}).status_code == 200


def test_the_document_is_made_once(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same for all callers, so nobody keeps the processor busy by asking for it. A client may keep it."""
    first = call("GET", "/openapi.json")
    monkeypatch.setattr("cloudsched.web.api.openapi.json.dumps", None)
    again = call("GET", "/openapi.json")
    assert (again.status_code, again.data, again.headers["ETag"]) == (200, first.data, first.headers["ETag"])
    kept = call("GET", "/openapi.json", headers={"If-None-Match": first.headers["ETag"]})
    assert (kept.status_code, kept.data) == (304, b"")


def test_an_idempotency_key_belongs_to_one_request(call: Call) -> None:
    """The same key with another body is a 422, and changes nothing; another owner's key is another key."""
    headers = {"Idempotency-Key": "once"}
    made = call("POST", "/v1/tasks", GREETING, headers=headers).json
    refused = call("POST", "/v1/tasks", {**GREETING, "title": "Other"}, headers=headers)
    assert (refused.status_code, refused.json["field"]) == (422, "Idempotency-Key")
    assert fetch(call, f"/v1/tasks/{made['id']}").items() <= made.items()
    assert call("POST", "/v1/tasks", {**GREETING, "owner": "bob"}, headers=headers).status_code == 201
    assert call("POST", "/v1/tasks", {**GREETING, "id": "t"}, headers=headers).status_code == 400


@pytest.mark.parametrize(
    "key", ["", " ", "%20", "é".encode("latin-1"), "%E9", "%ED%A0%80", "x" * 256, "%F0%9F%8E%89" * 256, "a\tb", "a%0Ab"]
)
def test_an_invalid_idempotency_key_is_refused(call: Call, key: str | bytes) -> None:
    """A key is a text of 1 to 255 characters in UTF-8, which may be percent-encoded."""
    sent = key.encode() if isinstance(key, str) else key
    headers = {"Idempotency-Key": sent.decode("latin-1")}
    assert call("POST", "/v1/tasks", GREETING, headers=headers).status_code == 400


def test_of_concurrent_requests_one_wins(sim: Simulation) -> None:
    """Any number of creations with one key make one task, which all get; of edits of its one state one is made."""

    def send(method: str, path: str, bodies: list[dict[str, Any]], **headers: str) -> list[Answer]:
        with ThreadPoolExecutor(8) as threads:
            asked = [
                threads.submit(open_api(sim.app).open, path, method=method, json=body, headers=headers)
                for body in bodies
            ]
        return sorted((each.result() for each in asked), key=lambda answer: answer.status_code)

    made = send("POST", "/v1/tasks", [GREETING] * 16, **{"Idempotency-Key": "k"})
    assert [answer.status_code for answer in made] == [200] * 15 + [201]
    (task_id,) = {answer.json["id"] for answer in made}
    titles = [{"title": str(number)} for number in range(16)]
    edits = send("PATCH", f"/v1/tasks/{task_id}", titles, **{"If-Match": made[0].headers["ETag"]})
    assert [answer.status_code for answer in edits] == [200] + [412] * 15


def test_a_batch_has_a_result_for_each(call: Call) -> None:
    """Each task of a batch succeeds or fails alone, and the results stand in the order of the request."""
    tasks: list[Any] = [{**GREETING, "title": f"T{number}"} for number in range(40)]
    tasks[7] = {**GREETING, "handler": "unknown"}
    tasks[9] = {}
    results = call("POST", "/v1/tasks/batchCreate", {"tasks": tasks}).json["results"]
    assert [result["status"] for result in results] == [400 if number in {7, 9} else 201 for number in range(40)]
    assert all(results[n]["task"]["title"] == f"T{n}" for n in range(40) if n not in {7, 9})
    assert [results[n]["problem"]["field"] for n in (7, 9)] == ["handler", "handler"]


def test_keys_of_batches_and_of_single_creations_never_collide(call: Call) -> None:
    """A batch with the key K and single creations with K, K#0 or K#1 make tasks of their own, in either order."""
    single = [call("POST", "/v1/tasks", GREETING, headers={"Idempotency-Key": key}) for key in ("K", "K#0")]
    batch = call("POST", "/v1/tasks/batchCreate", {"tasks": [GREETING] * 2}, headers={"Idempotency-Key": "K"})
    after = call("POST", "/v1/tasks", GREETING, headers={"Idempotency-Key": "K#1"})
    results = batch.json["results"]
    assert [response.status_code for response in (*single, after)] == [201] * 3
    assert [result["status"] for result in results] == [201] * 2
    assert len(fetch(call, "/v1/tasks")["tasks"]) == 5


@pytest.mark.parametrize(
    ("tasks", "field"),
    [
        ([], "tasks"),
        ([{}] * (MAX_BATCH + 1), "tasks"),
        ({}, "tasks"),
        ([{}, 1], "tasks.1"),
    ],
)
def test_the_size_of_a_batch_is_limited(call: Call, tasks: object, field: str) -> None:
    """From 1 to `MAX_BATCH` tasks."""
    assert call("POST", "/v1/tasks/batchCreate", {"tasks": tasks}).json["field"] == field


def test_a_list_has_the_order_that_is_asked_for(call: Call, sim: Simulation) -> None:
    """The newest first; or the soonest first, without those that have no next occurrence."""
    for day in (3, 1, 2):
        at = {"at": f"2027-02-0{day}T00:00:00Z"}
        create(call, id=f"d{day}", schedule=at)
        sim.advance(SECOND)
    call("POST", "/v1/tasks/d2/pause")

    def list_ids(query: str) -> list[str]:
        return [task["id"] for task in fetch(call, f"/v1/tasks{query}")["tasks"]]

    assert list_ids("") == list_ids("?orderBy=createdAt%20desc") == ["d2", "d1", "d3"]
    assert list_ids("?orderBy=nextExecutionTime") == ["d1", "d3"]
    wrong = call("GET", "/v1/tasks?orderBy=createdAt%20desc&dueFrom=2027-01-01T00:00:00Z")
    assert wrong.json["field"] == "orderBy"


def test_an_owner_s_creations_per_minute_are_limited(simulate: Callable[..., Simulation]) -> None:
    """Over any minute, and again in the next; the refusal says when to come back; a batch is cut where room ends."""
    keys, access = make_keys(PEOPLE, max_creations=5)
    sim = simulate(access=access)
    world = RoleHarness(sim, keys)
    batch = world.ask("ada", "POST", "/v1/tasks/batchCreate", {"tasks": [TASK] * 7}).json["results"]
    assert [result["status"] for result in batch] == [201] * 5 + [429] * 2
    refused = world.ask("ada", "POST", "/v1/tasks", TASK)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    sim.advance(59 * SECOND)
    assert world.ask("ada", "POST", "/v1/tasks", TASK).status_code == 429
    sim.advance(SECOND)
    assert world.ask("ada", "POST", "/v1/tasks", TASK).status_code == 201


def test_cross_origin_requests_are_refused() -> None:
    """CORS is closed by default, even for requests without a preflight; a listed origin may call."""
    page = {"Origin": "https://page.example"}
    asking = {**page, "Access-Control-Request-Method": "PATCH"}
    for origins, is_allowed in (((), False), (("https://other.example",), False), (("https://page.example",), True)):
        with Simulation(app, access=Access(origins=origins, open=True)) as sim:
            client = open_api(sim.app)
            answers = [
                client.options("/v1/tasks/x", headers=asking),
                client.post("/v1/tasks", data='{"owner": "ada"}', content_type="text/plain", headers=page),
                client.get("/v1/tasks", headers=page),
            ]
            assert [answer.status_code for answer in answers] == ([204, 415, 200] if is_allowed else [403] * 3)
            allowed = {answer.headers.get("Access-Control-Allow-Origin") for answer in answers}
            assert allowed == ({"https://page.example"} if is_allowed else {None})
            if is_allowed:
                sent = {each.strip() for each in answers[0].headers["Access-Control-Allow-Headers"].split(",")}
                schemes = build_document()["components"]["securitySchemes"].values()
                keys = {each["name"] for each in schemes if each["type"] == "apiKey"}
                assert {"Authorization", *keys} <= sent, "a page may say who it is in every way there is"
            own = {"Origin": "http://localhost"}
            assert client.get("/v1/tasks", headers=own).status_code == 200, "a page of the API's own host"
            assert client.get("/v1/tasks", headers={"Origin": "null"}).status_code == 403
